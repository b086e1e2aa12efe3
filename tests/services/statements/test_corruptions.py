"""Bills with one thing wrong: each is named as what it is, with the state that it reaches and its next step.

The day before the bill has three deposits, one of them refunded in part. Nothing but the corruption is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from html import unescape
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from models.tables.bill import UNSETTLED, Bill, StatementDifference
from models.tables.order import Order
from services.sandbox import seeding
from tests.blueprints.console.acting import signed_in
from tests.refunds import allow
from tests.support import words
from tests.upstreams.accounts import CHINA, AlipayAccount, WechatAccount
from tests.upstreams.bills import Row

DAY = date(2026, 5, 1)
BOTH, WECHAT, ALIPAY = (WechatAccount, AlipayAccount), (WechatAccount,), (AlipayAccount,)


class Named(NamedTuple):
    """A difference: its state after the check at the channel, kind, codes of remarks and order, and its next step."""

    state: str
    kind: str
    codes: str
    order: str
    step: str = ""


Corrupt = Callable[[Any], "list[Row] | None"]
CASES: list[tuple[Corrupt, tuple[Any, ...], tuple[Named, ...], tuple[Named, ...] | None]] = []


def named(*expected: Named, at: tuple[Any, ...] = WECHAT, then: tuple[Named, ...] | None = None) -> Any:
    """Declare what is reported on the next morning and, if that changes, on the one after it."""

    def declare(corrupt: Corrupt) -> Corrupt:
        CASES.append((corrupt, at, expected, then))
        return corrupt

    return declare


class Day:
    """One day of an account, and the orders of it by name: `rows` are the lines of its bill, as they should be."""

    def __init__(self, account: Any, fixtures: Any):
        self.account, self.fixtures = account, fixtures
        self.orders: dict[str, str] = {}
        self.refund_no = ""
        self.more: dict[date, Callable[[list[Row]], list[Row]]] = {}  # changes of later bills
        self.at("12:00")
        self.sells("first", "100.00")
        self.at("12:10")
        self.sells("second", "50.00")
        self.at("12:20")
        self.refund_no = self.refunds("second", "20.00")
        self.at("12:30")
        self.sells("third", "200.00")

    def at(self, text: str, day: date = DAY) -> None:
        """Set the time."""
        hour, minute = map(int, text.split(":"))
        self.fixtures.clock.move_to(datetime(day.year, day.month, day.day, hour, minute, tzinfo=CHINA))

    def places(self, name: str, amount: str = "80.00") -> str:
        """The merchant places a deposit, which is not paid."""
        answer = self.fixtures.api.buy(amount, self.account.channel, paychannel_paymethod=self.account.method)
        self.orders[name] = answer.data["order_no"]
        return self.orders[name]

    def sells(self, name: str, amount: str) -> str:
        """A payer pays a new deposit, and the service gets the notice."""
        order_no = self.places(name, amount)
        self.account.receives(order_no)
        assert self.account.notice(order_no).to(self.fixtures.api.send, order_no).status in (200, 204)
        return order_no

    def sells_the_day_before(self, name: str) -> Row:
        """A payer pays a deposit on the day before; return its line."""
        self.at("12:00", DAY - timedelta(days=1))
        self.sells(name, "90.00")
        return self.row(name)

    def refunds(self, name: str, amount: str, *, paid: bool = True) -> str:
        """The merchant requests a refund, which the channel completes or closes."""
        order_no = self.orders[name]
        fields = {"order_no": order_no, "cny_amount": amount, "merchant_refund_no": f"M-{name}"}
        refund_no = str(self.fixtures.api.call("createRefund", fields).data["refund_no"])
        self.fixtures.due.orders()
        if self.account.driver == "wechatpay":
            self.account.ends(refund_no, paid)
            sent = self.account.notice_of_refund(refund_no).to(self.fixtures.api.send, order_no)
            assert sent.status == 204
        return refund_no

    @property
    def rows(self) -> list[Row]:
        """The lines of its bill."""
        return self.account.rows(DAY)

    def row(self, name: str) -> Row:
        """The line of a payment."""
        return self.account.came[self.orders[name]]

    @property
    def back(self) -> Row:
        """The line of the refund."""
        return next(row for row in self.rows if row.refund_no == self.refund_no)

    def without(self, *rows: Row) -> list[Row]:
        """Its bill without some lines."""
        return [row for row in self.rows if row not in rows]

    def with_other(self, row: Row, **facts: Any) -> list[Row]:
        """Its bill with another line instead of one."""
        return [replace(row, **facts) if each == row else each for each in self.rows]


# --- lines that are missing, double, or in the bill of another day


@named(Named("open", "missing_there", "moved", "first", "Ask the channel."), at=BOTH)
def a_payment_is_missing(day):
    return day.without(day.row("first"))


@named(Named("open", "missing_there", "refunded", "second", "Check the order and its refunds"), at=BOTH)
def a_refund_is_missing(day):
    return day.without(day.back)


@named(Named("open", "amount", "repeated", "first", "whether it counted the money twice"), at=BOTH)
def a_payment_is_there_twice(day):
    return [*day.rows, day.row("first")]


@named(Named("open", "amount", "repeated", "second", "whether it counted the money twice"), at=BOTH)
def a_refund_is_there_twice(day):
    return [*day.rows, day.back]


@named(
    Named("expected", "missing_there", "moved at_edge", "late", "If the statement of 2026-05-02 has it"),
    then=(Named("closed", "missing_there", "moved at_edge", "late"),),
)
def a_payment_just_before_midnight_is_in_the_next_bill(day):
    day.at("23:55")
    day.sells("late", "30.00")
    late = day.row("late")
    day.more[DAY + timedelta(days=1)] = lambda rows: [replace(late, time="2026-05-02 00:03:00"), *rows]
    return day.without(late)


@named(
    Named("expected", "missing_there", "moved at_edge", "late", "If the statement of 2026-05-02 has it"),
    then=(Named("open", "missing_there", "moved at_edge", "late", "Otherwise ask the channel"),),
)
def a_payment_just_before_midnight_is_in_no_bill(day):
    day.at("23:55")
    day.sells("late", "30.00")
    return day.without(day.row("late"))


@named(
    Named("expected", "missing_there", "refunded at_edge", "third", "If the statement of 2026-05-02 has it"),
    then=(Named("closed", "missing_there", "refunded at_edge", "third"),),
)
def a_refund_just_before_midnight_is_in_the_next_bill(day):
    day.at("23:55")
    number = day.refunds("third", "40.00")
    back = day.account.backs[number].row
    moved = replace(back, time="2026-05-02 00:03:00", state="SUCCESS")
    day.more[DAY + timedelta(days=1)] = lambda rows: [moved, *rows]
    return [row for row in day.rows if row.refund_no != number]


@named(
    Named("open", "missing_there", "moved", "first", "Ask the channel."),
    then=(Named("closed", "missing_there", "moved", "first"),),
)
def a_payment_is_in_the_bill_of_the_next_day(day):
    first = day.row("first")
    day.more[DAY + timedelta(days=1)] = lambda rows: [first, *rows]
    return day.without(first)


@named(
    *(Named("open", "missing_there", "moved", name) for name in ("first", "second", "third")),
    Named("open", "missing_there", "refunded", "second"),
)
def there_are_only_totals(day):
    return []


@named(
    *(Named("open", "missing_there", "moved", name) for name in ("first", "second", "third")),
    Named("open", "missing_there", "refunded", "second"),
)
def it_is_the_bill_of_the_day_before(day):
    return [day.sells_the_day_before("old")]


@named(
    *(Named("open", "missing_there", "moved", name) for name in ("first", "second", "third")),
    Named("open", "missing_there", "refunded", "second"),
    Named("open", "missing_here", "others", ""),
)
def it_is_the_bill_of_another_account(day):
    return [Row("SHOP-1", "4200009", 1_000, f"{DAY} 09:00:00", fee=6)]


# --- other amounts, fees and states


@named(Named("open", "amount", "", "first", "Check the order"), at=BOTH)
def a_payment_has_another_amount(day):
    return day.with_other(day.row("first"), amount=9_900)


@named(Named("open", "amount", "refund_amount", "second", "Check the order and its refunds"), at=BOTH)
def a_refund_has_another_amount(day):
    return day.with_other(day.back, amount=2_500)


@named(Named("open", "fee", "", "first", "correct its rates for future orders"), at=BOTH)
def a_payment_has_another_fee(day):
    return day.with_other(day.row("first"), fee=61)


@named(Named("open", "fee", "", "first"), Named("open", "fee", "", "third"))
def two_payments_have_other_fees(day):
    rows = day.with_other(day.row("first"), fee=38)
    return [replace(row, fee=0) if row == day.row("third") else row for row in rows]


@named(Named("open", "fee", "rate", "", "Compare the channel's rates with your contract"))
def all_payments_have_other_fees(day):
    for at in range(9):
        day.at(f"13:{at:02d}")
        day.sells(f"more {at}", "10.00")
    return [replace(row, fee=0 if row.refund_no else row.amount // 100) for row in day.rows]


@named(Named("open", "status", "failed_booked", "first", "Check the order"))
def a_payment_was_revoked(day):
    return day.with_other(day.row("first"), state="REVOKED")


# --- payments that this service does not have


@named(Named("closed", "status", "not_booked", "silent"), at=BOTH)
def the_notice_of_a_payment_was_lost(day):
    day.at("14:00")
    day.account.receives(day.places("silent"))
    return None


@named(Named("open", "status", "not_booked", "silent", "record the payment"))
def a_payment_that_the_channel_denies(day):
    day.at("14:00")
    number = day.places("silent")
    return [*day.rows, Row(number, "4200009", 8_000, f"{DAY} 14:01:00", fee=48)]


@named(Named("open", "status", "not_booked", "left", "Resolve the exception of the order"), at=BOTH)
def a_payment_of_a_cancelled_order(day):
    day.at("14:00")
    number = day.places("left")
    day.at("15:00")
    day.fixtures.due.orders()
    assert day.fixtures.api.status(number) == "cancelled"
    day.account.receives(number)
    return None


@named(Named("open", "missing_here", "", "2" * 24, "After a restore, the backup may lack the order."))
def a_payment_of_an_unknown_order(day):
    return [*day.rows, Row("2" * 24, "4200009", 8_000, f"{DAY} 14:00:00", fee=48)]


@named(Named("open", "missing_here", "others", "", "If the account has another use, explain the difference."), at=BOTH)
def two_payments_with_foreign_numbers(day):
    return [*day.rows, *(Row(f"SHOP-{at}", f"420000{at}", 1_000, f"{DAY} 09:00:00", fee=6) for at in (1, 2))]


@named(Named("open", "missing_here", "other_channel", "elsewhere", "One of them is wrong."))
def a_payment_of_an_order_of_another_channel(day):
    day.orders["elsewhere"] = day.fixtures.api.buy("80.00").data["order_no"]
    return [*day.rows, Row(day.orders["elsewhere"], "4200009", 8_000, f"{DAY} 14:00:00", fee=48)]


@named(Named("open", "amount", "paid_twice", "first", "Check the order"), at=BOTH)
def an_order_was_paid_twice(day):
    return [*day.rows, replace(day.row("first"), reference="4200009", time=f"{DAY} 12:02:00")]


# --- refunds that this service does not have


@named(Named("open", "status", "refund_open", "first", "Resolve the exception of the order"), at=BOTH)
def a_payment_was_refunded_in_the_console(day):
    day.at("15:00")
    day.account.gives_back(day.orders["first"], 10_000, "CONSOLE-1")
    return None


@named(Named("open", "status", "refund_open", "first", "Resolve the exception of the order"), at=BOTH)
def a_part_of_a_payment_was_refunded_in_the_console(day):
    day.at("15:00")
    day.account.gives_back(day.orders["first"], 3_000, "CONSOLE-1")
    return None


@named(Named("open", "status", "refund_open", "first", "Resolve the exception of the order"), at=BOTH)
def a_payment_was_refunded_twice_in_the_console(day):
    day.at("15:00")
    day.account.gives_back(day.orders["first"], 3_000, "CONSOLE-1")
    day.at("16:00")
    day.account.gives_back(day.orders["first"], 2_000, "CONSOLE-2")
    return None


@named(Named("open", "status", "refund_open", "second", "Resolve the exception of the order"))
def the_rest_of_a_payment_was_refunded_in_the_console(day):
    day.at("15:00")
    day.account.gives_back(day.orders["second"], 3_000, "CONSOLE-1")
    return None


@named(Named("open", "status", "refund_cancelled", "third", "Check the order and its refunds"))
def a_refund_that_was_closed_is_completed_in_the_bill(day):
    day.at("15:00")
    number = day.refunds("third", "40.00", paid=False)
    return [replace(row, state="SUCCESS") if row.refund_no == number else row for row in day.rows]


@named()
def a_refund_that_was_closed_is_failed_in_the_bill(day):
    day.at("15:00")
    day.refunds("third", "40.00", paid=False)
    return None


@named(Named("open", "missing_here", "", "2" * 24, "After a restore, the backup may lack the order."))
def a_refund_of_an_unknown_order(day):
    return [*day.rows, replace(day.back, order_no="2" * 24, reference="4200009", refund_no="X-1")]


@named(Named("open", "status", "back_booked", "first", "Resolve the exception of the order"))
def a_refund_in_the_console_is_under_way_in_the_bill(day):
    """The line proves no amount, so the exception has none."""
    day.at("15:00")
    day.account.gives_back(day.orders["first"], 3_000, "CONSOLE-1")
    return [replace(row, state="PROCESSING") if row.refund_no == "CONSOLE-1" else row for row in day.rows]


@pytest.fixture
def day(request, opened, api, due, time_machine):
    allow()
    time_machine.move_to(datetime(2026, 5, 1, 11, tzinfo=CHINA))
    return Day(opened(request.param), SimpleNamespace(api=api, due=due, clock=time_machine))


def step_of(console, row):
    """The sentence about the next step on the page of a difference; "" once it is settled."""
    page = words(unescape(console.get(f"/console/difference/{row.id}").text))
    return page.partition("<dt>Next step</dt><dd>")[2].partition("</dd>")[0]


def kept(app, found, day, expected):
    """Fail unless these differences are kept, and no others."""
    names = {number: name for name, number in day.orders.items()}
    assert [(state, kind, " ".join(codes), names.get(number, number)) for state, kind, codes, number in found()] == [
        tuple(each)[:4] for each in expected
    ]
    console, rows = signed_in(app, "demo"), list(StatementDifference.select().order_by(StatementDifference.id))
    for row, each in zip(rows, expected, strict=True):
        step = step_of(console, row)
        assert each.step in step
        assert bool(step) is (row.state in UNSETTLED)


@pytest.mark.parametrize(
    ("corrupt", "day", "expected", "then"),
    [
        pytest.param(corrupt, kind, expected, then, id=f"{corrupt.__name__}-{kind.driver}")
        for corrupt, kinds, expected, then in CASES
        for kind in kinds
    ],
    indirect=["day"],
)
def test_it_is_named_as_what_it_is(corrupt, day, expected, then, app, found):
    seeding.seed_operators()
    rows = corrupt(day)
    morning = DAY + timedelta(days=1)
    day.at("10:15", morning)
    day.account.publish(DAY, rows)
    kept(app, found, day, expected)
    assert [bill.state for bill in Bill.select()] == ["compared"]
    if then is not None:
        change = day.more.get(morning, list)
        day.account.publish(morning, change(day.account.rows(morning)))
        day.at("18:00", morning + timedelta(days=1))
        kept(app, found, day, then)
    assert Order.select().count() == len(day.orders)


# --- files that cannot be read

TORN = {
    "cut within a line": (lambda raw: raw[: raw.index("总交易单数".encode()) - 30], "the line ends before it"),
    "an unknown status": (lambda raw: raw.replace(b"`SUCCESS", b"`MAYBE", 1), "'MAYBE' is none of"),
    "another currency": (lambda raw: raw.replace(b"`CNY", b"`USD", 1), "another currency than the yuan"),
    "no amount": (lambda raw: raw.replace(b"`100.00", b"`1e2", 1), "not an amount in yuan"),
    "a damaged number": (lambda raw: raw.replace(b"`2026", b"`\xef\xbf\xbd026", 1), "no time such as"),
    "another file": (lambda _: "商户号,余额\r\n1,2\r\n".encode(), "has no line with the columns"),
    "nothing": (lambda _: b"", "no line"),
}


@pytest.mark.parametrize("day", WECHAT, indirect=True, ids=["wechatpay"])
@pytest.mark.parametrize("torn", TORN)
def test_a_file_that_cannot_be_read_compares_nothing_and_is_fetched_again(torn, day, found):
    corrupt, problem = TORN[torn]
    morning = DAY + timedelta(days=1)
    day.at("10:15", morning)
    day.account.publish(DAY)
    whole = day.account.bills[str(DAY)]
    day.account.bills[str(DAY)] = corrupt(whole)
    assert found() == []
    assert (Bill.get().state, Bill.get().reconciliation) == ("waiting", None)
    assert problem in Bill.get().problem
    day.account.bills[str(DAY)] = whole
    day.at("10:45", morning)
    assert found() == []
    assert (Bill.get().state, Bill.get().problem) == ("compared", "")
