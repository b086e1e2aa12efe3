"""The life of one service whose money must add up: its process, its clock, and its invariants after each step."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import time_machine
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from peewee import fn

from models.db.base import database
from models.tables.ledger import Entry, LedgerAccount, Posting
from models.tables.merchant import Merchant
from models.tables.order import CANCELLED, COMPLETED, PAYOUT_CONFLICT, Order, PaymentException
from services.jobs import sweep
from services.ledger import accounts, integrity
from services.orders import next_step
from services.orders.verdict import COMPLETE, CREDIT
from tests import applications, month_statements
from tests.databases import copied, settings_of
from tests.support import Api, InlinePool, through_flask


class Crash(Exception):
    """A step that failed on purpose."""


class MoneyWalk(RuleBasedStateMachine):
    """One service, its demo merchant, and a clock that jumps. A subclass adds the steps."""

    seeded: ClassVar[Path]
    settings: ClassVar[dict[str, Any]] = {}
    lives: ClassVar[int] = 10  # of the fast test
    steps: ClassVar[int] = 30  # of a life

    def __init__(self) -> None:
        super().__init__()
        self.closing = ExitStack()
        folder = Path(self.closing.enter_context(tempfile.TemporaryDirectory()))
        self.instance = copied(self.seeded, folder / "instance")
        self.clock = self.closing.enter_context(time_machine.travel(datetime.now(UTC)))
        self.restart()

    def teardown(self) -> None:
        database.close()
        self.closing.close()

    # --- steps

    @rule()
    def restart(self) -> None:
        """Restart the process on the same files."""
        chosen = settings_of(self.instance, requests_per_second=10**6, **self.settings)
        self.app = applications.with_settings(chosen)
        self.api = Api(through_flask(self.app.test_client()))
        self.commands = self.app.test_cli_runner()

    def _command(self, *arguments: str) -> Any:
        result = self.commands.invoke(args=list(arguments))
        assert result.exception is None or isinstance(result.exception, (SystemExit, Crash)), result.exception
        return result

    def _sweep(self) -> None:
        class Pool(InlinePool):
            def submit(self, tenant: int, work: Any, item: Any) -> None:
                with suppress(Crash):  # as in the pool of workers: the claim expires
                    work(item)

        sweep.sweep(Pool())  # type: ignore[arg-type]

    # --- invariants

    @invariant()
    def every_check_of_the_ledger_passes(self) -> None:
        assert not {name: off for name, off in integrity.verify() if off}
        assert (Entry.select(fn.SUM(Entry.amount)).scalar() or 0) == 0
        assert LedgerAccount.select(fn.SUM(LedgerAccount.balance)).scalar() == 0

    @invariant()
    def the_merchant_has_what_its_orders_say(self) -> None:
        """Nothing is credited or spent twice: the balance follows from the orders and the resolved exceptions alone."""
        actual = fn.COALESCE(fn.SUM(Order.merchant_actual_amount), 0)
        credited = Order.select(actual).where(Order.order_type == 1, Order.status == COMPLETED).scalar()
        spent = Order.select(actual).where(Order.order_type == 2, Order.status == COMPLETED).scalar()
        by_decision = Posting.purpose.startswith("exception ") | Posting.purpose.startswith("return ")
        by_hand = (
            Entry.select(fn.COALESCE(fn.SUM(Entry.amount), 0))
            .join(Posting)
            .switch(Entry)
            .join(LedgerAccount)
            .where(by_decision, LedgerAccount.kind == "available")
            .scalar()
        )
        row = accounts.balances()["demo"]
        assert row["available"] + row["held"] == 1_000_000 + credited - spent + by_hand
        resolved = PaymentException.select().join(Order)
        credits = resolved.where(PaymentException.resolution == CREDIT).count()
        out_after_all = (PaymentException.kind == PAYOUT_CONFLICT) & (Order.status == CANCELLED)
        paid = resolved.where(out_after_all, PaymentException.resolution == COMPLETE)
        # A cancelled withdrawal that was paid twice is deducted once.
        least, most = len({each.order_id for each in paid}), paid.count()
        assert least <= Posting.select().where(by_decision).count() - credits <= most

    @invariant()
    def every_open_order_has_a_next_step(self) -> None:
        assert [order.order_no for order in next_step.missing(5)] == []

    @invariant()
    def statements_of_all_months_agree_with_the_ledger(self) -> None:
        month_statements.check(Merchant.get(key="demo"))

    @invariant()
    def what_is_held_is_that_of_open_withdrawals(self) -> None:
        is_open = Order.status.not_in([COMPLETED, CANCELLED])
        held = Order.select(fn.SUM(Order.merchant_actual_amount + Order.deposit_amount))
        assert accounts.balances()["demo"]["held"] == (held.where(Order.order_type == 2, is_open).scalar() or 0)
