"""Every report of a channel that contradicts the ledger is recorded, whatever the order's status."""

import pytest
from werkzeug import Response

from gateways.base import ChannelUnknown, Report, State
from gateways.sandbox.driver import SandboxDriver
from models.tables.order import Order
from runtime import clock
from services.ledger import accounts, postings
from tests.services.walks import sell_accepted, sell_rejected
from tests.upstreams.money_moves import DRIVERS

START = 1_000_000
CREDITED = 9_940


@pytest.fixture(params=DRIVERS, ids=lambda driver: driver.__name__)
def moves(request, web_server, app):
    """The upstream of one driver."""
    return request.param(web_server)


@pytest.fixture
def placed(api, flask, flask_json, moves):
    """`placed()`: a new deposit of 100 yuan at that upstream."""
    pairs = [part for name, value in moves.config().items() for part in ("--config", f"{name}={value}")]
    new = ("channel", "add", "--category", "gateway_b", "--driver", moves.driver, "--name", "Upstream")
    channel = flask_json(*new, *pairs)["id"]
    flask("channel", "link", channel, "demo")
    return lambda: api.buy(channel=channel, paychannel_paymethod=moves.method).data["order_no"]


@pytest.fixture(params=["notice", "query", "scheduled query"])
def deliver(request, api, flask, later, moves, order_details):
    """`deliver(order_no)`: the service gets the channel's report; skipped if the channel does not report this way."""

    def to_service(order_no):
        if request.param == "notice" and not moves.told_by_notice:
            pytest.skip("this channel tells of a refund by its answers only")
        if request.param != "notice" and moves.driver == "alipay" and order_no in moves.partly:
            pytest.skip("Alipay tells of a partial refund by notices only")
        if request.param == "scheduled query" and order_details(order_no)["due_at"] is None:
            pytest.skip("no query is scheduled")
        if request.param == "notice":
            assert moves.notice(order_no).to(api.send, order_no).status in (200, 204)
        elif request.param == "query":
            flask("order", "ask", order_no)
        else:
            later(3_600)
            later(86_400)

    moves.partly = set()
    return to_service


@pytest.fixture
def late(api, placed, moves, flask, later, exceptions):
    """`late()`: a deposit of 100 yuan that was paid after it was cancelled."""

    def walk(fen=10_000):
        order_no = placed()
        later(900)
        assert api.status(order_no) == "cancelled"
        moves.pay(order_no, fen)
        moves.notice(order_no).to(api.send, order_no)
        assert exceptions() == {order_no: "late_payment"}
        return order_no

    return walk


def about(order_details, order_no):
    """An order's exceptions: kind, amount, resolution."""
    return [(each["kind"], each["amount"], each["resolution"]) for each in order_details(order_no)["exceptions"]]


# --- 1: late money that was refunded


def test_fully_refunded_late_money_can_not_be_credited(
    late, deliver, moves, flask, order_details, exceptions, balances
):
    order_no = late()
    moves.give_back(order_no, 10_000, 0)
    deliver(order_no)
    flask("order", "settle", order_no, "--credit", fails=True)
    assert balances() == (START, 0)
    if moves.sized:
        assert (about(order_details, order_no), exceptions()) == ([("late_payment", "100.00", "returned")], {})
    else:
        assert about(order_details, order_no) == [("late_payment", "0.00", None)]


def test_credited_and_refunded_late_money_is_a_reversal(
    late, deliver, moves, flask, order_details, exceptions, balances
):
    order_no = late()
    flask("order", "settle", order_no, "--credit")
    moves.give_back(order_no, 10_000, 0)
    deliver(order_no)
    size = "100.00" if moves.sized else "0.00"
    assert about(order_details, order_no) == [("late_payment", "100.00", "credit"), ("reversed", size, None)]
    assert (exceptions(), balances()) == ({order_no: "reversed"}, (START + CREDITED, 0))
    before = order_details(order_no)
    deliver(order_no)
    assert order_details(order_no)["exceptions"] == before["exceptions"]


def test_manually_returned_late_money_may_be_refunded(late, deliver, moves, flask, order_details, exceptions):
    order_no = late()
    flask("order", "settle", order_no, "--refund")
    moves.give_back(order_no, 10_000, 0)
    deliver(order_no)
    assert (about(order_details, order_no), exceptions()) == ([("late_payment", "100.00", "refund")], {})


def test_partly_refunded_late_money_counts_as_the_rest(late, deliver, moves, flask, order_details, balances):
    order_no = late()
    moves.partly.add(order_no)
    moves.give_back(order_no, 4_000, 6_000)
    deliver(order_no)
    if moves.sized:
        assert about(order_details, order_no) == [("late_payment", "60.00", None)]
        flask("order", "settle", order_no, "--credit")
        assert balances() == (START + 5_964, 0)
    else:
        assert "names no amount" in flask("order", "settle", order_no, "--credit", fails=True).output


def test_refunded_money_of_a_wrong_amount_ends_the_order(api, placed, deliver, moves, flask, order_details, balances):
    order_no = placed()
    moves.pay(order_no, 9_000)
    moves.notice(order_no).to(api.send, order_no)
    assert about(order_details, order_no) == [("wrong_amount", "90.00", None)]
    moves.give_back(order_no, 9_000, 0)
    deliver(order_no)
    flask("order", "settle", order_no, "--credit", fails=True)
    assert balances() == (START, 0)


# --- a deposit that was credited


def test_a_partly_refunded_credited_deposit_is_reversed_by_that_part(
    api, placed, deliver, moves, order_details, balances
):
    order_no = placed()
    moves.pay(order_no, 10_000)
    moves.notice(order_no).to(api.send, order_no)
    moves.partly.add(order_no)
    moves.give_back(order_no, 4_000, 6_000)
    deliver(order_no)
    assert about(order_details, order_no) == [("reversed", "40.00" if moves.sized else "0.00", None)]
    assert (api.status(order_no), balances()) == ("completed", (START + CREDITED, 0))


def test_a_credited_deposit_that_the_channel_reports_as_unpaid_is_reversed(api, flask, order_details):
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 10_000)
    for _ in range(2):
        flask("order", "ask", order_no)  # the simulator has no payment
    assert about(order_details, order_no) == [("reversed", "100.00", None)]
    assert order_details(order_no)["exceptions"][0]["code"] == "not_paid_there"


# --- 6: an amount that the channel corrects once the exception is resolved


@pytest.mark.parametrize(
    ("how", "reported", "expected"),
    [
        ("credit", 12_000, [("amount_corrected", "20.00", None)]),
        ("credit", 7_000, [("reversed", "30.00", None)]),
        ("refund", 12_000, [("amount_corrected", "20.00", None)]),
        ("refund", 7_000, []),
    ],
)
def test_an_amount_corrected_after_its_resolution_is_an_exception(
    late, moves, api, flask, order_details, how, reported, expected
):
    order_no = late()
    flask("order", "settle", order_no, f"--{how}")
    moves.pay(order_no, reported)
    for _ in range(2):
        moves.notice(order_no).to(api.send, order_no)
    assert about(order_details, order_no) == [("late_payment", "100.00", how), *expected]


def test_money_beyond_a_resolved_amount_is_credited_separately(late, moves, api, flask, balances, exceptions):
    order_no = late()
    flask("order", "settle", order_no, "--credit")
    for fen in (12_000, 15_000):
        moves.pay(order_no, fen)
        moves.notice(order_no).to(api.send, order_no)
        flask("order", "settle", order_no, "--credit")
    assert (balances(), exceptions()) == ((START + 14_910, 0), {})


def test_a_full_refund_reverses_the_credit_and_closes_the_open_exception(
    late, moves, deliver, flask, order_details, balances
):
    if not moves.sized:
        pytest.skip("this channel does not say how much went back")
    order_no = late()
    flask("order", "settle", order_no, "--credit")
    moves.pay(order_no, 12_000)
    deliver(order_no)
    assert about(order_details, order_no)[1:] == [("amount_corrected", "20.00", None)]
    moves.give_back(order_no, 12_000, 0)
    deliver(order_no)
    ended = [("amount_corrected", "20.00", "returned"), ("reversed", "100.00", None)]
    assert (about(order_details, order_no)[1:], balances()) == (ended, (START + CREDITED, 0))


def test_a_refund_of_unknown_amount_gets_it_once_the_channel_reports_it(api, flask, order_details, monkeypatch):
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 10_000, reference="R-1")
    for report, size in (
        (Report(State.RETURNED, reference="R-1"), "0.00"),
        (Report(State.PAID, 7_000, "R-1"), "30.00"),
        (Report(State.RETURNED, reference="R-1"), "30.00"),
        (Report(State.FAILED, reference="R-1"), "100.00"),
    ):
        monkeypatch.setattr(SandboxDriver, "query", lambda driver, payment, report=report: report)
        flask("order", "ask", order_no)
        assert about(order_details, order_no) == [("reversed", size, None)]


def test_a_refund_of_unknown_amount_makes_that_of_an_open_reversal_unknown(api, flask, order_details, monkeypatch):
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 10_000, reference="R-1")
    unsized = Report(State.RETURNED, reference="R-1")
    for report, size in ((Report(State.PAID, 7_000, "R-1"), "30.00"), (unsized, "0.00"), (unsized, "0.00")):
        monkeypatch.setattr(SandboxDriver, "query", lambda driver, payment, report=report: report)
        flask("order", "ask", order_no)
        assert about(order_details, order_no) == [("reversed", size, None)]


def test_a_second_refund_of_unknown_amount_is_an_exception_once_the_first_is_resolved(
    api, flask, order_details, monkeypatch
):
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 10_000, reference="R-1")
    unsized, left = Report(State.RETURNED, reference="R-1"), Report(State.PAID, 7_000, "R-1")
    for report in (unsized, left):
        monkeypatch.setattr(SandboxDriver, "query", lambda driver, payment, report=report: report)
        flask("order", "ask", order_no)
    flask("order", "settle", order_no, "--refund")
    monkeypatch.setattr(SandboxDriver, "query", lambda driver, payment: unsized)
    for _ in range(2):
        flask("order", "ask", order_no)
        assert about(order_details, order_no) == [("reversed", "30.00", "refund"), ("reversed", "0.00", None)]


# --- 7: a refund of unknown amount


def test_a_refund_of_unknown_amount_is_an_exception_and_loses_nothing(
    api, placed, deliver, moves, order_details, exceptions
):
    if moves.sized:
        pytest.skip("this channel says how much went back")
    order_no = placed()
    moves.pay(order_no, 10_000)
    moves.give_back(order_no, 4_000, 6_000)
    deliver(order_no)
    assert (api.status(order_no), exceptions()) == ("pending", {order_no: "wrong_amount"})
    assert about(order_details, order_no) == [("wrong_amount", "0.00", None)]
    assert order_details(order_no)["exceptions"][0]["code"] == "returned_unknown"


# --- 2 and 4: payouts


@pytest.fixture
def paid_although_rejected(world, api, exceptions):
    """A rejected withdrawal of 50 yuan that the channel paid out."""
    order_no = sell_rejected(world)
    assert api.notice(order_no, 5_000).status == 200
    assert exceptions() == {order_no: "payout_conflict"}
    return order_no


def test_a_payout_conflict_whose_payout_bounced_is_closed(
    api, paid_although_rejected, order_details, exceptions, balances
):
    for _ in range(2):
        assert api.notice(paid_although_rejected, 5_000, state="failed").status == 200
    assert about(order_details, paid_although_rejected) == [("payout_conflict", "50.00", "failed")]
    assert (exceptions(), balances()) == ({}, (START, 0))


def test_a_payout_that_bounced_after_its_deduction_is_credited_back(
    api, paid_although_rejected, flask, order_details, exceptions, balances
):
    flask("order", "settle", paid_although_rejected, "--complete")
    assert balances() == (START - 5_010, 0)
    for _ in range(2):
        api.notice(paid_although_rejected, 5_000, state="failed")
    assert about(order_details, paid_although_rejected)[1:] == [("reversed", "50.00", None)]
    flask("order", "settle", paid_although_rejected, "--cancel", fails=True)
    flask("order", "settle", paid_although_rejected, "--credit")
    assert (exceptions(), balances()) == ({}, (START, 0))
    api.notice(paid_although_rejected, 5_000)
    assert exceptions() == {paid_although_rejected: "payout_conflict"}


def test_a_payout_reported_again_after_it_was_credited_back_is_a_conflict(world, api, flask, exceptions, balances):
    order_no = sell_accepted(world)
    world.later(5, times=2)
    api.notice(order_no, 5_000, state="failed", reference=f"SB{order_no}")
    flask("order", "settle", order_no, "--credit")
    assert (exceptions(), balances()) == ({}, (START, 0))
    api.notice(order_no, 5_000, reference=f"SB{order_no}")
    assert exceptions() == {order_no: "payout_conflict"}


# The channel's later reports on a payout of a rejected withdrawal, the operator's decisions, and the open exceptions.
CHANGES_OF_MIND = [
    (("cancel", "paid"), []),
    (("cancel", "failed"), []),
    (("cancel", "failed", "paid", "paid"), ["payout_conflict"]),
    (("cancel", "failed", "paid", "cancel", "paid"), []),
    (("cancel", "failed", "paid", "cancel", "failed", "paid"), ["payout_conflict"]),
    (("cancel", "open", "failed", "paid"), ["payout_conflict"]),
    (("failed", "paid", "complete", "failed"), ["reversed"]),
    (("complete", "failed", "complete", "failed"), []),
    (("complete", "failed", "complete", "paid", "failed"), ["reversed"]),
    (("complete", "open", "complete", "failed"), ["reversed"]),
    (("complete", "failed", "paid", "complete", "failed"), ["reversed"]),
    (("complete", "failed", "open", "complete", "failed"), ["reversed"]),
    (("complete", "failed", "complete", "open", "complete", "failed"), ["reversed"]),
    (("complete", "failed", "paid", "failed", "credit", "failed"), []),
    (("cancel", "failed", "paid", "complete", "failed", "credit", "paid"), ["payout_conflict"]),
]


@pytest.mark.parametrize(("steps", "left_open"), CHANGES_OF_MIND, ids=lambda each: "-".join(each) or "nothing")
def test_a_payout_that_changes_again_after_the_operators_decision_is_an_exception_again(
    api, paid_although_rejected, flask, order_details, steps, left_open
):
    order_no = paid_although_rejected
    for step in steps:
        if step in ("paid", "failed", "open"):
            api.notice(order_no, 5_000, state=step)
        else:
            flask("order", "settle", order_no, f"--{step}")
    assert [kind for kind, _, resolution in about(order_details, order_no) if resolution is None] == left_open
    flask("ledger", "verify")


def test_a_payout_that_fails_without_a_number_and_is_paid_again_after_its_cancellation_is_a_conflict(
    api, paid_although_rejected, flask, exceptions, monkeypatch
):
    flask("order", "settle", paid_although_rejected, "--cancel")
    monkeypatch.setattr(SandboxDriver, "query_payout", lambda driver, payout: Report(State.FAILED))
    flask("order", "ask", paid_although_rejected)
    api.notice(paid_although_rejected, 5_000)
    assert exceptions() == {paid_although_rejected: "payout_conflict"}


def test_a_payout_reported_again_with_its_first_amount_after_each_was_resolved_is_a_conflict(
    api, paid_although_rejected, flask, order_details
):
    for fen in (4_000, 5_000):
        flask("order", "settle", paid_although_rejected, "--cancel")
        for _ in range(2):
            api.notice(paid_although_rejected, fen)
    resolved = [("payout_conflict", amount, "cancel") for amount in ("50.00", "40.00")]
    assert about(order_details, paid_although_rejected) == [*resolved, ("payout_conflict", "50.00", None)]


def test_a_cancelled_payout_that_is_in_progress_and_then_paid_is_spent(
    api, paid_although_rejected, flask, exceptions, balances
):
    flask("order", "settle", paid_although_rejected, "--cancel")
    for state in ("open", "paid"):
        api.notice(paid_although_rejected, 5_000, state=state)
    assert (exceptions(), balances()) == ({}, (START - 5_010, 0))


IN_PROGRESS = {"state": "open", "reference": "R-1"}


@pytest.fixture
def in_progress_although_rejected(world, api):
    """A rejected withdrawal of 50 yuan that is in progress at the channel."""
    order_no = sell_rejected(world)
    assert api.notice(order_no, 5_000, **IN_PROGRESS).status == 200
    return order_no


def test_a_rejected_withdrawal_in_progress_is_reserved_again(
    api, in_progress_although_rejected, exceptions, balances, flask
):
    api.notice(in_progress_although_rejected, 5_000, **IN_PROGRESS)
    assert exceptions() == {in_progress_although_rejected: "payout_in_progress"}
    assert (api.status(in_progress_although_rejected), balances()) == ("cancelled", (START - 5_010, 5_010))
    flask("ledger", "verify")


@pytest.mark.parametrize(
    ("final", "money", "end"), [("paid", (START - 5_010, 0), "paid_out"), ("failed", (START, 0), "failed")]
)
def test_a_withdrawal_reserved_again_ends_with_the_channels_final_result(
    api, in_progress_although_rejected, exceptions, balances, order_details, flask, final, money, end
):
    for _ in range(2):
        api.notice(in_progress_although_rejected, 5_000, state=final)
    assert about(order_details, in_progress_although_rejected) == [("payout_in_progress", "50.00", end)]
    assert (api.status(in_progress_although_rejected), balances(), exceptions()) == ("cancelled", money, {})
    events = [each["type"] for each in order_details(in_progress_although_rejected)["callbacks"]]
    assert events == ["order.cancelled"]
    flask("ledger", "verify")


def test_a_withdrawal_can_be_reserved_again_repeatedly(api, in_progress_although_rejected, balances, flask):
    for state in ("failed", "open", "failed", "open", "paid"):
        api.notice(in_progress_although_rejected, 5_000, state=state)
    assert balances() == (START - 5_010, 0)
    flask("ledger", "verify")


def test_without_the_balance_a_payout_in_progress_is_only_an_exception(world, api, flask, exceptions, balances):
    order_no = sell_rejected(world)
    flask("ledger", "adjust", "demo", "--reason", "all of it", "--", "-10000.00")
    api.notice(order_no, 5_000, **IN_PROGRESS)
    assert (exceptions(), balances()) == ({order_no: "payout_in_progress"}, (0, 0))
    api.notice(order_no, 5_000)
    assert exceptions() == {order_no: "payout_conflict"}


def test_a_rejected_withdrawal_in_progress_is_checked_until_the_channel_has_a_result(
    world, api, flask, order_details, exceptions, balances
):
    order_no = world.api.sell("50.00").data["order_no"]
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
    assert (exceptions(), balances()) == ({}, (START - 5_010, 0))


# --- 5: a channel that does not respond


def test_a_channel_that_never_responds_leaves_an_exception(placed, moves, later, api, order_details, exceptions, flask):
    if moves.driver not in ("epay", "alipay"):
        pytest.skip("a cancelled deposit of this channel is not asked about")
    order_no = placed()
    if order_details(order_no)["status"] == "pending":
        later(900)
    assert api.status(order_no) == "cancelled"
    if order_details(order_no)["due_at"] is None:
        pytest.skip("this channel closed it")
    moves.platform.answer = lambda path, request: Response("gone", 500)
    for _ in range(8 * 24):
        later(3_600)
    assert exceptions() == {order_no: "unknown_outcome"}
    assert "status checks stopped" in order_details(order_no)["exceptions"][0]["detail"]
    flask("order", "settle", order_no, "--cancel")
    assert exceptions() == {}


def test_a_payout_in_progress_after_it_was_credited_back_is_reserved_again_once(
    world, api, flask, exceptions, balances, order_details
):
    order_no = sell_accepted(world)
    world.later(5, times=2)
    api.notice(order_no, 5_000, state="failed", reference=f"SB{order_no}")
    flask("order", "settle", order_no, "--credit")
    for _ in range(3):
        api.notice(order_no, 5_000, **IN_PROGRESS)
    assert (exceptions(), balances()) == ({order_no: "payout_in_progress"}, (START - 5_010, 5_010))
    assert order_details(order_no)["due_at"]
    flask("ledger", "verify")
    api.notice(order_no, 5_000, reference="R-2")
    assert (exceptions(), balances()) == ({}, (START - 5_010, 0))


def test_a_withdrawal_reported_in_progress_is_checked_by_the_service(in_progress_although_rejected, order_details):
    assert order_details(in_progress_although_rejected)["due_at"]


def test_after_a_day_of_silence_an_operator_may_end_a_withdrawal_reserved_again(
    world, api, in_progress_although_rejected, flask, refuses, ahead, exceptions, balances, monkeypatch
):
    def silent(self, payout):
        raise ChannelUnknown("no response")

    monkeypatch.setattr(SandboxDriver, "query_payout", silent)
    assert "cannot confirm" in refuses("order", "settle", in_progress_although_rejected, "--cancel")
    ahead(86_400)
    flask("order", "settle", in_progress_although_rejected, "--cancel")
    assert (exceptions(), balances()) == ({}, (START, 0))
