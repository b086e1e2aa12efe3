"""Payouts above `second_operator_above`: one operator requests, another one approves."""

import pytest

from services.security import operators
from tests.blueprints.console.acting import Desk
from tests.blueprints.console.overview.parts import queue

OTHER = "second"


@pytest.fixture
def settings_of_app():
    return {"second_operator_above": 5_000}


@pytest.fixture
def second(sign_in):
    """Another operator, on the same pages."""
    operators.add(OTHER, f"{OTHER}-password")
    return Desk(sign_in, OTHER)


@pytest.fixture
def large(api):
    """A withdrawal above the amount, on the manual channel."""
    return api.sell("50.01", channel=3).data["order_no"]


def offered(desk, order_no):
    return set(desk.order(order_no).actions) & {"approve", "paid", "second-approval", "withdraw-request", "reject"}


def test_it_takes_effect_only_once_another_operator_approves(desk, second, large, api, order_details):
    assert queue(second.see(""), "requests") is None
    assert desk.act(large, "approve") == ("good", "Approval requested. Another operator must approve it.")
    assert api.status(large) == "pending"
    assert queue(second.see(""), "requests").startswith("Payouts for a second operator 1 ")
    assert offered(desk, large) == {"withdraw-request", "reject"}
    assert offered(second, large) == {"second-approval", "withdraw-request", "reject"}
    assert "Requested by demo. Another operator" in second.order(large).text
    assert second.act(large, "second-approval")[0] == "good"
    assert api.status(large) == "confirmed"
    second.act(large, "paid", reference="BANK-7")
    assert api.status(large) == "confirmed"
    assert "BANK-7" in desk.order(large).text
    desk.act(large, "second-approval")
    told = order_details(large)
    assert (told["status"], told["channel_reference"]) == ("completed", "BANK-7")
    assert [(each["who"], each["action"]) for each in told["audit"]] == [
        *(("demo", "request payout"), (OTHER, "approve payout")),
        *((OTHER, "request payout"), ("demo", "approve payout")),
    ]


def test_the_same_account_cannot_approve_from_another_session_either(desk, second, sign_in, large, api):
    form = desk.order(large).actions["approve"]
    desk.send(form)
    approval = second.order(large).actions["second-approval"]
    again = Desk(sign_in, "demo")
    approval["csrf_token"] = again.order(large).actions["withdraw-request"]["csrf_token"]
    assert again.send(approval) == ("bad", "You requested this payout, so another operator must approve it.")
    form["csrf_token"] = approval["csrf_token"]
    assert again.send(form)[0] == "bad"
    assert api.status(large) == "pending"


@pytest.mark.parametrize(
    ("who", "key", "then"),
    [("demo", "withdraw-request", "pending"), (OTHER, "withdraw-request", "pending"), ("demo", "reject", "cancelled")],
)
def test_either_may_withdraw_the_request_and_a_rejection_does(desk, second, large, api, who, key, then):
    desk.act(large, "approve")
    stale = second.order(large).actions["second-approval"]
    {"demo": desk, OTHER: second}[who].act(large, key, reason="no")
    assert (second.send(stale)[0], api.status(large)) == ("bad", then)
    assert ("approve" in offered(second, large)) is (then == "pending")
    assert queue(second.see(""), "requests") is None


def test_an_approval_that_fails_leaves_the_request_and_the_order(desk, second, large, api, flask):
    other = api.sell("1.00", channel=3).data["order_no"]
    desk.act(large, "approve")
    second.act(large, "second-approval")
    desk.act(other, "approve")
    desk.act(large, "paid", reference="BANK-7")
    flask("order", "paid", other, "--reference", "BANK-7")
    assert second.act(large, "second-approval")[0] == "bad"
    assert api.status(large) == "confirmed"
    assert "second-approval" in offered(second, large)


def test_up_to_the_amount_one_operator_is_enough_but_not_for_a_larger_one_paid(desk, api, exceptions):
    order_no = api.sell("50.00", channel=3).data["order_no"]
    desk.act(order_no, "approve")
    assert api.status(order_no) == "confirmed"
    assert desk.act(order_no, "paid", amount="50.01")[1] == "Approval requested. Another operator must approve it."
    assert exceptions() == {}


def test_it_is_never_auto_approved(api, flask, due):
    flask("channel", "set", "3", "--auto-accept-max", "100")
    large, small = (api.sell(amount, channel=3).data["order_no"] for amount in ("50.01", "50.00"))
    due()
    assert (api.status(large), api.status(small)) == ("pending", "confirmed")


def test_the_command_line_needs_no_second_operator_and_it_is_recorded(desk, large, api, flask, order_details):
    desk.act(large, "approve")
    flask("order", "approve", large)
    assert api.status(large) == "confirmed"
    entry = order_details(large)["audit"][-1]
    assert (entry["who"], entry["action"]) == ("command line", "accept order")
    assert "without a second operator" in entry["detail"]
