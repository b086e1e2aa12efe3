"""Every dependency is locked to one version and its hashes, so that the installed version is the tested one."""

import re
import tomllib

import pytest

from tests.support import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
BASE = PROJECT["project"]["dependencies"]
GROUPS = PROJECT["dependency-groups"]
WANTED = {
    "requirements/base.txt": BASE,
    "requirements/dev.txt": BASE + [each for each in GROUPS["dev"] if isinstance(each, str)] + GROUPS["build"],
    "requirements/postgres.txt": BASE + PROJECT["project"]["optional-dependencies"]["postgres"],
    "requirements/audit.txt": GROUPS["audit"],
    "requirements/build.txt": GROUPS["build"],
}
TOGETHER = [name for name in WANTED if name != "requirements/audit.txt"]  # the audit has an environment of its own


def locked(file):
    """Each requirement's name and hashes."""
    text = (ROOT / file).read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
    pinned = {line: re.match(r"([\w.-]+)(\[[\w,]+\])?==[\w.+!]+ ", line) for line in lines}
    assert all(pinned.values()), f"{file}: something is not pinned"
    return {match[1].lower(): re.findall(r"--hash=(\S+)", line) for line, match in pinned.items()}


@pytest.mark.parametrize("file", WANTED)
def test_each_dependency_is_pinned_with_its_hashes(file):
    requirements = locked(file)
    assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", each) for hashes in requirements.values() for each in hashes)
    assert [name for name, hashes in requirements.items() if not hashes] == []
    names = {re.match(r"[\w.-]+", wanted)[0].lower().replace("_", "-") for wanted in WANTED[file]}
    assert names - set(requirements) == set()


def test_each_install_checks_the_hashes():
    texts = {name: (ROOT / name).read_text("utf-8") for name in ("Makefile", "deploy/virtualenv.py")}
    installs = [line for text in texts.values() for line in text.splitlines() if re.search(r"pip.*\binstall\b", line)]
    commands = [line for line in installs if "-m pip install" in line or "*pip" in line]
    assert len(commands) == 2
    assert [line for line in commands if "--require-hashes" not in line] == []


def test_every_lock_file_is_known():
    assert {f"requirements/{path.name}" for path in ROOT.glob("requirements/*")} == set(WANTED)


def test_packages_installed_together_are_locked_to_one_version():
    versions = {}
    for file in TOGETHER:
        for name, version in re.findall(r"^([\w.-]+)(?:\[[\w,]+\])?==(\S+)", (ROOT / file).read_text("utf-8"), re.M):
            versions.setdefault(name, set()).add(version)
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}
