"""Notifications: a destination is added, tested and deleted, and hears of a channel's low balance."""

from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

from tests.browser import NEEDS_CHROMIUM
from tests.console_browser.operator import SIZES
from tests.services.notifications.receiving import Robot

pytestmark = NEEDS_CHROMIUM


@SIZES
def test_a_destination_is_added_tested_and_deleted(operator, web_server, size):
    robot = Robot(web_server)
    operator.sits_at(size, "en")
    operator.goes_to("notifications/")
    operator.presses("New destination")
    operator.find("[value=dingtalk]").click()
    operator.presses("Continue")
    operator.is_at("DingTalk group robot")
    operator.find("#name").send_keys("Night shift")
    operator.find("#config_url").send_keys(f"{robot.url}?access_token=very-secret")
    operator.find("#config_secret").send_keys("SECvery-secret")
    Select(operator.find("#digest")).select_by_visible_text("09:00")
    operator.presses("Add destination")
    operator.is_at("Night shift")
    operator.presses("Send test notification")
    operator.reads("Test notification accepted.")
    assert "sign" in robot.got[0].args
    robot.answer = {"errcode": 310000, "errmsg": "sign not match"}
    operator.presses("Send test notification")
    operator.reads("Test failed. The robot's security settings refuse the message.")
    operator.presses("Delete")
    operator.confirms("Delete destination")
    operator.reads("Destination Night shift deleted.")
    operator.reads("No destinations yet")


def test_a_limit_of_a_balance_is_an_alert_on_the_overview(operator, running):
    running.api.buy()
    operator.goes_to("notifications/")
    operator.find("[name=limit_3]").send_keys("5000.00")
    operator.presses("Save limits")
    operator.reads("Saved.")
    assert operator.chrome.find_elements(By.CSS_SELECTOR, "#balances .tag.warn")
    operator.goes_to("")
    operator.reads("the balance at the channel is below its limit.")
    operator.goes_to("notifications/")
    operator.find("[name=limit_3]").clear()
    operator.presses("Save limits")
    operator.reads("Saved.")
