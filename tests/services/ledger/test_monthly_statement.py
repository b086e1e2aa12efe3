"""A merchant's monthly statement: opening balance, movements and closing balance, as the ledger has them."""

import csv
import io
import zipfile
from datetime import date, datetime

import pytest
from peewee import fn

from gateways.base import Report, State
from models.tables.ledger import LedgerDay
from models.tables.merchant import PROPORTIONAL, Merchant
from models.tables.refund import Refund
from runtime.clock import CHINA
from services.errors import ApiError, OperatorError
from services.ledger import day_sums, integrity
from services.ledger import monthly_statement as statement
from services.refunds import settle
from services.sandbox import seeded_orders
from tests import month_statements
from tests.refunds import allow, refunded
from tests.support import completed

MAY, JUNE = (date(2026, month, 1) for month in (5, 6))


@pytest.fixture
def at(time_machine):
    """`at("2026-05-31 23:59:59")` sets the clock, in China."""

    def move(text):
        time_machine.move_to(datetime.fromisoformat(text).replace(tzinfo=CHINA))

    return move


@pytest.fixture
def merchant(api):
    """The demo merchant, with a balance."""
    return Merchant.get(key="demo")


@pytest.fixture
def of(merchant):
    """`of(MAY)`: the merchant's statement."""
    return lambda month: statement.of(merchant, month)


def moves(found):
    """The lines of a statement: purpose, amount before fees, fees."""
    return [(line.purpose, line.gross, line.fees) for line in statement.lines(found)]


def test_each_kind_of_movement_has_its_group_in_the_json_and_its_line_in_the_csv(
    api, flask, flask_json, at, of, tmp_path
):
    at("2026-05-02 10:00:00")
    completed(api)  # 100.00, fee 0.60
    late = api.buy().data["order_no"]
    api.notice(late, 9_900, reference="R-1")
    flask("order", "settle", late, "--credit")
    sent, _held = (api.sell("50.00", channel=3).data["order_no"] for _ in range(2))
    flask("order", "accept", sent)
    at("2026-05-03 10:00:00")
    flask("order", "paid", sent, "--reference", "R-2")  # deducted when it is paid out
    flask("ledger", "adjust", "demo", "-12.50", "--reason", "bank fee")
    found = of(MAY)
    assert found.sums == statement.Sums(
        deposits=10_000, withdrawals=-5_000, exceptions=9_900, adjustments=-1_250, fees=-60 - 15 - 59
    )
    assert found.held == 5_015
    assert moves(found) == [
        ("credit", 10_000, -60),
        ("exception 1", 9_900, -59),
        ("spend", -5_000, -15),
        ("adjustment", -1_250, 0),
    ]
    assert [each.day for each in found.days] == [date(2026, 5, 2), date(2026, 5, 3)]

    of_may = ("merchant", "statement", "demo", "2026-05")
    sums = {"deposits": "100.00", "withdrawals": "-50.00", "exceptions": "99.00", "adjustments": "-12.50"}
    sums |= {"refunds": "0.00", "refund_count": 0, "refund_fees": "0.00", "refund_deducted": "0.00"}
    sums |= {"deposits_count": 1, "withdrawals_count": 1, "exceptions_count": 1, "adjustments_count": 1}
    sums |= {"refunds_count": 0}
    balances = {"opening": "10000.00", "fees": "-1.34", "closing": "10135.16", "available": "10085.01", "held": "50.15"}
    assert flask_json(*of_may) == {"merchant": "demo", "month": "2026-05"} | sums | balances
    assert "10,135.16" in flask(*of_may).stdout
    flask(*of_may, "--csv", tmp_path / "statement.csv")
    written = (tmp_path / "statement.csv").read_text("utf-8")
    rows = list(csv.DictReader(io.StringIO(written)))
    assert [(row["time"][:10], row["change"], row["balance"]) for row in rows] == [
        ("2026-05-02", "99.40", "10099.40"),
        ("2026-05-02", "98.41", "10197.81"),
        ("2026-05-03", "-50.15", "10147.66"),
        ("2026-05-03", "-12.50", "10135.16"),
    ]
    assert flask(*of_may, "--csv", "-").stdout.splitlines() == written.splitlines()
    assert [row["kind"] for row in rows] == ["credit", "exception", "spend", "adjustment"]
    assert len({row["line_no"] for row in rows}) == 4


def test_each_line_counts_once_in_its_group_and_on_its_day(api, flask, at, of, merchant, later):
    allow()
    at("2026-05-02 10:00:00")
    flask("channel", "set", 3, "--deposit-rate", "10")
    sent, cancelled = (api.sell("50.00", channel=3).data["order_no"] for _ in range(2))
    flask("order", "accept", sent)
    flask("order", "paid", sent, "--reference", "R-1")  # it also returns the security deposit
    flask("order", "reject", cancelled, "--reason", "closed")
    refunded(api, completed(api), "40.00")
    refunded(api, completed(api), "10.00", "silent")  # reserved only
    at("2026-05-03 10:00:00")
    flask("ledger", "adjust", "demo", "5.00", "--reason", "gift")
    flask("ledger", "adjust", "demo", "-5.00", "--reason", "mistake")
    found = of(MAY)
    assert found.counts == statement.Counts(deposits=2, withdrawals=1, refunds=1, adjustments=2)
    assert [(each.day.day, each.counts.total, each.sums.change) for each in found.days][1:] == [(3, 2, 0)]
    month_statements.check(merchant)


def test_the_lines_after_a_line_are_the_rest_of_the_month(api, flask, at, of):
    for day in (2, 2, 3):
        at(f"2026-05-0{day} 10:00:00")
        completed(api)
        api.sell("50.00", channel=3)  # an entry on both accounts, and no line
    at("2026-06-01 10:00:00")
    completed(api)
    found = of(MAY)
    every = list(statement.lines(found))
    for place, line in enumerate(every, 1):
        assert list(statement.lines_after(found, line.number)) == every[place:]
    (other,) = statement.lines(of(JUNE))
    for wrong in ("", "x1", "a0", "a99", "h1", "a3", "a 2", "a２", "a" + "9" * 18, other.number):
        with pytest.raises(ApiError, match="line not found"):
            statement.lines_after(found, wrong)


def test_the_statements_of_all_merchants_are_one_zip_with_a_summary(api, other, flask, at, tmp_path):
    at("2026-05-02 10:00:00")
    completed(api)
    other.buy()
    for key, name in (("Demo", "a/b:c*?"), ("blank", "Blank")):
        flask("merchant", "add", key, "--name", name)
    flask("merchant", "set", "demo", "--name", "商户 <one>. ")
    flask("ledger", "adjust", "Demo", "1.00", "--reason", "=1+1")
    flask("merchant", "statements", "2026-05", tmp_path / "may.zip")
    with zipfile.ZipFile(tmp_path / "may.zip") as packed:
        assert packed.testzip() is None
        files = {name: packed.read(name).decode() for name in packed.namelist()}
    own, theirs = "statement-2026-05-demo-商户 one.csv", "statement-2026-05-Demo-a b c.csv"
    assert {own, theirs, "summary.csv"} <= {*files}
    assert not any("blank" in name for name in files), "nothing moved, and the balance is zero"
    flask("merchant", "statement", "demo", "2026-05", "--csv", tmp_path / "demo.csv")
    assert files[own] == (tmp_path / "demo.csv").read_bytes().decode()
    assert "'=1+1" in files[theirs]
    rows = {row["merchant"]: row for row in csv.DictReader(io.StringIO(files["summary.csv"]))}
    assert len(rows) == len(files) - 1
    names = ("opening", "deposits", "fees", "closing", "held", "deposits_count", "adjustments_count")
    assert [rows["demo"][name] for name in names] == ["10000.00", "100.00", "-0.60", "10099.40", "0.00", "1", "0"]
    assert flask("merchant", "statements", "2026-13", "-", fails=True).exit_code == 1


def test_a_payout_that_came_back_returns_its_fees_too(api, flask, at, of):
    at("2026-05-02 10:00:00")
    flask("channel", "set", 3, "--passage-rate", "1")
    sent = api.sell("50.00", channel=3).data["order_no"]  # fee 0.15, channel fee 0.50
    flask("order", "accept", sent)
    flask("order", "paid", sent, "--reference", "R-1")
    flask("order", "returned", sent, "--reference", "RET-1", "--yes")
    flask("order", "settle", sent, "--credit")
    assert moves(of(MAY)) == [("spend", -5_000, -65), ("return 1", 5_000, 65)]


def test_refunds_have_their_own_sum_and_the_fees_that_go_back(api, flask_json, at, of, merchant, later):
    allow(fees=PROPORTIONAL)
    at("2026-05-02 10:00:00")
    order_no = completed(api)  # 100.00, fee 0.60
    refunded(api, order_no, "40.00")
    later(61)
    refunded(api, order_no, "20.00", "silent")  # reserved only
    refunded(api, completed(api), "10.00", "fail")
    found = of(MAY)
    assert moves(found) == [("credit", 10_000, -60), ("refund 1", -4_000, 24), ("credit", 10_000, -60)]
    assert found.sums == statement.Sums(deposits=20_000, refunds=-4_000, fees=-120 + 24)
    assert (found.refunds, found.refunds.deducted) == (statement.Refunds(1, 4_000, 24), 3_976)
    assert found.held == 1_988
    assert found.closing == found.opening + found.sums.change
    month_statements.check(merchant)
    shown = flask_json("merchant", "statement", "demo", "2026-05")
    names = ("refunds", "refund_count", "refund_fees", "refund_deducted", "closing")
    assert [shown[name] for name in names] == ["-40.00", 1, "0.24", "39.76", "10159.04"]


def test_a_refund_that_came_back_takes_the_returned_fee_again(api, flask, at, of, merchant, later):
    allow(fees=PROPORTIONAL)
    at("2026-05-02 10:00:00")
    refund_no = refunded(api, completed(api), "40.00")
    refund = Refund.find(refund_no)
    settle.apply_report(refund, Report(State.FAILED))
    flask("order", "settle", refund.order.order_no, "--cancel", typed="y\n")
    found = of(MAY)
    assert moves(found) == [("credit", 10_000, -60), ("refund 1", -4_000, 24), ("refund_return 1", 4_000, -24)]
    assert (found.sums.refunds, found.refunds) == (0, statement.Refunds())
    month_statements.check(merchant)


def test_a_refund_before_the_credit_is_in_the_statement_of_the_credit(api, flask, at, of, merchant, due):
    allow(fees=PROPORTIONAL)
    flask("channel", "set", 2, "--settlement-days", 1)
    at("2026-05-31 10:00:00")
    order_no = completed(api)
    refunded(api, order_no, "40.00")
    refunded(api, completed(api))  # whole: never credited
    assert moves(of(MAY)) == []
    at("2026-06-01 23:00:00")
    due.orders()
    due.orders()
    assert api.status(order_no) == "completed"
    assert moves(of(JUNE)) == [("credit", 10_000, -60), ("refund 1", -4_000, 24)]
    assert of(JUNE).refunds == statement.Refunds(1, 4_000, 24)
    month_statements.check(merchant)


def test_an_adjustment_of_an_order_is_an_adjustment(api, flask, at, of, merchant):
    at("2026-05-02 10:00:00")
    order_no = completed(api)
    flask("ledger", "adjust", "demo", "-5.00", "--reason", "complaint", "--order", order_no)
    assert moves(of(MAY)) == [("credit", 10_000, -60), ("adjustment 1", -500, 0)]
    assert of(MAY).sums.adjustments == -500
    month_statements.check(merchant)


def test_a_movement_belongs_to_the_month_of_its_completion_in_china(api, at, of, merchant):
    at("2026-05-31 23:59:59")
    order_no = api.buy().data["order_no"]
    completed(api)
    at("2026-06-01 00:00:00")
    api.play(order_no, "success")
    may, june = of(MAY), of(JUNE)
    assert (len(moves(may)), [line.order_no for line in statement.lines(june)]) == (1, [order_no])
    assert may.closing == june.opening
    assert (may.is_over, june.is_over) == (True, False)
    month_statements.check(merchant)


def test_a_month_without_movements_has_its_balances(of, at, api):
    at("2026-08-02 10:00:00")
    found = of(JUNE)
    assert (found.opening, found.closing, found.days, moves(found)) == (found.closing, found.opening, [], [])


def test_only_a_month_and_a_merchant_are_accepted(flask):
    for text in ("2026-13", "2026-5", "may", "", "2026-05-01", "２０２６-05", "0000-01"):
        refused = flask("merchant", "statement", "demo", text, fails=True)
        assert "Enter a month, such as 2026-05." in refused.stderr, text
    assert flask("merchant", "statement", "nobody", "2026-05", fails=True).exit_code == 1


def test_all_months_of_many_orders_agree_with_the_ledger_however_far_the_sums_are(api, monkeypatch):
    seeded_orders.seed_orders(60)
    merchants = list(Merchant.select())
    LedgerDay.delete().execute()
    before = [month_statements.statements_of(each) for each in merchants]
    monkeypatch.setattr(day_sums, "AT_ONCE", 7)
    monkeypatch.setattr(statement, "AT_ONCE", 5)
    day_sums.catch_up(least=30)
    added = LedgerDay.select(fn.SUM(LedgerDay.entries)).scalar()
    for each in merchants:
        month_statements.check(each)
    day_sums.complete()
    day_sums.complete()
    assert 0 < added < LedgerDay.select(fn.SUM(LedgerDay.entries)).scalar()
    for each in merchants:
        month_statements.check(each)
    assert [month_statements.statements_of(each) for each in merchants] == before


def test_the_sums_of_two_processes_are_added_once(api, merchant):
    completed(api)
    account = statement._accounts(merchant)[0]
    done = day_sums.reached(account)
    sums = day_sums.merged(day_sums._summed(account, done, account.entries))
    assert day_sums._add(account, done, sums)
    assert not day_sums._add(account, done, sums)
    assert day_sums.reached(account) == account.entries
    month_statements.check(merchant)


def test_a_statement_waits_for_the_sums_of_many_entries(api, merchant, monkeypatch):
    completed(api)
    monkeypatch.setattr(day_sums, "MOST", 0)
    with pytest.raises(OperatorError, match="being prepared"):
        statement.of(merchant, statement.this_month())
    day_sums.complete()
    month_statements.check(merchant)


@pytest.mark.breaks_the_ledger
def test_the_integrity_check_finds_a_changed_sum(api, merchant):
    completed(api)
    day_sums.complete()
    assert not {name: lines for name, lines in integrity.verify() if lines}
    LedgerDay.update(amount=LedgerDay.amount + 1).where(LedgerDay.kind == "credit").execute()
    (lines,) = [lines for _, lines in integrity.verify() if lines]
    assert lines == ["account available 1: its sums by day are 1009941 fen, but its first 2 entries sum to 1009940"]
