"""The translations match the code: none missing, none unused, every placeholder kept."""

import re
from contextlib import chdir

import pytest
from babel.messages.frontend import CommandLineInterface
from babel.messages.pofile import read_po

from tests.support import ROOT

CATALOGUE = ROOT / "blueprints" / "translations" / "zh" / "LC_MESSAGES" / "messages.po"
PLACEHOLDER = re.compile(r"%\(\w+\)[a-z]|\{\w*\}")


@pytest.fixture(scope="module")
def catalogue():
    """The content of the translations file."""
    with CATALOGUE.open("rb") as file:
        return read_po(file, locale="zh")


@pytest.fixture(scope="module")
def extracted(tmp_path_factory):
    """The texts that `make messages` finds in the code, by its own command."""
    command = re.search(r"pybabel (--quiet extract .*) -o", (ROOT / "Makefile").read_text("utf-8"))[1]
    template = tmp_path_factory.mktemp("messages") / "messages.pot"
    with chdir(ROOT):
        CommandLineInterface().run(["pybabel", *command.split(), "-o", str(template), "."])
    with template.open("rb") as file:
        return {(each.id, each.context) for each in read_po(file) if each.id}


def _texts(message):
    """An original or a translation, a text for each of its plural forms."""
    return [message] if isinstance(message, str) else list(message)


def test_every_text_of_the_code_is_translated(catalogue, extracted):
    found = {each: catalogue.get(*each) for each in extracted}
    missing = [each for each, entry in found.items() if not entry or not all(_texts(entry.string)) or entry.fuzzy]
    assert missing == [], "run `make messages` and translate what is new"


def test_the_catalogue_has_no_unused_text(catalogue, extracted):
    assert len(extracted) > 500
    assert [message.id for message in catalogue if message.id and (message.id, message.context) not in extracted] == []
    assert list(catalogue.obsolete) == []


def test_a_translation_has_the_placeholders_of_its_original(catalogue):
    def placeholders(texts):
        return {each for text in _texts(texts) for each in PLACEHOLDER.findall(text)}

    differ = [
        message.id for message in catalogue if message.id and placeholders(message.id) != placeholders(message.string)
    ]
    assert differ == []
