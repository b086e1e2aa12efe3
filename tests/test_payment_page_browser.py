"""The payment page in a real browser: copying, the last two minutes, the language, what works without script."""

import pytest
from selenium.webdriver.common.by import By

from tests.browser import DESKTOP, NEEDS_CHROMIUM, PHONE, Person, watched
from tests.pages import FORM

pytestmark = NEEDS_CHROMIUM


@pytest.fixture
def payer(chrome):
    yield from watched(Person(chrome))


def clipboard(payer):
    """The text in the clipboard."""
    return payer.chrome.execute_async_script("navigator.clipboard.readText().then(arguments[0])")


@pytest.mark.parametrize(("size", "language"), [(PHONE, "zh-CN"), (DESKTOP, "en")], ids=["phone", "desktop"])
def test_the_payer_copies_each_value_of_a_transfer_and_all_at_once(size, language, payer, running):
    placed = running.api.buy("1234.50", channel=3, paychannel_paymethod="bank").data
    payer.sits_at(size, language)
    payer.chrome.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite"]})
    payer.opens(placed["pay_url"])
    values = []
    for button in payer.chrome.find_elements(By.CSS_SELECTOR, ".lines .copy"):
        button.click()
        payer.waits_for(lambda button=button: button.get_attribute("class") == "copy done")
        values.append(clipboard(payer))
    assert values == ["1234.50", "Demo Shop Ltd.", "Demo Bank", "6222020000000000001", placed["order_no"]]
    button = payer.find(".all .copy")
    button.click()
    payer.waits_for(lambda: button.get_attribute("class") == "copy done")
    assert [line.split(": ")[1] for line in clipboard(payer).splitlines()] == values


def test_without_the_clipboard_the_values_are_copied_by_the_browsers_command(payer, running):
    payer.sits_at(PHONE, "en")
    payer.chrome.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite"]})
    payer.opens(running.api.buy("88.00", channel=3).data["pay_url"])
    payer.chrome.execute_script("navigator.clipboard.writeText = () => Promise.reject(new Error())")
    payer.find(".lines .copy").click()
    payer.waits_for(lambda: payer.find(".lines .copy").get_attribute("class") == "copy done")
    assert clipboard(payer) == "88.00"


def test_the_last_two_minutes_have_a_bar_and_are_announced_once(payer, running):
    placed = running.api.buy().data
    payer.sits_at(PHONE, "en")
    payer.opens(placed["pay_url"])
    assert not payer.find("#left").is_displayed()
    payer.chrome.execute_script(
        "window.heard = []; new MutationObserver(() => heard.push(document.getElementById('announcer').textContent))"
        ".observe(document.getElementById('announcer'), {childList: true})"
    )
    running.api.send("POST", "/sandbox/clock", b"seconds=800", FORM)
    payer.waits_for(lambda: payer.find("#left").is_displayed())
    first = float(payer.find("#left").get_property("value"))
    payer.waits_for(lambda: float(payer.find("#left").get_property("value")) < first)
    assert payer.chrome.execute_script("return heard") == ["Less than two minutes left to pay"]
    running.api.send("POST", "/sandbox/clock", b"seconds=101", FORM)
    payer.waits_for(lambda: payer.find(".panel:not([hidden]) h2").text != "Test payment")
    assert not payer.find("#left").is_displayed()


def test_the_payer_changes_the_language_on_the_page(payer, running):
    placed = running.api.buy().data
    payer.sits_at(PHONE, "en")
    payer.opens(placed["pay_url"])
    payer.find(".language").click()
    payer.waits_for(lambda: payer.find(".language").text == "English")
    assert payer.chrome.current_url == placed["pay_url"]
    payer.opens(running.api.buy().data["pay_url"])
    assert payer.find("html").get_attribute("lang") == "zh-CN"
    payer.find(".language").click()
    payer.waits_for(lambda: payer.find(".language").text == "中文")
    payer.chrome.delete_all_cookies()


def test_a_closed_page_shows_money_that_arrives_late_and_is_sent_back(payer, running):
    placed = running.api.buy().data

    def heading():
        payer.chrome.execute_script("window.dispatchEvent(new Event('online'))")  # asks now, not in 15 seconds
        return payer.find(".panel:not([hidden]) h2").text

    payer.sits_at(PHONE, "en")
    payer.opens(placed["pay_url"])
    running.api.play(placed["order_no"], "fail")
    payer.waits_for(lambda: heading() == "Order closed")
    running.api.play(placed["order_no"], "success")
    payer.waits_for(lambda: heading() == "Payment received, being checked")
    assert "Your payment arrived after this order had ended." in payer.find("main").text
    running.flask("order", "resolve", placed["order_no"], "--refund")
    payer.waits_for(lambda: heading() == "Payment sent back")
    assert payer.has_not_reloaded


def test_without_script_the_page_shows_everything_needed_to_pay(payer, running):
    placed = running.api.buy("66.00", channel=3, paychannel_paymethod="bank").data
    payer.sits_at(PHONE, "en")
    payer.chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        payer.chrome.get(placed["pay_url"])
        for text in ("¥66.00", "6222 0200 0000 0000 001", placed["order_no"]):
            assert text in payer.find("main").text
        assert not payer.find(".copy").is_displayed()
        payer.find("form.claim button").click()
        payer.waits_for(lambda: payer.find(".panel:not([hidden]) h2").text == "Confirming your payment")
    finally:
        payer.chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def is_at_the_shop(payer):
    return "/sandbox/return?" in payer.chrome.current_url


@pytest.mark.parametrize(("size", "language"), [(PHONE, "zh-CN"), (DESKTOP, "en")], ids=["phone", "desktop"])
def test_after_the_payment_the_payer_is_back_at_the_shop_once(size, language, payer, running):
    placed = running.api.buy().data
    payer.sits_at(size, language)
    payer.opens(f"{running.url}/sandbox/inbox")
    payer.opens(placed["pay_url"])
    running.api.play(placed["order_no"], "success")
    payer.waits_for(lambda: payer.find("#leaving").is_displayed())
    assert payer.has_not_reloaded
    payer.waits_for(lambda: is_at_the_shop(payer))
    assert payer.find(".badge.good").is_displayed()
    payer.chrome.back()
    payer.waits_for(lambda: payer.chrome.current_url == f"{running.url}/sandbox/inbox")
    payer.opens(placed["pay_url"])
    assert payer.find("#back").is_displayed()
    assert not payer.find("#leaving").is_displayed()
    payer.find("#back").click()
    payer.waits_for(lambda: is_at_the_shop(payer))


def test_a_payer_who_stays_is_not_sent_away(payer, running):
    placed = running.api.buy().data
    running.api.play(placed["order_no"], "success")
    payer.sits_at(PHONE, "en")
    payer.opens(placed["pay_url"])
    payer.find("#stay").click()
    assert not payer.find("#leaving").is_displayed()
    assert payer.chrome.execute_script("return document.activeElement.id") == "back"
    payer.chrome.execute_async_script("setTimeout(arguments[0], 3500)")  # longer than the page waits
    assert payer.has_not_reloaded
    payer.opens(placed["pay_url"])
    assert not payer.find("#leaving").is_displayed()


def test_without_script_the_payer_returns_too_or_stays(payer, running):
    placed = running.api.buy().data
    running.api.play(placed["order_no"], "success")
    payer.sits_at(DESKTOP, "en")
    payer.chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        payer.chrome.get(placed["pay_url"])
        payer.find("#stay").click()
        payer.waits_for(lambda: not payer.find("#leaving").is_displayed())
        payer.chrome.get(placed["pay_url"])
        payer.waits_for(lambda: is_at_the_shop(payer))
    finally:
        payer.chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
