"""Random orders, notices, expiries, payouts, crashes and repetitions: the money adds up after each step."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, consumes, multiple, rule, run_state_machine_as_test

from gateways.sandbox.records import OUTCOMES
from models.tables.order import Order
from services.callbacks import outbox
from services.ledger import accounts, day_sums
from services.orders import lifecycle
from services.sandbox import simulator
from tests.bank_walk import ClaimsWalk, PayoutsWalk
from tests.money_walk import Crash, MoneyWalk

STEPS = {
    "the ledger": (accounts, "post"),
    "the history": (lifecycle, "History"),
    "the callback": (outbox, "enqueue"),
    "the order": (Order, "advance"),
}
ACTS = ("play", "sweep", "accept", "reject", "paid")
YUAN = st.integers(1, 30_000).map(lambda fen: f"{fen // 100}.{fen % 100:02d}")


class Money(MoneyWalk):
    """A payer, an operator who also reports what is not so, and steps that fail."""

    orders: Bundle[str] = Bundle("orders")

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

    @rule(order=orders, amount=st.none() | st.just("0") | YUAN, reference=st.sampled_from(["", "R1", "R2"]))
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


@pytest.fixture(params=[Money, ClaimsWalk, PayoutsWalk], ids=["channels", "claims", "payouts"])
def machine(request: pytest.FixtureRequest, seeded: Path) -> type[MoneyWalk]:
    walk: type[MoneyWalk] = request.param
    walk.seeded = seeded
    return walk


def run(machine: type[MoneyWalk], lives: int, **more: Any) -> None:
    bounds = settings(
        max_examples=lives,
        stateful_step_count=machine.steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        **more,
    )
    run_state_machine_as_test(machine, settings=bounds)


def test_whatever_happens_the_money_adds_up(machine):
    run(machine, machine.lives)


def test_whatever_happens_in_many_lives_the_money_adds_up(slow, machine):
    run(machine, int(os.environ.get("WALK_LIVES", 5 * machine.lives)))
