"""A new merchant from the overview to its first test callback, in a browser, with every click and character counted."""

import json

import pytest
from selenium.webdriver.common.by import By

from tests.blueprints.console.setting_up.test_pictures import png
from tests.browser import NEEDS_CHROMIUM, scripts_disabled
from tests.console_browser.operator import SIZES

pytestmark = NEEDS_CHROMIUM

MOST_CLICKS, MOST_CHARACTERS = 12, 90


class Hands:
    """What the operator's hands do: clicks, and characters typed into the focused field."""

    def __init__(self, operator):
        self.operator, self.clicks, self.typed = operator, 0, 0

    def click(self, css):
        self.operator.find(css).click()
        self.clicks += 1

    def press(self, label, within="main"):
        self.operator.presses(label, within)
        self.clicks += 1

    def type(self, text):
        self.operator.chrome.switch_to.active_element.send_keys(text)
        self.typed += len(text)

    def choose_file(self, css, path):
        self.operator.find(css).send_keys(str(path))  # the browser's own dialog: a click opens it, another selects
        self.clicks += 2


@pytest.fixture
def hands(operator):
    return Hands(operator)


def test_a_merchant_with_channels_keys_callbacks_epay_and_brand_takes_12_clicks(hands, operator, running, tmp_path):
    logo = tmp_path / "logo.png"
    logo.write_bytes(png())
    operator.goes_to("")
    hands.press("Merchants", "nav")
    hands.press("New merchant")
    hands.type("Corner Shop")  # the field has the focus
    hands.click("#callback_url")
    hands.type(f"{running.url}/sandbox/inbox")
    hands.click("#epay")
    hands.press("Payment page (optional)")
    hands.click("#contact")
    hands.type("help@shop.example\t#1677ff")
    hands.choose_file("#logo", logo)
    hands.press("Add merchant")
    operator.is_at("Merchant corner-shop added")
    hands.press("Copy all", "#secrets")
    operator.waits_for(lambda: operator.find("[data-copy=all-secrets]").text == "Copied")
    hands.press("Copy all", "#epay")
    hands.press("Send test callback")
    operator.waits_for(lambda: "Delivered." in operator.find("#outcome").text)
    assert operator.find("#secret").text, "the secrets are still shown"
    assert hands.clicks <= MOST_CLICKS, hands.clicks
    assert hands.typed <= MOST_CHARACTERS, hands.typed

    made = json.loads(running.flask("merchant", "show", "corner-shop", "--json").stdout)
    assert (made["channels"], made["buy_rate"]) == ([1, 2, 3, 4], "0.80")
    assert len(operator.find("#epay_key").text) == 32
    page = json.loads(running.flask("merchant", "page", "corner-shop", "--json").stdout)
    brand = {name: page[name] for name in ("contact", "color", "logo_type")}
    assert brand == {"contact": "help@shop.example", "color": "#1677ff", "logo_type": "image/png"}


@SIZES
def test_the_key_is_suggested_and_the_pages_fit(size, operator):
    operator.sits_at(size, "en")
    operator.goes_to("merchant/new")
    operator.find("#name").send_keys(f"Tea & Cake {size[0]}")
    assert operator.find("#key").get_attribute("placeholder") == f"tea-cake-{size[0]}"
    assert not operator.scrolls_sideways
    operator.find("#epay").click()
    operator.find("#hosts").send_keys("shop.example")
    operator.presses("Add merchant")
    operator.is_at(f"Merchant tea-cake-{size[0]} added")
    assert not operator.scrolls_sideways


def test_without_scripts_the_result_of_a_test_callback_opens_beside_the_secrets(operator, running):
    with scripts_disabled(operator):
        operator.goes_to("merchant/new")
        operator.find("#name").send_keys("Plain")
        operator.find("#callback_url").send_keys(f"{running.url}/sandbox/inbox")
        operator.presses("Add merchant")
        operator.is_at("Merchant plain added")
        operator.presses("Send test callback")
        operator.waits_for(lambda: len(operator.chrome.window_handles) == 2)
        first, second = operator.chrome.window_handles
        operator.chrome.switch_to.window(second)
        operator.reads("Delivered.")
        operator.chrome.close()
        operator.chrome.switch_to.window(first)
        assert operator.chrome.find_element(By.ID, "secret").text
