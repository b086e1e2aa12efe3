"""`tillbook reconcile`: differences between a channel's statement and the orders."""

import sqlite3
from contextlib import closing
from datetime import datetime

import pytest

from gateways.sandbox.driver import SandboxDriver
from gateways.statement import Layout
from models.db.base import database
from runtime.clock import CHINA
from tests.cli.conftest import MANUAL
from tests.cli.reconcile.conftest import NOW, csv_of, line
from tests.pages import CLAIM, FORM
from tests.support import completed

TODAY, TOMORROW = "2026-05-01", "2026-05-02 12:00:00"


def test_without_differences_there_is_only_the_summary(api, run, compared, paid_out, rows):
    deposit, withdrawal = completed(api), paid_out()
    content = csv_of(line(deposit, "100.00", fee="0.60"), line(withdrawal, "100", fee="0"))
    before = rows()
    assert compared(content) == {
        "channel": 2,
        "since": TODAY,
        "until": TODAY,
        "lines": 2,
        "matched": 2,
        "sums": {
            "there": {"in": "100.00", "out": "100.00", "refunds": "0.00", "fees": "0.60", "unknown": "0.00"},
            "here": {"in": "100.00", "out": "100.00", "refunds": "0.00", "fees": "0.00"},
        },
        "differences": [],
    }
    result = run(content)
    assert rows() == before
    assert result.exit_code == 0
    assert result.output.startswith("No differences\n")
    assert "2, 2 of them matched to orders" in result.output
    assert "kind" not in result.output


def test_the_table_names_each_difference(api, run):
    order_no = completed(api)
    result = run(csv_of(line(order_no, "1299.00"), line("", reference="R-9")))
    assert result.exit_code == 3
    assert result.output.startswith("Differences found: 2\n")
    rows = [text.split() for text in result.output.split("\n\n")[1].splitlines()]
    assert rows[0] == ["kind", "line", "order_no", "here", "there", "detail"]
    assert rows[1][:7] == ["amount", "2", order_no, "completed", "100.00", "paid", "1,299.00"]
    assert rows[2][:5] == ["missing_here", "3", "R-9", "paid", "100.00"]


def test_a_line_without_an_order_of_this_channel_is_missing_here(api, compared):
    elsewhere = api.buy(channel=1).data["order_no"]
    api.play(elsewhere, "success")
    lines = line("20260501000", "12.5", reference="R-1"), line("", "-3.00", reference="R-2"), line(elsewhere)
    found = compared(csv_of(*lines))
    assert (found["matched"], found["sums"]["there"]["unknown"]) == (0, "109.50")

    def missing(order_no, reference, line, amount, detail):
        there = {"status": "paid", "amount": amount}
        difference = {"kind": "missing_here", "order_no": order_no, "reference": reference, "line": line}
        return difference | {"here": {}, "there": there, "detail": detail}

    assert found["differences"] == [
        missing("20260501000", "R-1", 2, "12.50", ""),
        missing("", "R-2", 3, "-3.00", "no order number"),
        missing(elsewhere, "", 4, "100.00", "an order of channel 1"),
    ]


def test_an_order_without_a_line_is_missing_there(api, compared, paid_out, zone):
    zone("Asia/Shanghai")  # the fixtures that set the clock ahead made it UTC
    here, other, withdrawal = completed(api), completed(api), paid_out()
    api.buy()  # unpaid
    api.play(api.buy(channel=1).data["order_no"], "success")
    found = compared(csv_of(line(other)))["differences"]
    missing = {
        "kind": "missing_there",
        "order_no": here,
        "reference": f"SB{here}",
        "line": None,
        "here": {"status": "completed", "amount": "100.00"},
        "there": {},
        "detail": "moved here at 2026-05-01 12:00:00",
    }
    assert found[0] == missing
    assert [(each["kind"], each["order_no"]) for each in found[1:]] == [("missing_there", withdrawal)]


def test_times_of_details_are_in_the_zone_of_the_machine(api, run, zone):
    completed(api)
    zone("Asia/Tokyo")
    assert "moved here at 2026-05-01 13:00:00" in run(csv_of(line("20260501000"))).stdout


def test_a_statement_of_one_type_reports_no_order_of_the_other(api, compared, kinds, paid_out, monkeypatch):
    deposit, withdrawal = completed(api), paid_out()
    assert kinds(line(deposit)) == [("missing_there", withdrawal)]
    found = compared(csv_of(line(deposit)), "--type", "buy")
    sums = {"in": "100.00", "out": "0.00", "refunds": "0.00", "fees": "0.00"}
    assert (found["differences"], found["sums"]["here"]) == ([], sums)
    assert kinds(line(withdrawal), options=("--type", "sell")) == []
    monkeypatch.setattr(SandboxDriver, "statement", Layout(types=(1,)))
    assert kinds(line(deposit)) == []


def test_every_difference_of_amount_or_status_names_both_sides(api, differences, paid_out):
    agrees, tried_twice, another_amount, refunded, failed = (completed(api) for _ in range(5))
    pending, cancelled, unpaid, never_paid = (api.buy().data["order_no"] for _ in range(4))
    for order_no in (cancelled, never_paid):
        api.play(order_no, "fail")
    bounced, returned, waiting = paid_out(), paid_out(), api.sell().data["order_no"]
    found = differences(
        line(agrees),
        line(tried_twice, status="failed"),
        line(tried_twice),
        line(unpaid, status="failed"),
        line(never_paid, status="failed"),
        line(another_amount, "100.01"),
        line(pending),
        line(cancelled),
        line(waiting),
        line(refunded, status="refunded"),
        line(failed, status="failed"),
        line(bounced, status="failed"),
        line(returned, status="refunded"),
    )
    assert [
        (each["kind"], each["line"], each["order_no"], *each["here"].values(), *each["there"].values())
        for each in found
    ] == [
        ("amount", 7, another_amount, "completed", "100.00", "paid", "100.01"),
        ("status", 8, pending, "pending", "100.00", "paid", "100.00"),
        ("status", 9, cancelled, "cancelled", "100.00", "paid", "100.00"),
        ("status", 10, waiting, "pending", "100.00", "paid", "100.00"),
        ("status", 11, refunded, "completed", "100.00", "refunded", "100.00"),
        ("status", 12, failed, "completed", "100.00", "failed", "100.00"),
        ("status", 13, bounced, "completed", "100.00", "failed", "100.00"),
        ("status", 14, returned, "completed", "100.00", "refunded", "100.00"),
    ]


def test_a_payment_and_its_refund_are_compared_together(api, kinds):
    cancelled, booked = api.buy().data["order_no"], completed(api)
    api.play(cancelled, "fail")
    assert kinds(line(cancelled), line(cancelled, status="refunded"), line(booked)) == []
    assert kinds(line(booked), line(booked, "30.00", status="refunded")) == [("status", booked)]


def test_a_payers_claim_moves_no_money(api, http, differences):
    order_no = api.buy(channel=MANUAL).data["order_no"]
    http("POST", CLAIM, f"order_no={order_no}".encode(), FORM)
    assert api.status(order_no) == "paid"
    assert differences(day=TODAY, channel=MANUAL) == []
    (found,) = differences(line(order_no), channel=MANUAL)
    assert (found["kind"], found["here"]["status"]) == ("status", "paid")


def test_a_channels_silence_that_ended_is_not_reported(api, differences, later):
    order_no = api.buy().data["order_no"]
    api.play(order_no, "timeout")
    later(60, 4)
    assert api.status(order_no) == "completed"
    (found,) = differences(line(order_no, "1.00"))
    assert found["detail"] == ""


# Days


@pytest.mark.parametrize(
    ("time", "missed", "neighbour"),
    [
        ("2026-04-30 23:59:50", False, ""),
        ("2026-05-01 00:00:00", True, "2026-04-30"),
        ("2026-05-01 00:09:50", True, "2026-04-30"),
        ("2026-05-01 00:10:00", True, ""),
        ("2026-05-01 23:49:00", True, ""),
        ("2026-05-01 23:51:00", True, "2026-05-02"),
        ("2026-05-02 00:00:05", False, ""),
    ],
)
def test_money_is_missing_on_its_day_and_at_the_edges_it_may_be_in_the_neighbouring_statement(
    api, differences, credited, flask, clock, time, missed, neighbour
):
    """The day of manually credited money is that of the channel's report."""
    clock(time)
    order_no, late = completed(api), credited("late_payment", how=None)
    clock("2026-05-04 12:00:00")
    flask("order", "settle", late, "--credit")
    found = differences(day=TODAY)
    missing = [("missing_there", order_no), ("missing_there", late)] if missed else []
    assert [(each["kind"], each["order_no"]) for each in found] == missing
    for each in found:
        assert ("at the edge of the day" in each["detail"]) is bool(neighbour)
        assert not neighbour or f"it may stand in the statement of {neighbour}" in each["detail"]
    assert differences(line(order_no), line(late, "90.00"), day=TODAY) == []  # in the statement of either day


def test_money_of_other_days_is_not_missing(api, kinds, clock):
    before = []
    for time in ("2026-04-30 12:00:00", NOW, TOMORROW):
        clock(time)
        before.append(completed(api))
    first, today, after = before
    assert kinds(line(today)) == []
    assert kinds(line(today), options=("--since", "2026-04-30")) == [("missing_there", first)]
    both = kinds(line(today), options=("--since", "2026-04-30", "--until", "2026-05-02"))
    assert both == [("missing_there", first), ("missing_there", after)]


def test_later_history_about_confirmed_money_does_not_change_its_time(api, flask, kinds, clock):
    flask("channel", "set", 2, "--settlement-days", 9)
    clock("2026-04-30 12:00:00")
    order_no = completed(api)
    clock(NOW)
    api.notice(order_no, 5_000, reference="R-2")  # `paid_twice`, while the first payment is confirmed
    assert kinds(day=TODAY) == []
    assert kinds(day="2026-04-30") == [("missing_there", order_no)]


def test_a_payment_is_the_orders_by_the_channels_number_or_its_day(api, kinds, clock):
    order_no = completed(api)
    clock(TOMORROW)
    other = completed(api)
    assert kinds(line(order_no, time=TOMORROW, reference=f"SB{order_no}"), line(other, time=TOMORROW)) == []
    assert kinds(line(order_no), line(other, time=TOMORROW), options=("--since", "2026-05-02")) == []


def test_a_payment_without_a_time_or_by_another_clock_is_not_of_another_day(api, compared, kinds, clock):
    order_no = completed(api)
    clock("2026-05-02 00:04:00")
    assert kinds(line(completed(api), time="2026-05-01 23:58:00"), day="2026-05-09") == []
    clock("2026-05-03 12:00:00")
    without = csv_of(f"{order_no},100.00,paid", header="order_no,amount,status")
    for content in (csv_of(line(order_no, time="")), without):
        assert compared(content, "--since", "2026-05-03")["differences"] == []


# A second payment of an order


def test_a_second_payment_is_a_difference_unless_it_is_recorded(api, differences, clock):
    order_no = completed(api)
    first, second = (line(order_no, reference=reference) for reference in (f"SB{order_no}", "R-2"))
    for lines in ((second, first), (first, second), (line(order_no), second), (second, line(order_no))):
        (found,) = differences(*lines)
        assert (found["kind"], found["reference"], found["detail"]) == ("amount", "R-2", "paid more than once")
    clock(TOMORROW)  # the first one is in an earlier statement
    (found,) = differences(line(order_no, reference="R-2", time=TOMORROW))
    assert (found["kind"], found["detail"]) == ("amount", "paid more than once")
    api.notice(order_no, 10_000, reference="R-2")  # paid_twice
    assert differences(second, first) == []


def test_payments_are_compared_with_their_own_money(api, kinds):
    order_no = completed(api)
    api.notice(order_no, 5_000, reference="R-2")
    by_number = [line(order_no, "50.00", reference="R-2"), line(order_no, reference=f"SB{order_no}")]
    by_amount = [line(order_no, "50.00"), line(order_no)]
    for lines in (by_number, by_amount, by_number[::-1], by_amount[::-1]):
        assert kinds(*lines) == []


def test_a_corrected_amount_covers_no_second_payment(api, differences):
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 9_900, reference="R-1")
    api.notice(order_no, 10_000, reference="R-1")
    assert api.status(order_no) == "completed"
    (found,) = differences(line(order_no, reference="R-1"), line(order_no, "99.00", reference="R-2"))
    assert (found["kind"], found["line"]) == ("amount", 3)
    assert "wrong_amount (corrected)" in found["detail"]


@pytest.mark.parametrize("booked", [NOW, "2026-05-01 23:55:00", "2026-05-02 00:05:00"])
def test_a_payment_with_another_known_number_is_never_the_orders(api, paid_out, differences, clock, booked):
    clock(booked)
    deposit, withdrawal = completed(api), paid_out()
    clock("2026-05-03 12:00:00")
    lines = [line(each, reference="R-2", time=TOMORROW) for each in (deposit, withdrawal)]
    for since in ("2026-05-02", "2026-05-01"):
        found = differences(*lines, options=("--since", since, "--until", "2026-05-02"))
        here = [(each["order_no"], each["line"]) for each in found if each["kind"] == "amount"]
        assert here == [(deposit, 2), (withdrawal, 3)]
        missing = [each["order_no"] for each in found if each["kind"] == "missing_there"]
        assert missing == ([deposit, withdrawal] if since <= booked else [])


@pytest.mark.parametrize(
    ("there", "here"),
    [
        (NOW, TOMORROW),  # booked a day late, manually
        (TOMORROW, NOW),
        ("2026-05-02", NOW),
    ],
)
def test_a_payment_of_another_day_without_a_number_is_reported(api, paid_out, compared, clock, there, here):
    clock(here)
    orders = completed(api), paid_out()
    clock("2026-05-04 12:00:00")
    told = f"paid more than once, or booked on another day: {here[:10]}"
    without_reference = [f"{order_no},100.00,paid,{there}" for order_no in orders]
    for content in (
        csv_of(*(line(order_no, time=there) for order_no in orders)),
        csv_of(*without_reference, header="order_no,amount,status,time"),
    ):
        found = compared(content)["differences"]
        assert [(each["kind"], each["order_no"], each["line"], each["detail"]) for each in found] == [
            ("amount", orders[0], 2, told),
            ("amount", orders[1], 3, told),
        ]


def test_a_recorded_second_payment_matches_the_line_of_another_day(api, differences, flask, clock):
    order_no = completed(api)
    clock(TOMORROW)
    api.notice(order_no, 10_000, reference="R-2")
    again = line(order_no, time=TOMORROW)
    assert differences(again) == []
    flask("order", "settle", order_no, "--credit")
    assert differences(again) == []
    assert [(each["kind"], each["line"]) for each in differences(again, again)] == [("amount", 3)]


def test_a_refunded_payment_of_another_day_is_reported(api, kinds, clock):
    order_no = completed(api)
    clock(TOMORROW)
    there_and_back = [line(order_no, status=status, time=TOMORROW) for status in ("paid", "refunded")]
    assert ("status", order_no) in kinds(*there_and_back)


def test_the_refund_of_a_second_payment_agrees_once_it_is_resolved(api, differences, kinds, flask):
    order_no = completed(api)
    api.notice(order_no, 10_000, reference="R-2")
    back = line(order_no, status="refunded")
    lines = line(order_no), line(order_no, reference="R-2"), back
    (found,) = differences(*lines)
    assert (found["kind"], "paid_twice (open)" in found["detail"]) == ("status", True)
    flask("order", "settle", order_no, "--refund")
    assert kinds(*lines) == []
    assert [each["line"] for each in differences(*lines, back)] == [5]
    assert kinds(line(order_no), line(order_no, "60.00", status="refunded")) == [("status", order_no)]


# Money in exceptions


def test_a_wrong_amount_is_open_until_it_is_resolved_and_then_compared_as_recorded(api, differences, flask):
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 9_900, reference="R-1")
    (found,) = differences(line(order_no, "99.00", reference="R-1"))
    assert (found["kind"], found["here"]) == ("status", {"status": "pending", "amount": "99.00"})
    assert "wrong_amount (open)" in found["detail"]
    flask("order", "settle", order_no, "--credit")
    assert differences(line(order_no, "99.00", reference="R-1")) == []
    (found,) = differences(line(order_no, "98.00", reference="R-1"))
    assert (found["kind"], found["here"]["amount"], found["there"]["amount"]) == ("amount", "99.00", "98.00")
    assert found["detail"] == "compared with what wrong_amount recorded; exceptions: wrong_amount (credit)"


@pytest.mark.parametrize("kind", ["wrong_amount", "late_payment", "paid_twice"])
def test_manually_credited_money_without_a_line_is_missing_there(differences, credited, kind):
    order_no = credited(kind)
    own = [line(order_no)] if kind == "paid_twice" else []
    (found,) = differences(*own, day=TODAY)
    assert (found["kind"], found["order_no"], found["reference"]) == ("missing_there", order_no, "R-9")
    assert (found["here"]["amount"], found["there"], found["line"]) == ("90.00", {}, None)
    told = f"credited as {kind}; told of here at 2026-05-01 12:00:00"
    assert found["detail"] == f"{told}; exceptions: {kind} (credit)"
    assert differences(*own, line(order_no, "90.00", reference="R-9")) == []
    if not own:
        failed = differences(line(order_no, status="failed"))  # a failure has no credited money
        assert [(each["kind"], each["order_no"]) for each in failed] == [("missing_there", order_no)]


def test_an_orders_money_and_additional_credits_are_missing_separately_on_their_days(
    api, compared, credited, flask, clock
):
    order_no = credited("paid_twice")
    clock(TOMORROW)
    api.notice(order_no, 8_000, reference="R-8")
    flask("order", "settle", order_no, "--credit")
    today, tomorrow = (compared(csv_of(), "--since", day) for day in (TODAY, "2026-05-02"))
    assert [(each["reference"], each["here"]["amount"]) for each in today["differences"]] == [
        (f"SB{order_no}", "100.00"),
        ("R-9", "90.00"),
    ]
    assert today["sums"]["here"]["in"] == "100.00"  # money in an exception only is not counted
    assert [(each["reference"], each["here"]["amount"]) for each in tomorrow["differences"]] == [("R-8", "80.00")]


def test_only_credits_of_this_channel_are_missing(kinds, credited):
    credited("late_payment", how=None)
    credited("late_payment", how="--refund")
    credited("wrong_amount", channel=1)
    order_no = credited("late_payment")
    assert kinds(day=TODAY) == [("missing_there", order_no)]
    assert kinds(day=TODAY, options=("--type", "sell")) == []


def test_a_payout_declared_as_not_sent_is_reported(api, differences, flask):
    order_no = api.sell().data["order_no"]
    flask("order", "accept", order_no)
    api.notice(order_no, 9_000, reference="R-1")  # payout_conflict
    flask("order", "settle", order_no, "--cancel")
    (found,) = differences(line(order_no, "90.00", reference="R-1"))
    assert (found["kind"], found["here"]["status"]) == ("status", "cancelled")
    assert "payout_conflict (cancel)" in found["detail"]


# Fees


def test_the_fee_of_a_withdrawal_is_its_stored_channel_cost(compared, differences, paid_out):
    order_no = paid_out(MANUAL)  # 0.05 %
    for fee in ("0.05", "-0.05"):
        assert differences(line(order_no, fee=fee), channel=MANUAL) == []
    (found,) = differences(line(order_no, fee="0.06"), channel=MANUAL)
    assert (found["kind"], found["here"], found["there"]) == ("fee", {"fee": "0.05"}, {"fee": "0.06"})
    without = csv_of(f"{order_no},100,paid,{NOW}", header="order_no,amount,status,time")
    assert compared(without, channel=MANUAL)["differences"] == []


@pytest.mark.parametrize(
    ("amount", "fee", "expected", "kinds"),
    [
        ("100.00", "0.38", "0.38", []),
        ("100.00", "0.380", "0.38", []),
        ("100.00", "0.39", "0.38", ["fee"]),
        ("100.00", "", "0.38", ["fee"]),
        ("2.50", "0.01", "0.01", []),  # 0.0095
        ("1.25", "0.00", "0.00", []),  # 0.00475
    ],
)
def test_deposit_fees_are_compared_with_the_contract_if_it_is_given(api, compared, amount, fee, expected, kinds):
    order_no = api.buy(amount).data["order_no"]
    api.play(order_no, "success")
    content = csv_of(line(order_no, amount, fee=fee))
    assert compared(content)["differences"] == []
    found = compared(content, "--fee-rate", "0.38")
    assert [each["kind"] for each in found["differences"]] == kinds
    assert found["sums"]["here"]["fees"] == expected


def test_a_fee_of_more_digits_than_fen_is_rounded_half_up(api, compared):
    order_no = completed(api)
    for fee, read in (("0.00500", "0.01"), ("-0.00500", "0.01"), ("0.00499", "0.00"), ("", "0.00")):
        assert compared(csv_of(line(order_no, fee=fee)))["sums"]["there"]["fees"] == read


# The order of a line


def test_withdrawals_are_found_by_their_second_number_and_orders_by_the_channels(
    api, compared, order_details, paid_out
):
    api.sell()  # possibly within the same second
    withdrawal, deposit = order_details(paid_out()), completed(api)
    placed = datetime.fromtimestamp(withdrawal["createtime"], CHINA)
    number = f"{placed:%Y%m%d%H%M%S}{withdrawal['id']:05d}"
    found = compared(csv_of(line(number), line("9" * 19), line("not ours", reference=f"SB{deposit}")))
    assert found["matched"] == 2
    assert [(each["kind"], each["order_no"]) for each in found["differences"]] == [("missing_here", "9" * 19)]


def test_a_reference_of_several_orders_names_none(compared, paid_out):
    paid_out(MANUAL), paid_out(MANUAL)
    assert compared(csv_of(line("", reference="BANK-1")), channel=MANUAL)["matched"] == 0


# While the service runs


@pytest.mark.sqlite
def test_it_works_while_another_process_writes(api, kinds, instance):
    order_no = completed(api)
    with closing(sqlite3.connect(instance / "orders.sqlite", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert kinds(line(order_no)) == []


def test_many_lines_and_orders_of_other_days_take_few_queries(api, compared, clock):
    orders = [completed(api) for _ in range(6)]
    clock(TOMORROW)
    lines = [line(order_no, time=TOMORROW) for order_no in orders]
    unknown = [line(f"{number:019d}", reference=f"R-{number}") for number in range(4_999)]

    def queries(content, *options):
        heard = []
        database.query_hooks.append(heard.append)
        try:
            found = compared(content, *options)
        finally:
            database.query_hooks.remove(heard.append)
        return found, len(heard)

    assert queries(csv_of(*lines))[1] == queries(csv_of(lines[0]))[1]
    assert queries(csv_of(), "--since", TODAY)[1] < 12  # those without a line, refunds, nearby results
    found, count = queries(csv_of(*unknown, line(orders[0], reference=f"SB{orders[0]}")))
    assert (found["lines"], found["matched"]) == (5_000, 1)
    assert [each["kind"] for each in found["differences"]].count("missing_here") == 4_999
    assert count < 40
