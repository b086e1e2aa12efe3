"""The documentation that the service serves: pages in two languages, Markdown, files, and the index for models."""

import re
from functools import cache

import pytest

from blueprints.openapi import guides, markdown
from tests.blueprints.openapi.test_reference import Page
from tests.support import ROOT

ENGLISH = sorted(file.removesuffix(".md") for file in guides.files() if file.endswith(".md") and file[:3] != "zh/")
PAGES = [name for name in ENGLISH if name != "README"]
CHINESE = [name for name in PAGES if f"zh/{name}.md" in guides.files()]


@pytest.fixture
def shown(http):
    def show(path, language="en"):
        response = http("GET", path, headers={"Accept-Language": language})
        assert response.status == 200, path
        return response.text

    return show


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_served_with_its_anchors_and_its_links_lead_to_pages(shown, http, name):
    ids_of = cache(lambda path: Page(shown(path, "en")).ids)
    page = Page(shown(f"/docs/{name}"))
    assert {each.anchor for each in markdown.headings(markdown.parsed(guides.text(f"{name}.md")))} <= {*page.ids}
    assert len(page.ids) == len({*page.ids})
    assert page.inline == []
    for link in {link for link in page.links if not re.match("[a-z]+:", link)}:
        path, _, anchor = link.partition("#")
        assert not path or http("GET", path).status == 200, link
        ids = ids_of(path) if path and anchor else page.ids
        assert not anchor or anchor in ids, link


@pytest.mark.parametrize("name", CHINESE)
def test_a_translation_has_the_anchors_of_both_languages(shown, name):
    ids = {*Page(shown(f"/docs/{name}", "zh")).ids}
    for file in (f"{name}.md", f"zh/{name}.md"):
        assert {each.anchor for each in markdown.headings(markdown.parsed(guides.text(file)))} <= ids


def test_a_page_is_in_the_readers_language_unless_the_address_fixes_one(http, shown):
    english, chinese = guides.guide("callbacks", "en").title, guides.guide("callbacks", "zh").title
    assert http("GET", "/docs/callbacks").headers["Vary"] == "Accept-Language"
    for path, language, title in (
        ("/docs/callbacks", "en", english),
        ("/docs/callbacks", "zh", chinese),
        ("/docs/en/callbacks", "zh", english),
        ("/docs/zh/callbacks", "en", chinese),
    ):
        assert f">{title}</h1>" in shown(path, language)
    assert 'href="/docs/zh/callbacks"' in shown("/docs/callbacks", "en")
    assert 'href="/docs/en/callbacks"' in shown("/docs/callbacks", "zh")


def test_a_chosen_language_stays_chosen(shown):
    links = Page(shown("/docs/zh/callbacks", "en")).links
    own = {link for link in links if link.startswith("/docs") and not re.search(r"\.\w+$", link)}
    assert {link for link in own if not link.startswith("/docs/zh")} <= {"/docs", "/docs/en/callbacks"}


def test_a_page_without_a_translation_is_shown_in_english_and_says_so(shown):
    text = shown("/docs/architecture", "zh")
    assert '<html lang="zh-CN">' in text
    assert '<article class="guide" lang="en">' in text
    assert "本页暂无中文版" in text


def test_the_files_are_served_as_they_are(app):
    for file in guides.files():
        response = app.test_client().get(f"/docs/{file}")
        expected = (200, guides.TYPES["." + file.rsplit(".", 1)[-1]], (ROOT / "docs" / file).read_bytes())
        assert (response.status_code, response.headers["Content-Type"], response.data) == expected, file


def test_nothing_else_is_served(http):
    for path in ("nothing", "nothing.md", "README", "../app.py", "%2e%2e/app.py", "zh/../../app.py", "//etc/passwd"):
        response = http("GET", f"/docs/{path}")
        assert (response.status, response.code) == (404, 40404), path


def test_the_menu_has_the_groups_and_pages_of_the_index(shown):
    text = shown("/docs/signing")
    headings = re.findall(r"^## (.*)$", guides.text("README.md"), re.MULTILINE)
    assert [*guides.index()] == headings
    assert {*headings} <= {*guides.HEADINGS}
    assert {entry.name for entries in guides.index().values() for entry in entries if entry.name} == {*PAGES}
    assert all(f"<b>{guides.HEADINGS[heading]}</b>" in text for heading in headings)
    assert "<b>接入开发</b>" in shown("/docs/signing", "zh")


def test_the_index_for_models_links_every_page_as_markdown(http):
    response = http("GET", "/llms.txt")
    title, _, summary, *rest = response.text.splitlines()
    assert (title[:2], summary[:2], response.headers["Content-Type"]) == ("# ", "> ", "text/plain; charset=utf-8")
    links = [re.fullmatch(r"- \[[^]]+\]\(http://[^/]+(/[^)]+)\): .+\.", line) for line in rest if line[:2] == "- "]
    paths = [link[1] for link in links]
    assert {f"/docs/{name}.md" for name in PAGES} | {"/docs.md", "/docs/zh.md", "/openapi.json"} <= {*paths}
    assert {f"/docs/zh/{name}.md" for name in CHINESE} <= {*paths}
    assert {path for path in paths if http("GET", path).status != 200} == set()


def test_markdown_is_rendered_without_html_of_its_own_and_without_dead_links():
    table = "| n | m |\n|---|--:|\n| 1 | 2 |\n"
    source = f"# A `b`\n\n<!-- c -->\n\n<script>x</script> [in](b.md#c) [out](../x.py)\n\n{table}\n## A b\n"
    text = markdown.rendered(source, lambda href: "" if href.startswith("..") else f"/docs/{href}", ["one"])
    assert "<!--" not in text
    assert '<h1 id="a-b"><span id="one"></span>A <code>b</code></h1>' in text
    assert '<h2 id="a-b-1">A b<a class="anchor" href="#a-b-1"' in text
    assert '&lt;script&gt;x&lt;/script&gt; <a href="/docs/b.md#c">in</a> out' in text
    assert '<td data-label="n">1</td>\n<td class="right" data-label="m">2</td>' in text


def test_a_section_ends_at_the_next_heading():
    source = "# A\n\none\n\n## B\n\ntwo\n\n### C\n\nthree\n"
    assert markdown.rendered(source, str, [], "b") == "<p>two</p>\n"
    assert markdown.rendered(source, str, ["x", "y", "z"], "z") == "<p>three</p>\n"
    assert markdown.rendered(source, str, [], "d") == ""


def test_the_landing_page_is_a_tour_in_demo_mode_whose_command_creates_an_order(demo, api, http):
    response = http("GET", "/", headers={"Accept-Language": "en"})
    page = Page(response.text)
    assert {"/sandbox/inbox", "/console/", "/docs"} <= {*page.links}
    assert all(http("GET", path).status == 200 for path in {*page.links} - {"/console/"})
    assert "demo-password" in response.text
    assert "merchant/createOrder" in response.text
    assert "创建订单" in http("GET", "/", headers={"Accept-Language": "zh"}).text
    body = re.search(r"-d '(\{.*?\})'", "".join(page.words))[1]
    assert api.post("createOrder", body.encode()).code == 1


def test_the_landing_page_has_only_the_name_of_the_service_in_production(http):
    response = http("GET", "/", headers={"Accept-Language": "en"})
    words = " ".join(" ".join(Page(response.text).words).split())
    assert (response.status, words) == (200, "Tillbook Tillbook")
    assert Page(response.text).links == []


@pytest.mark.parametrize("settings_of_app", [{"api_prefix": "/api/v1", "site_url": "https://pay.example.com"}])
def test_the_tour_the_samples_and_the_pages_have_the_addresses_of_this_installation(demo, http):
    assert "https://pay.example.com/api/v1/merchant/createOrder" in http("GET", "/").text
    assert "export MERCHANT_URL=https://pay.example.com/api/v1\n" in http("GET", "/docs").text
    assert "](https://pay.example.com/docs.md)" in http("GET", "/llms.txt").text
    assert "`{base_url}` is https://pay.example.com/api/v1.\n" in http("GET", "/llms.txt").text
    assert "https://pay.example.com/api/v1/merchant/" in http("GET", "/docs/orders").text
