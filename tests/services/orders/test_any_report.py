"""Any reports of a channel, in any order, are settled, and a repeated report changes nothing."""

import os
import random

import pytest

from gateways.base import Report, State
from gateways.sandbox.driver import SandboxDriver
from models.tables.order import BUY
from models.tables.refund import OPEN, Refund
from services.orders import next_step
from services.orders.verdict import RESOLUTIONS
from tests.services.walks import SANDBOX, sell_accepted, sell_rejected

LIVES = int(os.environ.get("REPORT_LIVES", "4"))
STEPS = 10


def any_report(draw, amount):
    """A report with no more contradictions than a faulty channel's."""
    state = draw.choice([*State, State.PAID, State.PAID])
    fen = draw.choice([0, amount, amount, amount - 3_000, amount + 2_000]) if state is State.PAID else 0
    return Report(state, fen, draw.choice(["", "A", "A", "A", "B"]), returned=draw.choice([0, 0, 3_000]))


def any_refund_report(draw, amount):
    """A report on a refund, more often of its success."""
    state = draw.choice([State.PAID, State.PAID, State.PAID, State.FAILED, State.OPEN, State.STUCK, State.ABSENT])
    return Report(state, draw.choice([amount, amount, amount - 1]) if state is State.PAID else 0)


def deposit(world, draw):
    world.flask("channel", "set", SANDBOX, "--settlement-days", draw.choice([0, 1]))
    order_no = world.api.buy().data["order_no"]
    if draw.random() < 0.3:
        world.later(900)
    return order_no


def withdrawal(world, draw):
    return draw.choice([sell_accepted, sell_rejected])(world)


@pytest.mark.parametrize(("place", "amount"), [(deposit, 10_000), (withdrawal, 5_000)])
@pytest.mark.parametrize("seed", range(3))
def test_any_reports_are_settled_and_a_repeated_one_changes_nothing(
    world, app, order_details, monkeypatch, place, amount, seed
):
    draw, told = random.Random(seed), []
    for call in ("query", "query_payout", "pay_out"):
        monkeypatch.setattr(SandboxDriver, call, lambda driver, about: told[-1])
    for call in ("refund", "query_refund"):
        monkeypatch.setattr(SandboxDriver, call, lambda driver, request: any_refund_report(draw, request.amount))
    runner = app.test_cli_runner()

    def money_after(*command):
        """The order's status, postings and exceptions after a command, which may be refused."""
        result = runner.invoke(args=list(command))
        assert result.exception is None or isinstance(result.exception, SystemExit), (seed, told, command)
        found = order_details(order_no)
        assert next_step.missing(1) == [], (seed, told)
        if found["status"] == "confirmed" and found["order_type"] == BUY:
            own = {each["reference"] for each in found["exceptions"] if each["resolution"] is None}
            assert found["due_at"] or found["channel_reference"] in own, (seed, told)
        kept = ("id", "reference", "kind", "amount", "resolution", "code")
        return found["status"], found["ledger"], [[each.get(name) for name in kept] for each in found["exceptions"]]

    for _ in range(LIVES):
        told.append(Report(State.OPEN))
        order_no = place(world, draw)
        ask = ("order", "ask", order_no)
        for _ in range(STEPS):
            told.append(any_report(draw, amount))
            once = money_after(*ask)
            assert money_after(*ask) == once, (seed, told)
            if draw.random() < 0.4 and told[-1].state not in (State.OPEN, State.ABSENT):
                for exception, *_ in once[2]:
                    how = f"--{draw.choice(RESOLUTIONS)}"
                    once = money_after("order", "settle", order_no, how, "--exception", exception, "--yes")
                assert money_after(*ask)[:2] == once[:2], (seed, told)
            if draw.random() < 0.4 and Refund.select().where(Refund.status.in_(OPEN)).exists():
                world.later(draw.choice([0, 301]))  # refunds are sent, or their status is checked
                once = money_after(*ask)
                assert money_after(*ask) == once, (seed, told)
                assert next_step.missing_refunds(1) == [], (seed, told)
