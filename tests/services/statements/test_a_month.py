"""Random days of two accounts at WeChat Pay and Alipay, whose own bills and balances agree with the books to the fen.

Payers pay at once, late, twice notified or unnoticed, near midnight, another amount or not at all. Merchants refund,
the operator refunds in the channel's console, credits and refunds exceptions and pays out. Every morning the job
fetches the bills, sometimes after hours.
"""

from __future__ import annotations

import heapq
import os
import random
from collections.abc import Callable
from datetime import date, datetime, timedelta
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from models.tables.account_balance import AccountBalance
from models.tables.bill import CLOSED, COMPARED, EXPECTED, NONE, OPEN, Bill, StatementDifference
from models.tables.channel import Channel
from models.tables.ledger import CLEARING, COMMISSION, LedgerAccount
from models.tables.order import (
    BUY,
    CANCELLED,
    COMPLETED,
    CONFIRMED,
    LATE_PAYMENT,
    REVERSED,
    WRONG_AMOUNT,
    History,
    Order,
    PaymentException,
)
from models.tables.refund import BALANCE, EXCEPTION, UNCREDITED, Refund, RefundHistory
from services.ledger import earnings, integrity
from services.statements import account_balances, bills, differences
from tests import earnings as plain_sums
from tests.refunds import allow
from tests.upstreams.accounts import CHINA, AlipayAccount, WechatAccount

FIRST = date(2026, 5, 1)
MINUTE, HOUR, DAY = 60, 3_600, 86_400
EXPIRED = 16 * MINUTE  # an unpaid order is cancelled by then


@pytest.fixture
def settings_of_app() -> dict[str, Any]:
    """No limit of requests."""
    return {"requests_per_second": 10**6}


class Month:
    """Random life of some days with so many orders each; the same `seed` is the same life."""

    def __init__(self, seed: int, days: int, orders: int, accounts: list[Any], world: Any):
        self.random, self.days, self.orders, self.accounts = random.Random(seed), days, orders, accounts
        self.api, self.commands, self.due, self.clock = world.api, world.commands, world.due, world.clock
        self.begin = int(datetime(FIRST.year, FIRST.month, FIRST.day, tzinfo=CHINA).timestamp())
        self.now = self.begin
        self.agenda: list[tuple[int, int, Callable[[], Any]]] = []
        self.places = count()
        self.begun: set[str] = set()  # refunds that the channels have
        self.corrected: set[str] = set()  # orders whose refund in the console was taken from the merchant

    # --- time

    def after(self, seconds: int, event: Callable[[], Any]) -> None:
        """Let something happen later."""
        self.at(self.now + seconds, event)

    def later(self, most: int, event: Callable[[], Any]) -> None:
        """Let something begin some hours or days later, but not after the last day."""
        when = self.now + self.random.randrange(HOUR, most)
        if when < self.day(self.days):
            self.at(when, event)

    def at(self, when: int, event: Callable[[], Any]) -> None:
        """Let something happen at a time."""
        heapq.heappush(self.agenda, (when, next(self.places), event))

    def day(self, number: int) -> int:
        """The time at which a day begins."""
        return self.begin + number * DAY

    def set(self, when: int) -> None:
        """Set the clock."""
        self.now = when
        self.clock.move_to(datetime.fromtimestamp(when, CHINA), tick=False)

    def live(self) -> None:
        """Live all days, and as many mornings after them as everything takes to end."""
        for number in range(self.days):
            for _ in range(self.orders):
                self.at(self.day(number) + self._second(), self.buy)
        for number in range(self.days + 9):
            excepted = PaymentException.select().where(PaymentException.resolution.is_null())
            unsettled = StatementDifference.select().where(StatementDifference.state != CLOSED)
            if number >= self.days + 3 and not (excepted.exists() or unsettled.exists()):
                break
            for at in range(15 * MINUTE, DAY, HOUR // 2):
                self.at(self.day(number) + at, self.work)
            if number:
                self.at(self.day(number) + 9 * HOUR + MINUTE, self.settle)
                self.morning(number)
            while self.agenda and self.agenda[0][0] < self.day(number + 1):
                when, _, event = heapq.heappop(self.agenda)
                self.set(max(when, self.now))
                event()

    def _second(self) -> int:
        """A second of the day: each fifth is close to midnight."""
        near = self.random.random() < 0.2
        return self.random.randrange(DAY - 20 * MINUTE, DAY) if near else self.random.randrange(DAY)

    def chance(self, share: float) -> bool:
        """Whether something happens this time."""
        return self.random.random() < share

    # --- people

    def buy(self) -> None:
        """A payer begins to pay."""
        account, amount = self.random.choice(self.accounts), self.random.randrange(100, 100_000)
        if account.driver == "alipay" and self.chance(0.08):
            self.pay_out(account)
        order_no = self.place(account, amount)
        if self.chance(0.08):
            return
        wait = self.random.randrange(5, 300)
        if self.chance(0.04):
            wait = EXPIRED + self.random.randrange(HOUR)
        fen = amount + self.random.choice([-50, 700]) if self.chance(0.03) and amount > 200 else None

        def pay() -> None:
            account.receives(order_no, fen)
            self.tell(account, order_no)
            if self.chance(0.15):
                self.later(2 * DAY, partial(self.refund, account, order_no))
            if self.chance(0.03):
                self.later(DAY, partial(self.refund_in_console, account, order_no))

        self.after(wait, pay)

    def place(self, account: Any, fen: int) -> str:
        """The merchant places a deposit."""
        money = f"{fen // 100}.{fen % 100:02d}"
        answer = self.api.buy(money, account.channel, paychannel_paymethod=account.method)
        assert answer.code == 1, answer
        return str(answer.data["order_no"])

    def tell(self, account: Any, order_no: str) -> None:
        """The channel sends its notice: once, twice, hours later, or never."""

        def send() -> None:
            assert account.notice(order_no).to(self.api.send, order_no).status in (200, 204)

        how = self.random.random()
        if how < 0.85:
            send()
        if how < 0.1:
            self.after(self.random.randrange(MINUTE, DAY), send)
        elif 0.85 <= how < 0.9:
            self.after(self.random.randrange(5 * MINUTE, 12 * HOUR), send)

    def left(self, account: Any, order_no: str) -> int:
        """What of a payment was not refunded."""
        backs = [each for each in account.backs.values() if each.row.order_no == order_no and each.end != "FAIL"]
        return int(account.came[order_no].amount) - sum(each.row.amount for each in backs)

    def refund(self, account: Any, order_no: str) -> None:
        """The merchant refunds a part of a payment or all of it."""
        left = self.left(account, order_no)
        if not left:
            return
        fen = left if self.chance(0.5) else self.random.randrange(1, left + 1)
        fields = {"order_no": order_no, "cny_amount": f"{fen // 100}.{fen % 100:02d}"}
        answer = self.api.call("createRefund", fields | {"merchant_refund_no": f"M-{next(self.places)}"})
        if answer.code != 1:  # its order has an exception, or was not credited
            return
        self.work()
        number = str(answer.data["refund_no"])
        if account.driver == "alipay" and number in account.backs and self.chance(0.5):
            account.notice_of_refund(number).to(self.api.send, order_no)
        if self.chance(0.2):
            self.later(6 * HOUR, partial(self.refund, account, order_no))

    def work(self) -> None:
        """Do what is due, and let WeChat Pay begin the refunds that were requested."""
        self.due.orders()
        bills.run()
        for account in self.accounts:
            for number in [each for each in account.backs if each not in self.begun]:
                self.begun.add(number)
                if not account.backs[number].end:
                    self.after(self.random.choice([5 * MINUTE, HOUR, 30 * HOUR]), partial(self.end, account, number))

    def end(self, account: Any, refund_no: str) -> None:
        """WeChat Pay ends a refund, mostly with a notice."""
        # A bill with a refund that is not completed is never corrected, so one that fails does so on its day.
        is_of_today = account.backs[refund_no].row.time[:10] == f"{datetime.now(CHINA):%Y-%m-%d}"
        account.ends(refund_no, not is_of_today or self.chance(0.7))
        if self.chance(0.8):
            order_no = account.backs[refund_no].row.order_no
            account.notice_of_refund(refund_no).to(self.api.send, order_no)

    def refund_in_console(self, account: Any, order_no: str) -> None:
        """The operator refunds in the channel's console, which sends no notice."""
        left = self.left(account, order_no)
        if left and Order.find(order_no).status in (CONFIRMED, COMPLETED):
            fen = left if self.chance(0.5) else self.random.randrange(1, left + 1)
            account.gives_back(order_no, fen, f"CONSOLE-{len(account.backs)}")

    def pay_out(self, account: Any) -> None:
        """The merchant withdraws money."""
        answer = self.api.sell("50.00", account.channel, paychannel_paymethod=account.method)
        assert answer.code == 1, answer

    def settle(self) -> None:
        """The operator decides about all exceptions at nine."""
        still_open = PaymentException.select().where(PaymentException.resolution.is_null())
        for exception in list(still_open.order_by(PaymentException.id)):
            order, ways = exception.order, ["credit", "refund"]
            self.random.shuffle(ways)
            if exception.kind == REVERSED:
                ways = ["credit"] if order.status == CONFIRMED else ["refund"]
            elif not exception.amount:
                continue
            for way in ways:
                if self.command("order", "resolve", order.order_no, f"--{way}", "--exception", exception.id):
                    break
            else:
                continue
            if exception.kind == REVERSED and (fen := self.returned(order.order_no)):
                money = f"-{fen // 100}.{fen % 100:02d}"
                self.corrected.add(order.order_no)
                about = ("--channel", order.channel_id, "--order", order.order_no, "--reason", "returned")
                assert self.command("ledger", "adjust", "demo", money, *about)

    def returned(self, order_no: str) -> int:
        """What the operator refunded of an order in the console and has not taken from the merchant yet."""
        backs = [back.row for account in self.accounts for number, back in account.backs.items() if "CONSOLE" in number]
        return sum(row.amount for row in backs if row.order_no == order_no and order_no not in self.corrected)

    def command(self, *arguments: Any) -> bool:
        """Run a command; return whether it was accepted."""
        return bool(self.commands.invoke(args=[str(each) for each in arguments]).exit_code == 0)

    # --- the mornings

    def morning(self, number: int) -> None:
        """Fetch the bills of the day before, some of which come late, and compare all with the books."""
        day, begins = FIRST + timedelta(days=number - 1), self.day(number)
        for account in self.accounts:
            offered = 12 * HOUR if self.chance(0.2) else 9 * HOUR
            self.at(begins + offered, partial(account.publish, day))
        self.at(begins + 13 * HOUR, partial(self.agree, day))

    def agree(self, day: date) -> None:
        """Fail unless the bills of a day agree with the books, but for open exceptions and lines near midnight."""
        for bill in Bill.select().where(Bill.day == str(day)):
            assert bill.state in (COMPARED, NONE), (bill.channel_id, bill.day, bill.state, bill.problem)
        excepted = {each.order_id for each in PaymentException.select().where(PaymentException.resolution.is_null())}
        for row in StatementDifference.select().where(StatementDifference.state != CLOSED):
            facts = differences.facts_of(row)
            is_known = row.order_id in excepted if row.state == OPEN else row.state == EXPECTED
            assert is_known, (day, row.state, facts)
        for account in self.accounts:
            mine = (AccountBalance.channel == account.channel, AccountBalance.day == str(day))
            balance, channel = AccountBalance.get_or_none(*mine), Channel.get_by_id(account.channel)
            if balance is not None and not account_balances.expected([channel], day)[account.channel].unknown:
                late = self.learned_later(account, day)
                assert balance.amount == balance.expected + late, (account.driver, day, balance.amount, late)
        assert not {name: off for name, off in integrity.verify() if off}

    def learned_later(self, account: Any, day: date) -> int:
        """What the account had at the end of a day that the service learned after it, in fen.

        The bill of the day has told of the fees of all lines that no credit estimates.
        """
        until, found = self.day((day - FIRST).days + 1), 0
        for row in account.rows(day):
            order, refund = Order.find(row.order_no), Refund.find(row.refund_no)
            exceptions = PaymentException.select().where(PaymentException.order == order)
            if not row.refund_no:
                steps = [each.at for each in History.select().where(History.order == order, History.after == CONFIRMED)]
                told = min([*steps, *(each.createtime for each in exceptions)])
                found += (row.amount - (order.cost_amount if told in steps else 0)) * (told >= until)
            elif refund is None:
                told = min((each.createtime for each in exceptions if each.kind == REVERSED), default=0)
                found -= row.amount * (told >= until)
            elif row.state == "FAIL":
                told = (RefundHistory.refund == refund, RefundHistory.after == CANCELLED, RefundHistory.at < until)
                # The merchant pays nothing of a refund with which all goes back: the payment has no estimate then.
                is_all = refund.paid_from == UNCREDITED and not refund.merchant_actual_amount
                late = row.amount - (order.cost_amount if is_all else 0)
                found += late * (not RefundHistory.select().where(*told).exists())
        return found

    def ends(self) -> None:
        """Fail unless books and accounts agree about everything once all has ended."""
        unsettled = StatementDifference.select().where(StatementDifference.state != CLOSED)
        assert [differences.facts_of(row) for row in unsettled] == []
        assert Order.select().where(Order.status == CONFIRMED, Order.order_type == BUY).count() == 0
        fees = sum(account.fees(date.max) for account in self.accounts)
        assert -LedgerAccount.balance_of(COMMISSION, 0) == fees
        assert earnings.total(earnings.lines(None, None)).costs == fees
        assert plain_sums.check().costs == fees
        for account in self.accounts:
            assert -LedgerAccount.balance_of(CLEARING, account.channel) == account.funds, account.driver


@pytest.fixture
def month(opened, api, flask, app, due, time_machine):
    """`month(seed, days, orders)`: some days of an account at WeChat Pay, with T+1, and one at Alipay."""
    allow()
    time_machine.move_to(datetime(FIRST.year, FIRST.month, FIRST.day, tzinfo=CHINA), tick=False)
    accounts = [
        opened(WechatAccount, "--settlement-days", "1"),
        opened(AlipayAccount, "--auto-accept-max", "500", mode="certificate"),
    ]
    flask("account", "add", "demo", "--card-number", "2088000000000009", "--real-name", "张三")

    world = SimpleNamespace(api=api, due=due, clock=time_machine, commands=app.test_cli_runner())

    def live(seed, days, orders):
        print(f"seed {seed}")  # pytest shows it if the test fails
        life = Month(seed, days, orders, accounts, world)
        life.live()
        life.ends()

    return live


def test_a_few_days_agree_to_the_fen(month):
    month(seed=1, days=3, orders=50)
    assert Order.select().count() >= 150
    ends = {(each.status, each.paid_from) for each in Refund.select()}
    assert ends >= {(COMPLETED, BALANCE), (COMPLETED, UNCREDITED), (COMPLETED, EXCEPTION)}
    assert {each.kind for each in PaymentException.select()} >= {LATE_PAYMENT, WRONG_AMOUNT, REVERSED}
    assert StatementDifference.select().count() > 0


def test_a_month_agrees_to_the_fen(slow, month):
    """Set SEED to repeat a month."""
    month(seed=int(os.environ.get("SEED") or random.randrange(10**6)), days=31, orders=40)
