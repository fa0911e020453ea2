"""Build a release and try it as its users will: `make release-check`, before anything is uploaded.

python -m benchmarks.release_check                        for 3.11, 3.12 and 3.13
python -m benchmarks.release_check --versions 3.12 --extras plots serve

A tag on the commit has to name the version. Wheel and sdist are built, checked by twine and
check-wheel-contents, and the wheel is installed into an empty environment for each version of
Python and each extra alone, where a smoke test runs. Dependencies are audited, and a software bill
of materials is written. Everything is in build/release.
"""

from __future__ import annotations

import argparse
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


def audit(version: str) -> None:
    """Look the dependencies of a service up in the database of vulnerabilities, and list them."""
    python = OUT / f"env-{version}-serve" / "bin" / "python"
    bill = OUT / "expecta-sbom.cdx.json"
    run(tool("cyclonedx-py"), "environment", python, "--output-file", bill)
    (site,) = python.parents[1].glob("lib/python*/site-packages")
    run(tool("pip-audit"), "--strict", "--path", site)


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
    if not given.no_audit and "serve" in given.extras:
        audit(given.versions[-1])
    print(
        f"{wheel.name}: {len(given.versions)} versions, {1 + len(given.extras)} environments each"
    )


if __name__ == "__main__":
    main()
