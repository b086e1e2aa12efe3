"""Every report of a channel that contradicts the ledger is recorded, whatever the deposit's status."""

import pytest
from werkzeug import Response

from gateways.base import Report, State
from gateways.sandbox.driver import SandboxDriver
from tests.upstreams.money_moves import DRIVERS, AlipayMoves, Epay1, Wechat

START = 1_000_000
CREDITED = 9_940
DAY = 86_400

NOTICE, CHECK, SCHEDULED = "by notice", "by a status check", "by a scheduled check"
# The ways by which each driver reports a refund.
WAYS = [(each, way) for each in DRIVERS for way in (NOTICE, CHECK) if way == CHECK or each.told_by_notice]


def of_drivers(cases):
    """Parametrize with drivers, each with a way of reporting."""
    return pytest.mark.parametrize(("driver", "way"), cases, ids=[f"{each.__name__} {way}" for each, way in cases])


@pytest.fixture
def moves(driver, web_server, app):
    """The upstream of one driver."""
    return driver(web_server)


@pytest.fixture
def placed(api, flask, flask_json, moves):
    """`placed(2)`: the numbers of two new deposits of 100 yuan at that upstream."""
    pairs = [part for name, value in moves.config().items() for part in ("--config", f"{name}={value}")]
    new = ("channel", "add", "--category", "gateway_b", "--driver", moves.driver, "--name", "Upstream")
    channel = flask_json(*new, *pairs)["id"]
    flask("channel", "link", channel, "demo")

    def place(count):
        return [api.buy(channel=channel, paychannel_paymethod=moves.method).data["order_no"] for _ in range(count)]

    return place


@pytest.fixture
def pay(api, moves):
    """`pay(order_no, 9_000)`: the channel reports by notice that 90 yuan were paid."""

    def at_channel(order_no, fen=10_000):
        moves.pay(order_no, fen)
        assert moves.notice(order_no).to(api.send, order_no).status in (200, 204)

    return at_channel


@pytest.fixture
def paid_late(api, placed, pay, later, exceptions):
    """`paid_late(2)`: the numbers of two deposits of 100 yuan that were paid after they were cancelled."""

    def walk(count):
        orders = placed(count)
        later(900)
        assert {api.status(each) for each in orders} == {"cancelled"}
        for each in orders:
            pay(each)
        assert exceptions() == dict.fromkeys(orders, "late_payment")
        return orders

    return walk


@pytest.fixture
def deliver(api, flask, later, moves, order_details, way):
    """`deliver(order_no)`: the service gets the channel's report this way."""

    def to_service(order_no):
        if way == NOTICE:
            assert moves.notice(order_no).to(api.send, order_no).status in (200, 204)
        elif way == CHECK:
            flask("order", "ask", order_no)
        else:
            assert order_details(order_no)["due_at"]
            later(3_600)
            later(DAY)

    return to_service


def settled(flask, order_no, how):
    flask("order", "settle", order_no, f"--{how}")
    return order_no


@pytest.fixture
def send_back(flask, due, about):
    """`send_back(order_no)`: an operator sends late money back, which the channel refunds."""

    def refunded(order_no):
        settled(flask, order_no, "refund")
        due.orders()
        assert about(order_no) == [("late_payment", "100.00", "refund")]

    return refunded


# --- refunds


@of_drivers(WAYS)
def test_refunded_late_money_counts_for_what_is_left_of_it(
    paid_late, deliver, moves, flask, send_back, about, order_details, balances, driver, way
):
    kept, credited, sent_back, partly = paid_late(4)
    settled(flask, credited, "credit")
    send_back(sent_back)
    deliver(sent_back)
    for order_no in (kept, credited):
        moves.give_back(order_no, 10_000, 0)
        deliver(order_no)
    returned = ("late_payment", "100.00", "returned") if moves.sized else ("late_payment", "0.00", None)
    assert about(kept) == [returned]
    reversal = ("reversed", "100.00" if moves.sized else "0.00", None)
    assert about(credited) == [("late_payment", "100.00", "credit"), reversal]
    assert about(sent_back) == [("late_payment", "100.00", "refund")]
    before = order_details(credited)["exceptions"]
    deliver(credited)
    assert order_details(credited)["exceptions"] == before
    flask("order", "settle", kept, "--credit", fails=True)
    assert balances() == (START + CREDITED, 0)

    if (driver, way) == (AlipayMoves, CHECK):
        return  # it reports a partial refund by notices only
    moves.give_back(partly, 4_000, 6_000)
    deliver(partly)
    if moves.sized:
        assert about(partly) == [("late_payment", "60.00", None)]
        settled(flask, partly, "credit")
        assert balances() == (START + CREDITED + 5_964, 0)
    else:
        assert "names no amount" in flask("order", "settle", partly, "--credit", fails=True).output


@of_drivers([(Epay1, SCHEDULED), (AlipayMoves, SCHEDULED)])
def test_scheduled_checks_find_refunds_of_late_money(paid_late, deliver, moves, send_back, about):
    kept, sent_back = paid_late(2)
    send_back(sent_back)
    moves.give_back(kept, 10_000, 0)
    deliver(kept)
    returned = ("late_payment", "100.00", "returned") if moves.sized else ("late_payment", "0.00", None)
    assert (about(kept), about(sent_back)) == ([returned], [("late_payment", "100.00", "refund")])


@of_drivers(WAYS)
def test_refunds_of_deposits_paid_in_time_end_or_reverse_them(
    api, placed, pay, deliver, moves, flask, about, balances, driver, way
):
    wrong, credited = placed(2)
    pay(wrong, 9_000)
    pay(credited)
    assert about(wrong) == [("wrong_amount", "90.00", None)]
    moves.give_back(wrong, 9_000, 0)
    deliver(wrong)
    flask("order", "settle", wrong, "--credit", fails=True)
    if (driver, way) != (AlipayMoves, CHECK):
        moves.give_back(credited, 4_000, 6_000)
        deliver(credited)
        assert about(credited) == [("reversed", "40.00" if moves.sized else "0.00", None)]
    assert (api.status(credited), balances()) == ("completed", (START + CREDITED, 0))


@of_drivers([(driver, way) for driver, way in WAYS if driver.sized])
def test_a_full_refund_reverses_the_credit_and_closes_the_open_exception(
    paid_late, moves, deliver, flask, about, balances
):
    [order_no] = paid_late(1)
    settled(flask, order_no, "credit")
    moves.pay(order_no, 12_000)
    deliver(order_no)
    assert about(order_no)[1:] == [("amount_corrected", "20.00", None)]
    moves.give_back(order_no, 12_000, 0)
    deliver(order_no)
    ended = [("amount_corrected", "20.00", "returned"), ("reversed", "100.00", None)]
    assert (about(order_no)[1:], balances()) == (ended, (START + CREDITED, 0))


@of_drivers([(Epay1, CHECK), (Epay1, SCHEDULED), (Wechat, NOTICE), (Wechat, CHECK), (Wechat, SCHEDULED)])
def test_a_refund_of_unknown_amount_is_an_exception_and_loses_nothing(
    api, placed, deliver, moves, about, order_details
):
    [order_no] = placed(1)
    moves.pay(order_no, 10_000)
    moves.give_back(order_no, 4_000, 6_000)
    deliver(order_no)
    assert (api.status(order_no), about(order_no)) == ("pending", [("wrong_amount", "0.00", None)])
    assert order_details(order_no)["exceptions"][0]["code"] == "returned_unknown"


UNSIZED, PART, NOTHING = (
    Report(State.RETURNED, reference="R-1"),
    Report(State.PAID, 7_000, "R-1"),
    Report(State.FAILED, reference="R-1"),
)


@pytest.fixture
def checked(flask, monkeypatch):
    """`checked(order_no, report)`: check a deposit's status, which is this report."""

    def ask(order_no, report):
        monkeypatch.setattr(SandboxDriver, "query", lambda driver, payment: report)
        flask("order", "ask", order_no)

    return ask


@pytest.mark.parametrize(
    "reported",
    [
        [(UNSIZED, "0.00"), (PART, "30.00"), (UNSIZED, "30.00"), (NOTHING, "100.00")],
        [(PART, "30.00"), (UNSIZED, "0.00"), (UNSIZED, "0.00")],
    ],
    ids=["it gets its amount once that is reported", "it makes an open reversal's amount unknown"],
)
def test_a_refund_of_unknown_amount_changes_the_open_reversal(api, checked, about, reported):
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 10_000)
    for report, size in reported:
        checked(order_no, report)
        assert about(order_no) == [("reversed", size, None)]


def test_a_second_refund_of_unknown_amount_is_an_exception_once_the_first_is_resolved(api, flask, checked, about):
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 10_000)
    for report in (UNSIZED, PART):
        checked(order_no, report)
    settled(flask, order_no, "refund")
    for _ in range(2):
        checked(order_no, UNSIZED)
        assert about(order_no) == [("reversed", "30.00", "refund"), ("reversed", "0.00", None)]


def test_a_credited_deposit_that_the_channel_reports_as_unpaid_is_reversed(api, flask, about, order_details):
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 10_000)
    for _ in range(2):
        flask("order", "ask", order_no)  # the simulator has no payment
    assert about(order_no) == [("reversed", "100.00", None)]
    assert order_details(order_no)["exceptions"][0]["code"] == "not_paid_there"


# --- an amount that the channel corrects once the exception is resolved


@pytest.mark.parametrize("driver", DRIVERS)
def test_an_amount_corrected_after_its_resolution_is_an_exception(paid_late, pay, flask, due, about):
    cases = [
        ("credit", 12_000, [("amount_corrected", "20.00", None)]),
        ("credit", 7_000, [("reversed", "30.00", None)]),
        ("refund", 12_000, [("amount_corrected", "20.00", None)]),
        ("refund", 7_000, []),
    ]
    for order_no, (how, reported, expected) in zip(paid_late(len(cases)), cases, strict=True):
        settled(flask, order_no, how)
        due.orders()
        for _ in range(2):
            pay(order_no, reported)
        assert about(order_no) == [("late_payment", "100.00", how), *expected], (how, reported)


@pytest.mark.parametrize("driver", DRIVERS[:1])
def test_money_beyond_a_resolved_amount_is_credited_separately(paid_late, pay, flask, balances, exceptions):
    [order_no] = paid_late(1)
    settled(flask, order_no, "credit")
    for fen in (12_000, 15_000):
        pay(order_no, fen)
        settled(flask, order_no, "credit")
    assert (balances(), exceptions()) == ((START + 14_910, 0), {})


# --- a channel that does not respond


@pytest.mark.parametrize("driver", [Epay1, AlipayMoves])
def test_a_channel_that_never_responds_leaves_an_exception(placed, moves, later, api, order_details, exceptions, flask):
    """The channel may still accept money for the cancelled deposit, so its status is checked for a week."""
    [order_no] = placed(1)
    later(900)
    assert api.status(order_no) == "cancelled"
    moves.platform.answer = lambda path, request: Response("gone", 500)
    later(DAY // 2, times=16)
    assert exceptions() == {order_no: "unknown_outcome"}
    assert "status checks stopped" in order_details(order_no)["exceptions"][0]["detail"]
    flask("order", "settle", order_no, "--cancel")
    assert exceptions() == {}


@pytest.mark.sqlite  # Postgres also needs its locks
def test_a_notice_that_settles_an_order_runs_few_statements(api, caplog):
    api.notice(api.buy().data["order_no"], 10_000, reference="R-1")  # what is read once is known now
    order_no = api.buy().data["order_no"]
    with caplog.at_level("DEBUG", logger="peewee"):
        api.notice(order_no, 10_000, reference="R-2")
    statements = [record.getMessage() for record in caplog.records if record.name == "peewee"]
    assert api.status(order_no) == "completed"
    assert 0 < len(statements) <= 14, "\n".join(statements)
