"""A short crash torture (`make torture` is the long one), and a proof that each of its claims can fail."""

import dataclasses

import pytest

from tests import postgres
from tests.torture.claims import CLAIMS, Evidence
from tests.torture.found import Found, Play, SentBack
from tests.torture.receiver import Receipt
from tests.torture.run import Plan, torture
from tests.torture.seen import RefundWish, Seen, Wish

CLAIM_NAMES = list(CLAIMS)
EXISTS, ONCE, NONCES, LEDGER, BALANCES, CREDITED, SPENT, ENDS, *OF_REFUNDS, ARRIVES, OUTBOX, ELSE = CLAIM_NAMES
REFUND_EXISTS, SENT_BACK, REFUND_ENDS = OF_REFUNDS


def broken(evidence):
    """The problems, by claim."""
    verdicts = {name: claim(evidence)[1] for name, claim in CLAIMS.items()}
    return {name: wrong for name, wrong in verdicts.items() if wrong}


@pytest.mark.usefixtures("slow", "any_database")
def test_a_service_killed_repeatedly_loses_nothing_and_does_nothing_twice(tmp_path):
    shared = postgres.Cluster() if postgres.IN_USE else None
    plan = Plan(seed=20, kills=6, processes=2 if shared else 1, postgres=shared, expiry=3, rest=120, hasty=True)
    result = torture(plan, tmp_path, say=print)
    evidence = result.evidence
    assert not broken(evidence)
    assert result.kills.total() >= 6
    # There was something to lose: paid deposits, withdrawals, refunds, interrupted and repeated requests.
    assert {order["order_type"] for order in evidence.found.orders} == {1, 2}
    assert {order["status"] for order in evidence.found.orders} == {"completed", "cancelled"}
    assert {refund["status"] for refund in evidence.found.refunds} == {"completed", "cancelled"}
    assert evidence.seen.counts["unanswered"]
    assert evidence.seen.counts["replays"]


FIELDS = ("order_no", "merchant_order_no", "order_type", "status", "cny_amount", "merchant_actual_amount")


def _order(*values):
    return {"merchant": "demo"} | dict(zip(FIELDS, values, strict=True))


REFUND_FIELDS = ("refund_no", "merchant_refund_no", "order_no", "status", "cny_amount", "merchant_actual_amount")


def _refund(*values):
    return {"merchant": "demo"} | dict(zip(REFUND_FIELDS, values, strict=True))


@pytest.fixture
def evidence():
    """The evidence of a small run without a fault.

    It has a deposit with a completed and a cancelled refund, a withdrawal, and a refused one of each.
    """
    seen = Seen(
        wishes=[
            Wish("d-1", "demo", 1, 10_000, 2, "key-1", told=["D", "D"]),
            Wish("w-1", "demo", 2, 1_000, 2, "key-2", told=["W"]),
            Wish("w-2", "demo", 2, 9_999_999, 2, "key-3", refused=40901),
        ],
        refunds=[
            RefundWish("r-1", "demo", "D", 4_000, told=["R", "R"]),
            RefundWish("r-2", "demo", "D", 500, told=["S"]),
            RefundWish("r-3", "demo", "D", 600, refused=40901),
        ],
    )
    for nonce in ("n-1", "n-2", "n-3"):
        seen.accept(nonce)
    found = Found(
        orders=[
            _order("D", "d-1", 1, "completed", "100.00", 9_940),
            _order("W", "w-1", 2, "completed", "10.00", 1_002),
        ],
        refunds=[
            _refund("R", "r-1", "D", "completed", "40.00", 4_000),
            _refund("S", "r-2", "D", "cancelled", "5.00", 500),
        ],
        callbacks=[
            {"id": f"msg_{number}", "order_no": order_no, "type": event, "state": "delivered"}
            for number, order_no, event in RESULTS
        ],
        before={"demo": {"available": 5_000, "held": 0}, "other": {"available": 0, "held": 0}},
        balances={"demo": {"available": 9_938, "held": 0}, "other": {"available": 0, "held": 0}},
        books={"D": Play(10_000, "success", None), "W": Play(1_000, "success", 1.0)},
        sent_back={"R": SentBack("D", 4_000, "success", 1.0), "S": SentBack("D", 500, "fail", None)},
    )
    deposit, refund, *others = RESULTS
    got = [_receipt(*result, taken=taken) for result in (deposit, refund) for taken in (False, True)]
    got += [_receipt(*result) for result in others]
    return Evidence(seen, found, got)


# The number that a callback is about, its order, and its type.
RESULTS = (
    ("D", "D", "order.completed"),
    ("R", "D", "refund.completed"),
    ("S", "D", "refund.cancelled"),
    ("W", "W", "order.completed"),
)


def _receipt(number, order_no, event, *, taken=True):
    refund_no = number if event.startswith("refund.") else ""
    return Receipt(f"msg_{number}", "demo", order_no, event, event.split(".")[1], b"{}", taken, refund_no)


def test_without_damage_every_claim_is_true(evidence):
    assert broken(evidence) == {}


def _status(number, status):
    return lambda e: e.by_number[number].update(status=status)


def _came(position, **facts):
    def change(e):
        e.got[position] = dataclasses.replace(e.got[position], **facts)

    return change


# The damage, and the claim that must fail.
DAMAGE = [
    (EXISTS, lambda e: e.found.orders.pop(0)),
    (EXISTS, lambda e: e.by_number["D"].update(merchant="other")),
    (EXISTS, lambda e: e.by_number["D"].update(cny_amount="100.01")),
    (ONCE, lambda e: e.found.orders.append(_order("E", "d-1", 1, "pending", "100.00", 9_940))),
    (ONCE, lambda e: e.found.orders.append(_order("E", "x-1", 1, "pending", "100.00", 9_940))),
    (ONCE, lambda e: e.found.orders.append(_order("E", "w-2", 2, "pending", "99999.99", 10_019_999))),
    (ONCE, lambda e: e.seen.wishes[0].told.append("W")),
    (ONCE, lambda e: e.seen.wishes.append(Wish("d-2", "demo", 1, 1, 2, "", spent=True))),
    (NONCES, lambda e: e.seen.accept("n-1")),
    (LEDGER, lambda e: e.found.off.append("postings sum to zero: posting 7 sums to 1 fen, not 0")),
    (BALANCES, lambda e: e.found.balances["demo"].update(available=9_938 + 9_940)),
    (BALANCES, lambda e: e.found.balances["demo"].update(available=9_938 - 1_002)),
    (BALANCES, lambda e: e.found.balances["demo"].update(available=9_938 - 4_000)),
    (BALANCES, lambda e: e.found.refunds[1].update(status="confirmed")),
    (BALANCES, lambda e: e.found.balances["demo"].update(held=1)),
    (CREDITED, _status("D", "cancelled")),
    (CREDITED, lambda e: e.found.books.pop("D")),
    (SPENT, _status("W", "cancelled")),
    (SPENT, lambda e: e.found.books.pop("W")),
    (SPENT, lambda e: e.found.books.update(X=Play(1_000, "success", 1.0))),
    (SPENT, lambda e: e.found.books.update(W=Play(2_000, "success", 1.0))),
    (SPENT, lambda e: e.found.books.update(W=Play(1_000, "fail", 1.0))),
    (ENDS, _status("W", "confirmed")),
    (REFUND_EXISTS, lambda e: e.found.refunds.pop(0)),
    (REFUND_EXISTS, lambda e: e.found.refunds[0].update(merchant="other")),
    (REFUND_EXISTS, lambda e: e.found.refunds[0].update(order_no="E")),
    (REFUND_EXISTS, lambda e: e.found.refunds[0].update(cny_amount="40.01")),
    (REFUND_EXISTS, lambda e: e.seen.refunds[0].told.append("S")),
    (REFUND_EXISTS, lambda e: e.found.refunds.append(_refund("T", "r-1", "D", "completed", "40.00", 4_000))),
    (REFUND_EXISTS, lambda e: e.found.refunds.append(_refund("T", "r-3", "D", "completed", "6.00", 600))),
    (REFUND_EXISTS, lambda e: e.found.refunds.append(_refund("T", "x-1", "D", "completed", "6.00", 600))),
    (SENT_BACK, lambda e: e.found.refunds[0].update(status="cancelled")),
    (SENT_BACK, lambda e: e.found.refunds[0].update(cny_amount="39.99")),
    (SENT_BACK, lambda e: e.found.refunds[1].update(status="completed")),
    (SENT_BACK, lambda e: e.found.sent_back.pop("R")),
    (SENT_BACK, lambda e: e.found.sent_back.update(S=SentBack("D", 500, "success", 1.0))),
    (SENT_BACK, lambda e: e.found.sent_back.update(T=SentBack("D", 4_000, "success", 1.0))),
    (SENT_BACK, lambda e: e.found.books.update(D=Play(3_999, "success", None))),
    (SENT_BACK, lambda e: e.found.exceptions.update(D="reversed")),
    (REFUND_ENDS, lambda e: e.found.refunds[0].update(status="confirmed")),
    (ARRIVES, _came(2, webhook_id="msg_other")),
    (ARRIVES, _came(3, taken=False)),
    (ARRIVES, _came(2, event="refund.cancelled")),
    (ARRIVES, lambda e: e.got.pop()),
    (ARRIVES, _came(1, taken=False)),
    (ARRIVES, _came(0, webhook_id="msg_other")),
    (ARRIVES, _came(0, body=b"{ }")),
    (ARRIVES, _came(0, event="order.cancelled")),
    (OUTBOX, lambda e: e.found.callbacks[0].update(state="pending")),
    (OUTBOX, lambda e: e.found.callbacks.pop()),
    (OUTBOX, lambda e: e.got.pop()),
    (ELSE, lambda e: e.seen.wrong.append("client-1 was answered <500>")),
    (ELSE, lambda e: e.wrong.append("the service ended unexpectedly")),
]


@pytest.mark.parametrize(("claim", "damage"), DAMAGE)
def test_a_claim_fails_where_it_is_not_true(evidence, claim, damage):
    damage(evidence)
    assert claim in broken(evidence)


def test_every_claim_is_tested():
    assert {claim for claim, _ in DAMAGE} == set(CLAIMS)
