"""Signing in and out, and the second factor."""

import pyotp
from selenium.webdriver.common.keys import Keys

from tests.browser import DESKTOP, NEEDS_CHROMIUM
from tests.console_browser.operator import Operator

pytestmark = NEEDS_CHROMIUM


def test_an_operator_signs_in_and_out(chrome, running):
    one = Operator(chrome)
    one.url = running.url
    one.sits_at(DESKTOP, "en")
    one.goes_to("orders/")
    chrome.delete_all_cookies()
    one.goes_to("orders/")
    one.is_at("Tillbook")
    one.find("#name").send_keys("demo")
    one.find("#password").send_keys("wrong-password", Keys.ENTER)
    one.reads("Incorrect user name or password")
    one.find("#name").clear()
    one.find("#name").send_keys("demo")
    one.find("#password").send_keys("demo-password", Keys.ENTER)
    one.is_at("Orders")
    one.find("header .account summary").click()
    one.presses("Sign out", "header")
    one.is_at("Tillbook")
    one.goes_to("orders/")
    one.is_at("Tillbook")


def test_a_second_factor_is_set_up_and_then_required(operator, running):
    running.flask("operator", "add", "anna", stdin="four words not together\n")
    operator.chrome.delete_all_cookies()
    operator.signs_in("anna", "four words not together")
    operator.goes_to("factor")
    app = pyotp.TOTP(operator.find("[name=secret]").get_attribute("value"))
    operator.find("#code").send_keys(app.now())
    operator.find("#password").send_keys("four words not together", Keys.ENTER)
    operator.is_at("Recovery codes")
    first, second, *_ = operator.find("#recovery-codes").text.split()
    operator.chrome.delete_all_cookies()
    operator.goes_to("login")
    operator.find("#name").send_keys("anna")
    operator.find("#password").send_keys("four words not together", Keys.ENTER)
    operator.is_at("Enter your code")
    operator.find("#code").send_keys(first, Keys.ENTER)
    operator.is_at("Overview")
    operator.goes_to("channel/3")
    operator.find("#name").clear()
    operator.find("#name").send_keys("人工 & <b>")
    operator.presses("Save")
    operator.confirms_identity(second)
    operator.reads("Saved.")
    assert operator.find("#name").get_attribute("value") == "人工 & <b>", "what was typed is not lost"
    assert "8 recovery codes left." in operator.text
