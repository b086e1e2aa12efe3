"""Builds `tillbook-VERSION.pyz` from the wheel: one file with all dependencies, for each supported Python.

It runs on Linux with this machine's processor and at least its libc. `make dist` calls it with the wheel's path.
"""

import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from packaging.markers import default_environment
from packaging.tags import compatible_tags, cpython_tags, platform_tags

PYTHONS = ((3, 11), (3, 12), (3, 13), (3, 14))
REQUIREMENTS = Path(__file__).resolve().parents[2] / "requirements/base.txt"
PIP = (sys.executable, "-m", "pip", "download", "-qq", "--disable-pip-version-check")
PEX = (
    *(sys.executable, "-m", "pex", "--venv", "prepend", "--console-script", "tillbook"),
    *("--python-shebang", "/usr/bin/env python3", "--no-emit-warnings"),
)


def build(wheel: Path, target: Path) -> None:
    """Write `target`. Raises CalledProcessError if a dependency has no wheel for a Python, or a wrong hash."""
    with tempfile.TemporaryDirectory() as folder:
        targets = []
        hashed = ["--require-hashes", "--only-binary", ":all:", "--requirement", REQUIREMENTS]
        platforms = list(platform_tags())
        for python in PYTHONS:
            version = ".".join(map(str, python))
            subprocess.run([*PIP, *hashed, "--python-version", version, "--dest", f"{folder}/wheels"], check=True)
            # pex's description of an interpreter that is not on this machine.
            tags = [*cpython_tags(python, platforms=platforms)]
            tags += compatible_tags(python, f"cp{python[0]}{python[1]}", platforms)
            markers = default_environment() | {"python_version": version, "python_full_version": f"{version}.0"}
            described = {"marker_environment": markers, "compatible_tags": [str(tag) for tag in tags]}
            targets.append(Path(folder, f"{version}.json"))
            targets[-1].write_text(json.dumps(described), "utf-8")
        subprocess.run(
            [
                *PEX,
                *(f"--complete-platform={each}" for each in targets),
                *("--pre-resolved-dists", f"{folder}/wheels", "--pre-resolved-dists", wheel),
                *("--output-file", target),
                f"tillbook=={wheel.name.split('-')[1]}",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )


if __name__ == "__main__":
    made = Path(sys.argv[1])
    build(made, made.with_name(f"{'-'.join(made.name.split('-')[:2])}.pyz"))
    versions = ", ".join(".".join(map(str, each)) for each in PYTHONS)
    print(f"The .pyz is for Python {versions} on Linux {platform.machine()}.")
