"""What operators decide about withdrawals: approve, reject, mark as paid out, report as returned."""

import time

import pytest

from tests.services.walks import MANUAL, SANDBOX, sell_accepted, sell_pending

START = 1_000_000
HELD, SPENT, BACK = (START - 5_010, 5_010), (START - 5_010, 0), (START, 0)
SPENT_BY_HAND = (START - 5_015, 0)


# --- approve or reject


def test_a_withdrawal_waits_for_the_operator_with_its_amount_reserved_and_does_not_expire(world, now):
    order_no = sell_pending(world)
    world.later(100_000, times=2)
    assert now(order_no) == ("pending", HELD, {})


def test_withdrawals_reserve_only_the_available_balance(api, other, balances):
    first = api.sell("9000.00").data
    assert api.sell("1000.00").code == 40901
    assert other.sell("1.00").code == 40903
    assert balances() == (START - first["merchant_actual_amount"], first["merchant_actual_amount"])


def test_a_withdrawal_is_approved_once_and_not_rejected_once_its_channel_has_it(world, flask, now):
    order_no = sell_accepted(world)
    flask("order", "accept", order_no, fails=True)
    world.later(0)
    flask("order", "reject", order_no, "--reason", "too late", fails=True)
    assert now(order_no) == ("confirmed", HELD, {})


def test_a_rejected_withdrawal_has_ended(world, flask, now):
    order_no = sell_pending(world)
    flask("order", "reject", order_no, fails=True)  # without a reason
    flask("order", "reject", order_no, "--reason", "no")
    flask("order", "reject", order_no, "--reason", "no", fails=True)
    flask("order", "accept", order_no, fails=True)
    world.later(1_000)
    assert now(order_no) == ("cancelled", BACK, {})


def test_a_deposit_is_neither_approved_nor_rejected(api, flask):
    order_no = api.buy().data["order_no"]
    flask("order", "accept", order_no, fails=True)
    flask("order", "reject", order_no, "--reason", "x", fails=True)
    assert api.status(order_no) == "pending"


@pytest.mark.parametrize(("amount", "status"), [("0.01", "confirmed"), ("50.00", "confirmed"), ("50.01", "pending")])
def test_withdrawals_are_auto_approved_up_to_the_limit(api, flask, later, steps, amount, status):
    flask("channel", "set", SANDBOX, "--auto-accept-max", "50.00")
    order_no = api.sell(amount).data["order_no"]
    later(0)
    assert api.status(order_no) == status
    assert status == "pending" or steps(order_no)[-1] == ("service", "pending", "confirmed")
    later(5, times=2)
    assert api.status(order_no) == ("completed" if status == "confirmed" else "pending")


def test_a_withdrawal_that_is_auto_approved_is_sent_at_once(api, flask, later, order_details):
    flask("channel", "set", SANDBOX, "--auto-accept-max", "50.00")
    order_no = api.sell("50.00").data["order_no"]
    later(0)
    codes = [line["code"] for line in order_details(order_no)["history"]]
    assert codes == ["created", "accepted_by_rule", "payout_shown"]


def test_until_the_auto_approval_the_limit_may_be_lowered_and_the_operator_may_reject(world, api, flask, balances):
    flask("channel", "set", SANDBOX, "--auto-accept-max", "50.00")
    rejected, kept = sell_pending(world), sell_pending(world)
    flask("order", "reject", rejected, "--reason", "no")
    flask("channel", "set", SANDBOX, "--auto-accept-max", "49.99")
    world.later(60, times=2)
    assert (api.status(rejected), api.status(kept), balances()) == ("cancelled", "pending", HELD)
    flask("order", "accept", kept)


def test_the_time_of_a_step_is_in_the_order(world, api, ahead):
    order_no = sell_pending(world)
    ahead(100)
    placed = api.detail(order_no=order_no).data
    assert placed["createtime"] == placed["updatetime"] <= int(time.time()) - 100
    world.flask("order", "accept", order_no)
    accepted = api.detail(order_no=order_no).data
    assert accepted["createtime"] == placed["createtime"] <= accepted["updatetime"] - 100


# --- mark as paid out


def test_a_manual_withdrawal_waits_until_the_operator_marks_it_as_paid(
    world, api, flask, order_details, exceptions, now
):
    order_no = sell_pending(world, MANUAL)
    flask("order", "paid", order_no, fails=True)
    assert now(order_no) == ("pending", (START - 5_015, 5_015), {})
    flask("order", "accept", order_no)
    world.later(1_000, times=3)
    assert (api.status(order_no), exceptions()) == ("confirmed", {})
    flask("order", "paid", order_no, "--reference", "BANK-1")
    assert now(order_no) == ("completed", SPENT_BY_HAND, {})
    assert order_details(order_no)["channel_reference"] == "BANK-1"


def test_a_channel_with_status_checks_is_not_paid_manually(world, flask, api):
    order_no = sell_accepted(world)
    flask("order", "paid", order_no, fails=True)
    assert api.status(order_no) == "confirmed"


# --- report as returned


@pytest.fixture
def paid_by_hand(world, flask):
    """The number of a withdrawal of 50 yuan that an operator sent."""
    order_no = sell_accepted(world, MANUAL)
    flask("order", "paid", order_no, "--reference", "T-1")
    return order_no


def test_a_manual_payout_that_came_back_is_an_exception_and_returned_once(
    paid_by_hand, api, flask, refuses, balances, order_details
):
    said = flask("order", "returned", paid_by_hand, "--reference", "RET-7", "--reason", "账号户名不符", typed="y\n")
    assert "Did 50.00 of order" in said.output
    assert "(reversed): The payout came back" in said.output
    assert (balances(), api.status(paid_by_hand)) == (SPENT_BY_HAND, "completed")
    assert "already recorded" in refuses("order", "returned", paid_by_hand, "--yes")
    told = [line["why"] for line in order_details(paid_by_hand)["history"]]
    assert "The payout came back to the operator's account: RET-7 · 账号户名不符" in told
    (exception,) = order_details(paid_by_hand)["exceptions"]
    assert (exception["kind"], exception["amount"], exception["reference"]) == ("reversed", "50.00", "T-1")
    flask("order", "resolve", paid_by_hand, "--credit")
    assert balances() == BACK
    assert "already returned to the merchant" in refuses("order", "returned", paid_by_hand, "--yes")


def test_a_return_after_one_that_was_a_mistake_is_recorded_too(paid_by_hand, flask, balances, exceptions):
    for how in ("complete", "credit"):
        flask("order", "returned", paid_by_hand, "--reference", "RET-7", "--yes")
        assert exceptions() == {paid_by_hand: "reversed"}
        flask("order", "resolve", paid_by_hand, f"--{how}")
    assert balances() == BACK


def test_without_confirmation_nothing_is_recorded(paid_by_hand, flask, exceptions):
    flask("order", "returned", paid_by_hand, "--reference", "RET-7", typed="n\n", fails=True)
    assert exceptions() == {}


def test_only_a_completed_payout_of_a_manual_channel_can_be_reported_as_returned(world, api, refuses):
    deposit = api.buy(channel=MANUAL).data["order_no"]
    assert "Only a withdrawal" in refuses("order", "returned", deposit, "--yes")
    assert "Only a completed withdrawal" in refuses("order", "returned", sell_accepted(world, MANUAL), "--yes")
    sent = sell_accepted(world)
    world.later(5, times=2)
    assert api.status(sent) == "completed"
    assert "Check the status instead" in refuses("order", "returned", sent, "--yes")
