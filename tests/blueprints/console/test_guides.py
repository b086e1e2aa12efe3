"""Each page of the console leads to the page of the documentation that explains it."""

import re
from html import unescape

import pytest

from blueprints.console.guides import GUIDES, PAGES
from blueprints.console.pages import BLUEPRINTS, MENU
from tests.blueprints.openapi.test_reference import Page
from tests.support import completed

ITEMS = [item for _, items in MENU for item in items]
HELP = re.compile(r'<a class="help" href="([^"]+)"[^>]* aria-label="([^"]+)"')
TITLE = re.compile(r"<title>(?:\(\d+\) )?(.+) · [^·]+</title>")


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.blueprint)
@pytest.mark.parametrize(("language", "words"), [("en", "Help: "), ("zh", "帮助：")])
def test_each_item_of_the_menu_has_help_by_its_name_in_the_readers_language(item, language, words, console):
    path = "" if item.blueprint == "dashboard" else f"{item.blueprint}/"
    text = console.get(f"/console/{path}", headers={"Accept-Language": language}).text
    address, name = map(unescape, HELP.search(text).groups())
    assert address == f"/docs/{language}/{GUIDES[item.blueprint]}"
    assert name == words + unescape(TITLE.search(text)[1])


def test_every_blueprint_of_the_console_has_a_guide():
    assert {each.name for each in BLUEPRINTS} == GUIDES.keys()


def test_a_page_with_a_guide_of_its_own_leads_to_it(console, api):
    order_no = completed(api)
    for path, guide in (
        ("merchant/new", "guides/merchants"),
        ("merchant/demo", "console"),
        ("merchant/demo/epay", "epay-inbound"),
        ("merchant/demo/page", "payment-page"),
        ("merchant/demo/adjust", "guides/ledger"),
        ("merchant/demo/account", "guides/merchants"),
        (f"order/{order_no}", "console"),
        (f"order/{order_no}/refund", "guides/refunds"),
    ):
        address = HELP.search(console.get(f"/console/{path}").text)[1]
        assert address.partition("#")[0] == f"/docs/en/{guide}", path


@pytest.mark.parametrize("language", ["en", "zh"])
def test_each_guide_and_its_heading_exist_in_both_languages(language, http):
    for guide in (*GUIDES.values(), *PAGES.values()):
        name, _, anchor = guide.partition("#")
        response = http("GET", f"/docs/{language}/{name}")
        assert response.status == 200, guide
        assert not anchor or anchor in Page(response.text).ids, guide


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_search_in_the_console_leads_to_the_same_search_in_the_documentation(language, console, http):
    text = console.get("/console/search/?q=settlement+%26+T%2BN", headers={"Accept-Language": language}).text
    address = unescape(re.search(r'href="(/docs/[^"]+/search[^"]+)"', text)[1])
    assert address.startswith(f"/docs/{language}/search?q=settlement")
    assert 'value="settlement &amp; T+N"' in http("GET", address).text
