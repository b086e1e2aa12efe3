"""An operator's daily work in a browser."""

import csv
import io
from pathlib import Path

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser import NEEDS_CHROMIUM
from tests.console_browser.operator import SIZES, order_page
from tests.support import Receiver, until

pytestmark = NEEDS_CHROMIUM


@SIZES
def test_a_payout_is_approved(size, operator, running):
    placed = running.api.sell("45.00").data
    operator.sits_at(size, "en")
    operator.goes_to("payouts/")
    operator.presses(placed["order_no"])
    operator.presses("Approve")
    operator.waits_for(lambda: "45.00" in operator.dialog.text)
    operator.confirms("Approve withdrawal")
    until(lambda: running.api.status(placed["order_no"]) == "completed")
    operator.goes_to(order_page(placed))
    assert "operator demo" in operator.text
    assert not operator.scrolls_sideways


def test_an_exception_is_resolved(operator, running):
    placed = running.api.buy("70.00").data
    running.api.play(placed["order_no"], "wrong_amount")
    operator.goes_to("exceptions/")
    operator.presses(placed["order_no"])
    operator.presses("Credit balance")
    operator.waits_for(lambda: "71.00" in operator.dialog.text)
    operator.confirms("Credit ¥70.57")
    until(lambda: running.api.status(placed["order_no"]) == "cancelled")
    operator.goes_to("exceptions/")
    assert placed["order_no"] not in operator.text


def test_a_callback_is_redelivered(operator, running, web_server):
    shop = Receiver(web_server, "/console", "whsec_b3RoZXItY2FsbGJhY2stc2VjcmV0LTAwMDAwMDAwMDA=")
    shop.answers(410)
    running.flask("merchant", "set", "other", "--callback-url", shop.url)
    other = type(running.api)(running.api.send, "other")
    placed = other.buy("12.00").data
    other.play(placed["order_no"], "success")
    until(lambda: shop.got)
    shop.answers(200)
    until(lambda: "dead" in running.flask("callback", "list", "--merchant", "other").stdout)
    operator.goes_to("callbacks/?flt_state=dead")
    operator.find("td.col-createtime a").click()
    operator.reads("410")
    operator.presses("Redeliver")
    operator.confirms("Redeliver callback")
    until(lambda: len(shop.got) == 2)
    assert shop.got[0].webhook_id == shop.got[1].webhook_id


def test_a_list_is_exported(operator, running, tmp_path):
    placed = running.api.buy("33.33", merchant_order_no="=1+1").data
    where = {"behavior": "allow", "downloadPath": str(tmp_path)}
    operator.chrome.execute_cdp_cmd("Browser.setDownloadBehavior", where)
    operator.goes_to("orders/?flt_status=pending&flt_least=33.33&flt_most=33.33")
    operator.presses("Export as CSV")
    until(lambda: list(Path(tmp_path).glob("*.csv")))
    (file,) = Path(tmp_path).glob("*.csv")
    rows = list(csv.DictReader(io.StringIO(file.read_text("utf-8-sig"))))
    assert [placed["order_no"]] == [row["Order number"].strip("'") for row in rows]
    assert "'=1+1" in rows[0].values()
    file.unlink()
    operator.presses("Export as CSV")  # again, without a reload
    until(lambda: list(Path(tmp_path).glob("*.csv")))


def test_a_viewer_is_offered_no_actions(operator, running):
    placed = running.api.sell("46.00").data
    operator.chrome.delete_all_cookies()
    operator.signs_in("viewer")
    operator.goes_to(order_page(placed))
    operator.reads("46.00")
    offered = {each.accessible_name for each in operator.chrome.find_elements(By.CSS_SELECTOR, "main button")}
    assert not offered & {"Approve", "Reject", "Reveal"}


def test_a_withdrawal_is_approved_by_the_keyboard_alone(operator, running):
    placed = running.api.sell("47.00").data
    operator.goes_to(order_page(placed))
    keys = ActionChains(operator.chrome)
    for _ in range(60):
        keys.send_keys(Keys.TAB).perform()
        if operator.chrome.switch_to.active_element.accessible_name == "Approve":
            break
    keys.send_keys(Keys.ENTER).perform()
    operator.waits_for(lambda: operator.chrome.find_elements(By.CSS_SELECTOR, ":popover-open"))
    keys.send_keys(Keys.ESCAPE).perform()
    operator.waits_for(lambda: not operator.chrome.find_elements(By.CSS_SELECTOR, ":popover-open"))
    assert running.api.status(placed["order_no"]) == "pending"
    keys.send_keys(Keys.ENTER).perform()
    operator.waits_for(lambda: operator.chrome.find_elements(By.CSS_SELECTOR, ":popover-open"))
    for _ in range(10):
        keys.send_keys(Keys.TAB).perform()
        if operator.chrome.switch_to.active_element.accessible_name == "Approve withdrawal":
            break
    keys.send_keys(Keys.ENTER).perform()
    until(lambda: running.api.status(placed["order_no"]) == "completed")


def test_an_operator_completes_a_late_payment_and_sees_the_callback_first(operator, running):
    order_no = running.api.buy().data["order_no"]
    running.api.play(order_no, "late")
    operator.goes_to(f"order/{order_no}")
    operator.presses("Complete order")
    assert '"type":"order.completed"' in operator.dialog.text
    assert "¥99.40" in operator.dialog.text
    operator.confirms("Complete order")
    operator.reads("Order status: Completed")
    assert running.api.status(order_no) == "completed"
