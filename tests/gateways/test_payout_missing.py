"""A payout that its channel has shown and no longer shows is never sent again: an operator decides."""

import pytest

from tests.upstreams.payout_moves import PAYOUTS

START = 1_000_000
HELD, SPENT, BACK = (START - 10_030, 10_030), (START - 10_030, 0), (START, 0)
TEN_MINUTES, HOUR = 601, 3_600
REASON = ("--reason", "changed my mind")


@pytest.fixture(params=["epay", "alipay"])
def upstream(request, web_server):
    return PAYOUTS[request.param](web_server)


@pytest.fixture
def shown(upstream, api, add_channel, later):
    """The number of a withdrawal of 100 yuan that is in progress at the channel."""
    channel = add_channel(upstream.driver, upstream.config(), "--auto-accept-max", "1000")
    order_no = api.sell(channel=channel, paychannel_paymethod=upstream.method).data["order_no"]
    later(1, times=4)
    assert upstream.has(order_no)
    return order_no


@pytest.fixture
def missing(shown, upstream, later):
    """The same, after the channel has not shown it for longer than a new payout takes to appear."""
    shown_as = upstream.lose(shown)
    later(TEN_MINUTES)
    return shown, shown_as


def about(order_details, order_no):
    return [(each["kind"], each["amount"], each["resolution"]) for each in order_details(order_no)["exceptions"]]


def test_the_history_has_one_line_that_the_channel_has_the_payout(shown, later, order_details):
    later(300, times=3)
    lines = [line["why"] for line in order_details(shown)["history"] if line["code"] == "payout_shown"]
    assert lines
    assert len(set(lines)) == len(lines)
    assert lines[0].startswith("The channel has the payout: ")


def test_it_is_not_sent_again_however_long_the_channel_does_not_show_it(
    missing, upstream, api, later, balances, order_details
):
    order_no, _ = missing
    later(HOUR, times=5)
    assert (upstream.handed_over(), api.status(order_no), balances()) == (1, "confirmed", HELD)
    assert about(order_details, order_no) == [("payout_missing", "100.00", None)]
    assert "no longer shows it" in order_details(order_no)["exceptions"][0]["detail"]


def test_in_the_first_minutes_it_may_not_be_shown_yet(shown, upstream, later, exceptions):
    upstream.lose(shown)
    later(30, times=3)
    assert (upstream.handed_over(), exceptions()) == (1, {})


def test_after_the_exception_the_status_is_checked_every_hour(missing, upstream, later):
    asked = len(upstream.platform.calls)
    later(HOUR // 2)
    assert len(upstream.platform.calls) == asked
    later(HOUR // 2 + 1)
    assert len(upstream.platform.calls) == asked + (2 if upstream.driver == "epay" else 1)  # by both of its numbers


@pytest.mark.parametrize(("how", "status", "money"), [("complete", "completed", SPENT), ("cancel", "cancelled", BACK)])
def test_an_operator_ends_it_immediately(how, status, money, missing, api, flask, later, balances, exceptions):
    order_no, _ = missing
    flask("order", "settle", order_no, f"--{how}")
    assert (api.status(order_no), balances(), exceptions()) == (status, money, {})
    flask("order", "ask", order_no)
    later(HOUR, times=2)
    assert (api.status(order_no), balances(), exceptions()) == (status, money, {})


def test_a_payout_completed_by_an_operator_and_shown_as_paid_again_is_the_same_one(
    missing, upstream, api, flask, balances, exceptions
):
    order_no, record = missing
    flask("order", "settle", order_no, "--complete")
    upstream.restore(order_no, record)
    upstream.end(order_no, paid=True)
    flask("order", "ask", order_no)
    assert (api.status(order_no), balances(), exceptions()) == ("completed", SPENT, {})


def test_a_payout_cancelled_by_an_operator_and_paid_is_a_conflict(missing, upstream, flask, balances, exceptions):
    order_no, record = missing
    flask("order", "settle", order_no, "--cancel")
    upstream.restore(order_no, record)
    upstream.end(order_no, paid=True)
    flask("order", "ask", order_no)
    assert (balances(), exceptions()) == (BACK, {order_no: "payout_conflict"})


@pytest.mark.parametrize(
    ("paid", "status", "money", "end"),
    [(True, "completed", SPENT, "paid_out"), (False, "cancelled", BACK, "failed")],
)
def test_a_later_result_of_the_channel_resolves_it(
    paid, status, money, end, missing, upstream, api, later, balances, order_details
):
    order_no, record = missing
    upstream.restore(order_no, record)
    upstream.end(order_no, paid)
    later(HOUR + 1)
    assert (api.status(order_no), balances(), upstream.handed_over()) == (status, money, 1)
    assert about(order_details, order_no) == [("payout_missing", "100.00", end)]


def test_while_the_channel_has_it_in_progress_again_no_operator_ends_it(missing, upstream, refuses, balances):
    order_no, record = missing
    upstream.restore(order_no, record)
    for how in ("--complete", "--cancel"):
        assert "has it in progress" in refuses("order", "settle", order_no, how)
    assert balances() == HELD


def test_a_rejection_leads_to_the_exception_instead(shown, upstream, api, ahead, refuses, flask, balances, exceptions):
    upstream.lose(shown)
    ahead(TEN_MINUTES)
    assert "Check there whether it was sent" in refuses("order", "reject", shown, *REASON)
    assert (api.status(shown), balances(), exceptions()) == ("confirmed", HELD, {shown: "payout_missing"})
    ahead(60)
    flask("order", "settle", shown, "--cancel")
    assert (api.status(shown), balances()) == ("cancelled", BACK)


def test_a_payout_that_the_channel_never_had_is_still_sent_again(api, add_channel, upstream, later, balances):
    channel = add_channel(upstream.driver, upstream.config(), "--auto-accept-max", "1000")
    order_no = api.sell(channel=channel, paychannel_paymethod=upstream.method).data["order_no"]
    later(1)
    upstream.fail("lost")
    later(1)
    upstream.lose(order_no)  # the service knows only that its call had no response
    later(TEN_MINUTES)
    assert (upstream.handed_over(), upstream.has(order_no), balances()) == (2, True, HELD)
