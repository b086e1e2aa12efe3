"""A reader with a real browser at the documentation, in both sizes, colours and languages, and without scripts."""

import pytest

from blueprints.openapi import guides
from tests.browser import DESKTOP, NEEDS_CHROMIUM, PHONE, Person, watched

pytestmark = NEEDS_CHROMIUM

PAGES = [
    "/",
    "/docs",
    *(f"/docs/{entry.name}" for entries in guides.index().values() for entry in entries if entry.name),
]
CHOSEN = "return [...document.querySelectorAll('.tabs input:checked')].map((input) => input.value)"
SHOWN = "return [...document.querySelectorAll('.panel-of')].filter((panel) => panel.offsetHeight).length"


@pytest.fixture
def person(chrome):
    """A reader whose browser reports no error and no violation of the policy."""
    try:
        yield from watched(Person(chrome))
    finally:
        chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.parametrize(
    ("size", "language", "colours"),
    [
        (PHONE, "zh-CN,zh", "dark"),
        (PHONE, "en-US,en", "light"),
        (DESKTOP, "zh-CN,zh", "light"),
        (DESKTOP, "en", "dark"),
    ],
)
def test_no_page_scrolls_sideways(size, language, colours, person, running):
    person.sits_at(size, language)
    features = [{"name": "prefers-color-scheme", "value": colours}]
    person.chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    wide = []
    for path in PAGES:
        person.opens(running.url + path)
        wide += [path] * person.scrolls_sideways
    assert wide == []


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
    person.chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    person.chrome.get(f"{running.url}/docs")
    person.find("label[for=sample-createOrder-1-php]").click()
    panels = person.find("#createOrder .tabs").find_elements("css selector", ".panel-of")
    assert [panel.get_attribute("data-sample") for panel in panels if panel.is_displayed()] == ["php"]
    assert person.chrome.find_elements("css selector", ".copy") == []
