"""The epay gateway of a merchant, set up in a browser as a shop owner's administrator does."""

import pytest

from tests.browser import NEEDS_CHROMIUM
from tests.console_browser.operator import SIZES

pytestmark = NEEDS_CHROMIUM


@pytest.fixture(scope="module")
def gateway(running):
    """The page of a merchant with a channel and an enabled gateway."""
    running.flask("merchant", "add", "shop1", "--name", "First Shop")
    running.flask("channel", "link", "2", "shop1")
    running.flask("epay", "enable", "shop1", "--host", "shop.example")
    return "merchant/shop1/epay"


@SIZES
def test_the_gateway_is_enabled_and_its_values_copied(size, operator, running):
    key = f"new{size[0]}"
    running.flask("merchant", "add", key, "--name", "New Shop")
    running.flask("channel", "link", "2", key)
    operator.sits_at(size, "en")
    operator.goes_to(f"merchant/{key}")
    operator.presses("Set up the epay gateway")
    operator.find("#hosts").send_keys("shop.example")
    assert not operator.find("#type_2_wxpay").is_displayed()
    operator.find("input[name=types][value=own]").click()
    operator.find("#type_2_wxpay").send_keys(", qqpay")
    operator.presses("Enable the epay gateway")
    operator.is_at("Epay gateway enabled")
    assert not operator.scrolls_sideways
    assert len(operator.find("#key").text) == 32
    operator.presses("Go to the epay gateway")
    operator.reads("Values for the shop")
    assert not operator.scrolls_sideways
    assert operator.find("#api_url").text == f"{running.url}/"
    operator.presses("Copy: Merchant number (pid)")
    operator.waits_for(lambda: operator.find("[data-copy=pid]").text == "Copied")


@SIZES
def test_hosts_channels_and_callbacks_are_changed(size, operator, gateway):
    operator.sits_at(size, "en")
    operator.goes_to(gateway)
    operator.find("#hosts").send_keys(f", {size[0]}.example")
    operator.find("input[name=types][value=own]").click()
    operator.find("#type_2_alipay").clear()
    operator.find("#webhooks").click()
    operator.presses("Save")
    operator.reads("Saved.")
    assert f"{size[0]}.example" in operator.find("#hosts").get_attribute("value")
    assert operator.find("#type_2_alipay").get_attribute("value") == ""
    assert not operator.scrolls_sideways


def test_the_md5_key_is_replaced_after_the_password_is_entered_again(operator, gateway):
    operator.goes_to(gateway)
    operator.presses("Replace MD5 key")
    hours = operator.dialog.find_element("id", "keep-md5")
    hours.clear()
    hours.send_keys("48")
    operator.confirms("Replace MD5 key")
    operator.confirms_identity()
    operator.is_at("New MD5 key")
    assert len(operator.find("#key").text) == 32
    operator.reads("The old key stays valid for 48 hours.")
    operator.presses("Go to the epay gateway")
    operator.reads("The old key is valid until:")
