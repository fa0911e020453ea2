"""Build a release and try it as its users will: `make release-check`, before anything is uploaded.

python -m benchmarks.release_check                        for 3.11, 3.12 and 3.13
python -m benchmarks.release_check --versions 3.12 --extras plots serve

A tag on the commit has to name the version. Wheel and sdist are built, checked by twine and
check-wheel-contents, and the wheel is installed into an empty environment for each version of
Python and each extra alone, where a smoke test runs. A software bill of materials of the service
is written, and its dependencies are audited; where no source of vulnerabilities can be reached,
the check fails and says so. Everything is in build/release.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from packaging.utils import parse_wheel_filename

ROOT = Path(__file__).parents[1]
OUT = ROOT / "build" / "release"
SMOKE = """
import expecta
from expecta import Independent, Pair, Vtree
from expecta.circuits import independent, linear
vtree = Vtree.balanced(2)
pair = Pair(independent(vtree, [[0.5, 0.5]] * 2), linear(vtree, [[0.0, 1.0], [0.0, 10.0]]))
assert abs(pair.expectation([[1, -1]])[0] - 6.0) < 1e-12
density = Independent().fit({"age": [20, 30, None], "sex": ["f", None, "m"]})
assert density.score({"age": [20], "sex": [None]}) < 0
"""
SOURCES = ("pypi", "osv")  # of known vulnerabilities, by pip-audit's names
# What an extra adds, and works without the others.
ADDED = {
    "cli": "from expecta.cli.app import app; import pyarrow",
    "dask": "import expecta.dask",
    "plots": "from expecta.ask.displays import GroupDisplay; import matplotlib",
    "report": "from expecta.report import write_report; import jinja2",
    "serve": "from expecta.serve import app; assert app({'people': density}).title == 'Expecta'",
}


def run(*command: object, **options: object) -> None:
    """Run a command; what it prints is shown, and its failure ends the check."""
    words = [str(word) for word in command]
    print("$", " ".join(words), flush=True)
    subprocess.run(words, cwd=ROOT, check=True, **options)  # type: ignore[call-overload]


def tool(name: str) -> Path:
    """Return the path of a program of this environment."""
    return Path(sys.executable).parent / name


def interpreter(version: str) -> str:
    """Return a Python of this version, on the path or of pyenv; the check ends without one."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    there = [f"python{version}", *map(str, sorted(pyenv.glob(f"{version}.*/bin/python")))]
    for path in there:
        try:
            command = [path, "-c", "import sys; print(sys.executable)"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return done.stdout.strip()
    sys.exit(f"there is no Python {version}: install it, or name others by --versions")


def check_tag(version: str) -> None:
    """Refuse a tag that names another version."""
    command = ["git", "tag", "--points-at", "HEAD", "--list", "v*"]
    tags = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    if tags and f"v{version}" not in tags.split():
        sys.exit(f"the commit is tagged {tags.split()}, and the package says {version}")
    print(f"version {version}, {'tagged' if tags else 'not tagged yet'}")


def build() -> Path:
    """Build wheel and sdist, check both, and return the wheel."""
    shutil.rmtree(OUT, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", OUT)
    files = sorted(OUT.iterdir())
    run(sys.executable, "-m", "twine", "check", "--strict", *files)
    (wheel,) = OUT.glob("*.whl")
    run(tool("check-wheel-contents"), wheel)
    check_tag(str(parse_wheel_filename(wheel.name)[1]))
    return wheel


def try_out(wheel: Path, version: str, extra: str | None, compiled: bool) -> None:
    """Install the wheel with one extra into an empty environment, and run the smoke test."""
    place = OUT / f"env-{version}-{extra or 'plain'}"
    run(tool("uv"), "venv", "--quiet", "--python", interpreter(version), place)
    name = f"{wheel}[{extra}]" if extra else str(wheel)
    run(tool("uv"), "pip", "install", "--quiet", "--python", place / "bin" / "python", name)
    code = SMOKE + ADDED.get(extra or "", "")
    environment = {**os.environ} | ({} if compiled else {"NUMBA_DISABLE_JIT": "1"})
    run(place / "bin" / "python", "-c", code, env=environment)
    if extra != "serve":
        shutil.rmtree(place)


def write_bill(site: Path) -> None:
    """Write the software bill of materials of an environment."""
    python = site.parents[2] / "bin" / "python"
    run(tool("cyclonedx-py"), "environment", python, "--output-file", OUT / "expecta-sbom.cdx.json")


def audit(site: Path) -> list[str]:
    """Return the known vulnerabilities of what is installed, by the first source that knows all.

    The check ends, and says so, where none does: what was not looked up was not audited.
    """
    reasons = []
    for source in SOURCES:
        command = [str(tool("pip-audit")), "--path", str(site), "--format", "json", "-s", source]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        try:
            packages = json.loads(done.stdout)["dependencies"]
        except ValueError:  # a traceback on standard error
            reasons.append(f"{source}: {(done.stderr.strip().splitlines() or ['no answer'])[-1]}")
            continue
        skipped = [p["name"] for p in packages if "skip_reason" in p and p["name"] != "expecta"]
        if packages and not skipped:
            print(f"audited {len(packages)} packages by {source}")
            return [f"{p['name']} {v['id']}" for p in packages for v in p.get("vulns", ())]
        reasons.append(f"{source}: knows nothing of {len(skipped)} of {len(packages)} packages")
    sys.exit(
        "the release was built and tried, but its dependencies were NOT audited, since no source "
        "of vulnerabilities answers on this network:\n  " + "\n  ".join(reasons) + "\nRun this "
        "where pypi.org or api.osv.dev answers, or leave the audit out by --no-audit"
    )


def main() -> None:
    """Check the versions and extras that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--versions", nargs="*", default=["3.11", "3.12", "3.13"])
    parser.add_argument("--extras", nargs="*", default=list(ADDED), choices=list(ADDED))
    parser.add_argument("--no-audit", action="store_true", help="where there is no network")
    parser.add_argument("--interpreted", action="store_true", help="compile no kernels: faster")
    given = parser.parse_args()
    wheel = build()
    for version in given.versions:
        try_out(wheel, version, None, compiled=not given.interpreted)
        for extra in given.extras:
            try_out(wheel, version, extra, compiled=False)
    audited = "not audited"
    if "serve" in given.extras:
        (site,) = OUT.glob(f"env-{given.versions[-1]}-serve/lib/python*/site-packages")
        write_bill(site)
        if not given.no_audit:
            if vulnerable := audit(site):
                sys.exit(f"known vulnerabilities: {', '.join(vulnerable)}")
            audited = "no known vulnerability"
    environments = f"{len(given.versions)} versions, {1 + len(given.extras)} environments each"
    print(f"{wheel.name}: {environments}; {audited}")


if __name__ == "__main__":
    main()
