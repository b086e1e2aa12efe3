"""What all pages share: size, menu, policy, time zone."""

import pytest
from selenium.webdriver.common.by import By

from tests.all_interfaces import GATEWAY_A
from tests.browser import NEEDS_CHROMIUM, PHONE
from tests.console_browser.operator import SIZES, order_page

pytestmark = NEEDS_CHROMIUM


def test_times_are_in_the_readers_time_zone(operator, running):
    placed = running.api.buy().data
    shown = set()
    for zone in ("Asia/Shanghai", "America/New_York"):
        operator.chrome.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": zone})
        operator.goes_to(order_page(placed))
        operator.waits_for(lambda zone=zone: operator.find("html").get_attribute("data-zone") == zone)
        shown.add(operator.find("main time").text)
    operator.chrome.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})
    assert len(shown) == 2


@SIZES
@pytest.mark.parametrize("language", ["en", "zh-CN,zh"], ids=["english", "chinese"])
def test_every_page_fits_the_screen_and_follows_the_policy(size, language, operator, running):
    running.api.buy(merchant_order_no="W" * 255, customer_name="very long " * 20)
    placed = running.api.sell("1.00", **GATEWAY_A).data
    running.flask("epay", "enable", "demo", "--host", "shop.example")
    running.flask("epay", "rotate", "demo", "--rsa")
    operator.sits_at(size, language)
    pages = ["", "orders/", "payouts/", "exceptions/", "callbacks/", "ledger/", "entries/", "merchants/", "channels/"]
    pages += ["accounts/", "operators/", "audit/", "password", "factor", "sessions/", "merchant/demo"]
    pages += ["merchant/demo/epay", "merchant/other/epay", "merchant/demo/page", "merchant/other/page"]
    pages += ["merchant/new", "channel/1", "channel/new", "channel/new?driver=wechatpay", order_page(placed), "nothing"]
    for page in pages:
        operator.goes_to(page)
        assert operator.find("h1").is_displayed(), page
        assert not operator.scrolls_sideways, page
        for button in operator.chrome.find_elements(By.CSS_SELECTOR, "button, a, input:not([type=hidden]), select"):
            assert not button.is_displayed() or button.accessible_name, (page, button.get_attribute("outerHTML"))
    assert [each for each in operator.complaints() if "404" not in each] == []


def test_the_menu_opens_on_a_phone(operator):
    operator.sits_at(PHONE, "en")
    operator.goes_to("")
    assert not operator.find("nav.side").is_displayed()
    operator.find("#menu summary").click()
    operator.waits_for(lambda: operator.find("nav.side").is_displayed())
    bar, menu = operator.find("header.bar").rect, operator.find("nav.side").rect
    assert menu["y"] == bar["y"] + bar["height"]
    operator.presses("Audit log", "nav")  # below the screen
    operator.is_at("Audit log")
