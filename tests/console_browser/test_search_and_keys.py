"""The search of the header, and the keys of lists."""

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser import NEEDS_CHROMIUM
from tests.console_browser.operator import SIZES

pytestmark = NEEDS_CHROMIUM


@pytest.fixture
def press(operator):
    return lambda *keys: ActionChains(operator.chrome).send_keys(*keys).perform()


def focused(operator):
    return operator.chrome.switch_to.active_element


@SIZES
def test_a_search_opens_an_order_and_shows_results(size, operator, running):
    placed = running.api.buy("61.37").data
    operator.sits_at(size, "en")
    operator.goes_to("")
    operator.find("[name=q]").send_keys(placed["order_no"], Keys.ENTER)
    operator.waits_for(lambda: placed["order_no"] in operator.chrome.current_url)
    operator.find("[name=q]").send_keys("61.37", Keys.ENTER)
    operator.reads("among the latest 100,000 orders")
    assert not operator.scrolls_sideways
    operator.find("[name=q]").clear()
    operator.find("[name=q]").send_keys(placed["order_no"][-8:], Keys.ENTER)
    operator.reads("or the end of one")
    assert not operator.scrolls_sideways
    operator.presses(placed["order_no"])
    operator.waits_for(lambda: f"order/{placed['order_no']}" in operator.chrome.current_url)


def test_a_slash_leads_to_the_search(operator, press):
    operator.goes_to("orders/")
    press("/")
    operator.waits_for(lambda: focused(operator).get_attribute("name") == "q")
    press("balances", Keys.ENTER)
    operator.presses("Balances")
    operator.is_at("Balances")


def test_j_and_k_move_through_the_rows_and_enter_opens_one(operator, running, press):
    running.api.buy("62.00")
    newest = running.api.buy("63.00").data["order_no"]
    operator.goes_to("orders/")
    press("j", "j", "j", "k", "k", "k")
    operator.waits_for(lambda: newest in focused(operator).get_attribute("data-href"))
    press("j")
    second = focused(operator).get_attribute("data-href")
    assert newest not in second
    press(Keys.ENTER)
    operator.waits_for(lambda: operator.chrome.current_url.endswith(second))


def test_a_question_mark_shows_the_keys(operator, press):
    operator.goes_to("orders/")
    press("?")
    operator.waits_for(lambda: "Keyboard shortcuts" in operator.dialog.text)
    press(Keys.ESCAPE)
    operator.waits_for(lambda: not operator.chrome.find_elements(By.CSS_SELECTOR, ":popover-open"))


def test_keys_have_no_effect_while_typing(operator, press):
    operator.goes_to("orders/")
    operator.find("[name=q]").send_keys("j?k/")
    assert operator.find("[name=q]").get_attribute("value") == "j?k/"
    assert not operator.chrome.find_elements(By.CSS_SELECTOR, ":popover-open")
