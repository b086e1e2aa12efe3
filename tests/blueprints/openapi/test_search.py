"""The search in the documentation: pages, endpoints, error codes and settings, in both languages."""

import re
from html import unescape
from urllib.parse import quote

import pytest

from blueprints.openapi import search
from tests.blueprints.openapi.test_reference import Page


@pytest.fixture
def find(http):
    """Search; returns the links and the texts of the results."""

    def find(text, language="en", base="/docs"):
        response = http("GET", f"{base}/search?q={quote(text)}", headers={"Accept-Language": language})
        assert response.status == 200
        results = response.text.partition('<section class="found">')[2].partition("<ol>")[2]
        found = re.findall(r'<a href="([^"]+)">(.*?)</a>\s*<p>(.*?)</p>', results, re.DOTALL)
        return [(link, unescape(re.sub("<[^>]+>", "", title)), unescape(excerpt)) for link, title, excerpt in found]

    return find


def test_each_result_leads_to_its_section_and_shows_the_words_in_it(find, http):
    found = find("webhook-id retry")
    assert found
    for link, title, _ in found:
        path, _, anchor = link.partition("#")
        page = Page(http("GET", path, headers={"Accept-Language": "en"}).text)
        assert not anchor or anchor in page.ids, link
        assert (" › " in title) is bool(anchor)
    assert any(re.search("<mark>webhook-id</mark>", excerpt) for *_, excerpt in found)


def test_a_section_whose_heading_has_the_words_is_first(find):
    assert find("settlement TIME")[0][:2] == (
        "/docs/integrating#settlement-time",
        "Integration guide › Settlement time",
    )
    assert find("结算时间", "zh")[0][0] == "/docs/integrating#结算时间"


def test_pages_and_headings_with_the_whole_word_are_first_and_internals_last(find):
    titles = [title for _, title, _ in find("refund")]
    assert titles[0] in ("Refunds", "Refund deposits")
    (second,) = (place for place, title in enumerate(titles) if title.endswith("› Refund a deposit"))
    assert not any("refund_abnormal" in title for title in titles[:second])
    internals = ("Internals", "Architecture", "Performance")
    last = [title.startswith(internals) for _, title, _ in find("ledger")]
    assert last == sorted(last)


def test_chinese_pages_precede_english_ones(find):
    links = [link.partition("#")[0] for link, *_ in find("SQLite", "zh")]
    english = ("/docs/internals", "/docs/architecture", "/docs/performance")
    assert [link in english for link in links] == sorted(link in english for link in links)


def test_a_search_without_results_is_offered_in_the_other_language(http):
    offered = '<a href="/docs/zh/search?q=%E9%80%80%E6%AC%BE%E9%A2%9D">Search in 中文</a>'
    for text, is_offered in (("退款额", True), ("refund", False)):
        shown = http("GET", f"/docs/search?q={quote(text)}", headers={"Accept-Language": "en"}).text
        assert (offered in shown) is is_offered


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("createRefund", "#createRefund"),
        ("order.completed", "#order.completed"),
        ("40904", "#40904"),
        ("metrics_from", "/reference/settings"),
    ],
)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_endpoints_callbacks_codes_and_settings_are_found(text, place, language, find):
    assert any(link.startswith(f"/docs{place}") for link, *_ in find(text, language))


def test_a_chinese_compound_is_found_by_its_words(find):
    assert find("回调重试时间", "zh")


def test_a_page_without_a_translation_is_found_in_english(find):
    assert "/docs/architecture" in {link.partition("#")[0] for link, *_ in find("uvloop threads", "zh")}


def test_a_chosen_language_stays_chosen_in_the_results(find, http):
    assert all(link.startswith("/docs/zh") for link, *_ in find("退款", "en", "/docs/zh"))
    text = http("GET", "/docs/search?q=a%26b", headers={"Accept-Language": "en"}).text
    assert 'href="/docs/zh/search?q=a%26b"' in text
    assert 'value="a&amp;b"' in text


def test_a_search_is_limited_in_length_and_results_and_escapes_what_it_shows(find, http):
    assert len(find("the")) == search.MOST_HITS
    text = http("GET", f"/docs/search?q={'x' * 5000}").text
    assert "x" * search.MOST_CHARACTERS in text
    assert "x" * (search.MOST_CHARACTERS + 1) not in text
    assert "<script>alert" not in http("GET", f"/docs/search?q={quote('<script>alert(1)</script>')}").text


def test_nothing_is_found_without_words_and_the_page_says_what_to_enter(find, http):
    assert find("  ") == find("qqqzzz") == []
    assert "Enter words" in http("GET", "/docs/search", headers={"Accept-Language": "en"}).text
    assert "Use fewer or other words" in http("GET", "/docs/search?q=qqqzzz", headers={"Accept-Language": "en"}).text


def test_every_page_of_the_documentation_has_the_search_and_may_send_it(http):
    for path in ("/docs", "/docs/zh", "/docs/signing", "/docs/search"):
        response = http("GET", path)
        assert re.search(r'<form class="search" action="/docs(/zh)?/search"', response.text), path
        assert "form-action 'self'" in response.headers["Content-Security-Policy"]


@pytest.mark.parametrize("settings_of_app", [{"site_url": "https://pay.example.com"}])
def test_an_excerpt_has_the_address_of_this_installation(find):
    excerpts = {link: excerpt for link, _, excerpt in find("pay.example.com/addons/paychannel/channel.gatewaya")}
    assert "<mark>" in excerpts["/docs/regions"]
