"""Refunds in a browser: half of a deposit in three clicks, and several of a merchant in a few."""

import pytest

from tests.browser import NEEDS_CHROMIUM
from tests.console_browser.operator import SIZES
from tests.support import until

pytestmark = NEEDS_CHROMIUM


@pytest.fixture
def paid(running):
    """The number of a paid deposit of 100 yuan."""
    order_no = running.api.buy("100.00").data["order_no"]
    running.api.play(order_no, "success")
    until(lambda: running.api.status(order_no) == "completed")
    return order_no


@SIZES
def test_half_of_a_deposit_is_refunded_in_three_clicks_and_one_number(size, operator, paid):
    operator.sits_at(size, "en")
    operator.goes_to(f"order/{paid}")
    operator.presses("Refund")
    amount = operator.find("#amount")
    assert amount.get_attribute("value") == "100.00"
    amount.clear()
    amount.send_keys("50.00")
    operator.presses("Continue")
    operator.is_at("Refund ¥50.00")
    assert not operator.scrolls_sideways
    operator.presses("Refund ¥50.00")
    operator.reads("Refund of ¥50.00. Status:")
    operator.waits_for(lambda: "Refunded" in operator.find("#order-refunds").text)
    assert not operator.scrolls_sideways


@SIZES
def test_selected_refunds_are_approved(size, operator, running, paid):
    running.flask("merchant", "set", "demo", "--refunds", "approval")
    try:
        numbers = [
            running.api.call(
                "createRefund", {"order_no": paid, "cny_amount": amount, "merchant_refund_no": f"{paid}-{amount}"}
            ).data["refund_no"]
            for amount in ("10.00", "20.00")
        ]
    finally:
        running.flask("merchant", "set", "demo", "--refunds", "automatic")
    operator.sits_at(size, "en")
    operator.goes_to("refunds/?flt_state=review")
    for number in numbers:
        operator.find(f"input[value='{number}']").click()
    operator.reads("2 selected, ¥30.00")
    assert not operator.scrolls_sideways
    operator.presses("Approve")
    operator.is_at("Approve 2 refunds")
    operator.presses("Approve 2 refunds · ¥30.00")
    operator.is_at("2 refunds approved")
