"""A payer's false claim to have paid ends by an operator, or after `claim_expiry`; received money has priority."""

import pytest

from gateways.base import ChannelUnknown
from gateways.sandbox.driver import SandboxDriver
from models.tables.order import Order
from services.deposits import claims
from tests.services.walks import buy_claimed, claim, deposit_claimed_and_wrong
from tests.turns import together

START = 1_000_000
PAID = (START + 9_940, 0)
DAY = 86_400


@pytest.fixture
def claimed(world):
    """The number of a deposit on the manual channel that its payer claims to have paid."""
    return buy_claimed(world)


@pytest.fixture
def claimed_at_channel(api):
    """The number of a claimed deposit of a channel that reports payments itself."""
    order_no = api.buy().data["order_no"]
    Order.update(status="paid").where(Order.order_no == order_no).execute()
    return order_no


# An operator


@pytest.mark.parametrize("given", ["no such transfer", ""])
def test_a_claim_is_dismissed_once_with_its_reason_and_the_merchant_is_notified(
    claimed, world, flask, refuses, order_details, steps, now, given
):
    assert "cancelled" in flask("order", "not-received", claimed, "--reason", given).output
    assert now(claimed) == ("cancelled", (START, 0), {})
    assert steps(claimed)[-1] == ("operator", "paid", "cancelled")
    details = order_details(claimed)
    assert details["history"][-1]["why"] == (given or "Payment not received")
    assert [callback["type"] for callback in details["callbacks"]] == ["order.cancelled"]
    assert "is cancelled" in refuses("order", "not-received", claimed)
    claim(world, claimed)
    assert order_details(claimed) == details


def test_money_received_after_the_dismissal_is_visible(claimed, flask, exceptions, balances):
    flask("order", "not-received", claimed)
    flask("order", "paid", claimed, "--reference", "BANK-1")
    assert (exceptions(), balances()) == ({claimed: "late_payment"}, (START, 0))
    flask("order", "settle", claimed, "--credit")
    assert balances() == PAID


@pytest.mark.parametrize("how", [("--credit",), ("--refund", "--reference", "BACK-1")])
def test_received_money_must_be_resolved_first(world, api, flask, refuses, rows, how):
    order_no = deposit_claimed_and_wrong(world)
    before = rows()
    assert "(wrong_amount) first" in refuses("order", "not-received", order_no)
    assert rows() == before
    flask("order", "settle", order_no, *how)
    assert api.status(order_no) == "cancelled"


@pytest.mark.parametrize(
    ("place", "why"), [("buy", "is pending"), ("sell", "only a deposit")], ids=["pending", "withdrawal"]
)
def test_an_order_that_is_not_a_claim_is_refused(api, refuses, rows, place, why):
    order_no = getattr(api, place)().data["order_no"]
    before = rows()
    assert why in refuses("order", "not-received", order_no)
    assert rows() == before


def test_of_two_operators_who_disagree_one_succeeds(claimed, app, now):
    def run(*arguments):
        return app.test_cli_runner().invoke(args=["order", *arguments])

    together((run, "not-received", claimed), (run, "paid", claimed))
    assert now(claimed) in (
        ("cancelled", (START, 0), {claimed: "late_payment"}),
        ("completed", PAID, {}),
    )


# A channel that reports payments itself


def test_a_claim_that_fails_at_its_channel_is_cancelled(claimed_at_channel, api):
    api.play(claimed_at_channel, "fail")
    assert api.status(claimed_at_channel) == "cancelled"


def test_the_status_is_checked_first_and_again_later(claimed_at_channel, api, flask, exceptions, order_details):
    flask("order", "not-received", claimed_at_channel)
    assert api.status(claimed_at_channel) == "cancelled"
    assert order_details(claimed_at_channel)["due_at"]
    api.notice(claimed_at_channel, 10_000)
    assert exceptions() == {claimed_at_channel: "late_payment"}


def test_a_claim_that_the_channel_reports_as_paid_is_not_dismissed(claimed_at_channel, api, refuses, now):
    api.play(claimed_at_channel, "silent")
    assert "reports the deposit as paid" in refuses("order", "not-received", claimed_at_channel)
    assert now(claimed_at_channel) == ("completed", PAID, {})


def test_without_a_response_nothing_is_dismissed(claimed_at_channel, refuses, rows, monkeypatch):
    def silent(self, payment):
        raise ChannelUnknown("it did not answer")

    monkeypatch.setattr(SandboxDriver, "query", silent)
    before = rows()
    assert "No valid response: it did not answer" in refuses("order", "not-received", claimed_at_channel)
    assert rows() == before


# Automatically


def test_a_claim_never_expires_unless_that_is_set(claimed, api, later):
    later(100 * DAY, times=3)
    assert api.status(claimed) == "paid"


class TestClaimsThatExpire:
    @pytest.fixture
    def settings_of_app(self):
        return {"claim_expiry": DAY}

    def test_a_claim_ends_after_that_time(self, claimed, api, later, steps, order_details):
        later(0)
        later(DAY - 60)
        assert api.status(claimed) == "paid"
        later(60)
        assert steps(claimed)[-1] == ("service", "paid", "cancelled")
        details = order_details(claimed)
        assert details["history"][-1]["why"] == "Payment not received"
        assert [callback["type"] for callback in details["callbacks"]] == ["order.cancelled"]

    def test_a_claim_that_is_confirmed_just_when_it_ends_stays(self, claimed, flask, ahead, due, now):
        due.orders()
        ahead(DAY)
        due.orders(meanwhile=lambda: flask("order", "paid", claimed))
        ahead(DAY)
        due.orders()
        assert now(claimed) == ("completed", PAID, {})

    def test_received_money_must_be_resolved_first(self, world, api, flask, later):
        order_no = deposit_claimed_and_wrong(world)
        for _ in range(2):
            later(DAY)
            assert claims.take_up() == 0
        assert api.status(order_no) == "paid"
        flask("order", "settle", order_no, "--refund", "--reference", "BACK-1")
        assert (api.status(order_no), claims.take_up()) == ("cancelled", 0)

    def test_a_claim_from_before_the_setting_ends_too(self, claimed, api, later):
        Order.update(due_at=None).where(Order.order_no == claimed).execute()
        later(DAY)
        assert api.status(claimed) == "paid"
        assert (claims.take_up(), claims.take_up()) == (1, 0)
        later(0)
        assert api.status(claimed) == "cancelled"

    def test_a_claim_paid_at_its_channel_is_credited(self, claimed_at_channel, api, later, now):
        api.play(claimed_at_channel, "silent")
        later(DAY)
        assert now(claimed_at_channel) == ("completed", PAID, {})

    def test_a_claim_unknown_to_the_channel_ends(self, claimed_at_channel, api, later):
        later(60)
        assert api.status(claimed_at_channel) == "paid"
        later(DAY)
        assert api.status(claimed_at_channel) == "cancelled"

    def test_a_channel_that_does_not_respond_ends_no_claim(self, claimed_at_channel, api, later, exceptions):
        api.play(claimed_at_channel, "timeout")
        later(DAY)
        assert (api.status(claimed_at_channel), exceptions()) == ("paid", {claimed_at_channel: "unknown_outcome"})
