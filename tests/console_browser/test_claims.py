"""An operator decides on claims: many at once, and by a statement of the bank."""

from datetime import datetime

from selenium.webdriver.common.by import By

from runtime.clock import CHINA
from tests.browser import NEEDS_CHROMIUM
from tests.console_browser.operator import SIZES
from tests.services import walks

pytestmark = NEEDS_CHROMIUM
MANUAL = 3


def claimed(running, amount):
    order_no = running.api.buy(amount, MANUAL).data["order_no"]
    running.api.send("POST", "/addons/paychannel/pay/paid", f"order_no={order_no}".encode(), walks.FORM)
    return order_no


def test_claims_are_confirmed_or_reported_as_not_received_in_bulk(operator, running):
    received, missing = ([claimed(running, "31.00"), claimed(running, "32.00")] for _ in range(2))

    def selects(numbers):
        operator.goes_to("claims/")
        for order_no in numbers:
            operator.find(f'input[name=order_no][value="{order_no}"]').click()
        operator.reads("2 selected, ¥63.00")

    selects(received)
    operator.presses("Confirm received")
    operator.reads("¥63.00")
    operator.find(f'[name="reference-{received[0]}"]').send_keys("BANK-31")
    operator.presses("Confirm 2 deposits")
    operator.reads("2 deposits confirmed: ¥63.00")
    selects(missing)
    operator.presses("Payment not received")
    operator.presses("Cancel 2 deposits")
    operator.reads("2 deposits cancelled: ¥63.00")
    statuses = [running.api.status(each) for each in (*received, *missing)]
    assert statuses == ["completed", "completed", "cancelled", "cancelled"]


def test_a_statement_confirms_the_claims_that_it_matches(operator, running, tmp_path):
    named, other = claimed(running, "35.00"), claimed(running, "35.00")
    file = tmp_path / "bill.csv"
    now = f"{datetime.now(CHINA):%Y-%m-%d %H:%M:%S}"
    rows = f"{now},WX-35,35.00,订单{named}\n{now},WX-36,35.00,\n"
    file.write_text(f"交易时间,流水号,收入金额,附言\n{rows}", "gbk")
    operator.goes_to("claims/")
    operator.presses("Upload statement")
    operator.find("#file").send_keys(str(file))
    operator.presses("Match payments")
    operator.reads("Several open deposits have this amount.")
    assert operator.find("[name=row-3]:checked").get_attribute("value") == ""
    operator.chrome.execute_script("scrollTo(0, document.body.scrollHeight)")
    operator.find(f'[name=row-3][value^="{other}"]').click()
    operator.presses("Confirm 1 matched and the chosen deposits")
    operator.reads("2 deposits confirmed: ¥70.00")
    assert (running.api.status(named), running.api.status(other)) == ("completed", "completed")


def test_the_next_action_confirms_a_claim_and_the_timeline_tells_everything(operator, running):
    order_no = claimed(running, "38.00")
    operator.goes_to(f"order/{order_no}")
    operator.presses("Confirm received")
    operator.find(":popover-open [name=reference]").send_keys("BANK-38")
    operator.confirms("Confirm received")
    operator.reads("Order status: Completed")
    figures = operator.find(".figures").text
    assert "¥38.00" in figures
    assert "¥37.77" in figures
    timeline = operator.find("#moments").text
    for text in ("The payer says they paid", "Deposit credited", "order.completed", "operator demo"):
        assert text in timeline
    assert not operator.find(".fold table").is_displayed()
    operator.find(".fold summary").click()
    operator.waits_for(lambda: operator.find(".fold table").is_displayed())


@SIZES
def test_a_deposit_that_can_be_paid_shows_its_link_as_text_and_qr_code(size, operator, running):
    operator.sits_at(size, "en")
    order_no = running.api.buy("39.00", MANUAL).data["order_no"]
    operator.goes_to(f"order/{order_no}")
    assert operator.find("#pay-url").text.endswith(f"/pay/index?order_no={order_no}")
    assert operator.find(".qr svg").is_displayed()
    operator.presses("Copy payment link")
    operator.waits_for(lambda: operator.find("[data-copy=pay-url]").text == "Copied")
    assert not operator.scrolls_sideways
    claim = f"order_no={order_no}".encode()
    running.api.send("POST", "/addons/paychannel/pay/paid", claim, walks.FORM)
    operator.goes_to(f"order/{order_no}")
    assert not operator.chrome.find_elements(By.CSS_SELECTOR, "#pay-url")
