"""The documentation holds together: its links lead somewhere, and what can be counted is all there."""

import dataclasses
import re

import pytest

from settings import Settings
from tests.cli.test_help import COMMANDS
from tests.support import ROOT

PAGES = [
    *(ROOT / name for name in ("README.md", "SECURITY.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
OPERATING = (ROOT / "docs" / "operating.md").read_text("utf-8")
CODE = re.compile(r"```.*?```", re.DOTALL)


def _anchors(page):
    """What a link can name on a page: each heading as the repository's web page writes it."""
    headings = re.findall(r"^#+ (.*)$", CODE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    links = re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", page.read_text("utf-8")))
    for link in (link for link in links if not link.startswith("http")):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in _anchors(target), link


def test_every_setting_has_its_row():
    missing = [field.name for field in dataclasses.fields(Settings) if f"\n| `{field.name}` |" not in OPERATING]
    assert missing == []


def test_every_command_is_in_the_list_of_all_commands():
    listed = OPERATING.partition("## All commands")[2]
    missing = [name for name in COMMANDS if not all(re.search(rf"\b{word}\b", listed) for word in name.split())]
    assert missing == []


def test_each_release_in_the_changelog_has_each_kind_once():
    for release in (ROOT / "CHANGELOG.md").read_text("utf-8").split("\n## ")[1:]:
        kinds = re.findall(r"^### (\w+)$", release, re.MULTILINE)
        assert len(kinds) == len(set(kinds)), release.splitlines()[0]


def test_the_index_of_the_documentation_names_every_page():
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    pages = {page.name for page in PAGES if page.parent.name == "docs"} - {"README.md"}
    assert {name for name in pages if f"]({name})" not in index} == set()
