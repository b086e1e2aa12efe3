"""Payouts that contradict their order: always visible, resolved once by an operator, never twice."""

import pytest

from tests.services import walks

START = 1_000_000
BACK, SPENT = (START, 0), (START - 5_010, 0)
SPENT_BY_HAND = (START - 5_015, 0)


@pytest.fixture
def settle(flask):
    """`settle(order_no, "complete")`; with `fails=True` it must be refused."""
    return lambda order_no, how, **more: flask("order", "settle", order_no, f"--{how}", **more)


# walk; reported amount; status while it is open; a resolution, and the status and balance after it (None: refused)
CASES = [
    (walks.payout_of_wrong_amount, "51.00", "confirmed", "complete", ("completed", SPENT)),
    (walks.payout_of_wrong_amount, "51.00", "confirmed", "cancel", None),
    (walks.payout_wrong_by_hand, "40.00", "confirmed", "complete", ("completed", SPENT_BY_HAND)),
    (walks.payout_wrong_by_hand, "40.00", "confirmed", "cancel", ("cancelled", BACK)),
    (walks.payout_although_rejected, "50.00", "cancelled", "complete", ("cancelled", SPENT_BY_HAND)),
    (walks.payout_although_rejected, "50.00", "cancelled", "cancel", ("cancelled", BACK)),
    (walks.payout_made_twice, "50.00", "completed", "complete", ("completed", SPENT)),
    (walks.payout_made_twice, "50.00", "completed", "cancel", None),
]


@pytest.mark.parametrize(
    ("walk", "amount", "status", "how", "end"), CASES, ids=[f"{case[0].__name__} {case[3]}" for case in CASES]
)
def test_a_payout_that_contradicts_its_order_is_visible_and_completed_or_cancelled_once(
    world, api, settle, order_details, about, exceptions, now, walk, amount, status, how, end
):
    order_no = walk(world)
    world.later(10_000)
    assert (api.status(order_no), exceptions()) == (status, {order_no: "payout_conflict"})
    assert about(order_no) == [("payout_conflict", amount, None)]

    settle(order_no, "credit", fails=True)
    settle(order_no, how, fails=end is None)
    if end is None:
        assert (api.status(order_no), exceptions()) == (status, {order_no: "payout_conflict"})
        return
    for again in ("complete", "cancel"):
        settle(order_no, again, fails=True)
    for seconds in (0, 600, 3_600, 86_400):
        world.later(seconds)
        assert now(order_no) == (*end, {}), seconds
    assert order_details(order_no)["due_at"] is None


def test_a_cancelled_withdrawal_paid_with_another_amount_is_not_deducted(world, settle, exceptions, balances):
    order_no = walks.payout_although_rejected(world)
    settle(order_no, "cancel")
    world.flask("order", "paid", order_no, "--amount", "40.00")
    settle(order_no, "complete", fails=True)
    assert (balances(), exceptions()) == (BACK, {order_no: "payout_conflict"})


@pytest.mark.parametrize(("how", "money"), [("credit", BACK), ("complete", SPENT)])
def test_a_completed_withdrawal_that_bounced_is_credited_back_or_left(
    world, settle, exceptions, balances, now, how, money
):
    order_no = walks.payout_failed_after_all(world)
    assert (exceptions(), balances()) == ({order_no: "reversed"}, SPENT)
    settle(order_no, "cancel", fails=True)
    settle(order_no, how)
    settle(order_no, how, fails=True)
    assert now(order_no) == ("completed", money, {})


def test_a_withdrawal_that_bounced_twice_is_credited_back_once(world, api, flask, order_details, balances):
    order_no = walks.payout_failed_after_all(world)
    assert api.notice(order_no, 5_000, state="failed", reference="R-3").status == 200
    first, second = (exception["id"] for exception in order_details(order_no)["exceptions"])
    flask("order", "settle", order_no, "--credit", "--exception", first)
    flask("order", "settle", order_no, "--credit", "--exception", second, fails=True)
    assert balances() == BACK
