"""Every report of a channel that contradicts the ledger is recorded, whatever the withdrawal's status."""

import pytest

from gateways.base import ChannelUnknown, Report, State
from gateways.sandbox.driver import SandboxDriver
from models.tables.order import Order
from runtime import clock
from services.ledger import accounts, postings
from tests.services.walks import MANUAL, sell_accepted, sell_paid_out, sell_rejected

START = 1_000_000
BACK, SPENT, HELD = (START, 0), (START - 5_010, 0), (START - 5_010, 5_010)


@pytest.fixture
def paid_although_rejected(world, api, exceptions):
    """A rejected withdrawal of 50 yuan that the channel paid out."""
    order_no = sell_rejected(world)
    assert api.notice(order_no, 5_000).status == 200
    assert exceptions() == {order_no: "payout_conflict"}
    return order_no


@pytest.fixture
def in_progress_although_rejected(world, api):
    """A rejected withdrawal of 50 yuan that is in progress at the channel."""
    order_no = sell_rejected(world)
    assert api.notice(order_no, 5_000, state="open").status == 200
    return order_no


@pytest.fixture
def credited_back(world, api, flask, exceptions, balances):
    """A withdrawal that was paid out, reported as failed, and credited back to the merchant."""
    order_no = sell_paid_out(world)
    api.notice(order_no, 5_000, state="failed", reference=f"SB{order_no}")
    flask("order", "settle", order_no, "--credit")
    assert (exceptions(), balances()) == ({}, BACK)
    return order_no


# --- paid although it was rejected


def test_exceptions_about_a_payout_that_bounced_are_closed_or_reversals(api, paid_although_rejected, flask, about):
    for state in ("failed", "paid"):
        api.notice(paid_although_rejected, 5_000, state=state)
    flask("order", "settle", paid_although_rejected, "--complete")
    for _ in range(2):
        api.notice(paid_although_rejected, 5_000, state="failed")
    ended = [("payout_conflict", "50.00", "failed"), ("payout_conflict", "50.00", "complete")]
    assert about(paid_although_rejected) == [*ended, ("reversed", "50.00", None)]
    flask("order", "settle", paid_although_rejected, "--cancel", fails=True)


# The channel's later reports, the operator's decisions; the exceptions that are open in the end, and the balances.
CHANGES_OF_MIND = [
    (("cancel", "paid"), [], BACK),
    (("cancel", "failed"), [], BACK),
    (("cancel", "failed", "paid", "paid"), ["payout_conflict"], BACK),
    (("cancel", "failed", "paid", "cancel", "paid"), [], BACK),
    (("cancel", "failed", "paid", "cancel", "failed", "paid"), ["payout_conflict"], BACK),
    (("cancel", "open", "paid"), [], SPENT),
    (("cancel", "open", "failed", "paid"), ["payout_conflict"], BACK),
    (("failed", "failed"), [], BACK),
    (("failed", "paid", "complete", "failed"), ["reversed"], SPENT),
    (("complete", "failed", "failed", "credit"), [], BACK),
    (("complete", "failed", "failed", "credit", "paid"), ["payout_conflict"], BACK),
    (("complete", "failed", "complete", "failed"), [], SPENT),
    (("complete", "failed", "complete", "paid", "failed"), ["reversed"], SPENT),
    (("complete", "open", "complete", "failed"), ["reversed"], SPENT),
    (("complete", "failed", "paid", "complete", "failed"), ["reversed"], SPENT),
    (("complete", "failed", "open", "complete", "failed"), ["reversed"], SPENT),
    (("complete", "failed", "complete", "open", "complete", "failed"), ["reversed"], SPENT),
    (("complete", "failed", "paid", "failed", "credit", "failed"), [], BACK),
    (("cancel", "failed", "paid", "complete", "failed", "credit", "paid"), ["payout_conflict"], BACK),
]


@pytest.mark.parametrize(
    ("steps", "left_open", "money"), CHANGES_OF_MIND, ids=["-".join(case[0]) for case in CHANGES_OF_MIND]
)
def test_a_payout_that_changes_again_after_the_operators_decision_is_an_exception_again(
    api, paid_although_rejected, flask, about, balances, steps, left_open, money
):
    for step in steps:
        if step in ("paid", "failed", "open"):
            assert api.notice(paid_although_rejected, 5_000, state=step).status == 200
        else:
            flask("order", "settle", paid_although_rejected, f"--{step}")
    assert [kind for kind, _, resolution in about(paid_although_rejected) if resolution is None] == left_open
    assert balances() == money


def test_a_payout_that_fails_without_a_number_and_is_paid_again_after_its_cancellation_is_a_conflict(
    api, paid_although_rejected, flask, exceptions, monkeypatch
):
    flask("order", "settle", paid_although_rejected, "--cancel")
    monkeypatch.setattr(SandboxDriver, "query_payout", lambda driver, payout: Report(State.FAILED))
    flask("order", "ask", paid_although_rejected)
    api.notice(paid_although_rejected, 5_000)
    assert exceptions() == {paid_although_rejected: "payout_conflict"}


def test_a_payout_reported_again_with_its_first_amount_after_each_was_resolved_is_a_conflict(
    api, paid_although_rejected, flask, about
):
    for fen in (4_000, 5_000):
        flask("order", "settle", paid_although_rejected, "--cancel")
        for _ in range(2):
            api.notice(paid_although_rejected, fen)
    resolved = [("payout_conflict", amount, "cancel") for amount in ("50.00", "40.00")]
    assert about(paid_although_rejected) == [*resolved, ("payout_conflict", "50.00", None)]


# --- in progress although it was rejected, or credited back


@pytest.mark.parametrize(("final", "money", "end"), [("paid", SPENT, "paid_out"), ("failed", BACK, "failed")])
def test_a_rejected_withdrawal_in_progress_is_reserved_again_until_the_channels_final_result(
    api, in_progress_although_rejected, about, order_details, now, final, money, end
):
    order_no = in_progress_although_rejected
    api.notice(order_no, 5_000, state="open")
    assert now(order_no) == ("cancelled", HELD, {order_no: "payout_in_progress"})
    assert order_details(order_no)["due_at"], "its status is checked"
    for _ in range(2):
        api.notice(order_no, 5_000, state=final)
    assert about(order_no) == [("payout_in_progress", "50.00", end)]
    assert now(order_no) == ("cancelled", money, {})
    assert [each["type"] for each in order_details(order_no)["callbacks"]] == ["order.cancelled"]


def test_a_withdrawal_can_be_reserved_again_repeatedly(api, in_progress_although_rejected, balances):
    for state in ("failed", "open", "failed", "open", "paid"):
        api.notice(in_progress_although_rejected, 5_000, state=state)
    assert balances() == SPENT


def test_without_the_balance_a_payout_in_progress_is_only_an_exception(world, api, flask, exceptions, balances):
    order_no = sell_rejected(world)
    flask("ledger", "adjust", "demo", "--reason", "all of it", "--", "-10000.00")
    api.notice(order_no, 5_000, state="open")
    assert (exceptions(), balances()) == ({order_no: "payout_in_progress"}, (0, 0))
    api.notice(order_no, 5_000)
    assert exceptions() == {order_no: "payout_conflict"}


def test_a_rejected_withdrawal_in_progress_is_checked_until_the_channel_has_a_result(
    world, api, flask, exceptions, balances
):
    order_no = api.sell("50.00").data["order_no"]
    api.play(order_no, "silent")
    flask("order", "accept", order_no)
    world.later(0)
    Order.update(status="cancelled", due_at=clock.now()).where(Order.order_no == order_no).execute()
    accounts.post("release", postings.release(Order.get()), who="operator", order=Order.get())
    for day in range(9):
        world.later(86_400)
        assert exceptions() == {order_no: "payout_in_progress"}, day
    api.play(order_no, "success")
    world.later(3_600)
    assert (exceptions(), balances()) == ({}, SPENT)


def test_after_a_day_of_silence_an_operator_may_end_a_withdrawal_reserved_again(
    in_progress_although_rejected, flask, refuses, ahead, exceptions, balances, monkeypatch
):
    def silent(self, payout):
        raise ChannelUnknown("no response")

    monkeypatch.setattr(SandboxDriver, "query_payout", silent)
    assert "cannot confirm" in refuses("order", "settle", in_progress_although_rejected, "--cancel")
    ahead(86_400)
    flask("order", "settle", in_progress_although_rejected, "--cancel")
    assert (exceptions(), balances()) == ({}, BACK)


def test_a_payout_reported_again_after_it_was_credited_back_is_a_conflict(api, credited_back, exceptions):
    api.notice(credited_back, 5_000, reference=f"SB{credited_back}")
    assert exceptions() == {credited_back: "payout_conflict"}


def test_a_payout_in_progress_after_it_was_credited_back_is_reserved_again_once(
    api, credited_back, exceptions, balances, order_details
):
    for _ in range(3):
        api.notice(credited_back, 5_000, state="open")
    assert (exceptions(), balances()) == ({credited_back: "payout_in_progress"}, HELD)
    assert order_details(credited_back)["due_at"]
    api.notice(credited_back, 5_000, reference="R-2")
    assert (exceptions(), balances()) == ({}, SPENT)


# --- paid as ordered, and reported again


def test_the_same_payout_confirmed_again_is_spent_once_and_with_another_amount_a_conflict(
    world, flask, balances, exceptions
):
    order_no = sell_accepted(world, MANUAL)
    flask("order", "paid", order_no, "--reference", "BANK-1")
    assert "already recorded" in flask("order", "paid", order_no, "--reference", "BANK-1").output
    assert exceptions() == {}
    assert "payout_conflict" in flask("order", "paid", order_no, "--reference", "BANK-1", "--amount", "40").output
    assert balances() == (START - 5_015, 0)


def test_a_failure_reported_after_an_unexpected_payout_is_visible_too(api, flask, later, exceptions):
    order_no = api.sell("50.00").data["order_no"]
    api.play(order_no, "wrong_amount")
    flask("order", "accept", order_no)
    later(5, times=2)
    flask("order", "settle", order_no, "--complete")
    assert exceptions() == {}
    api.notice(order_no, 5_000, state="failed", reference=f"SB{order_no}")
    assert exceptions() == {order_no: "reversed"}


@pytest.mark.sqlite  # Postgres also needs its locks
def test_a_notice_that_completes_a_payout_runs_few_statements(world, api, caplog):
    first, order_no = sell_accepted(world), sell_accepted(world)
    world.later(0)
    api.notice(first, 5_000, reference="P-1")  # what is read once is known now
    with caplog.at_level("DEBUG", logger="peewee"):
        api.notice(order_no, 5_000, reference="P-2")
    statements = [record.getMessage() for record in caplog.records if record.name == "peewee"]
    assert api.status(order_no) == "completed"
    assert 0 < len(statements) <= 13, "\n".join(statements)
