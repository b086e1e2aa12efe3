"""An order's page offers exactly the possible actions: each offered one works as described, all others are refused."""

import inspect

import pytest

from models.tables.ledger import Entry, LedgerAccount, Posting
from models.tables.order import Order, PaymentException
from models.tables.refund import Refund
from services.operations import actions
from services.orders.verdict import RESOLUTIONS
from tests.services import walks

NO_WALKS = (walks.claim, walks.played)
PLAYED = [
    walks.played(outcome) for outcome in ("success", "fail", "silent", "duplicate", "late", "wrong_amount", "timeout")
]
DAY = 86_400


def silent(walk):
    """The same, after a day without a response of the channel."""

    def silent_walk(w):
        order_no = walk(w)
        w.api.play(order_no, "timeout")
        w.later(60)
        w.ahead(DAY + 1)
        return order_no

    silent_walk.__name__ = f"{walk.__name__}_and_silent"
    return silent_walk


def silent_since_now(w):
    order_no = walks.buy_pending(w)
    w.api.play(order_no, "timeout")
    w.later(60)
    return order_no


def refund_to_approve(w):
    w.flask("merchant", "set", "demo", "--refunds", "approval")
    order_no = walks.buy_claimed_and_proven(w)
    fields = {"order_no": order_no, "cny_amount": "40.00", "merchant_refund_no": f"R-{order_no}"}
    assert w.api.call("createRefund", fields).code == 1
    return order_no


def refund_to_send(w):
    order_no = walks.buy_claimed_and_proven(w)
    w.flask("refund", "create", order_no, "40.00")
    w.later(1)
    return order_no


def refund_sent(w):
    order_no = refund_to_send(w)
    refund = Refund.select().order_by(Refund.id.desc()).get()
    w.flask("refund", "paid", refund.refund_no, "--reference", f"BACK-{refund.id}")
    return order_no


REFUNDS = (refund_to_approve, refund_to_send, refund_sent)
WALKS = [
    *REFUNDS,
    *(each for each in vars(walks).values() if inspect.isfunction(each) and each not in NO_WALKS),
    *PLAYED,
    *(silent(walk) for walk in (walks.buy_pending, walks.sell_handed_over)),
    silent_since_now,
]
GIVEN = {"reject": {"reason": "no"}, "paid": {"reference": "BANK-NEW"}, "reject-refund": {"reason": "no"}}


def given_for(action, order_no):
    """What an operator types for an action."""
    return {"reference": f"BACK-{order_no}"} if "transfer" in action.fields else GIVEN.get(action.act, {})


# Refusals by the channel's report, which is unknown before the status check.
CHANNEL_S_WORD = (
    "The channel has it",
    "The channel reports",
    "The service is processing",
    "No valid response",
    "The channel cannot confirm",
)


@pytest.fixture
def w(world, ahead):
    world.ahead = ahead
    return world


def offered(order_no):
    """The actions on an order by key, without that whose form has a page of its own."""
    every = actions.possible(Order.get(Order.order_no == order_no))
    return {action.key: action for action in every if action.act != "refund"}


def commands(order_no):
    """All actions on an order and its refunds, as commands, by key."""
    yield "approve", ("order", "approve", order_no)
    yield "reject", ("order", "reject", order_no, "--reason", "no")
    yield "paid", ("order", "paid", order_no, "--reference", "BANK-NEW")
    yield "returned", ("order", "returned", order_no, "--yes")
    yield "not-received", ("order", "not-received", order_no)
    yield "check", ("order", "check", order_no)
    for refund in Refund.select().join(Order).where(Order.order_no == order_no):
        yield f"approve-refund-{refund.id}", ("refund", "approve", refund.refund_no)
        yield f"reject-refund-{refund.id}", ("refund", "reject", refund.refund_no, "--reason", "no")
        yield f"mark-refunded-{refund.id}", ("refund", "paid", refund.refund_no)
        yield f"check-refund-{refund.id}", ("refund", "check", refund.refund_no)
    for exception in PaymentException.select().join(Order).where(Order.order_no == order_no):
        for way in RESOLUTIONS:
            yield (
                f"resolve-{exception.id}-{way}",
                ("order", "resolve", order_no, f"--{way}", "--exception", exception.id),
            )


def moved_since(last):
    """The sum of the entries after this one, by account."""
    rows = Entry.select(Entry, LedgerAccount).join(LedgerAccount).where(Entry.id > last)
    return {(row.account.kind, row.account.owner): row.amount for row in rows}


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.__name__)
def test_offered_actions_move_the_shown_amounts_and_all_others_are_refused(w, desk, flask, rows, walk):
    order_no = walk(w)
    keys = list(offered(order_no))
    assert set(desk.order(order_no).actions) == set(keys)
    before = rows()
    for key, command in commands(order_no):
        if key not in keys:
            flask(*command, fails=True)
            assert rows() == before, key
    for number in range(len(keys)):
        order_no = walk(w) if number else order_no
        # Exceptions and callbacks of a new order have new numbers.
        key, action = list(offered(order_no).items())[number]
        last = Entry.select(Entry.id).order_by(Entry.id.desc()).limit(1).scalar()
        category, text = desk.act(order_no, key, **given_for(action, order_no))
        if category == "bad":
            assert action.asks
            assert any(words in text.replace("&#39;", "'") for words in CHANNEL_S_WORD), text
        elif not action.asks or action.lines:
            assert moved_since(last) == {account: fen for account, fen in action.lines.items() if fen}, key


ONCE = [
    *REFUNDS[:2],
    walks.sell_pending,
    walks.buy_claimed,
    walks.deposit_too_small,
    walks.deposit_paid_twice,
    walks.deposit_late_by_hand,
    walks.deposit_reversed_after_its_credit,
    walks.payout_wrong_by_hand,
    walks.payout_although_rejected,
    walks.payout_failed_after_all,
]


@pytest.mark.parametrize("walk", ONCE, ids=lambda walk: walk.__name__)
def test_an_action_is_done_once_however_often_its_form_is_sent(w, desk, rows, walk):
    def kept():
        return {name: found for name, found in rows().items() if name != "AuditEntry"}

    def acts(order_no):
        every = offered(order_no).values()
        return [action for action in every if not action.asks and action.act not in ("redeliver", "redeliver-all")]

    count = len(acts(walk(w)))
    assert count
    for number in range(count):
        order_no = walk(w)
        action = acts(order_no)[number]
        form, given = desk.order(order_no).actions[action.key], given_for(action, order_no)
        assert desk.send(form, **given)[0] != "bad"
        before = kept()
        category, text = desk.send(form, **given)
        assert category == "bad" or "Already recorded" in text
        assert kept() == before


def test_every_posting_of_an_operator_names_the_operator(w, desk):
    order_no = walks.deposit_too_small(w)
    exception = PaymentException.get()
    desk.act(order_no, f"resolve-{exception.id}-credit")
    assert Posting.select().order_by(Posting.id.desc()).get().who == "operator demo"
