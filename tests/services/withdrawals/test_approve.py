"""Withdrawals: reserved, decided by an operator or auto-approved, sent once, and the effect of each outcome."""

import time

import pytest

START = 1_000_000
HELD, SPENT, BACK = (START - 5_010, 5_010), (START - 5_010, 0), (START, 0)
SANDBOX, MANUAL = 2, 3


@pytest.fixture
def accepted(api, flask):
    """`accepted()`: the number of a withdrawal of 50 yuan that an operator approved."""

    def place(channel=SANDBOX, outcome=""):
        order_no = api.sell("50.00", channel).data["order_no"]
        if outcome:
            api.play(order_no, outcome)
        flask("order", "accept", order_no)
        return order_no

    return place


# outcome; status after five seconds; final status
OUTCOMES = [
    ("success", ("completed", SPENT, ""), ("completed", SPENT, "")),
    ("duplicate", ("completed", SPENT, ""), ("completed", SPENT, "")),
    ("fail", ("cancelled", BACK, ""), ("cancelled", BACK, "")),
    ("silent", ("confirmed", HELD, ""), ("confirmed", HELD, "")),
    ("late", ("confirmed", HELD, ""), ("completed", SPENT, "")),
    ("timeout", ("confirmed", HELD, "unknown_outcome"), ("completed", SPENT, "")),
    ("wrong_amount", ("confirmed", HELD, "payout_conflict"), ("confirmed", HELD, "payout_conflict")),
]


@pytest.mark.parametrize(
    ("told_by", "outcome", "soon", "finally_"),
    [("button", *case) for case in OUTCOMES] + [("config", *case) for case in OUTCOMES if case[0] != "duplicate"],
)
def test_each_outcome_of_the_sandbox_has_its_final_status(
    api, flask, accepted, later, balances, exceptions, told_by, outcome, soon, finally_
):
    if told_by == "config":
        flask("channel", "set", SANDBOX, "--config", f"payout={outcome}")
    order_no = accepted(outcome=outcome if told_by == "button" else "")
    later(0)
    later(5)
    assert (api.status(order_no), balances(), exceptions().get(order_no, "")) == soon
    later(400, times=4)
    assert (api.status(order_no), balances(), exceptions().get(order_no, "")) == finally_


def test_a_payout_without_a_response_is_checked_until_there_is_one(api, accepted, later, balances):
    order_no = accepted(outcome="silent")
    later(400, times=5)
    assert api.status(order_no) == "confirmed"
    api.play(order_no, "success")
    later(400)
    assert (api.status(order_no), balances()) == ("completed", SPENT)


# The decision


def test_a_withdrawal_waits_for_the_operator_with_its_amount_reserved(api, later, balances):
    order_no = api.sell("50.00").data["order_no"]
    later(1_000, times=2)
    assert (api.status(order_no), balances()) == ("pending", HELD)


def test_a_withdrawal_is_approved_once(accepted, flask):
    flask("order", "accept", accepted(), fails=True)


def test_a_withdrawal_sent_to_its_channel_can_not_be_rejected(api, accepted, flask, later, balances):
    order_no = accepted()
    later(0)
    flask("order", "reject", order_no, "--reason", "too late", fails=True)
    assert (api.status(order_no), balances()) == ("confirmed", HELD)


def test_a_rejected_withdrawal_has_ended(api, flask, later, balances):
    order_no = api.sell("50.00").data["order_no"]
    flask("order", "reject", order_no, "--reason", "no")
    flask("order", "reject", order_no, "--reason", "no", fails=True)
    flask("order", "accept", order_no, fails=True)
    later(1_000)
    assert (api.status(order_no), balances()) == ("cancelled", BACK)


def test_a_rejection_needs_a_reason(api, flask):
    flask("order", "reject", api.sell().data["order_no"], fails=True)


@pytest.mark.parametrize("command", [("accept",), ("reject", "--reason", "x")])
def test_a_deposit_is_neither_approved_nor_rejected(api, flask, command):
    order_no = api.buy().data["order_no"]
    flask("order", command[0], order_no, *command[1:], fails=True)
    assert api.status(order_no) == "pending"


@pytest.mark.parametrize(("amount", "status"), [("0.01", "confirmed"), ("50.00", "confirmed"), ("50.01", "pending")])
def test_withdrawals_are_auto_approved_up_to_the_limit(api, flask, later, steps, amount, status):
    flask("channel", "set", SANDBOX, "--auto-accept-max", "50.00")
    order_no = api.sell(amount).data["order_no"]
    later(0)
    assert api.status(order_no) == status
    assert status == "pending" or steps(order_no)[-1] == ("service", "pending", "confirmed")


def test_an_auto_approved_withdrawal_is_paid_out_automatically(api, flask, later, balances):
    flask("channel", "set", SANDBOX, "--auto-accept-max", "50.00")
    order_no = api.sell("50.00").data["order_no"]
    later(3, times=4)
    assert (api.status(order_no), balances()) == ("completed", SPENT)


def test_a_removed_limit_approves_nothing(api, flask, later):
    flask("channel", "set", SANDBOX, "--auto-accept-max", "50.00")
    order_no = api.sell("50.00").data["order_no"]
    flask("channel", "set", SANDBOX, "--auto-accept-max", "49.99")
    later(60, times=2)
    assert api.status(order_no) == "pending"
    flask("order", "accept", order_no)


def test_the_operator_may_reject_before_the_auto_approval(api, flask, later, balances):
    flask("channel", "set", SANDBOX, "--auto-accept-max", "50.00")
    order_no = api.sell("50.00").data["order_no"]
    flask("order", "reject", order_no, "--reason", "no")
    later(60, times=2)
    assert (api.status(order_no), balances()) == ("cancelled", BACK)


# Manual channels


def test_a_manual_withdrawal_waits_until_the_operator_marks_it_as_paid(
    api, accepted, flask, later, order_details, balances, exceptions
):
    order_no = accepted(MANUAL)
    later(1_000, times=3)
    assert (api.status(order_no), exceptions()) == ("confirmed", {})
    flask("order", "paid", order_no, "--reference", "BANK-1")
    assert (api.status(order_no), balances()) == ("completed", (START - 5_015, 0))
    assert order_details(order_no)["channel_reference"] == "BANK-1"


def test_only_an_approved_withdrawal_can_be_marked_as_paid(api, flask, balances):
    order_no = api.sell("50.00", MANUAL).data["order_no"]
    flask("order", "paid", order_no, fails=True)
    assert (api.status(order_no), balances()) == ("pending", (START - 5_015, 5_015))


def test_a_channel_with_status_checks_is_not_paid_manually(accepted, flask, api):
    order_no = accepted()
    flask("order", "paid", order_no, fails=True)
    assert api.status(order_no) == "confirmed"


def test_withdrawals_reserve_only_the_available_balance(api, other, balances):
    first = api.sell("9000.00").data
    assert api.sell("1000.00").code == 40901
    assert other.sell("1.00").code == 40903
    assert balances() == (START - first["merchant_actual_amount"], first["merchant_actual_amount"])


def test_the_time_of_a_step_is_in_the_order(api, accepted, ahead):
    order_no = api.sell("50.00").data["order_no"]
    ahead(100)
    placed = api.detail(order_no=order_no).data
    accepted()
    assert placed["createtime"] == placed["updatetime"] <= int(time.time()) - 100


# --- a manual payout whose money came back


@pytest.fixture
def paid_by_hand(accepted, flask):
    """The number of a withdrawal of 50 yuan that an operator sent."""
    order_no = accepted(MANUAL)
    flask("order", "paid", order_no, "--reference", "T-1")
    return order_no


def test_a_manual_payout_that_came_back_is_an_exception_and_returned_once(
    paid_by_hand, api, flask, refuses, balances, order_details
):
    spent = balances()
    said = flask("order", "returned", paid_by_hand, "--reference", "RET-7", "--reason", "账号户名不符", typed="y\n")
    assert "Did 50.00 of order" in said.output
    assert "(reversed): Failed at the channel" in said.output
    assert (balances(), api.status(paid_by_hand)) == (spent, "completed")
    assert "already recorded" in refuses("order", "returned", paid_by_hand, "--yes")
    told = [line["why"] for line in order_details(paid_by_hand)["history"]]
    assert "The payout came back to the operator's account: RET-7, 账号户名不符" in told
    (exception,) = order_details(paid_by_hand)["exceptions"]
    assert (exception["kind"], exception["amount"], exception["reference"]) == ("reversed", "50.00", "T-1")
    flask("order", "resolve", paid_by_hand, "--credit")
    assert balances() == BACK
    assert "already returned to the merchant" in refuses("order", "returned", paid_by_hand, "--yes")


def test_a_return_after_one_that_was_a_mistake_is_recorded_too(paid_by_hand, flask, balances, exceptions):
    for how in ("complete", "credit"):
        flask("order", "returned", paid_by_hand, "--yes")
        assert exceptions() == {paid_by_hand: "reversed"}
        flask("order", "resolve", paid_by_hand, f"--{how}")
    assert balances() == BACK


def test_without_confirmation_nothing_is_recorded(paid_by_hand, flask, exceptions):
    flask("order", "returned", paid_by_hand, typed="n\n", fails=True)
    assert exceptions() == {}


def test_only_a_completed_payout_of_a_manual_channel_can_be_reported_as_returned(api, accepted, refuses, later):
    deposit = api.buy(channel=MANUAL).data["order_no"]
    assert "Only a withdrawal" in refuses("order", "returned", deposit, "--yes")
    assert "Only a completed withdrawal" in refuses("order", "returned", accepted(MANUAL), "--yes")
    sent = accepted()
    later(5, times=2)
    assert api.status(sent) == "completed"
    assert "Check the status instead" in refuses("order", "returned", sent, "--yes")
