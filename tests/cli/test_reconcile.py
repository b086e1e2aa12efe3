"""`tillbook reconcile`: differences between a channel's statement and the orders."""

import io
import json
import sqlite3
from contextlib import closing, contextmanager
from datetime import datetime, timedelta, timezone

import pytest
from openpyxl import Workbook

from gateways.base import Driver
from gateways.sandbox.driver import SandboxDriver
from gateways.statement import Layout
from models.db.base import database
from models.tables.statement_layout import StatementLayout
from tests.cli.conftest import MANUAL
from tests.pages import CLAIM, FORM
from tests.support import completed

CHINA = timezone(timedelta(hours=8))
NOW = "2026-05-01 12:00:00"
HEADER = "order_no,amount,fee,status,time,reference"


@pytest.fixture(autouse=True)
def clock(time_machine):
    """`clock("2026-05-01 23:55:00")` sets the time in China; each test begins at noon."""

    def at(text):
        time_machine.move_to(datetime.fromisoformat(text).replace(tzinfo=CHINA))

    at(NOW)
    return at


def line(order_no, amount="100.00", fee="0.00", status="paid", time=NOW, reference=""):
    return ",".join((order_no, f'"{amount}"', fee, status, time, reference))


def csv_of(*lines, header=HEADER):
    return "\n".join((header, *lines, ""))


@pytest.fixture
def run(app, tmp_path):
    """`run(content, *options)`: the command's exit."""

    def reconcile(content, *options, channel=2):
        file = tmp_path / "statement.csv"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return app.test_cli_runner().invoke(args=["reconcile", str(channel), str(file), *options])

    return reconcile


@pytest.fixture
def compared(run):
    """`compared(content, *options)`: the command's JSON; the status reports whether there are differences."""

    def reconcile(content, *options, channel=2):
        result = run(content, *options, "--json", channel=channel)
        assert result.exit_code in (0, 3), result.output
        found = json.loads(result.stdout)
        assert result.exit_code == (3 if found["differences"] else 0)
        return found

    return reconcile


@pytest.fixture
def differences(compared):
    """`differences(content, *options)`: each as (kind, order number)."""

    def reconcile(content, *options, **more):
        found = compared(content, *options, **more)["differences"]
        return [(each["kind"], each["order_no"]) for each in found]

    return reconcile


@pytest.fixture
def refused(run):
    """`refused(content, *options)`: the one line with which the command ends, without a comparison."""

    def reconcile(content, *options, status=1):
        result = run(content, *options)
        assert (result.exit_code, result.stdout) == (status, ""), result.output
        assert status == 2 or result.stderr.count("\n") == 1
        return result.stderr

    return reconcile


@pytest.fixture
def paid_out(api, flask, later):
    """`paid_out()`: the number of a withdrawal of 100 yuan that the channel has paid out."""

    def withdrawal(channel=2):
        order_no = api.sell(channel=channel).data["order_no"]
        flask("order", "accept", order_no)
        if channel == MANUAL:
            flask("order", "paid", order_no, "--reference", "BANK-1", "--shared-reference")
        else:
            later(60, 2)
        assert api.status(order_no) == "completed"
        return order_no

    return withdrawal


def test_without_differences_there_is_only_the_summary(api, run, compared, paid_out, nothing_changes_by):
    deposit, withdrawal = completed(api), paid_out()
    content = csv_of(line(deposit, "100.00", fee="0.60"), line(withdrawal, "100", fee="0"))
    with nothing_changes_by():
        assert compared(content) == {
            "channel": 2,
            "since": "2026-05-01",
            "until": "2026-05-01",
            "lines": 2,
            "matched": 2,
            "sums": {
                "there": {"in": "100.00", "out": "100.00", "fees": "0.60", "unknown": "0.00"},
                "here": {"in": "100.00", "out": "100.00", "fees": "0.00"},
            },
            "differences": [],
        }
    result = run(content)
    assert result.exit_code == 0
    assert "2, 2 of them matched to orders" in result.output
    assert "kind" not in result.output


@pytest.fixture
def nothing_changes_by(rows):
    """`with nothing_changes_by():` its block leaves the database unchanged."""

    @contextmanager
    def unchanged():
        before = rows()
        yield
        assert rows() == before

    return unchanged


def test_a_line_without_an_order_is_missing_here(compared):
    found = compared(csv_of(line("20260501000", "12.5", reference="R-1"), line("", "-3.00", reference="R-2")))
    assert found["matched"] == 0
    assert found["sums"]["there"]["unknown"] == "9.50"
    assert found["differences"] == [
        {
            "kind": "missing_here",
            "order_no": "20260501000",
            "reference": "R-1",
            "line": 2,
            "here": {},
            "there": {"status": "paid", "amount": "12.50"},
            "detail": "",
        },
        {
            "kind": "missing_here",
            "order_no": "",
            "reference": "R-2",
            "line": 3,
            "here": {},
            "there": {"status": "paid", "amount": "-3.00"},
            "detail": "no order number",
        },
    ]


def test_an_order_of_another_channel_is_missing_here(api, compared):
    elsewhere = api.buy(channel=1).data["order_no"]
    api.play(elsewhere, "success")
    (found,) = compared(csv_of(line(elsewhere)))["differences"]
    assert (found["kind"], found["order_no"], found["detail"]) == ("missing_here", elsewhere, "an order of channel 1")


def test_a_statement_of_one_type_reports_no_order_of_the_other(api, compared, differences, paid_out, monkeypatch):
    deposit, withdrawal = completed(api), paid_out()
    of_deposits, of_withdrawals = csv_of(line(deposit)), csv_of(line(withdrawal))
    assert differences(of_deposits) == [("missing_there", withdrawal)]
    assert differences(of_deposits, "--type", "buy") == []
    assert differences(of_withdrawals, "--type", "sell") == []
    assert compared(of_deposits, "--type", "buy")["sums"]["here"] == {"in": "100.00", "out": "0.00", "fees": "0.00"}
    monkeypatch.setattr(SandboxDriver, "statement", Layout(types=(1,)))
    assert differences(of_deposits) == []


def test_an_order_without_a_line_is_missing_there(api, compared, paid_out):
    here, other, withdrawal = completed(api), completed(api), paid_out()
    api.buy()  # unpaid
    api.play(api.buy(channel=1).data["order_no"], "success")
    found = compared(csv_of(line(other)))["differences"]
    assert [(each["kind"], each["order_no"]) for each in found] == [
        ("missing_there", here),
        ("missing_there", withdrawal),
    ]
    assert found[0]["here"] == {"status": "completed", "amount": "100.00"}
    assert (found[0]["there"], found[0]["line"], found[0]["reference"]) == ({}, None, f"SB{here}")
    assert found[0]["detail"] == "moved here at 2026-05-01 12:00:00"


def test_money_of_other_days_is_not_missing(api, differences, clock):
    clock("2026-04-30 12:00:00")
    before = completed(api)
    clock(NOW)
    today = completed(api)
    clock("2026-05-02 12:00:00")
    after = completed(api)
    content = csv_of(line(today))
    assert differences(content) == []
    assert differences(content, "--since", "2026-04-30") == [("missing_there", before)]
    both = differences(content, "--since", "2026-04-30", "--until", "2026-05-02")
    assert both == [("missing_there", before), ("missing_there", after)]


@pytest.mark.parametrize(
    ("time", "neighbour"),
    [
        ("2026-05-01 00:00:00", "2026-04-30"),
        ("2026-05-01 00:09:50", "2026-04-30"),
        ("2026-05-01 00:10:00", None),
        ("2026-05-01 23:49:00", None),
        ("2026-05-01 23:51:00", "2026-05-02"),
        ("2026-05-01 23:59:58", "2026-05-02"),
    ],
)
def test_an_order_at_the_edge_of_the_day_may_be_in_the_neighbouring_statement(api, compared, clock, time, neighbour):
    clock(time)
    order_no = completed(api)
    (found,) = compared(csv_of(), "--since", "2026-05-01")["differences"]
    assert (found["kind"], found["order_no"]) == ("missing_there", order_no)
    assert ("at the edge of the day" in found["detail"]) is bool(neighbour)
    assert not neighbour or f"the statement of {neighbour}" in found["detail"]


def test_later_history_about_confirmed_money_does_not_change_its_time(api, flask, differences, clock):
    flask("channel", "set", 2, "--settlement-days", 9)
    clock("2026-04-30 12:00:00")
    order_no = completed(api)
    clock(NOW)
    api.notice(order_no, 5_000, reference="R-2")  # `paid_twice`, while the first payment is confirmed
    assert differences(csv_of(), "--since", "2026-05-01") == []
    assert differences(csv_of(), "--since", "2026-04-30") == [("missing_there", order_no)]


def test_a_payers_claim_moves_no_money(api, http, compared):
    order_no = api.buy(channel=MANUAL).data["order_no"]
    http("POST", CLAIM, f"order_no={order_no}".encode(), FORM)
    assert api.status(order_no) == "paid"
    assert compared(csv_of(), "--since", "2026-05-01", channel=MANUAL)["differences"] == []
    (found,) = compared(csv_of(line(order_no)), channel=MANUAL)["differences"]
    assert (found["kind"], found["here"]["status"]) == ("status", "paid")


@pytest.mark.parametrize("time", ["2026-04-30 23:59:50", "2026-05-02 00:00:05"])
def test_an_order_beyond_the_edge_is_not_missing_and_its_line_agrees(api, differences, clock, time):
    clock(time)
    order_no = completed(api)
    assert differences(csv_of(), "--since", "2026-05-01") == []
    assert differences(csv_of(line(order_no))) == []


def test_another_amount_is_reported_with_both_sides(api, compared):
    order_no = completed(api)
    (found,) = compared(csv_of(line(order_no, "100.01")))["differences"]
    assert (found["kind"], found["order_no"], found["line"]) == ("amount", order_no, 2)
    assert (found["here"]["amount"], found["there"]["amount"]) == ("100.00", "100.01")


def test_money_that_is_not_booked_here_is_a_difference_of_status(api, compared, flask):
    pending, cancelled = (api.buy().data["order_no"] for _ in range(2))
    api.play(cancelled, "fail")
    withdrawal = api.sell().data["order_no"]
    found = compared(csv_of(line(pending), line(cancelled), line(withdrawal)))["differences"]
    assert [(each["kind"], each["here"]["status"], each["there"]["status"]) for each in found] == [
        ("status", "pending", "paid"),
        ("status", "cancelled", "paid"),
        ("status", "pending", "paid"),
    ]


@pytest.mark.parametrize("status", ["refunded", "failed"])
def test_money_booked_here_and_returned_there_is_a_difference_of_status(api, compared, paid_out, status, flask):
    deposit, withdrawal = completed(api), paid_out()
    found = compared(csv_of(line(deposit, status=status), line(withdrawal, status=status)))["differences"]
    assert [(each["kind"], each["here"]["status"], each["there"]["status"]) for each in found] == [
        ("status", "completed", status)
    ] * 2


def test_money_that_did_not_move_on_either_side_agrees(api, differences):
    pending, cancelled = (api.buy().data["order_no"] for _ in range(2))
    api.play(cancelled, "fail")
    assert differences(csv_of(*(line(each, status="failed") for each in (pending, cancelled)))) == []


def test_a_failed_attempt_before_the_payment_agrees(api, differences):
    order_no = completed(api)
    assert differences(csv_of(line(order_no, status="failed"), line(order_no))) == []


def test_a_payment_and_its_refund_are_compared_together(api, differences):
    cancelled, booked = api.buy().data["order_no"], completed(api)
    api.play(cancelled, "fail")
    there_and_back = [line(cancelled), line(cancelled, status="refunded")]
    assert differences(csv_of(*there_and_back, line(booked))) == []
    assert differences(csv_of(line(booked), line(booked, "30.00", status="refunded"))) == [("status", booked)]


def test_a_negative_amount_is_a_refund_if_the_file_has_no_status(api, compared, paid_out):
    deposit, withdrawal = completed(api), paid_out()
    header = "order_no,amount,time"
    lines = [f"{deposit},100.00,{NOW}", f"{deposit},-100.00,{NOW}", f"{withdrawal},-100.00,{NOW}"]
    found = compared(csv_of(*lines, header=header), "--all-paid")
    assert [(each["kind"], each["order_no"], each["line"]) for each in found["differences"]] == [("status", deposit, 3)]
    assert (found["sums"]["there"]["in"], found["sums"]["there"]["out"]) == ("0.00", "100.00")


def test_a_file_without_a_status_column_needs_a_confirmation(api, refused, differences):
    content = csv_of(f"{completed(api)},100.00,{NOW}", header="order_no,amount,time")
    assert "no status column, so each line would count as a completed payment" in refused(content)
    assert differences(content, "--all-paid") == []


def test_a_second_payment_is_a_difference_unless_it_is_recorded(api, compared, differences):
    order_no = completed(api)
    content = csv_of(line(order_no, reference="R-2"), line(order_no, reference=f"SB{order_no}"))
    (found,) = compared(content)["differences"]
    assert (found["kind"], found["line"], found["detail"]) == ("amount", 2, "paid more than once")
    api.notice(order_no, 10_000, reference="R-2")  # paid_twice
    assert differences(content) == []


def test_payments_are_compared_with_their_own_money(api, differences):
    order_no = completed(api)
    api.notice(order_no, 5_000, reference="R-2")
    by_number = [line(order_no, "50.00", reference="R-2"), line(order_no, reference=f"SB{order_no}")]
    by_amount = [line(order_no, "50.00"), line(order_no)]
    for lines in (by_number, by_amount, by_number[::-1], by_amount[::-1]):
        assert differences(csv_of(*lines)) == []


def test_a_corrected_amount_covers_no_second_payment(api, compared):
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 9_900, reference="R-1")
    api.notice(order_no, 10_000, reference="R-1")
    assert api.status(order_no) == "completed"
    found = compared(csv_of(line(order_no, reference="R-1"), line(order_no, "99.00", reference="R-2")))["differences"]
    assert [(each["kind"], each["line"]) for each in found] == [("amount", 3)]
    assert "wrong_amount (corrected)" in found[0]["detail"]


def test_a_channels_silence_that_ended_is_not_reported(api, compared, later):
    order_no = api.buy().data["order_no"]
    api.play(order_no, "timeout")
    later(60, 4)
    assert api.status(order_no) == "completed"
    (found,) = compared(csv_of(line(order_no, "1.00")))["differences"]
    assert found["detail"] == ""


def test_a_second_payment_is_found_when_the_first_is_in_an_earlier_statement(api, compared, clock):
    order_no = completed(api)
    clock("2026-05-02 12:00:00")
    again = line(order_no, reference="R-2", time="2026-05-02 12:00:00")
    (found,) = compared(csv_of(again))["differences"]
    assert (found["kind"], found["detail"]) == ("amount", "paid more than once")


@pytest.mark.parametrize("booked", [NOW, "2026-05-01 23:55:00", "2026-05-02 00:05:00"])
@pytest.mark.parametrize("days", [("2026-05-02", "2026-05-02"), ("2026-05-01", "2026-05-02")])
def test_a_payment_with_another_known_number_is_never_the_orders(api, paid_out, compared, clock, booked, days):
    clock(booked)
    deposit, withdrawal = completed(api), paid_out()
    clock("2026-05-03 12:00:00")
    lines = [line(each, reference="R-2", time="2026-05-02 12:00:00") for each in (deposit, withdrawal)]
    found = compared(csv_of(*lines), "--since", days[0], "--until", days[1])["differences"]
    here = [(each["kind"], each["order_no"], each["line"]) for each in found if each["kind"] == "amount"]
    assert here == [("amount", deposit, 2), ("amount", withdrawal, 3)]
    missing = [each["order_no"] for each in found if each["kind"] == "missing_there"]
    assert missing == ([deposit, withdrawal] if days[0] <= booked else [])


@pytest.mark.parametrize("reverse", [False, True])
def test_a_second_payment_without_a_number_does_not_hide_one_with_another_number(api, compared, reverse):
    order_no = completed(api)
    lines = [line(order_no), line(order_no, reference="R-2")]
    found = compared(csv_of(*(lines[::-1] if reverse else lines)))["differences"]
    assert [(each["kind"], each["reference"], each["detail"]) for each in found] == [
        ("amount", "R-2", "paid more than once")
    ]


def test_of_the_money_credited_to_one_order_only_that_of_these_days_is_missing(api, compared, credited, flask, clock):
    order_no = credited("paid_twice")
    clock("2026-05-02 12:00:00")
    api.notice(order_no, 8_000, reference="R-8")
    flask("order", "settle", order_no, "--credit")
    for day, amounts in (("2026-05-01", ["100.00", "90.00"]), ("2026-05-02", ["80.00"])):
        found = compared(csv_of(), "--since", day)["differences"]
        assert [each["here"]["amount"] for each in found] == amounts


WITHOUT_REFERENCE = "order_no,amount,status,time"


@pytest.mark.parametrize(
    ("there", "here"),
    [
        (NOW, "2026-05-02 12:00:00"),  # booked a day late, manually
        ("2026-05-02 12:00:00", NOW),
        ("2026-05-02", NOW),
    ],
)
@pytest.mark.parametrize("header", [HEADER, WITHOUT_REFERENCE])
def test_a_payment_of_another_day_without_a_number_is_reported(api, paid_out, compared, clock, there, here, header):
    clock(here)
    deposit, withdrawal = completed(api), paid_out()
    clock("2026-05-04 12:00:00")
    lines = [line(order_no, time=there) for order_no in (deposit, withdrawal)]
    if header == WITHOUT_REFERENCE:
        lines = [f"{order_no},100.00,paid,{there}" for order_no in (deposit, withdrawal)]
    found = compared(csv_of(*lines, header=header))["differences"]
    told = f"paid more than once, or booked on another day: {here[:10]}"
    assert [(each["kind"], each["order_no"], each["line"], each["detail"]) for each in found] == [
        ("amount", deposit, 2, told),
        ("amount", withdrawal, 3, told),
    ]


def test_a_payment_is_the_orders_by_the_channels_number_or_its_day(api, differences, clock):
    order_no = completed(api)
    later = "2026-05-02 12:00:00"
    clock(later)
    other = completed(api)
    assert differences(csv_of(line(order_no, time=later, reference=f"SB{order_no}"), line(other, time=later))) == []
    of_its_day = csv_of(line(order_no), line(other, time=later))
    assert differences(of_its_day, "--since", "2026-05-02") == []


def test_without_times_a_payment_of_another_day_is_not_reported(api, differences, clock):
    order_no = completed(api)
    clock("2026-05-02 12:00:00")
    without = csv_of(f"{order_no},100.00,paid", header="order_no,amount,status")
    for content in (csv_of(line(order_no, time="")), without):
        assert differences(content, "--since", "2026-05-02") == []


def test_different_clocks_make_no_other_day(api, differences, clock):
    clock("2026-05-02 00:04:00")
    order_no = completed(api)
    assert (
        differences(
            csv_of(line(order_no, time="2026-05-01 23:58:00")), "--since", "2026-05-09", "--until", "2026-05-09"
        )
        == []
    )


def test_a_recorded_second_payment_matches_the_line_of_another_day(api, compared, flask, clock):
    order_no = completed(api)
    later = "2026-05-02 12:00:00"
    clock(later)
    api.notice(order_no, 10_000, reference="R-2")
    content = csv_of(line(order_no, time=later))
    assert compared(content)["differences"] == []
    flask("order", "settle", order_no, "--credit")
    assert compared(content)["differences"] == []
    found = compared(content + line(order_no, time=later) + "\n")["differences"]
    assert [(each["kind"], each["line"]) for each in found] == [("amount", 3)]


def test_a_refunded_payment_of_another_day_is_reported(api, differences, clock):
    order_no = completed(api)
    clock("2026-05-02 12:00:00")
    there_and_back = [line(order_no, status=status, time="2026-05-02 12:00:00") for status in ("paid", "refunded")]
    assert ("status", order_no) in differences(csv_of(*there_and_back))


def test_orders_of_other_days_are_found_in_one_query(api, compared, clock):
    orders = [completed(api) for _ in range(6)]
    clock("2026-05-02 12:00:00")
    lines = [line(order_no, time="2026-05-02 12:00:00") for order_no in orders]

    def queries(content):
        heard = []
        database.query_hooks.append(heard.append)
        try:
            compared(content)
        finally:
            database.query_hooks.remove(heard.append)
        return len(heard)

    assert queries(csv_of(*lines)) == queries(csv_of(lines[0]))


def test_the_refund_of_a_second_payment_agrees_once_it_is_resolved(api, compared, differences, flask):
    order_no = completed(api)
    api.notice(order_no, 10_000, reference="R-2")
    content = csv_of(line(order_no), line(order_no, reference="R-2"), line(order_no, status="refunded"))
    (found,) = compared(content)["differences"]
    assert (found["kind"], "paid_twice (open)" in found["detail"]) == ("status", True)
    flask("order", "settle", order_no, "--refund")
    assert differences(content) == []
    once_more = content + line(order_no, status="refunded") + "\n"
    assert [each["line"] for each in compared(once_more)["differences"]] == [5]
    of_another_amount = csv_of(line(order_no), line(order_no, "60.00", status="refunded"))
    assert differences(of_another_amount) == [("status", order_no)]


def test_a_wrong_amount_is_open_until_it_is_resolved_and_then_compared_as_recorded(api, compared, flask):
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 9_900, reference="R-1")
    content = csv_of(line(order_no, "99.00", reference="R-1"))
    (found,) = compared(content)["differences"]
    assert (found["kind"], found["here"]) == ("status", {"status": "pending", "amount": "99.00"})
    assert "wrong_amount (open)" in found["detail"]
    flask("order", "settle", order_no, "--credit")
    assert compared(content)["differences"] == []
    (found,) = compared(csv_of(line(order_no, "98.00", reference="R-1")))["differences"]
    assert (found["kind"], found["here"]["amount"], found["there"]["amount"]) == ("amount", "99.00", "98.00")
    assert found["detail"] == "compared with what wrong_amount recorded; exceptions: wrong_amount (credit)"


@pytest.fixture
def credited(api, flask):
    """`credited(kind)`: the number of a deposit of which an operator credited 90 yuan manually, as this kind."""

    def settled(kind, channel=2, how="--credit"):
        order_no = completed(api) if kind == "paid_twice" else api.buy(channel=channel).data["order_no"]
        if kind == "late_payment":
            api.play(order_no, "fail")
        api.notice(order_no, 9_000, reference="R-9")
        if how:
            flask("order", "settle", order_no, how)
        return order_no

    return settled


@pytest.mark.parametrize("kind", ["wrong_amount", "late_payment", "paid_twice"])
def test_manually_credited_money_without_a_line_is_missing_there(compared, credited, kind):
    order_no = credited(kind)
    own = [line(order_no)] if kind == "paid_twice" else []
    (found,) = compared(csv_of(*own), "--since", "2026-05-01")["differences"]
    assert (found["kind"], found["order_no"], found["reference"]) == ("missing_there", order_no, "R-9")
    assert (found["here"]["amount"], found["there"], found["line"]) == ("90.00", {}, None)
    told = f"credited as {kind}; told of here at 2026-05-01 12:00:00"
    assert found["detail"] == f"{told}; exceptions: {kind} (credit)"
    whole = csv_of(*own, line(order_no, "90.00", reference="R-9"))
    assert compared(whole)["differences"] == []


def test_an_orders_money_and_additional_credits_are_missing_separately(compared, credited):
    order_no = credited("paid_twice")
    found = compared(csv_of(), "--since", "2026-05-01")
    assert [(each["kind"], each["reference"]) for each in found["differences"]] == [
        ("missing_there", f"SB{order_no}"),
        ("missing_there", "R-9"),
    ]
    assert found["sums"]["here"]["in"] == "100.00"  # money in an exception only is not counted


def test_a_line_of_a_failure_has_no_credited_money(differences, credited):
    order_no = credited("late_payment")
    assert differences(csv_of(line(order_no, status="failed"))) == [("missing_there", order_no)]


def test_only_credits_of_this_channel_are_missing(api, differences, credited):
    credited("late_payment", how=None)
    credited("late_payment", how="--refund")
    credited("wrong_amount", channel=1)
    order_no = credited("late_payment")
    assert differences(csv_of(), "--since", "2026-05-01") == [("missing_there", order_no)]
    assert differences(csv_of(), "--since", "2026-05-01", "--type", "sell") == []


@pytest.mark.parametrize(
    ("time", "missed", "neighbour"),
    [
        ("2026-04-30 23:59:50", False, None),
        ("2026-05-01 00:09:50", True, "2026-04-30"),
        ("2026-05-01 12:00:00", True, None),
        ("2026-05-01 23:51:00", True, "2026-05-02"),
        ("2026-05-02 00:00:05", False, None),
    ],
)
def test_credited_money_counts_on_the_day_of_the_channels_report(
    api, compared, credited, flask, clock, time, missed, neighbour
):
    clock(time)
    order_no = credited("late_payment", how=None)
    clock("2026-05-04 12:00:00")
    flask("order", "settle", order_no, "--credit")
    found = compared(csv_of(), "--since", "2026-05-01")["differences"]
    assert [(each["kind"], each["order_no"]) for each in found] == ([("missing_there", order_no)] if missed else [])
    assert not neighbour or f"it may stand in the statement of {neighbour}" in found[0]["detail"]
    assert compared(csv_of(line(order_no, "90.00")))["differences"] == []  # in the statement of either day


def test_a_bounced_withdrawal_agrees_once_it_is_credited_back(api, differences, paid_out, flask):
    order_no = paid_out()
    api.notice(order_no, 10_000, state="failed", reference=f"SB{order_no}")
    content = csv_of(line(order_no, status="refunded"))
    assert differences(content) == [("status", order_no)]
    flask("order", "settle", order_no, "--credit")
    assert differences(content) == []
    assert differences(csv_of(), "--since", "2026-05-01") == []


def test_a_payout_declared_as_not_sent_is_reported(api, compared, flask):
    order_no = api.sell().data["order_no"]
    flask("order", "accept", order_no)
    api.notice(order_no, 9_000, reference="R-1")  # payout_conflict
    flask("order", "settle", order_no, "--cancel")
    (found,) = compared(csv_of(line(order_no, "90.00", reference="R-1")))["differences"]
    assert (found["kind"], found["here"]["status"]) == ("status", "cancelled")
    assert "payout_conflict (cancel)" in found["detail"]


def test_the_fee_of_a_withdrawal_is_its_stored_channel_cost(compared, differences, paid_out):
    order_no = paid_out(MANUAL)  # 0.05 %
    assert differences(csv_of(line(order_no, fee="0.05")), channel=MANUAL) == []
    assert differences(csv_of(line(order_no, fee="-0.05")), channel=MANUAL) == []
    (found,) = compared(csv_of(line(order_no, fee="0.06")), channel=MANUAL)["differences"]
    assert (found["kind"], found["here"], found["there"]) == ("fee", {"fee": "0.05"}, {"fee": "0.06"})
    assert differences(csv_of(f"{order_no},100,paid,{NOW}", header="order_no,amount,status,time"), channel=MANUAL) == []


@pytest.mark.parametrize(
    ("amount", "fee", "kinds"),
    [
        ("100.00", "0.38", []),
        ("100.00", "0.380", []),
        ("100.00", "0.39", ["fee"]),
        ("100.00", "", ["fee"]),
        ("2.50", "0.01", []),  # 0.0095
        ("1.25", "0.00", []),  # 0.00475
    ],
)
def test_deposit_fees_are_compared_with_the_contract_if_it_is_given(api, compared, amount, fee, kinds):
    order_no = api.buy(amount).data["order_no"]
    api.play(order_no, "success")
    content = csv_of(line(order_no, amount, fee=fee))
    assert compared(content)["differences"] == []
    found = compared(content, "--fee-rate", "0.38")
    assert [each["kind"] for each in found["differences"]] == kinds
    assert found["sums"]["here"]["fees"] == {"100.00": "0.38", "2.50": "0.01", "1.25": "0.00"}[amount]


@pytest.mark.parametrize(
    ("fee", "read"), [("0.00500", "0.01"), ("-0.00500", "0.01"), ("0.00499", "0.00"), ("", "0.00")]
)
def test_a_fee_of_more_digits_than_fen_is_rounded_half_up(api, compared, fee, read):
    assert compared(csv_of(line(completed(api), fee=fee)))["sums"]["there"]["fees"] == read


def test_withdrawals_are_found_by_their_second_number_and_orders_by_the_channels(
    api, compared, order_details, paid_out
):
    api.sell()  # possibly within the same second
    withdrawal, deposit = order_details(paid_out()), completed(api)
    placed = datetime.fromtimestamp(withdrawal["createtime"], CHINA)
    number = f"{placed:%Y%m%d%H%M%S}{withdrawal['id']:05d}"
    content = csv_of(line(number), line("9" * 19), line("not ours", reference=f"SB{deposit}"))
    found = compared(content)
    assert found["matched"] == 2
    assert [(each["kind"], each["order_no"]) for each in found["differences"]] == [("missing_here", "9" * 19)]


def test_a_reference_of_several_orders_names_none(api, compared, paid_out):
    paid_out(MANUAL), paid_out(MANUAL)
    found = compared(csv_of(line("", reference="BANK-1")), channel=MANUAL)
    assert found["matched"] == 0


WECHAT = Layout(
    number=("商户订单号",),
    reference=("微信订单号",),
    amount=("订单金额",),
    refund=("申请退款金额",),
    fee=("手续费",),
    status=("交易状态",),
    time=("交易时间",),
    paid=frozenset({"SUCCESS"}),
    refunded=frozenset({"REFUND"}),
)


def test_a_file_of_wechats_shape(api, compared, monkeypatch):
    monkeypatch.setattr(SandboxDriver, "statement", WECHAT)
    first, second = completed(api), completed(api)
    header = "交易时间,微信订单号,商户订单号,交易状态,商品名称,手续费,订单金额,申请退款金额,费率备注"
    lines = [
        f"`{NOW},`SB{first},`{first},`SUCCESS,`Order {first},`0.60000,`100.00,`0.00,`",
        f'`{NOW},`SB{second},`{second},`SUCCESS,`a, b, "c",`0.60000,`100.00,`0.00,`',
        f"`{NOW},`SB{second},`{second},`REFUND,`a, b,`-0.24000,`0.00,`40.00,`",
        "总交易单数,应结订单总金额,退款总金额,充值券退款总金额,手续费总金额,订单总金额,申请退款总金额",
        "`3,`160.00,`40.00,`0.00,`0.96000,`200.00,`40.00",
    ]
    found = compared("\ufeff" + "\r\n".join((header, *lines, "")))
    assert (found["lines"], found["matched"]) == (3, 3)
    assert found["sums"]["there"] == {"in": "160.00", "out": "0.00", "fees": "0.96", "unknown": "0.00"}
    (refund,) = found["differences"]
    assert (refund["kind"], refund["there"]) == ("status", {"status": "refunded", "amount": "40.00"})


def test_a_file_of_alipays_shape(api, compared):
    first, second = completed(api), completed(api)
    lines = [
        "#支付宝业务明细查询",
        "#账号：[20880000000000000156]",
        "#-----------------------------------------业务明细列表----------------------------------------",
        "支付宝交易号,商户订单号,业务类型,商品名称,创建时间,完成时间,订单金额（元）,服务费（元）,备注",
        f"SB{first}\t,{first}\t,交易\t,付款,{NOW},{NOW},100.00,-0.60,",
        f"SB{second}\t,{second}\t,交易\t,付款,{NOW},{NOW},100.00,-0.60,",
        f"SB{second}\t,{second}\t,退款\t,付款,{NOW},{NOW},-100.00,0.60,",
        "#-----------------------------------------业务明细列表结束------------------------------------",
        "#交易合计：2笔，商家实收共200.00元",
        "#退款合计：1笔",
    ]
    columns = (
        *("number=商户订单号", "reference=支付宝交易号", "amount=订单金额（元）", "fee=服务费（元）"),
        *("status=业务类型", "time=完成时间", "paid=交易", "refunded=退款"),
    )
    options = [option for column in columns for option in ("--column", column)]
    found = compared("\r\n".join(lines).encode("gb18030"), *options)
    assert (found["lines"], found["matched"]) == (3, 3)
    assert found["sums"]["there"] == {"in": "100.00", "out": "0.00", "fees": "0.60", "unknown": "0.00"}
    assert [(each["kind"], each["order_no"]) for each in found["differences"]] == [("status", second)]


@pytest.mark.parametrize(
    ("before", "after", "encoding"),
    [
        ("", "", "utf-8-sig"),
        ("platform,export\n\n", "\n\n合计,200.00,,,,\n", "utf-8"),
        ("平台,导出\n", "合计,200.00\n", "gbk"),
        ("", "总计,,\n一,二,三\n", "utf-8"),
    ],
)
def test_text_around_the_lines_is_ignored(api, compared, before, after, encoding):
    first, second = completed(api), completed(api)
    content = f"{before}{csv_of(line(first), line(second))}{after}"
    assert compared(content.encode(encoding))["matched"] == 2
    assert compared(content.encode(encoding))["differences"] == []


def test_an_account_statement_is_compared_by_its_own_columns(claimed, flask, world, compared, clock):
    """As the bank lists it: by the transaction ID, otherwise by the order number in the note."""
    by_reference, by_note = claimed("100.00"), claimed("50.00")
    for order_no, reference in ((by_reference, "B1"), (by_note, "")):
        flask("order", "paid", order_no, *(("--reference", reference) if reference else ()))
    payout = world.api.sell("20.00", MANUAL).data["order_no"]
    flask("order", "approve", payout)
    flask("order", "paid", payout, "--reference", "B4")
    rows = [
        f"{NOW},B1,100.00,,",
        f"{NOW},B2,50.00,,{by_note}",
        f"{NOW},B3,7.00,,",
        f"{NOW},B4,,20.00,",
        f"{NOW},,,0.50,手续费",
    ]
    head = "交易时间,流水号,收入金额,支出金额,附言"
    StatementLayout.insert(
        channel=MANUAL,
        header=json.dumps(head.split(","), ensure_ascii=False),
        roles='["time", "reference", "income", "expense", "note"]',
        who="anna",
        createtime=1,
    ).execute()
    found = compared(csv_of(*rows, header=head), channel=MANUAL)
    assert (found["lines"], found["matched"]) == (5, 3)
    assert [(each["kind"], each["line"]) for each in found["differences"]] == [("missing_here", 4), ("missing_here", 6)]
    assert found["sums"]["there"] == {"in": "150.00", "out": "20.00", "fees": "0.00", "unknown": "6.50"}


def test_a_reversed_payment_of_an_account_statement_is_a_difference(claimed, flask, compared):
    flask("order", "paid", claimed("100.00"), "--reference", "B1")
    rows = [f"{NOW},B1,100.00,", f"{NOW},B1,-100.00,冲正"]
    found = compared(csv_of(*rows, header="交易时间,流水号,收入金额,附言"), channel=MANUAL)
    assert [(each["kind"], each["line"]) for each in found["differences"]] == [("status", 3)]


def test_an_unclear_row_of_an_account_statement_ends_the_comparison(run):
    content = csv_of(f"{NOW},B1,x,", header="交易时间,流水号,收入金额,附言")
    assert run(content, channel=MANUAL).stderr == "Error: line 2 is unclear: not an amount in yuan: 'x'\n"


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "gb18030"])
def test_a_statement_is_read_in_each_encoding_with_each_separator(api, compared, encoding, separator):
    content = csv_of(line(completed(api))).replace(",", separator)
    assert compared(content.encode(encoding))["matched"] == 1


def test_a_statement_may_be_a_workbook(api, compared):
    book = Workbook()
    book.active.append(["order_no", "amount", "status", "time"])
    book.active.append([completed(api), 100, "paid", datetime(2026, 5, 1, 12)])
    raw = io.BytesIO()
    book.save(raw)
    found = compared(raw.getvalue())
    assert (found["matched"], found["differences"]) == (1, [])


@pytest.mark.parametrize("sums", ["合计,2", "总计,,200.00", "总笔数,总金额,退款", "#,1,2"])
def test_the_lines_end_at_their_sums(api, compared, refused, sums):
    content = csv_of(f"{NOW},{completed(api)},100", sums, "2,200.00", header="time,order_no,amount")
    found = compared(content, "--all-paid")
    assert (found["lines"], found["differences"]) == (1, [])
    assert "line 5 is below the totals" in refused(content + f"{NOW},1,1\n", "--all-paid")


def test_values_beside_their_columns_are_refused(refused):
    content = csv_of(f"{NOW},1,100,0", header="time,order_no,amount")
    assert "line 2 has more values than the file has columns" in refused(content, "--all-paid")


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("币种", "USD", "line 2, column 币种: another currency than the yuan"),
        ("货币", "人民币", "Column 货币 looks like a currency"),
        ("收/支", "支出", "Column 收/支 looks like a direction"),
        ("x", "支出", "Column x looks like a direction"),
    ],
)
def test_a_column_that_changes_what_a_line_means_is_never_ignored(run, column, value, words):
    content = csv_of(f"{NOW},1,100,{value}", header=f"time,order_no,amount,{column}")
    assert words in run(content, "--all-paid", channel=MANUAL).stderr


@pytest.mark.parametrize(
    "written",
    ["\t{}\t", "'{}", '"=""{}"""', "`{}", " {} "],
)
def test_padding_against_spreadsheets_is_removed(api, differences, written):
    order_no = completed(api)
    assert differences(csv_of(f"{written.format(order_no)},100,0,paid,{NOW},")) == []


@pytest.mark.parametrize("amount", ["1,234.50", "1234.5", "1234.5000", "+1,234.50"])
def test_amounts_as_they_are_written(api, differences, amount):
    order_no = api.buy("1234.50").data["order_no"]
    api.play(order_no, "success")
    assert differences(csv_of(line(order_no, amount))) == []


@pytest.mark.parametrize("time", ["2026-05-01 12:00:00", "2026/5/1 12:00", "2026-05-01T12:00:00", "2026-05-01"])
def test_times_as_they_are_written(api, compared, time):
    assert compared(csv_of(line(completed(api), time=time)))["since"] == "2026-05-01"


@pytest.mark.parametrize(
    ("damaged", "words"),
    [
        ("1,12.345,0,paid,2026-05-01 12:00,", "line 3, column amount: not an amount in yuan: '12.345'"),
        ('1,"12,50",0,paid,2026-05-01 12:00,', "line 3, column amount: not an amount in yuan: '12,50'"),
        ("1,,0,paid,2026-05-01 12:00,", "line 3, column amount: not an amount in yuan: ''"),
        ("1,1e3,0,paid,2026-05-01 12:00,", "line 3, column amount: not an amount in yuan: '1e3'"),
        ("1,12,free,paid,2026-05-01 12:00,", "line 3, column fee: not an amount in yuan: 'free'"),
        ("1,12,0,maybe,2026-05-01 12:00,", "line 3, column status: 'maybe' is none of 0, 1, 2, cancelled, "),
        ("1,12,0,paid,yesterday,", "line 3, column time: no time such as 2026-05-01 12:00:00: 'yesterday'"),
        (
            "1,12,0,paid,2026-02-30 12:00,",
            "line 3, column time: no time such as 2026-05-01 12:00:00: '2026-02-30 12:00'",
        ),
        ("1,12,0", "line 3, column status: the line ends before it"),
        ("2.02605E+23,12,0,paid,2026-05-01 12:00,", "line 3, column order_no: a spreadsheet shortened it"),
        ("1�,12,0,paid,2026-05-01 12:00,", "line 3, column order_no: damaged characters: 1�"),
    ],
)
def test_a_line_that_cannot_be_read_ends_it_and_is_named(api, refused, damaged, words):
    assert words in refused(csv_of(line(completed(api)), damaged))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the statement has no line with the columns"),
        (b"a,b\n1,2\n", "order_no or out_trade_no and amount or money: specify them with --column"),
        (b"order_no,amount,status\n\xff\xff,1,paid\n", "line 2, column order_no: damaged characters"),
        (b"PK\x03\x04....", "The Excel workbook is damaged."),
        (b"\x1f\x8b....", "compressed"),
        (b"order_no,amount,status\n1,2,paid\n", "with --since"),
        (csv_of().encode(), "with --since"),
    ],
)
def test_a_file_that_cannot_be_read_or_dated_is_refused(refused, content, words):
    assert words in refused(content)


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (("--column", "colour=red"), 1, "unknown column colour: choose from number, "),
        (("--column", "status=state"), 1, "has no column state"),
        (("--column", "number"), 2, "NAME=VALUE"),
        (("--since", "2026-05-02"), 1, "the last day (2026-05-01) is before the first (2026-05-02)"),
        (("--fee-rate", "101"), 2, "a percentage from 0 to 100"),
    ],
)
def test_options_that_make_no_sense_are_refused(refused, options, status, words):
    assert words in refused(csv_of(line("1")), *options, status=status)


def test_a_rate_needs_a_column_for_the_fee(refused):
    assert "has no column fee" in refused(f"order_no,amount,time\n1,2,{NOW}\n", "--fee-rate", "0.6")


def test_a_file_that_would_fill_the_memory_is_refused(refused, monkeypatch):
    monkeypatch.setattr("services.statements.tables.MOST_BYTES", 100)
    assert "larger than" in refused(csv_of(line("1"), line("2")))


def test_an_unknown_channel_is_refused(run):
    result = run(csv_of(), channel=99)
    assert (result.exit_code, result.stderr) == (1, "Error: no channel 99\n")


def test_the_table_names_each_difference(api, run):
    order_no = completed(api)
    result = run(csv_of(line(order_no, "99.00"), line("", reference="R-9")))
    assert result.exit_code == 3
    rows = [text.split() for text in result.output.split("\n\n")[1].splitlines()]
    assert rows[0] == ["kind", "line", "order_no", "here", "there", "detail"]
    assert rows[1][:7] == ["amount", "2", order_no, "completed", "100.00", "paid", "99.00"]
    assert rows[2][:5] == ["missing_here", "3", "R-9", "paid", "100.00"]


def test_another_drivers_layout_can_be_chosen(api, differences, monkeypatch):
    monkeypatch.setattr(SandboxDriver, "statement", Layout(number=("mine",)))
    order_no = completed(api)
    assert Driver.statement.number != ("mine",)
    assert differences(csv_of(line(order_no), header=HEADER.replace("order_no", "mine"))) == []


@pytest.mark.sqlite
def test_it_works_while_another_process_writes(api, compared, instance):
    order_no = completed(api)
    with closing(sqlite3.connect(instance / "orders.sqlite", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert compared(csv_of(line(order_no)))["differences"] == []


def test_five_thousand_lines_take_few_queries(demo, api, flask, compared):
    flask("seed", "--orders", 3_000)
    order_no = completed(api)
    unknown = [line(f"{number:019d}", reference=f"R-{number}") for number in range(4_999)]
    heard = []
    database.query_hooks.append(heard.append)
    try:
        found = compared(csv_of(*unknown, line(order_no)))
    finally:
        database.query_hooks.remove(heard.append)
    assert (found["lines"], found["matched"]) == (5_000, 1)
    assert [each["kind"] for each in found["differences"]].count("missing_here") == 4_999
    assert len(heard) < 40
