"""The life of one service: its process, its clock, steps that fail, and what is true after each step."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import time_machine
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from peewee import fn
from pytest_httpserver import HTTPServer

from models.db.base import database
from models.tables.ledger import AVAILABLE, HELD, Entry, LedgerAccount, Posting
from models.tables.merchant import Merchant
from models.tables.order import COMPLETED, Order, PaymentException
from services.callbacks import outbox
from services.jobs import sweep
from services.ledger import accounts, day_sums, integrity
from services.ledger import earnings as sums
from services.ledger.postings import SPEND_AGAIN
from services.orders import lifecycle, next_step
from tests import applications, earnings, month_statements
from tests.databases import copied, remove, settings_of
from tests.support import Api, InlinePool, through_flask

STEPS = {
    "the callback": (outbox, "enqueue"),
    "the history": (lifecycle.History, "add_all"),
    "the ledger": (accounts, "post_each"),
    "the order": (Order, "move_to"),
}
COST = "0.6"  # of deposits, in percent
ONE_TRANSACTION = {"approve", "reject", "paid", "returned"}  # commands that do all or nothing


class Crash(Exception):
    """A step that failed on purpose."""


class Life(RuleBasedStateMachine):
    """One service, its demo merchant, and a clock that jumps. A subclass adds the steps."""

    seeded: ClassVar[Path]
    server: ClassVar[HTTPServer]
    settings: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.closing = ExitStack()
        self.folder = Path(self.closing.enter_context(tempfile.TemporaryDirectory()))
        self.instance = copied(self.seeded, self.folder / "instance")
        self.clock = self.closing.enter_context(time_machine.travel(datetime.now(UTC).replace(microsecond=0)))
        self.failing = ""  # the step at which the next command or job fails
        self.restart()
        for channel in ("1", "2", "3", "4"):
            self.commands.invoke(args=["channel", "set", channel, "--cost", COST])

    def teardown(self) -> None:
        try:
            month_statements.check(Merchant.get(key="demo"))
            earnings.check()
        finally:
            database.close()
            self.closing.close()
            remove(self.instance)

    # --- steps

    @rule()
    def restart(self) -> None:
        """Restart the process on the same files."""
        self.app = applications.with_settings(settings_of(self.instance, requests_per_second=10**6, **self.settings))
        self.api = Api(through_flask(self.app.test_client()))
        self.commands = self.app.test_cli_runner()
        sweep.release()

    @rule(step=st.sampled_from(sorted(STEPS)))
    def a_step_of_what_comes_next_fails(self, step: str) -> None:
        self.failing = step

    @rule(least=st.integers(1, 5))
    def the_sums_by_day_catch_up(self, least: int) -> None:
        month_statements.check(Merchant.get(key="demo"))  # not after each step: it takes as long as ten
        day_sums.catch_up(least=least)
        month_statements.check(Merchant.get(key="demo"))
        earnings.check()
        sums.catch_up(least=least)
        earnings.check()

    def _command(self, *arguments: str) -> Any:
        before = _statuses()
        with self._work() as failed:
            result = self.commands.invoke(args=list(arguments))
        assert result.exception is None or isinstance(result.exception, (SystemExit, Crash)), result.exception
        if failed.called:
            self._lost()
            assert arguments[1] not in ONE_TRANSACTION or _statuses() == before
        return result

    def _sweep(self) -> None:
        life = self

        class Pool(InlinePool):
            def submit(self, tenant: int, work: Any, item: Any) -> None:
                try:
                    with life._work():
                        work(item)
                except Crash:  # as in the pool of workers: the claim expires
                    life._lost()

        sweep.sweep(Pool())  # type: ignore[arg-type]

    @contextmanager
    def _work(self) -> Iterator[Any]:
        """One piece of work, in which the step that was chosen fails, if it comes to it."""
        if not self.failing:
            yield mock.Mock(called=False)
            return
        with mock.patch.object(*STEPS[self.failing], side_effect=Crash) as failed:
            yield failed
        if failed.called:
            self.failing = ""

    def _lost(self) -> None:
        """Work was lost with all that it had read."""

    # --- invariants

    @invariant()
    def every_check_of_the_ledger_passes(self) -> None:
        assert not {name: off for name, off in integrity.verify() if off}

    @invariant()
    def the_merchant_has_what_its_orders_say(self) -> None:
        """Nothing is credited or spent twice: the balance follows from the orders and the resolved exceptions alone."""
        actual = fn.COALESCE(fn.SUM(Order.merchant_actual_amount), 0)
        credited = Order.select(actual).where(Order.order_type == 1, Order.status == COMPLETED).scalar()
        spent = Order.select(actual).where(Order.order_type == 2, Order.status == COMPLETED).scalar()
        otherwise = [Posting.purpose.startswith(f"{each} ") for each in ("exception", "return", SPEND_AGAIN)]
        rest = Entry.select(fn.COALESCE(fn.SUM(Entry.amount), 0)).join(Posting).switch(Entry).join(LedgerAccount)
        rest = rest.where(reduce(or_, otherwise), LedgerAccount.kind.in_([AVAILABLE, HELD])).scalar()
        row = accounts.balances()["demo"]
        assert row["available"] + row["held"] == 1_000_000 + credited - spent + rest

    @invariant()
    def every_open_order_has_a_next_step(self) -> None:
        assert [order.order_no for order in next_step.missing(5)] == []


def order_of(order_no: str) -> Order:
    return Order.get(Order.order_no == order_no)


def exceptions_of(order: Order) -> list[PaymentException]:
    return list(PaymentException.select().where(PaymentException.order == order).order_by(PaymentException.id))


def posted(order: Order, *kinds: str) -> int:
    """The sum of the order's postings on these accounts, in fen."""
    total = Entry.select(fn.COALESCE(fn.SUM(Entry.amount), 0)).join(Posting).switch(Entry).join(LedgerAccount)
    return int(total.where(Posting.order == order, LedgerAccount.kind.in_(kinds)).scalar())


def is_spent(order: Order) -> bool:
    """Whether the merchant paid for the withdrawal: by its postings, whatever its status is."""
    return posted(order, HELD) == 0 and posted(order, AVAILABLE, HELD) < 0


def _statuses() -> list[tuple[int, str]]:
    return list(Order.select(Order.id, Order.status).order_by(Order.id).tuples())
