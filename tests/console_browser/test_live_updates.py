"""A page updates itself, unless it is hidden or in use."""

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

from tests.browser import NEEDS_CHROMIUM
from tests.console_browser.operator import order_page

pytestmark = NEEDS_CHROMIUM
FAST = "document.body.dataset.poll = 0.2; document.dispatchEvent(new Event('visibilitychange'));"
HIDE = "Object.defineProperty(document, 'hidden', {configurable: true, value: arguments[0]});"
FETCHES = "return performance.getEntriesByType('resource').filter((each) => each.initiatorType === 'fetch').length"


@pytest.fixture
def polls(operator):
    """`polls()`: open the overview, with a fetch every 0.2 seconds."""

    def opened(path=""):
        operator.goes_to(path)
        operator.chrome.execute_script(FAST)

    return opened


def fetches(operator):
    return operator.chrome.execute_script(FETCHES)


def badge(operator):
    return operator.find("#count-payouts").text


def test_the_menu_and_the_title_count_without_a_reload(operator, running, polls):
    polls()
    before = int(badge(operator) or 0)
    running.api.sell("48.00")
    operator.waits_for(lambda: int(badge(operator) or 0) == before + 1)
    operator.waits_for(lambda: operator.chrome.title.startswith("("))
    assert operator.has_not_reloaded


def test_a_hidden_page_pauses(operator, polls):
    polls()
    operator.waits_for(lambda: fetches(operator) > 1)
    operator.chrome.execute_script(HIDE + "document.dispatchEvent(new Event('visibilitychange'));", True)
    operator.chrome.execute_async_script("setTimeout(arguments[0], 500)")  # wait for a fetch in progress
    paused = fetches(operator)
    operator.chrome.execute_async_script("setTimeout(arguments[0], 1000)")
    assert fetches(operator) == paused
    operator.chrome.execute_script(HIDE + "document.dispatchEvent(new Event('visibilitychange'));", False)
    operator.waits_for(lambda: fetches(operator) > paused)


def test_a_part_with_a_checked_box_stays_as_it_is(operator, running):
    operator.goes_to("orders/")
    add = "const box = document.createElement('input'); box.type = 'checkbox'; box.id = 'box';"
    operator.chrome.execute_script(add + "document.getElementById('count-payouts').append(box)")
    operator.find("#box").click()
    operator.chrome.execute_script(FAST)
    before = badge(operator)
    running.api.sell("49.00")
    started = fetches(operator)
    operator.waits_for(lambda: fetches(operator) > started + 3)
    assert badge(operator) == before
    operator.find("#box").click()
    operator.waits_for(lambda: badge(operator) != before)
    assert not operator.chrome.find_elements(By.ID, "box")


def test_a_list_shows_a_new_row_and_the_focus_stays_on_its_row(operator, running):
    running.api.buy("64.00")
    operator.goes_to("orders/")
    ActionChains(operator.chrome).send_keys("j").perform()
    row = operator.chrome.switch_to.active_element.get_attribute("data-href")
    assert row
    operator.chrome.execute_script(FAST)
    newest = running.api.buy("65.00").data["order_no"]
    operator.waits_for(lambda: newest in operator.find("#rows tr").get_attribute("data-href"))
    assert operator.chrome.switch_to.active_element.get_attribute("data-href") == row


def test_an_open_dialog_stays(operator, running):
    placed = running.api.sell("66.00").data
    operator.goes_to(order_page(placed))
    operator.presses("Approve")
    operator.chrome.execute_script(FAST)
    before = fetches(operator)
    running.flask("order", "reject", placed["order_no"], "--reason", "elsewhere")
    operator.waits_for(lambda: fetches(operator) > before + 3)
    assert "66.00" in operator.dialog.text
    operator.presses("Cancel", ":popover-open")
    operator.reads("Cancelled")
    assert operator.has_not_reloaded


def test_the_end_of_the_session_is_shown(operator, running, polls):
    polls()
    running.flask("operator", "set", "demo", "--disabled")
    try:
        operator.reads("Your session has ended.")
    finally:
        running.flask("operator", "set", "demo", "--enabled")
    assert operator.has_not_reloaded


def test_a_service_that_does_not_respond_is_shown(operator, polls):
    polls()
    operator.chrome.execute_cdp_cmd("Network.enable", {})
    offline = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    operator.chrome.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": True, **offline})
    operator.reads("The service does not respond.")
    operator.chrome.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": False, **offline})
    operator.waits_for(lambda: "The service does not respond." not in operator.text)
    operator.complaints()
