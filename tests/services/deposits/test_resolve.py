"""Money that the rules can't settle: always visible, resolved once by an operator, never twice."""

import pytest

from tests.services import walks

START = 1_000_000
PAID = (START + 9_940, 0)
late, wrong_amount = walks.played("late"), walks.played("wrong_amount")


@pytest.fixture
def settle(flask):
    """`settle(order_no, "credit")`; with `fails=True` it must be refused."""
    return lambda order_no, how, *named, **more: flask("order", "settle", order_no, f"--{how}", *named, **more)


# walk; kind, reported amount; status and balance while it is open; what a credit adds
CASES = [
    (late, "late_payment", "100.00", "cancelled", START, 9_940),
    (walks.deposit_late_and_of_half, "late_payment", "50.00", "cancelled", START, 4_970),
    (walks.deposit_late_by_hand, "late_payment", "100.00", "cancelled", START, 9_940),
    (wrong_amount, "wrong_amount", "101.00", "pending", START, 10_039),
    (walks.deposit_too_small, "wrong_amount", "99.99", "pending", START, 9_939),
    (walks.deposit_wrong_by_hand, "wrong_amount", "99.00", "pending", START, 9_841),
    (walks.deposit_paid_twice, "paid_twice", "100.00", "completed", START + 9_940, 9_940),
]
ENDS = {"pending": "cancelled", "cancelled": "cancelled", "completed": "completed"}


@pytest.mark.parametrize("how", ["credit", "refund"])
@pytest.mark.parametrize(
    ("walk", "kind", "amount", "status", "money", "credit"), CASES, ids=[case[0].__name__ for case in CASES]
)
def test_unexpected_money_is_visible_and_moves_nothing_until_it_is_credited_or_refunded_once(
    world, settle, order_details, about, now, walk, kind, amount, status, money, credit, how
):
    order_no = walk(world)
    assert now(order_no) == (status, (money, 0), {order_no: kind})
    assert about(order_no) == [(kind, amount, None)]
    assert any(kind in line["why"] for line in order_details(order_no)["history"])

    settle(order_no, "cancel", fails=True)
    by_hand = how == "refund" and "by_hand" in walk.__name__
    settle(order_no, how, *(("--reference", "BACK-1") if by_hand else ()))
    world.later(0)  # a refund is sent to the channel
    after = (money + credit if how == "credit" else money, 0)
    assert now(order_no) == (ENDS[status], after, {})
    assert about(order_no) == [(kind, amount, how)]
    for again in ("credit", "refund"):
        settle(order_no, again, fails=True)
    world.later(10_000)
    assert now(order_no) == (ENDS[status], after, {})


def test_a_manually_credited_deposit_is_not_completed_by_more_money(world, flask, settle, exceptions, balances):
    order_no = walks.deposit_wrong_by_hand(world)
    settle(order_no, "credit")
    before = balances()
    flask("order", "paid", order_no, "--reference", "BANK-2")
    assert (balances(), len(exceptions())) == (before, 1)


def test_a_credit_uses_the_orders_own_rate(world, flask, settle, balances):
    order_no = late(world)
    flask("merchant", "set", "demo", "--buy-rate", "50")
    settle(order_no, "credit")
    assert balances() == PAID


def test_nothing_is_resolved_without_an_exception_or_a_resolution(world, flask, settle):
    settle(walks.played("success")(world), "credit", fails=True)
    flask("order", "settle", late(world), fails=True)


# --- completing an order whose customer paid late, or too much


def complete(flask, order_no, **more):
    return flask("order", "settle", order_no, "--complete", "--yes", **more)


def test_a_late_payment_completes_its_cancelled_order(world, api, flask, order_details, exceptions, now):
    flask("channel", "set", walks.SANDBOX, "--settlement-days", 1)
    order_no = late(world)
    complete(flask, order_no)
    assert now(order_no) == ("completed", PAID, {})
    assert [each["type"] for each in order_details(order_no)["callbacks"]] == ["order.cancelled", "order.completed"]
    assert api.detail(order_no=order_no).data["merchant_actual_amount"] == 9_940
    complete(flask, order_no, fails=True)
    api.notice(order_no, 10_000, reference=f"SB{order_no}")
    assert exceptions() == {}


@pytest.mark.parametrize("walk", [wrong_amount, walks.deposit_claimed_and_paid_more])
def test_a_larger_payment_completes_its_order_with_the_received_amount(
    world, api, flask, order_details, steps, balances, walk
):
    order_no = walk(world)
    complete(flask, order_no)
    assert balances() == (START + 10_039, 0)
    order = api.detail(order_no=order_no).data
    assert (order["status"], order["cny_amount"], order["service_amount"]) == ("completed", "100.00", 61)
    assert order["merchant_actual_amount"] == 10_039
    assert [after for _, _, after in steps(order_no)] == ["pending", "paid", "confirmed", "completed"]
    entries = {(each["account"], each["yuan"]) for each in order_details(order_no)["ledger"]}
    assert entries == {("available", "100.39"), ("fees", "0.61"), ("clearing", "-101.00")}


def test_a_refund_of_a_completed_larger_payment_is_a_reversal(world, api, flask, order_details):
    order_no = wrong_amount(world)
    complete(flask, order_no)
    api.notice(order_no, 10_000, reference=f"SB{order_no}")
    last = order_details(order_no)["exceptions"][-1]
    assert (last["kind"], last["amount"]) == ("reversed", "1.00")


@pytest.mark.parametrize("walk", [walks.deposit_too_small, walks.deposit_late_and_of_half, walks.deposit_paid_twice])
def test_an_order_is_not_completed_with_less_money_or_twice(world, flask, rows, walk):
    order_no = walk(world)
    before = rows()
    complete(flask, order_no, fails=True)
    assert rows() == before


def test_the_callback_is_shown_before_an_order_is_completed(world, api, settle):
    order_no = late(world)
    told = settle(order_no, "complete", typed="n\n", fails=True).output
    assert '"type":"order.completed"' in told
    assert '"status":"completed"' in told
    assert "received: 100.00, to be credited: 99.40" in told
    assert api.status(order_no) == "cancelled"
    assert "completed" in settle(order_no, "complete", typed="y\n").output
