"""An integrator with a real browser: at the documentation, and at the explanation of signatures."""

from urllib.parse import unquote, urlencode

import pytest

from blueprints.openapi import guides
from tests.browser import DESKTOP, NEEDS_CHROMIUM, PHONE, Person, scripts_disabled, watched
from tests.epay_shop import text_to_sign
from tests.wrong_epay_signers import digest
from tests.wrong_signers import ENDPOINT, QUERY, Mistaken, hexed

pytestmark = NEEDS_CHROMIUM

GUIDES = [f"/docs/{entry.name}" for entries in guides.index().values() for entry in entries if entry.name]
CHOSEN = "return [...document.querySelectorAll('.tabs input:checked')].map((input) => input.value)"
SHOWN = "return [...document.querySelectorAll('.panel-of')].filter((panel) => panel.offsetHeight).length"


@pytest.fixture
def person(chrome):
    """A reader whose browser reports no error and no violation of the policy."""
    try:
        yield from watched(Person(chrome))
    finally:
        chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.parametrize(
    ("size", "language", "colours"),
    [(PHONE, "zh-CN", "dark"), (PHONE, "en", "light"), (DESKTOP, "zh-CN", "light"), (DESKTOP, "en", "dark")],
)
def test_no_page_scrolls_sideways(size, language, colours, person, running):
    person.sits_at(size, language)
    features = [{"name": "prefers-color-scheme", "value": colours}]
    person.chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    wide = []
    for path in ("/", "/docs", "/docs/search?q=order", *GUIDES):
        person.opens(running.url + path)
        wide += [path] * person.scrolls_sideways
    assert wide == []


def test_a_reader_finds_a_section_by_the_search_without_scripts(person, running):
    person.sits_at(PHONE, "zh-CN")
    with scripts_disabled(person):
        person.chrome.get(f"{running.url}/docs")
        person.find(".search input").send_keys("结算时间")
        person.find(".search button").click()
        person.find(".found li a").click()
        person.waits_for(lambda: "/docs/integrating#" in unquote(person.chrome.current_url))


def test_a_chosen_language_applies_to_all_samples_and_is_kept(person, running):
    person.sits_at(DESKTOP, "en")
    person.opens(f"{running.url}/docs")
    person.find("label[for=sample-createOrder-1-go]").click()
    chosen = person.chrome.execute_script(CHOSEN)
    assert {*chosen} == {"go"}
    assert person.chrome.execute_script(SHOWN) == len(chosen)
    person.opens(f"{running.url}/docs")
    assert {*person.chrome.execute_script(CHOSEN)} == {"go"}


def test_code_has_a_button_that_copies_it(person, running):
    person.sits_at(DESKTOP, "en")
    permissions = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"], "origin": running.url}
    person.chrome.execute_cdp_cmd("Browser.grantPermissions", permissions)
    person.opens(running.url)
    person.find(".copy").click()
    person.waits_for(lambda: person.find(".copy").text == "Copied")
    copied_text = person.chrome.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert copied_text == person.find("pre").text


def test_the_tabs_work_without_scripts(person, running):
    person.sits_at(PHONE, "en")
    with scripts_disabled(person):
        person.chrome.get(f"{running.url}/docs")
        person.find("label[for=sample-createOrder-1-php]").click()
        panels = person.find("#createOrder .tabs").find_elements("css selector", ".panel-of")
        assert [panel.get_attribute("data-sample") for panel in panels if panel.is_displayed()] == ["php"]
        assert person.chrome.find_elements("css selector", ".copy") == []


BOTH = pytest.mark.parametrize(
    ("size", "language"), [(PHONE, "zh-CN,zh"), (DESKTOP, "en-US,en")], ids=["phone", "desktop"]
)


@BOTH
def test_the_sender_of_a_wrong_request_sees_it_and_compares_another_text(size, language, person, running):
    mistaken = Mistaken(f"nonce-of-{size[0]}")
    wrong = mistaken.text.replace("12.50", "12.5")
    assert running.api.post(ENDPOINT, mistaken.body(hexed(wrong)), query=f"?{QUERY}").code == 40102
    person.sits_at(size, language)
    person.opens(f"{running.url}/sandbox/sign")
    assert person.find(".text .different code").text == "cny_amount=12.50"
    assert person.find(".text .theirs code").text == "cny_amount=12.5"
    assert not person.scrolls_sideways

    theirs = person.find("textarea[name=theirs]")
    theirs.send_keys(mistaken.text.replace("order_type=1", "order_type=2"))
    person.find("form .primary").click()
    person.waits_for(lambda: person.find(".text .theirs code").text == "order_type=2")
    assert not person.scrolls_sideways
    assert person.find("textarea[name=theirs]").get_attribute("value").count("\n") == mistaken.text.count("\n")


@BOTH
def test_a_shops_developer_pastes_an_address_and_the_key_into_the_tab_for_epay(size, language, person, running):
    person.sits_at(size, language)
    person.opens(f"{running.url}/sandbox/sign?protocol=api")
    person.find(".protocols a[href$=epay]").click()
    person.waits_for(lambda: person.find(".protocols [aria-current]").get_attribute("href").endswith("epay"))
    fields = {"pid": "7", "money": "12.50", "notify_url": "https://shop.example/notify?a=1", "sitename": "x" * 200}
    sign = digest(f"{text_to_sign(fields)}&key=1234567")
    person.find("[name=body]").send_keys(f"https://pay.example.com/submit.php?{urlencode(fields | {'sign': sign})}")
    person.find("[name=secret]").send_keys("1234567")
    person.find("form .primary").click()
    person.waits_for(lambda: person.find(".text .theirs code").text.endswith("x&"))
    assert person.find("[name=secret]").get_attribute("value") == ""
    assert not person.scrolls_sideways
