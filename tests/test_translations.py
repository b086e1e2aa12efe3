"""The translations match the code: none missing, none unused, every placeholder kept."""

import ast
import re
from contextlib import chdir

import pytest
from babel.messages.frontend import CommandLineInterface
from babel.messages.pofile import read_po

from services.platform.language import language_of
from tests.support import ROOT

CATALOGUE = ROOT / "blueprints" / "translations" / "zh" / "LC_MESSAGES" / "messages.po"
CHINESE = r"[\u4e00-\u9fff\u3001-\u301f\uff01-\uff5e]"
HALF_WIDTH = re.compile(rf"{CHINESE}\s*[,;:!?()]|[,;:!?(]\s*{CHINESE}")
# Code, addresses and HTML keep their half-width marks.
NOT_PROSE = re.compile(r"```.*?```|`[^`\n]*`|\]\([^)]*\)|<[^>]+>", re.DOTALL)
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
        message.id
        for message in catalogue
        if message.id and placeholders(_texts(message.id)[-1]) != placeholders(message.string)
    ]
    assert differ == []


def test_chinese_texts_have_full_width_punctuation(catalogue):
    texts = [text for message in catalogue if message.id for text in _texts(message.string)]
    assert [text for text in texts if HALF_WIDTH.search(NOT_PROSE.sub("X", text))] == []


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "zh").rglob("*.md")), ids=lambda path: path.name)
def test_chinese_guides_have_full_width_punctuation(path):
    lines = NOT_PROSE.sub("X", path.read_text("utf-8")).splitlines()
    assert [line for line in lines if HALF_WIDTH.search(re.sub("[*_]", "", line))] == []


def _reasons(tree):
    """The texts that a driver gives as a reason: of its errors, and `detail` of its reports."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if getattr(call.func, "id", "") in {"ChannelRefused", "ChannelUnknown", "BadNotice"} and call.args:
            yield call.args[0]
        yield from (each.value for each in call.keywords if each.arg == "detail")


@pytest.mark.parametrize("path", sorted((ROOT / "gateways").rglob("*.py")), ids=lambda path: path.stem)
def test_the_reasons_that_a_driver_gives_are_marked_for_translation(path):
    unmarked = []
    for text in _reasons(ast.parse(path.read_text("utf-8"))):
        parts = text.values if isinstance(text, ast.JoinedStr) else [text]
        unmarked += [
            part.value for part in parts if isinstance(part, ast.Constant) and re.search("[a-z]{3}", part.value)
        ]
    assert unmarked == []


def test_no_text_is_marked_inside_an_f_string():
    """`make messages` does not find it there."""
    marked = []
    for path in ROOT.glob("[a-z]*/**/*.py"):
        strings = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.JoinedStr)]
        calls = [node for each in strings for node in ast.walk(each) if isinstance(node, ast.Call)]
        marked += [path for call in calls if getattr(call.func, "id", "") in {"N_", "gettext", "lazy_gettext"}]
    assert marked == []


def test_a_stored_text_of_a_driver_is_shown_in_the_readers_language():
    chinese = language_of("zh")
    assert chinese.known("HTTP 502 from pay.example.com: no JSON object") == (
        "pay.example.com 返回 HTTP 502：不是 JSON 对象"
    )
    for own_words in ("余额不足", "Other", "ask the payer again", "12.00", ""):
        assert chinese.known(own_words) == own_words
    assert language_of("en").known("no JSON object") == "no JSON object"
