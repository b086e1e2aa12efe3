"""Bulk actions: an action on several orders after one confirmation, on each order once or not at all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from models.tables.order import Order
from models.tables.refund import Refund
from services.errors import OperatorError
from services.operations.actions import Action
from services.statements.claims import MOST_AT_ONCE

MOST = MOST_AT_ONCE  # orders of one bulk action
LONGEST = 20  # seconds after which the remaining orders are left as they are

DONE, REQUESTED, REFUSED, LEFT = "done", "requested", "refused", "left"


@dataclass(frozen=True)
class Row:
    """An order of a bulk action: what would be done, or why nothing can be done."""

    order: Order
    action: Action | None = None
    refusal: OperatorError | None = None


@dataclass(frozen=True)
class Outcome:
    """The outcome of one order: DONE, REQUESTED (a second operator must approve it), REFUSED with `refusal`, or LEFT
    because the time was over."""

    order: Order
    state: str
    refusal: OperatorError | None = None


def total(rows: Iterable[Order | Refund]) -> int:
    """Return the sum of the amounts of orders or refunds, in fen."""
    return sum(row.amount for row in rows)


def subtotals(rows: Sequence[Order | Refund], of: str) -> list[tuple[Any, int, int]]:
    """Return (row, count, fen) for each `merchant` or `channel` of orders or refunds, the largest amount first."""
    found: dict[int, tuple[Any, int, int]] = {}
    for each in rows:
        owner = getattr(each, of)
        _, count, fen = found.get(owner.id, (owner, 0, 0))
        found[owner.id] = (owner, count + 1, fen + each.amount)
    return sorted(found.values(), key=lambda owned: -owned[2])


def each(orders: Iterable[Order], act: Callable[[Order], Outcome]) -> list[Outcome]:
    """Act on the orders one by one; an interruption leaves the remaining ones as they were."""
    until, outcomes = time.monotonic() + LONGEST, []
    for order in orders:
        if time.monotonic() > until:
            outcomes.append(Outcome(order, LEFT))
            continue
        try:
            outcomes.append(act(order))
        except OperatorError as refusal:
            outcomes.append(Outcome(order, REFUSED, refusal))
    return outcomes
