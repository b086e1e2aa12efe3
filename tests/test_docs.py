"""Links, index, settings and commands of the documentation are complete, and both languages are in step."""

import dataclasses
import re

import pytest
from babel.messages.pofile import read_po

from models.tables.order import CANCELLED, STATUSES
from runtime.settings import Settings
from services.callbacks.delivery import RETRY_SECONDS
from services.epay.refusals import Refusal
from services.errors import ACTION_LABELS, ACTIONS, ERRORS
from tests.cli.test_help import COMMANDS, GROUPS
from tests.support import ROOT

PAGES = [*ROOT.glob("[A-Z]*.md"), ROOT / "clients/python/README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SECURITY = (ROOT / "SECURITY.md").read_text("utf-8")
CODE = re.compile(r"```.*?```", re.DOTALL)
ZH = ROOT / "docs" / "zh"
REFERENCES = [ROOT / "docs" / "reference", ZH / "reference"]
CHINESE = sorted(ZH.rglob("*.md"))
CURRENT = [page for page in PAGES if page.name != "CHANGELOG.md"]

with (ROOT / "blueprints/translations/zh/LC_MESSAGES/messages.po").open("rb") as catalogue:
    TRANSLATED = read_po(catalogue, locale="zh")
CHINESE_LABELS = {action: TRANSLATED[label].string for action, label in ACTION_LABELS.items()}


def _anchors(page):
    """The anchors of a page: each heading as the repository's web page writes it."""
    headings = re.findall(r"^#+ (.*)$", CODE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _links(page):
    """The links of a page to files of the repository: as written, the file, and the anchor."""
    links = re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", page.read_text("utf-8")))
    for link in (link for link in links if not link.startswith("http")):
        path, _, anchor = link.partition("#")
        yield link, (page.parent / path).resolve() if path else page, anchor


def _english(page):
    """The English page of a Chinese one: docs/zh/README.md is the project's README."""
    return ROOT / "README.md" if page == ZH / "README.md" else ROOT / "docs" / page.relative_to(ZH)


def test_every_link_is_valid():
    for page in PAGES:
        for link, target, anchor in _links(page):
            assert target.exists(), (page, link)
            assert not anchor or anchor in _anchors(target), (page, link)


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda folder: folder.parent.name)
def test_every_setting_has_its_row(reference):
    page = (reference / "settings.md").read_text("utf-8")
    missing = [field.name for field in dataclasses.fields(Settings) if f"\n| `{field.name}` |" not in page]
    assert missing == []


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda folder: folder.parent.name)
def test_every_command_is_in_the_reference(reference):
    listed = (reference / "commands.md").read_text("utf-8")
    missing = [name for name in COMMANDS if not all(re.search(rf"\b{word}\b", listed) for word in name.split())]
    assert missing == []


def test_every_command_on_a_page_exists_with_its_options():
    named = re.compile(r"(?:\.venv/bin/|`|sudo |/restored )tillbook +([a-z][^\n`|#>]*)")
    texts = {page: page.read_text("utf-8").replace("\\\n", " ") for page in CURRENT}
    lines = [(page, line) for page, text in texts.items() for line in named.findall(text)]
    assert len(lines) > 300
    for page, line in lines:
        first, *more = line.split()
        if not more and first in GROUPS:
            continue
        command = GROUPS[first][more[0]] if first in GROUPS else COMMANDS[first]
        options = {option for parameter in command.params for option in parameter.opts + parameter.secondary_opts}
        assert set(re.findall(r"(?<!\S)--[\w-]+", line)) - options == set(), f"{page}: {line}"


def test_every_make_target_on_a_page_exists():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    for page in PAGES:
        named = re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text("utf-8"), re.MULTILINE)
        assert set(named) - set(targets) == set(), page


def test_each_release_in_the_changelog_has_each_kind_once():
    for release in (ROOT / "CHANGELOG.md").read_text("utf-8").split("\n## ")[1:]:
        kinds = re.findall(r"^### (\w+)$", release, re.MULTILINE)
        assert len(kinds) == len(set(kinds)), release.splitlines()[0]


def test_the_index_of_the_documentation_names_every_page_once():
    index = ROOT / "docs" / "README.md"
    listed = [target for _, target, _ in _links(index)]
    assert len(listed) == len(set(listed))
    pages = {page for page in PAGES if page.is_relative_to(index.parent) and not page.is_relative_to(ZH)}
    assert pages - set(listed) == {index}


def _sentences(text):
    """The sentences of a page's paragraphs, lists and headings, without code, tables and link targets."""
    text = re.sub(
        r"^\s*(\||<!--).*$",
        "",
        re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE),
        flags=re.MULTILINE,
    )
    text = re.sub(r"`[^`\n]+`", "CODE", re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text))
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*#]|\d+\.) )", text):
        plain = re.sub(r"^\s*(?:[-*]|#+|\d+\.) |\*", "", paragraph)
        yield from re.split(r"(?<=[.!?])\s+", plain.strip())


def test_a_sentence_has_at_most_25_words():
    english = [page for page in CURRENT if page not in CHINESE]
    sentences = [(page, sentence) for page in english for sentence in _sentences(page.read_text("utf-8"))]
    assert [(page, sentence) for page, sentence in sentences if len(sentence.split()) > 25] == []


def _pattern(text):
    """A text of the catalog as a pattern; its values can be anything."""
    return r"[^\"]+".join(map(re.escape, re.split(r"%\(\w+\)s", text)))


API_TEXTS = [
    *ERRORS.values(),
    "success",
    "Must have at most two decimals.",
    "Must be 8 to 32 digits.",
    "Belongs in %(place)s.",
]
API_TEXT = re.compile(
    f'"({"|".join(_pattern(each) for text in API_TEXTS for each in (text, TRANSLATED[text].string))})"'
)


def _without_api_texts(code):
    """Code without the texts that the API returns in the caller's language."""
    return API_TEXT.sub('""', code)


@pytest.mark.parametrize("page", CHINESE, ids=lambda page: page.stem)
def test_a_chinese_page_has_the_headings_and_code_of_the_english_one(page):
    chinese, english = page.read_text("utf-8"), _english(page).read_text("utf-8")
    translated = [CODE.findall(chinese), CODE.findall(english)]
    assert [_without_api_texts(each) for each in translated[0]] == [_without_api_texts(each) for each in translated[1]]
    levels = [re.findall(r"^(#+) ", CODE.sub("", text), re.MULTILINE) for text in (chinese, english)]
    assert levels[0] == levels[1]


def test_a_chinese_page_links_to_chinese_pages_and_to_its_own_english_one():
    translated = {_english(page) for page in CHINESE}
    for page in CHINESE:
        in_english = {target for _, target, _ in _links(page) if target in translated}
        assert in_english == {_english(page)}, f"{page}: link its English page in the first lines, and no other one"


def test_the_readme_links_the_chinese_one_in_its_first_line():
    assert "(docs/zh/README.md)" in (ROOT / "README.md").read_text("utf-8").splitlines()[0]


def test_the_readmes_show_every_screenshot_and_all_are_small():
    images = set((ROOT / "docs" / "images").iterdir())
    shown = {target for page in (ROOT / "README.md", ZH / "README.md") for _, target, _ in _links(page)}
    assert {image.name for image in images - shown} == set()
    assert sum(image.stat().st_size for image in images) < 300_000


@pytest.mark.parametrize("page", [ROOT / "docs" / "errors.md", ZH / "errors.md"], ids=lambda page: page.parent.name)
def test_the_table_of_errors_has_every_code_with_its_text_and_action(page):
    is_chinese = page.parent == ZH
    labels = CHINESE_LABELS if is_chinese else ACTION_LABELS
    rows = re.findall(
        r"^\| (\d{5}) \| `([^`]+)` \| [^|]+ \| ([^|]+) \| [^|]+ \|$", page.read_text("utf-8"), re.MULTILINE
    )
    texts = {code: TRANSLATED[text].string if is_chinese else text for code, text in ERRORS.items()}
    assert rows == [(str(code.value), texts[code], labels[ACTIONS[code]]) for code in sorted(ERRORS)]


@pytest.mark.parametrize("page", [ZH / "errors.md", ZH / "refunds.md"], ids=lambda page: page.stem)
def test_a_chinese_page_quotes_errors_as_the_service_returns_them_in_chinese(page):
    quoted = [text for code in CODE.findall(page.read_text("utf-8")) for text in re.findall(r'"msg": "([^"]+)"', code)]
    assert quoted
    assert {*quoted} <= {TRANSLATED[text].string for text in (*ERRORS.values(), "success")}


@pytest.mark.parametrize(
    "page", [ROOT / "docs/epay-inbound.md", ZH / "epay-inbound.md"], ids=lambda page: page.parent.name
)
def test_the_page_of_the_epay_gateway_has_every_refusal_with_its_code_and_text(page):
    rows = re.findall(r"^\| (-\d) \| ([^|]+) \| [^|]+ \|$", page.read_text("utf-8"), re.MULTILINE)
    texts = {each: TRANSLATED[each.text].string if page.parent == ZH else each.text for each in Refusal}
    expected = {(str(each.code), re.sub(r"%\(\w+\)s", "*...*", text)) for each, text in texts.items()}
    assert sorted((code, re.sub(r"\*[^*]+\*", "*...*", text)) for code, text in rows) == sorted(expected)


@pytest.mark.parametrize(
    "page", [ROOT / "docs" / "coming-from.md", ZH / "coming-from.md"], ids=lambda page: page.parent.name
)
def test_the_tables_for_other_apis_name_what_this_service_has(page, http):
    """The first column has endpoints, fields of requests, responses and callbacks, statuses and headers."""
    first = re.findall(r"^\| ([^|]+) \|", page.read_text("utf-8"), re.MULTILINE)
    named = {name.removeprefix("data.") for cell in first for name in re.findall(r"`([\w.-]+)`", cell)}
    document = http("GET", "/openapi.json").json
    known = {name for schema in document["components"]["schemas"].values() for name in schema.get("properties", {})}
    known |= {path.rpartition("/")[2] for path in document["paths"]} | {*document["webhooks"], *STATUSES, CANCELLED}
    known |= {"type", "data", "webhook-id", "webhook-timestamp", "webhook-signature"}
    assert len(named) > 20
    assert named - known == set()


@pytest.mark.parametrize("page", [ROOT / "docs" / "scope.md", ZH / "scope.md"], ids=lambda page: page.parent.name)
def test_the_page_on_the_scope_has_the_defaults_of_the_service(page):
    text = page.read_text("utf-8")
    attempts, hours = len(RETRY_SECONDS) + 1, round(sum(RETRY_SECONDS) / 3600)
    assert (Settings.buy_expiry, Settings.requests_per_second, attempts, hours) == (900, 100, 8, 28)
    for words in (
        "15 minutes|15 分钟",
        "100 signed requests|每秒 100 次",
        "Eight attempts in about 28|28 小时内共八次",
    ):
        assert re.search(words, text), words


FILE = re.compile(r"`((?:[\w.-]+/)*[\w.-]+\.(?:py|sh|html|toml|sql))`")
EXAMPLES = {"config.toml", "VERSION.sql", "tests/data/VERSION.sql", "NNNN_NAME.py", "models/migrations/NNNN_NAME.py"}


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md", "docs/performance.md"])
def test_a_map_of_the_code_names_files_that_exist(page):
    """A path is below the project's folder or one of its packages, a bare name beside one that its line names."""
    roots = [ROOT, ROOT / "services", ROOT / "blueprints", ROOT / "models", ROOT / "docs"]
    missing = []
    for line in (ROOT / page).read_text("utf-8").splitlines():
        named = [each for each in FILE.findall(line) if each not in EXAMPLES]
        paths = [root / each for each in named if "/" in each for root in roots if (root / each).exists()]
        beside = {ROOT, ROOT / "services/deposits", ROOT / "services/withdrawals"}  # "of the kind"
        beside |= {path.parent for path in paths} | {ROOT / each for each in re.findall(r"`((?:[\w.-]+/)+)`", line)}
        beside |= {ROOT / "services" / each for each in re.findall(r"`([a-z]+)`", line)}
        missing += [each for each in named if not any((folder / each).exists() for folder in (*roots, *beside))]
    assert missing == []


def test_each_defence_of_the_security_page_names_an_existing_test():
    rows = [line for line in SECURITY.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 15
    for row in rows:
        tests = re.findall(r"`(tests/[\w/.]+)`", row)
        assert tests, row
        assert [name for name in tests if not (ROOT / name).is_file()] == []
