"""What every driver that pays out guarantees for withdrawals, against its upstream on this machine (`adapters.py`).

A payout is sent once, whatever fails; only an explicit failure returns the reserve; an operator ends the others.
"""

import time

import pytest
from werkzeug import Response

from gateways.base import State
from models.tables.order import Order
from services.jobs import sweep
from services.withdrawals import send
from tests.gateways.adapters import PAYOUTS

START = 1_000_000
HELD, SPENT, BACK = (START - 10_030, 10_030), (START - 10_030, 0), (START, 0)
FAULTS = ("slow", "unheard", "lost", "half", "garbage", "broken")
TEN_MINUTES, HOUR, DAY = 601, 3_600, 86_400
REASON = ("--reason", "changed my mind")
MOST = 100_000  # yuan at the upstream


@pytest.fixture(params=PAYOUTS, ids=lambda each: each.driver)
def upstream(request, web_server):
    return request.param(web_server)


@pytest.fixture
def channel(upstream, add_channel):
    return add_channel(upstream.driver, upstream.config(), "--auto-accept-max", "1000")


@pytest.fixture
def placed(api, channel, upstream):
    """`placed()`: the number of a new withdrawal of 100 yuan, which is sent next."""
    return lambda: api.sell(channel=channel, paychannel_paymethod=upstream.method).data["order_no"]


@pytest.fixture
def order_no(placed):
    """A withdrawal that is sent next."""
    return placed()


@pytest.fixture
def sent(order_no, upstream, later):
    """A withdrawal in progress at the channel."""
    later(1, times=3)
    assert upstream.has(order_no)
    return order_no


@pytest.fixture
def why(order_details):
    """`why(order_no)`: the text of its open exception."""
    return lambda order_no: [row["detail"] for row in order_details(order_no)["exceptions"] if not row["resolution"]]


@pytest.fixture
def six(placed):
    """The numbers of six withdrawals that are sent next, one for each of FAULTS."""
    return [placed() for _ in FAULTS]


ALL_HELD, ALL_SPENT = (START - 60_180, 60_180), (START - 60_180, 0)


# --- sending


def test_a_payout_is_sent_once_checked_and_done(upstream, sent, later, order_details, outcome):
    later(300, times=3)
    assert outcome(sent) == ("confirmed", HELD, {})
    upstream.end(sent, paid=True)
    later(301)
    assert outcome(sent) == ("completed", SPENT, {})
    assert (upstream.handed_over(), upstream.platform.balance) == (1, MOST - 100)
    told = order_details(sent)
    assert told["channel_reference"] == upstream.reference(sent)
    lines = [line["why"] for line in told["history"] if line["code"] == "payout_shown"]
    assert lines[0].startswith("The channel has the payout: ")
    assert len(set(lines)) == len(lines), "the history has each line on the payout once"


def test_whatever_fails_while_it_is_sent_it_is_paid_once(upstream, six, impatient, api, later, balances, exceptions):
    upstream.fail(*FAULTS)
    with impatient():
        later(1)
    assert (balances(), exceptions()) == (ALL_HELD, dict.fromkeys(six, "unknown_outcome"))
    later(1, times=9)
    later(301)
    assert upstream.handed_over() == 6, "the channel may not show a new payout yet"
    later(301, times=2)  # if it does not show it, it is sent again after ten minutes
    for order_no in six:
        upstream.end(order_no, paid=True)
    later(301)
    assert {api.status(order_no) for order_no in six} == {"completed"}
    assert (balances(), exceptions(), upstream.platform.balance) == (ALL_SPENT, {}, MOST - 600)


def test_an_overtaken_worker_sends_nothing(upstream, order_no, flask):
    flask("order", "approve", order_no)
    order = Order.get(Order.order_no == order_no)
    order.claim(int(time.time()) + sweep.LEASE)
    # Another worker has claimed it by now.
    Order.update(due_at=int(time.time()) - 1).where(Order.id == order.id).execute()
    assert send.hand_over(order)[0].state is State.OPEN
    assert upstream.handed_over() == 0


def test_too_little_money_is_visible_and_paid_after_a_top_up(upstream, order_no, later, why, outcome):
    upstream.platform.balance -= MOST - 99
    later(1)
    assert outcome(order_no) == ("confirmed", HELD, {order_no: "unknown_outcome"})
    assert upstream.why_poor in why(order_no)[0]
    upstream.platform.balance += 1_000
    later(301, times=3)
    upstream.end(order_no, paid=True)
    later(301)
    assert outcome(order_no) == ("completed", SPENT, {})
    assert upstream.platform.balance == 999


# --- status checks


def test_whatever_fails_in_a_status_check_the_reserve_stays_until_a_response(
    upstream, six, impatient, api, later, balances
):
    later(1)
    for order_no in six:
        upstream.end(order_no, paid=True)
    upstream.fail(*FAULTS)
    with impatient():
        later(1)
    assert ({api.status(order_no) for order_no in six}, balances()) == ({"confirmed"}, ALL_HELD)
    later(4, times=3)
    assert ({api.status(order_no) for order_no in six}, balances()) == ({"completed"}, ALL_SPENT)
    assert upstream.handed_over() == 6


def test_only_an_explicit_failure_returns_the_reserve(upstream, placed, later, order_details, outcome):
    for status in upstream.in_progress + upstream.failed:
        order_no = placed()
        later(1, times=3)
        upstream.becomes(order_no, status)
        later(30, times=5)
        if status in upstream.failed:
            assert outcome(order_no) == ("cancelled", BACK, {}), status
            assert upstream.why_failed in order_details(order_no)["history"][-1]["why"]
            continue
        assert outcome(order_no) == ("confirmed", HELD, {}), status
        upstream.becomes(order_no, upstream.failed[0])
        later(300)
        assert outcome(order_no) == ("cancelled", BACK, {}), status


@pytest.mark.parametrize(
    ("upstream", "facts", "kind"),
    [
        pytest.param(each, facts, kind, id=f"{each.driver}: {name}")
        for each in PAYOUTS
        for name, facts, kind in (
            *((name, facts, "unknown_outcome") for name, facts in each.odd_reports.items()),
            ("another amount", each.amount, "payout_conflict"),
        )
    ],
    indirect=["upstream"],
)
def test_a_report_with_other_facts_ends_nothing(upstream, facts, kind, sent, later, outcome):
    upstream.reports(sent, **facts)
    later(30)
    assert outcome(sent) == ("confirmed", HELD, {sent: kind})


def test_an_operator_need_not_wait_for_the_next_status_check(upstream, sent, later, flask, outcome):
    later(100, times=9)
    upstream.end(sent, paid=True)
    assert "status at the channel: paid 100.00" in flask("order", "ask", sent).output
    assert outcome(sent) == ("completed", SPENT, {})


# --- a payout that the channel no longer shows


@pytest.fixture
def lost(sent, upstream, later):
    """A payout that the channel has not shown for longer than a new one takes to appear; and its record there."""
    record = upstream.lose(sent)
    later(TEN_MINUTES)
    return sent, record


@pytest.fixture
def about(order_details):
    """`about(order_no)`: its exceptions, each as (kind, amount, resolution)."""
    return lambda order_no: [
        (each["kind"], each["amount"], each["resolution"]) for each in order_details(order_no)["exceptions"]
    ]


def test_it_is_not_sent_again_however_long_the_channel_does_not_show_it(
    lost, upstream, api, later, balances, about, why
):
    order_no, _ = lost
    asked = len(upstream.platform.calls)
    later(HOUR // 2)
    assert len(upstream.platform.calls) == asked, "from then on, its status is checked every hour"
    later(HOUR // 2 + 1)
    assert len(upstream.platform.calls) == asked + (2 if upstream.driver == "epay" else 1)  # by both of its numbers
    later(HOUR, times=5)
    assert (upstream.handed_over(), api.status(order_no), balances()) == (1, "confirmed", HELD)
    assert about(order_no) == [("payout_missing", "100.00", None)]
    assert "no longer shows it" in why(order_no)[0]


@pytest.mark.parametrize(
    ("how", "status", "money", "found"),
    [("complete", "completed", SPENT, None), ("cancel", "cancelled", BACK, "payout_conflict")],
)
def test_an_operator_ends_it_immediately_even_if_it_is_shown_as_paid_again(
    how, status, money, found, lost, upstream, flask, later, balances, exceptions, outcome
):
    order_no, record = lost
    flask("order", "settle", order_no, f"--{how}")
    assert outcome(order_no) == (status, money, {})
    flask("order", "ask", order_no)
    later(HOUR, times=2)
    assert outcome(order_no) == (status, money, {})
    upstream.restore(order_no, record)
    upstream.end(order_no, paid=True)
    flask("order", "ask", order_no)
    assert (balances(), exceptions().get(order_no)) == (money, found)


@pytest.mark.parametrize(
    ("paid", "status", "money", "end"),
    [(True, "completed", SPENT, "paid_out"), (False, "cancelled", BACK, "failed")],
)
def test_a_later_result_of_the_channel_resolves_it(
    paid, status, money, end, lost, upstream, api, later, refuses, balances, about
):
    order_no, record = lost
    upstream.restore(order_no, record)
    for how in ("--complete", "--cancel"):
        assert "has it in progress" in refuses("order", "settle", order_no, how)
    assert balances() == HELD
    upstream.end(order_no, paid)
    later(HOUR + 1)
    assert (api.status(order_no), balances(), upstream.handed_over()) == (status, money, 1)
    assert about(order_no) == [("payout_missing", "100.00", end)]


def test_a_rejection_leads_to_the_exception_instead(sent, upstream, ahead, due, refuses, flask, exceptions, outcome):
    upstream.lose(sent)
    for _ in range(3):
        ahead(30)
        due.orders()
    assert (upstream.handed_over(), exceptions()) == (1, {}), "in the first minutes it may not be shown yet"
    ahead(TEN_MINUTES)
    assert "Check there whether it was sent" in refuses("order", "reject", sent, *REASON)
    assert outcome(sent) == ("confirmed", HELD, {sent: "payout_missing"})
    ahead(60)
    flask("order", "settle", sent, "--cancel")
    assert outcome(sent) == ("cancelled", BACK, {})


def test_a_payout_that_the_channel_never_had_is_sent_again(upstream, order_no, later, balances):
    upstream.fail("lost")
    later(1)
    upstream.lose(order_no)  # the service knows only that its call had no response
    later(TEN_MINUTES)
    assert (upstream.handed_over(), upstream.has(order_no), balances()) == (2, True, HELD)


# --- an operator ends a payout that the channel does not have


@pytest.fixture
def stuck(upstream, order_no, later):
    """A withdrawal that was sent to a channel without money, and again until the pauses are long."""
    upstream.platform.balance -= MOST
    later(100, times=9)
    return order_no


def test_a_payout_that_the_channel_does_not_have_can_be_rejected(stuck, upstream, refuses, later, flask, outcome):
    assert "recently" in refuses("order", "reject", stuck, *REASON)
    later(600)  # by now the channel would show it
    upstream.fail("unheard")
    assert "cannot confirm" in refuses("order", "reject", stuck, *REASON)
    assert outcome(stuck) == ("confirmed", HELD, {stuck: "unknown_outcome"})
    later(60)
    flask("order", "reject", stuck, *REASON)
    assert outcome(stuck) == ("cancelled", BACK, {})
    upstream.platform.balance += 1_000
    later(600, times=3)
    assert not upstream.has(stuck)
    upstream.take(stuck)
    upstream.end(stuck, paid=True)
    later(DAY)
    assert outcome(stuck) == ("cancelled", BACK, {stuck: "payout_conflict"})
    flask("order", "settle", stuck, "--complete")
    assert outcome(stuck) == ("cancelled", SPENT, {})


def test_a_rejection_that_took_too_long_cancels_nothing(stuck, upstream, later, refuses, monkeypatch, outcome):
    refuses("order", "reject", stuck, *REASON)
    later(600)
    really_ask = upstream.platform._ask_transfer

    def slowly(fields):
        answer = really_ask(fields)
        # The sweep has claimed it meanwhile.
        Order.update(asks=Order.asks + 1).where(Order.order_no == stuck).execute()
        return answer

    monkeypatch.setattr(upstream.platform, "_ask_transfer", slowly)
    assert "changed just now" in refuses("order", "reject", stuck, *REASON)
    assert outcome(stuck) == ("confirmed", HELD, {stuck: "unknown_outcome"})


def test_a_payout_that_the_channel_has_can_not_be_rejected(sent, upstream, later, refuses, outcome):
    later(100, times=9)
    assert "has it in progress" in refuses("order", "reject", sent, *REASON)
    assert outcome(sent) == ("confirmed", HELD, {})
    upstream.end(sent, paid=True)
    later(2 * sweep.LEASE)
    assert outcome(sent) == ("completed", SPENT, {})


def test_a_payout_claimed_by_the_service_can_not_be_rejected(order_no, flask, refuses, balances):
    flask("order", "approve", order_no)
    order = Order.get(Order.order_no == order_no)
    assert order.claim(int(time.time()) + sweep.LEASE)  # as the sweep does
    assert "Try again in a minute" in refuses("order", "reject", order_no, *REASON)
    assert balances() == HELD


# --- a channel that no longer responds


@pytest.mark.parametrize(("how", "status", "money"), [("complete", "completed", SPENT), ("cancel", "cancelled", BACK)])
def test_after_a_day_of_silence_an_operator_decides(
    how, status, money, upstream, order_no, later, ahead, flask, refuses, balances, monkeypatch, outcome
):
    monkeypatch.setattr(upstream.platform, "answer", lambda path, request: Response("gone", 410))
    later(300, times=3)
    assert "after a day" in refuses("order", "settle", order_no, f"--{how}")
    later(DAY)
    assert balances() == HELD
    assert "Try again in a minute" in refuses("order", "settle", order_no, f"--{how}")
    ahead(60)
    flask("order", "settle", order_no, f"--{how}")
    assert outcome(order_no) == (status, money, {})


def test_a_new_silence_is_shorter_than_a_day(sent, upstream, later, refuses):
    upstream.fail("broken")
    later(1)
    later(DAY)
    upstream.fail("broken")
    later(301)
    assert "after a day" in refuses("order", "settle", sent, "--cancel")
