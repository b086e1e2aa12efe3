"""`make help` lists every command, and the git hooks agree with `make check`."""

import re
import shutil
import sys

import pytest
import yaml

from tests.support import ROOT, finished

MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
NEEDS_MAKE = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
COMMANDS = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split()


@NEEDS_MAKE
@pytest.mark.usefixtures("slow")
def test_help_lists_every_command_and_lines_up():
    # These tests may themselves be run by make.
    listed = finished(["make", "--no-print-directory", "help"], check=True).stdout.splitlines()
    assert {line.split()[0] for line in listed} == set(COMMANDS)
    assert len({re.match(r"\S+ +", line).end() for line in listed}) == 1


def test_the_hooks_check_what_make_checks_and_fetch_nothing():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    assert {repository["repo"] for repository in config["repos"]} == {"local"}
    entries = [hook["entry"].removesuffix(" --force-exclude") for repo in config["repos"] for hook in repo["hooks"]]
    checks = re.search(r"^check:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)[1].replace("$(BIN)", ".venv/bin")
    commands = [line.strip() for line in checks.splitlines()]
    assert [entry.removesuffix(" .") for entry in entries] == [command.removesuffix(" .") for command in commands]


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("", "Say where your checkout of github.com/monlor/Epay is: make test-epay-platform FOLDER=/path/to/Epay"),
        ("tests", "tests is no checkout of github.com/monlor/Epay: it has no api.php"),
    ],
)
def test_the_tests_against_a_real_platform_name_missing_requirements_in_one_line(folder, words):
    done = finished([sys.executable, "-m", "tests.gateways.live.epay_platform", folder])
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{words}\n")


SAID = {
    "no holes": ("No known vulnerabilities found", 0, 0),
    "a hole": ("Found 1 known vulnerability in 1 package", 1, 1),
    "behind a mirror": ("ERROR:pip_audit._cli:boolean-py: Dependency not found on PyPI and could not be audited", 1, 2),
    "no network": ("ERROR:pip_audit._cli:Could not connect to PyPI", 1, 2),
    "nothing": ("", 0, 2),
}


@NEEDS_MAKE
@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize(("words", "status", "told"), SAID.values(), ids=SAID)
def test_an_audit_without_a_lookup_is_not_a_success(tmp_path, words, status, told):
    """With pip-audit's output in each case, because it needs the network and tests don't use it."""
    audit = tmp_path / ".audit"
    (audit / "bin").mkdir(parents=True)
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements/audit.txt").touch()
    tool = audit / "bin" / "pip-audit"
    tool.write_text(f"#!/bin/sh\necho '{words}' >&2\nexit {status}\n", "utf-8")
    tool.chmod(0o755)
    (audit / ".ready").touch()
    done = finished(["make", "--no-print-directory", "-f", ROOT / "Makefile", "audit"], cwd=tmp_path)
    assert words in done.stdout
    assert (done.returncode == 0) is (told == 0)
    assert ("nothing is known about the packages" in done.stdout) is (told == 2)
