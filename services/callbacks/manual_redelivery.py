"""Redelivery by an operator: failed or delivered callbacks become due again, from the first attempt."""

from __future__ import annotations

from typing import Any

from models.db.base import LARGEST_ID
from models.db.writer import transaction
from models.tables.merchant import Merchant
from models.tables.order import Order
from models.tables.outbox import CALLBACK_STATES, WAITING, Callback
from runtime import clock
from services.callbacks import delivery
from services.errors import N_, OperatorError


def redeliver(webhook_id: str) -> int:
    """Make one callback due again. Raises OperatorError if it does not exist or its merchant has no callback URL."""
    callback = Callback.get_or_none(Callback.webhook_id == webhook_id)
    if callback is not None and (why := delivery.why_unsent(callback)):
        raise OperatorError(why)
    return _due_again(Callback.webhook_id == webhook_id)


def redeliver_of(order: Order) -> int:
    """Make the callbacks of an order due again; return their number. Raises OperatorError if none can be sent."""
    refusals = {each.id: delivery.why_unsent(each) for each in Callback.select().where(Callback.order == order)}
    if refusals and all(refusals.values()):
        raise OperatorError(next(iter(refusals.values())))
    return _due_again(Callback.id.in_([number for number, why in refusals.items() if not why]))


def redeliver_all(merchant: Merchant, state: str | None, since: int | None, until: int | None) -> int:
    """Make a merchant's callbacks due again, by state and range of creation time; return their number.

    Raises:
        OperatorError: there are none.
    """
    states = [state] if state else list(CALLBACK_STATES)
    made = Callback.createtime.between(since or 0, until or LARGEST_ID)
    return _due_again((Callback.merchant == merchant) & Callback.state.in_(states) & made)


@transaction
def _due_again(selected: Any) -> int:
    now = clock.now()
    count: int = Callback.update(state=WAITING, attempts=0, due_at=now, updatetime=now).where(selected).execute()
    if not count:
        raise OperatorError(N_("Callback not found."))
    return count
