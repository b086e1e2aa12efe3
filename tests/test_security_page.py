"""SECURITY.md names existing tests, files and commands."""

import re

from tests.support import ROOT

PAGE = (ROOT / "SECURITY.md").read_text("utf-8")


def test_each_defence_names_an_existing_test():
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 15
    for row in rows:
        named = re.findall(r"`(tests/[\w/.]+)`", row)
        assert named, row
        assert [name for name in named if not (ROOT / name).is_file()] == []


def test_each_page_that_it_links_exists():
    assert all((ROOT / path).is_file() for path in re.findall(r"\]\(([\w/.]+)", PAGE))


def test_each_make_target_that_it_names_exists():
    targets = (ROOT / "Makefile").read_text("utf-8")
    assert all(re.search(rf"^{name}:", targets, re.M) for name in re.findall(r"\bmake ([a-z]+)", PAGE))
