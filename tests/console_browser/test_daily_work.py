"""An operator's daily work in a browser."""

import csv
import io

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
    operator.presses("Resend")
    operator.confirms("Resend callback")
    until(lambda: len(shop.got) == 2)
    assert shop.got[0].webhook_id == shop.got[1].webhook_id


def test_a_list_is_exported(operator, running, tmp_path):
    placed = running.api.buy("33.33", merchant_order_no="=1+1").data
    operator.saves_files_in(tmp_path)
    operator.goes_to("orders/?flt_status=pending&flt_least=33.33&flt_most=33.33")
    operator.presses("Export as CSV")
    (file,) = until(lambda: list(tmp_path.glob("*.csv")))
    rows = list(csv.DictReader(io.StringIO(file.read_text("utf-8-sig"))))
    assert [placed["order_no"]] == [row["Order number"].strip("'") for row in rows]
    assert "'=1+1" in rows[0].values()
    file.unlink()
    operator.presses("Export as CSV")  # again, without a reload
    until(lambda: list(tmp_path.glob("*.csv")))


def test_a_withdrawal_is_approved_by_the_keyboard_alone(operator, running):
    placed = running.api.sell("47.00").data
    operator.goes_to(order_page(placed))
    keys = ActionChains(operator.chrome)

    def tabs_to(name):
        for _ in range(60):
            keys.send_keys(Keys.TAB).perform()
            if operator.chrome.switch_to.active_element.accessible_name == name:
                return

    def dialogs():
        return operator.chrome.find_elements(By.CSS_SELECTOR, ":popover-open")

    tabs_to("Approve")
    keys.send_keys(Keys.ENTER).perform()
    operator.waits_for(dialogs)
    keys.send_keys(Keys.ESCAPE).perform()
    operator.waits_for(lambda: not dialogs())
    assert running.api.status(placed["order_no"]) == "pending"
    keys.send_keys(Keys.ENTER).perform()
    operator.waits_for(dialogs)
    tabs_to("Approve withdrawal")
    keys.send_keys(Keys.ENTER).perform()
    until(lambda: running.api.status(placed["order_no"]) == "completed")
