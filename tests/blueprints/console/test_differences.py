"""The life of a difference between a statement and the orders: checked, expected, open, explained, closed."""

import io
from datetime import datetime, timedelta, timezone

import pytest

from models.tables.bill import StatementDifference
from services.statements import differences
from tests.blueprints.console.acting import token_of
from tests.support import completed

CHINA = timezone(timedelta(hours=8))
HEADER = "order_no,amount,fee,status,time,reference"


@pytest.fixture(autouse=True)
def clock(time_machine):
    """`clock("2026-05-01 23:55:00")` sets the time in China; each test begins at noon of that day."""

    def at(text):
        time_machine.move_to(datetime.fromisoformat(text).replace(tzinfo=CHINA))

    at("2026-05-01 12:00:00")
    return at


def line(order_no, amount="100.00", fee="0.00", status="paid", time="2026-05-01 12:00:00", reference=""):
    return f"{order_no},{amount},{fee},{status},{time},{reference}"


@pytest.fixture
def upload(sign_in):
    """`upload(line(...), ..., day="2026-05-01")` compares a statement of that day."""

    def post(*lines, day="2026-05-01"):
        console = sign_in("demo")  # a session ends before the next day
        content = "\n".join((HEADER, *lines, "")).encode()
        data = {"csrf_token": token_of(console), "channel": 2, "kind": 0, "since": day, "until": day}
        data["file"] = (io.BytesIO(content), "statement.csv")
        answer = console.post("/console/reconciliation/upload", data=data, content_type="multipart/form-data")
        assert answer.status_code == 303, answer.text

    return post


@pytest.fixture
def states():
    """`states()`: the state and the order number of each kept difference, after the due ones were checked."""

    def read():
        differences.check_due()
        return [(row.state, differences.facts_of(row).order_no) for row in StatementDifference.select()]

    return read


def test_a_payment_that_the_channel_confirms_when_asked_closes_its_difference(upload, states, api):
    paid = api.buy().data["order_no"]
    api.play(paid, "silent")  # the channel has the money, and sent no notice
    upload(line(paid))
    assert StatementDifference.get().state == "checking"
    assert states() == [("closed", paid)]
    assert api.status(paid) == "completed"


def test_a_difference_that_remains_after_the_check_is_open_until_a_notice_settles_it(upload, states, api, clock):
    order_no = api.buy().data["order_no"]
    upload(line(order_no))
    assert states() == [("open", order_no)]
    clock("2026-05-01 12:05:00")
    api.notice(order_no, 10_000)
    clock("2026-05-01 12:11:00")
    assert states() == [("closed", order_no)]


def test_money_booked_just_after_midnight_is_found_in_the_statement_of_the_day_before(upload, states, api, clock):
    clock("2026-05-02 00:03:00")
    late = completed(api)
    upload(line(late, time="2026-05-01 23:58:00"))
    upload(line("20260502" + "0" * 15 + "9", time="2026-05-02 09:00:00"), day="2026-05-02")
    assert states() == [("open", "20260502" + "0" * 15 + "9")]


def test_money_at_the_edge_of_a_day_is_expected_in_the_next_statement_which_settles_it(upload, states, api, clock):
    clock("2026-05-01 23:58:00")
    late = completed(api)
    clock("2026-05-02 10:15:00")
    upload(day="2026-05-01")
    assert states() == [("expected", late)]
    clock("2026-05-03 10:15:00")
    upload(line(late, time="2026-05-02 00:02:00"), day="2026-05-02")
    assert states() == [("closed", late)]


def test_money_at_the_edge_of_a_day_is_open_when_the_next_statement_does_not_come(upload, states, api, clock):
    clock("2026-05-01 23:58:00")
    late = completed(api)
    clock("2026-05-02 10:15:00")
    upload(day="2026-05-01")
    assert states() == [("expected", late)]
    clock("2026-05-03 18:00:00")
    assert states() == [("open", late)]


def test_money_booked_days_after_it_was_paid_is_missing_in_no_statement(upload, states, api, clock):
    order_no = api.buy().data["order_no"]
    clock("2026-05-03 09:00:00")
    api.play(order_no, "success")
    upload(line(order_no, reference=f"SB{order_no}"))
    upload(day="2026-05-03")
    assert states() == []


def test_an_explained_difference_stays_explained_until_its_facts_change(upload, states, api):
    order_no = completed(api)
    upload(line(order_no, "99.00"))
    assert states() == [("open", order_no)]
    row = StatementDifference.get()
    assert differences.explain([row], "the channel corrects it on Monday", "owner") == 1
    upload(line(order_no, "99.00"), "")
    assert states() == [("explained", order_no)]
    upload(line(order_no, "98.00"))
    assert states() == [("open", order_no)]


def test_lines_without_a_number_of_this_service_are_one_difference(upload, states):
    upload(line("SHOP-1", "5.00"), line("SHOP-2", "8.50"), line("SHOP-2", "1.00", status="refunded"))
    (row,) = StatementDifference.select()
    assert (row.state, row.fen, [note.code for note in differences.facts_of(row).notes]) == ("open", 1_250, ["others"])


def test_two_lines_of_one_unknown_order_stay_two_differences(upload, states):
    number = "20260501" + "0" * 15 + "9"
    upload(line(number, "5.00"), line(number, "7.00"))
    assert states() == [("open", number), ("open", number)]
    upload(line(number, "5.00"), line(number, "7.00"), "")
    assert states() == [("open", number), ("open", number)]


def test_another_use_of_the_account_is_explained_once(upload, states, clock):
    upload(line("SHOP-1", "5.00"))
    differences.explain([StatementDifference.get()], "our shop in Hangzhou", "owner")
    upload(line("SHOP-2", "6.00", time="2026-05-02 12:00:00"), day="2026-05-02")
    assert [(row.state, row.note) for row in StatementDifference.select()] == [
        ("explained", "our shop in Hangzhou"),
        ("explained", "our shop in Hangzhou"),
    ]
    assert states() == [("explained", ""), ("explained", "")]


def test_a_line_that_a_statement_has_twice_is_named(upload, states, api):
    order_no = completed(api)
    twice = line(order_no, reference=f"SB{order_no}")
    upload(twice, twice)
    assert states() == [("open", order_no)]
    (note,) = differences.facts_of(StatementDifference.get()).notes
    assert str(note) == "the statement has the same line twice: it is also line 2"
