"""Check that all dependencies come as wheels for versions of Python that are not installed here.

python -m benchmarks.wheels            3.11 to 3.15, on Linux
python -m benchmarks.wheels 3.14 --platform win_amd64

pip resolves the whole set without installing it; a package without a wheel is an error. It takes
an index that knows those versions.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
EXTRAS = ("cli", "models", "plots", "report", "serve")
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")


def requirements(version: str) -> list[str]:
    """Return what the package and its extras need in a version of Python."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lists = [project["dependencies"], *(project["optional-dependencies"][e] for e in EXTRAS)]
    wanted = {}
    for text in (text for texts in lists for text in texts):
        one = Requirement(text)
        there = {"python_version": version, "platform_system": "Linux"}
        if one.name != project["name"] and (one.marker is None or one.marker.evaluate(there)):
            one.marker = None  # pip would evaluate it for the version that runs
            wanted[one.name] = str(one)
    return sorted(wanted.values())


def resolves(version: str, platforms: tuple[str, ...]) -> bool:
    """Whether pip finds wheels for all of it; says what it lacks."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--ignore-installed"]
    command += ["--disable-pip-version-check", "--only-binary", ":all:", "--implementation", "cp"]
    # pip would compare these with the version that runs; it compares the tags of wheels anyway
    command += ["--ignore-requires-python"]
    command += ["--target", str(ROOT / "build" / "wheels"), "--python-version", version]
    for platform in platforms:
        command += ["--platform", platform]
    done = subprocess.run([*command, *requirements(version)], capture_output=True, text=True)
    lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    print(f"Python {version}: {'all wheels' if not done.returncode else '; '.join(lines)[:500]}")
    return done.returncode == 0


def main() -> int:
    """Check the versions that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("versions", nargs="*", default=["3.11", "3.12", "3.13", "3.14", "3.15"])
    parser.add_argument("--platform", action="append")
    given = parser.parse_args()
    platforms = tuple(given.platform or PLATFORMS)
    return sum(not resolves(version, platforms) for version in given.versions)


if __name__ == "__main__":
    sys.exit(main())
