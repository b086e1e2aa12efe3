"""The page of earnings: its period, groups and totals, and the file."""

import csv
import io
from datetime import datetime

import pytest

from models.tables.ledger import CLEARING, COMMISSION
from models.tables.merchant import PROPORTIONAL
from models.tables.operator import AuditEntry
from runtime.clock import CHINA
from services.ledger import accounts, earnings
from tests.refunds import allow, refunded
from tests.support import completed, words

AMOUNTS = ("Deposits (¥)", "Withdrawals (¥)", "Refunds (¥)", "Fees (¥)", "Channel cost (¥)", "Net income (¥)")


@pytest.fixture(autouse=True)
def may(time_machine):
    """Noon on 2 May 2026 in China."""
    time_machine.move_to(datetime(2026, 5, 2, 12, tzinfo=CHINA))


@pytest.fixture
def booked(api, flask, time_machine):
    """Two deposits, a refund and an adjustment in May, a payout in April; the correction by a bill."""
    allow(fees=PROPORTIONAL)
    time_machine.move_to(datetime(2026, 4, 30, 12, tzinfo=CHINA))
    sent = api.sell("50.00", channel=3).data["order_no"]  # fee 0.15, channel cost 0.03
    flask("order", "accept", sent)
    flask("order", "paid", sent)
    time_machine.move_to(datetime(2026, 5, 2, 12, tzinfo=CHINA))
    refunded(api, completed(api), "40.00")
    completed(api)
    flask("ledger", "adjust", "demo", "0.50", "--reason", "sorry")
    accounts.post("bill_costs 2 2026-05-01", {(CLEARING, 2): 7, (COMMISSION, 0): -7}, who="service")


def lines(shown, *groups):
    """The rows of the table: the groups, then the amounts, with counts behind those of orders."""
    return [
        tuple(words(row.get(name, "")) for name in (*groups, *AMOUNTS)) for row in shown.rows if "Net income (¥)" in row
    ]


def test_the_page_shows_this_month_by_channel_with_its_totals(page, booked):
    shown = page("earnings/")
    assert lines(shown, "Channel") == [
        ("Sandbox B", "200.00 2 orders", "", "40.00 1 refund", "0.96", "0.07", "0.89"),
        ("Manual adjustments", "", "", "", "-0.50", "", "-0.50"),
        ("Total", "200.00 2 orders", "", "40.00 1 refund", "0.46", "0.07", "0.39"),
    ]
    tiles = words(shown.html.partition('id="total"')[2].partition("</section>")[0])
    for number in (">0.39<", ">0.46<", ">0.07<", ">40.00<", "0.24 given back with refunds", "1 refund<"):
        assert number in tiles
    assert shown.links["Earnings"] == "/console/earnings/"


def test_any_days_and_groups_can_be_chosen(page, booked):
    shown = page("earnings/?since=2026-04-30&until=2026-05-02&by=&by=day&by=merchant&by=method")
    assert lines(shown, "Day", "Merchant", "Method")[:-1] == [
        ("2026-04-30", "Demo Shop 演示商户", "Bank transfer", "", "50.00 1 order", "", "0.15", "0.03", "0.12"),
        ("2026-05-02", "Correction by bills", "", "", "", "", "", "0.07", "-0.07"),
        ("2026-05-02", "Demo Shop 演示商户", "WeChat Pay", "200.00 2 orders", "", "40.00 1 refund", "0.96", "", "0.96"),
        ("2026-05-02", "Manual adjustments", "", "", "", "", "-0.50", "", "-0.50"),
    ]
    whole = page("earnings/?month=2026-04&by=")
    assert [row["Period"] for row in whole.rows if "Net income (¥)" in row] == ["Orders", "Total"]
    all_time = page("earnings/?since=2020-01-01")
    assert lines(all_time, "Channel")[-1] == (
        "Total",
        "200.00 2 orders",
        "50.00 1 order",
        "40.00 1 refund",
        "0.61",
        "0.10",
        "0.51",
    )


@pytest.mark.parametrize(
    "query", ["month=2026-13", "month=2026-06", "month=May", "since=yesterday", "until=2026-02-30"]
)
def test_what_is_no_period_is_not_found(console, query):
    assert console.get(f"/console/earnings/?{query}").status_code == 404


def test_an_empty_period_and_days_in_the_wrong_order_say_so(page, console):
    assert "Nothing was earned in this period." in page("earnings/").text
    shown = console.get("/console/earnings/?since=2026-05-02&until=2026-05-01")
    assert (shown.status_code, "The first day is after the last one." in shown.text) == (422, True)


def test_the_page_says_when_sums_are_being_prepared(console, api, monkeypatch):
    completed(api)
    monkeypatch.setattr(earnings, "MOST", 0)
    shown = console.get("/console/earnings/")
    assert (shown.status_code, "The earnings are being prepared." in shown.text) == (503, True)


@pytest.mark.parametrize(
    ("days", "name"),
    [
        ("since=2026-05-01", "2026-05-01-to"),
        ("until=2026-05-02", "to-2026-05-02"),
        ("since=2026-05-01&until=2026-05-02", "2026-05-01-to-2026-05-02"),
        ("since=2026-05-02&until=2026-05-02", "2026-05-02"),
    ],
)
def test_the_name_of_the_file_has_the_days(export, booked, days, name):
    answer = export(f"earnings/export?{days}")
    assert answer.headers["Content-Disposition"] == f'attachment; filename="earnings-{name}.csv"'


def test_what_the_page_refuses_the_file_refuses_too(send, api, monkeypatch):
    reversed_days = send("earnings/export?since=2026-05-02&until=2026-05-01")
    assert (reversed_days.status_code, "The first day is after the last one." in reversed_days.text) == (422, True)
    completed(api)
    monkeypatch.setattr(earnings, "MOST", 0)
    too_early = send("earnings/export?month=2026-05")
    assert (too_early.status_code, "The earnings are being prepared." in too_early.text) == (503, True)


def test_the_file_has_the_lines_with_stable_names(export, viewer, booked):
    answer = export("earnings/export?month=2026-05&by=&by=channel&by=method", client=viewer)
    assert answer.headers["Content-Disposition"] == 'attachment; filename="earnings-2026-05.csv"'
    bill, deposits, adjustments = csv.DictReader(io.StringIO(answer.data.decode("utf-8-sig")))
    assert tuple(bill) == earnings.COLUMNS
    assert (bill["line"], bill["channel"], bill["method"], bill["costs"], bill["net"]) == (
        "orders",
        "2",
        "",
        "0.07",
        "-0.07",
    )
    assert {name: text for name, text in deposits.items() if text not in ("", "0", "0.00")} == {
        "line": "orders",
        "channel": "2",
        "channel_name": "Sandbox B",
        "method": "wxpay",
        "deposits": "2",
        "deposits_amount": "200.00",
        "refunds": "1",
        "refunds_amount": "40.00",
        "fees": "0.96",
        "fees_given_back": "0.24",
        "net": "0.96",
    }
    assert (adjustments["line"], adjustments["fees"], adjustments["net"]) == ("adjustments", "-0.50", "-0.50")
    entry = AuditEntry.select().order_by(AuditEntry.id.desc()).get()
    assert (entry.action, entry.detail) == ("export earnings", "2026-05; by: channel, method")
