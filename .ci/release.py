"""Prepares a release: `python .ci/release.py v0.5.0 https://HOST/OWNER/NAME` prints its notes from CHANGELOG.md.

Only the workflow of a release knows the repository's address, so it is written to [project.urls] here.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECTS = [ROOT / "pyproject.toml", ROOT / "clients" / "python" / "pyproject.toml"]
URLS = """
[project.urls]
Source = "{address}"
Changelog = "{address}/blob/{tag}/CHANGELOG.md"
Documentation = "{address}/blob/{tag}/docs/README.md"
Issues = "{address}/issues"
"""


def notes(tag: str) -> str:
    """Return the changes of the tag's version. Exits if a version differs from the tag, or something is missing."""
    version = tag.removeprefix("v")
    for file in PROJECTS:
        if (found := tomllib.loads(file.read_text("utf-8"))["project"]["version"]) != version:
            sys.exit(f"error: the tag is {tag}, but {file.relative_to(ROOT)} has version {found}")
    if f'VERSION = "{version}"\n' not in (ROOT / "runtime" / "settings.py").read_text("utf-8"):
        sys.exit(f"error: the tag is {tag}, but runtime/settings.py has another VERSION")
    if not (ROOT / "tests" / "data" / f"{version}.sql").exists():
        sys.exit(f"error: tests/data/{version}.sql is missing: run `.venv/bin/python -m tests.released_database`")
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    section = re.search(rf"^## \[{re.escape(version)}\].*\n((?:(?!## \[).*\n)+)", changelog, re.MULTILINE)
    if not section or not section[1].strip():
        sys.exit(f"error: CHANGELOG.md has no changes of version {version}")
    return section[1].strip()


if __name__ == "__main__":
    tag, address = sys.argv[1:]
    print(notes(tag))
    for file in PROJECTS:
        with file.open("a", encoding="utf-8") as project:
            project.write(URLS.format(tag=tag, address=address))
