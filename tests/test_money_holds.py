"""Random orders, notices, expiries, payouts, crashes and repetitions: the money adds up after each step."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import time_machine
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from peewee import fn

from gateways.sandbox.simulator import OUTCOMES
from models.db.base import database
from models.tables.ledger import Entry, LedgerAccount, Posting
from models.tables.merchant import Merchant
from models.tables.order import CANCELLED, COMPLETED, PAYOUT_CONFLICT, Order, PaymentException
from services.callbacks import outbox
from services.ledger import accounts, day_sums, integrity
from services.orders import due, lifecycle, next_step
from services.orders.exceptions import COMPLETE, CREDIT
from services.sandbox import simulator
from tests import applications, month_statements
from tests.databases import copied, settings_of
from tests.support import Api, InlinePool, through_flask

STEPS = {
    "the ledger": (accounts, "post"),
    "the history": (lifecycle, "History"),
    "the callback": (outbox, "enqueue"),
    "the order": (Order, "advance"),
}
ACTS = ("play", "sweep", "accept", "reject", "paid")
YUAN = st.integers(1, 30_000).map(lambda fen: f"{fen // 100}.{fen % 100:02d}")


class Crash(Exception):
    """A step that failed on purpose."""


class Money(RuleBasedStateMachine):
    """One service, its demo merchant, a payer, an operator, and a clock that jumps."""

    seeded: Path
    orders: Bundle[str] = Bundle("orders")

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
        self.app = applications.with_settings(settings_of(self.instance, requests_per_second=10**6))
        self.api = Api(through_flask(self.app.test_client()))
        self.commands = self.app.test_cli_runner()

    @rule(target=orders, amount=YUAN, channel=st.sampled_from([1, 2, 3]))
    def a_deposit_is_placed(self, amount: str, channel: int) -> Any:
        return self.api.buy(amount, channel).data["order_no"]

    @rule(target=orders, amount=YUAN, channel=st.sampled_from([2, 3]))
    def a_withdrawal_is_placed(self, amount: str, channel: int) -> Any:
        answer = self.api.sell(amount, channel)
        assert answer.code in (1, 40901), answer
        return answer.data["order_no"] if answer.code == 1 else multiple()

    @rule(order=orders, outcome=st.sampled_from(OUTCOMES))
    def the_sandbox_plays(self, order: str, outcome: str) -> None:
        self._play(order, outcome)

    @rule(order=orders)
    def the_payer_claims_to_have_paid(self, order: str) -> None:
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = self.api.send("POST", "/addons/paychannel/pay/paid", f"order_no={order}".encode(), form)
        assert answer.status in (303, 404)

    @rule(order=orders, amount=st.none() | YUAN, reference=st.sampled_from(["", "R1", "R2"]))
    def the_operator_says_paid(self, order: str, amount: str | None, reference: str) -> None:
        self._command("order", "paid", order, "--reference", reference, *(["--amount", amount] if amount else []))

    @rule(order=orders)
    def the_operator_accepts(self, order: str) -> None:
        self._command("order", "accept", order)

    @rule(order=orders)
    def the_operator_rejects(self, order: str) -> None:
        self._command("order", "reject", order, "--reason", "no")

    @rule(order=orders)
    def the_bank_returns_a_payout(self, order: str) -> None:
        self._command("order", "returned", order, "--yes")

    @rule(channel=st.sampled_from([1, 2, 3]), days=st.sampled_from([0, 1, 1]))
    def a_channel_gets_a_settlement_delay(self, channel: int, days: int) -> None:
        self._command("channel", "set", str(channel), "--settlement-days", str(days))

    @rule(order=orders, how=st.sampled_from(["--credit", "--refund", "--complete", "--cancel"]))
    def the_operator_settles_an_exception(self, order: str, how: str) -> None:
        self._command("order", "settle", order, how)

    @rule(seconds=st.sampled_from([1, 5, 60, 900, 90_000]))
    def time_passes_and_what_is_due_is_done(self, seconds: int) -> None:
        self.clock.shift(seconds)
        self._sweep()

    @rule(
        order=orders,
        step=st.sampled_from(sorted(STEPS)),
        what=st.sampled_from(ACTS),
    )
    def a_step_fails(self, order: str, step: str, what: str) -> None:
        owner, name = STEPS[step]
        before = Order.get(Order.order_no == order).status
        with mock.patch.object(owner, name, side_effect=Crash) as failing:
            acts = {
                "play": lambda: self._play(order, "success"),
                "sweep": self._sweep,
                "accept": lambda: self._command("order", "accept", order),
                "reject": lambda: self._command("order", "reject", order, "--reason", "no"),
                "paid": lambda: self._command("order", "paid", order),
            }
            if step == "the history":
                failing.insert.side_effect = Crash
            acts[what]()
        broke = failing.insert.called if step == "the history" else failing.called
        assert what == "sweep" or not broke or Order.get(Order.order_no == order).status == before

    @rule(least=st.integers(1, 5))
    def the_sums_by_day_catch_up(self, least: int) -> None:
        day_sums.catch_up(least=least)

    @rule(order=consumes(orders))
    def an_order_is_left_alone(self, order: str) -> None:
        """Leave an order unchanged, so that later steps have fewer to choose from."""

    def _play(self, order: str, outcome: str) -> None:
        if simulator.sandbox_driver(Order.get(Order.order_no == order)):  # the others are on the manual channel
            self.api.play(order, outcome)

    def _command(self, *arguments: str) -> None:
        result = self.commands.invoke(args=list(arguments))
        assert result.exception is None or isinstance(result.exception, (SystemExit, Crash)), result.exception

    def _sweep(self) -> None:
        class Pool(InlinePool):
            def submit(self, tenant: int, work: Any, item: Any) -> None:
                with suppress(Crash):  # as in the pool of workers: the claim expires
                    work(item)

        due.sweep(Pool())  # type: ignore[arg-type]

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
        out_after_all = (PaymentException.kind == PAYOUT_CONFLICT) & (Order.status == CANCELLED)
        moves = (PaymentException.resolution == CREDIT) | ((PaymentException.resolution == COMPLETE) & out_after_all)
        settled = PaymentException.select().join(Order).where(moves).count()
        assert Posting.select().where(by_decision).count() == settled

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


@pytest.fixture
def machine(seeded: Path) -> type[Money]:
    Money.seeded = seeded
    return Money


def run(machine: type[Money], lives: int) -> None:
    bounds = settings(
        max_examples=lives,
        stateful_step_count=30,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    run_state_machine_as_test(machine, settings=bounds)


def test_whatever_happens_the_money_adds_up(machine):
    run(machine, 10)


def test_whatever_happens_in_many_lives_the_money_adds_up(slow, machine):
    run(machine, 50)
