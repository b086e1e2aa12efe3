"""Before an operator decides about an exception or a claim, the page shows amounts, postings and callbacks."""

import json
import re

import pytest

from models.tables.order import Order
from models.tables.outbox import Callback
from services.operations import actions
from tests.blueprints.console.reading import Shown
from tests.services import walks

EVERY_EVENT = "paid,confirmed,completed,cancelled,credited,refunded"
DECISIONS = [
    walks.buy_claimed,
    walks.deposit_too_small,
    walks.deposit_late_by_hand,
    walks.deposit_paid_twice,
    walks.deposit_claimed_and_wrong,
    walks.deposit_claimed_and_paid_more,
    walks.deposit_reversed_after_its_credit,
    walks.payout_wrong_by_hand,
    walks.payout_although_rejected,
    walks.payout_failed_after_all,
]


@pytest.fixture
def all_events(flask):
    """The demo shop subscribes to every type of callback."""
    flask("merchant", "set", "demo", "--events", EVERY_EVENT)


def decisions(order_no):
    found = actions.possible(Order.get(Order.order_no == order_no))
    return {action.key: action for action in found if action.decides or action.sends}


def key_of(order_no, ending):
    """The key of the decision with this ending."""
    (key,) = [key for key in decisions(order_no) if key.endswith(ending)]
    return key


def dialog(desk, order_no, key):
    """The text of an action's dialog."""
    html = desk.order(order_no).html
    return Shown(re.search(rf'<div popover id="{key}".*?</form>', html, re.S)[0]).text


def told(body):
    """A callback's type and data, without its times."""
    content = json.loads(body)
    return content["type"], content["data"] | {"updatetime": 0}


@pytest.mark.parametrize("walk", DECISIONS, ids=lambda walk: walk.__name__)
def test_the_shown_callbacks_are_those_that_follow(world, desk, all_events, walk):
    keys = list(decisions(walk(world)))
    assert keys
    for number in range(len(keys)):
        order_no = walk(world)
        key, action = list(decisions(order_no).items())[number]
        shown = dialog(desk, order_no, key)
        before = Callback.select().count()
        is_named = action.act == "paid" or "transfer" in action.fields
        desk.act(order_no, key, **({"reference": f"NEW-{order_no}"} if is_named else {}))
        sent = list(Callback.select().order_by(Callback.id).offset(before))
        assert [told(each.body) for each in sent] == [told(each.body) for each in action.sends]
        assert all(f'"type":"{each.type}"' in shown for each in sent)


def test_completing_shows_received_expected_postings_and_callback(world, desk):
    order_no = walks.deposit_claimed_and_paid_more(world)
    shown = dialog(desk, order_no, key_of(order_no, "complete"))
    for text in (
        "Amount received ¥101.00 Amount expected ¥100.00",
        "Available Demo Shop 演示商户 +100.39",
        "Fees +0.61",
        '"type":"order.completed"',
    ):
        assert text in shown
    assert re.search(r"Channel clearing [\w ]+ -101\.00", shown)
    assert "order.confirmed" not in shown  # the merchant does not subscribe to it


def test_sending_back_shows_that_nothing_is_posted(world, desk, flask):
    order_no = walks.deposit_late_by_hand(world)
    key = key_of(order_no, "refund")
    shown = dialog(desk, order_no, key)
    assert "No money moves in the ledger." in shown
    assert "None. The merchant does not subscribe to order.refunded." in shown
    flask("merchant", "set", "demo", "--events", EVERY_EVENT, "--callback-url", "")
    shown = dialog(desk, order_no, key)
    assert "Stored, not sent: the merchant has no callback URL." in shown
    assert '"type":"order.refunded"' in shown


def test_an_unknown_amount_is_not_shown_as_zero(world, desk):
    order_no = walks.deposit_of_no_amount(world)
    assert "Amount received unknown" in dialog(desk, order_no, key_of(order_no, "refund"))
    shown = dialog(desk, walks.buy_claimed(world), "not-received")
    assert "Amount received ¥0.00 Amount expected ¥100.00" in shown


def between(html, start, end):
    return Shown(html[html.index(start) : html.index(end, html.index(start))]).text


def test_received_expected_and_credited_are_at_the_top(world, desk):
    def figures(order_no):
        return between(desk.order(order_no).html, '<dl class="figures">', "</dl>")

    order_no = walks.deposit_too_small(world)
    assert figures(order_no) == "Amount received ¥99.99 Amount expected ¥100.00 Credited ¥0.00"
    desk.act(order_no, key_of(order_no, "credit"))
    assert figures(order_no) == "Amount received ¥99.99 Amount expected ¥100.00 Credited ¥99.39"
    order_no = walks.deposit_claimed_and_paid_more(world)
    desk.act(order_no, key_of(order_no, "complete"))
    assert figures(order_no) == "Amount received ¥101.00 Amount expected ¥100.00 Credited ¥100.39"
    assert figures(walks.sell_pending(world)) == "Payout amount ¥50.00 Reserved ¥50.10 Deducted ¥0.00"
    assert figures(walks.sell_paid_by_hand(world)) == "Payout amount ¥50.00 Reserved ¥0.00 Deducted ¥50.15"


def test_one_timeline_has_payment_ledger_callbacks_and_operator_actions(world, desk):
    order_no = walks.buy_claimed(world)
    desk.act(order_no, "paid", reference="BANK-1")
    (key,) = [key for key in desk.order(order_no).actions if key.startswith("redeliver-")]
    desk.act(order_no, key)
    told = between(desk.order(order_no).html, '<ol class="timeline" id="moments"', "</ol>")
    texts = [
        "Order created · merchant",
        "The payer says they paid · payer",
        "· operator demo",
        "Deposit credited · Available +99.40 , Channel clearing -100.00 , Fees +0.60",
        "Callback order.completed",
        "resent callback",
    ]
    assert re.search(".*".join(map(re.escape, texts)), told), told


def test_the_payment_link_is_shown_while_the_deposit_can_be_paid(world, desk):
    order_no = walks.buy_pending(world)
    html = desk.order(order_no).html
    assert f"/addons/paychannel/pay/index?order_no={order_no}" in html
    assert re.search(r'<div class="qr" [^>]*><svg [^>]*viewBox', html)
    assert " style=" not in html
    for walk in (walks.buy_paid, walks.buy_claimed, walks.buy_expired, walks.sell_pending):
        assert 'id="pay-url"' not in desk.order(walk(world)).html
