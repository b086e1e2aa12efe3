"""Which payouts their channel has shown, in the order's history: such a payout is never handed over a second time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gateways.base import ChannelError, ChannelUnknown, Payout, Report
from models.db.writer import transaction
from models.tables.order import History, Order
from services.channels.calls import ask, payout_of
from services.orders import lifecycle, reasons
from services.orders.reasons import because
from services.security import masking

CODE = "payout_shown"
MOST = 5  # lines of history, each with other words


def call(verb: Callable[[Payout], Report], order: Order) -> Report:
    """Call the channel for a payout, and remember an unusable answer that shows that it has it.

    What the channel quotes of the receiving account is masked: history keeps its words, and cannot be changed.

    Raises:
        ChannelError.
    """
    payout = payout_of(order)
    try:
        report: Report = ask(verb, payout)
    except ChannelError as error:
        error.args = (masking.without(str(error), payout.account),)
        if isinstance(error, ChannelUnknown) and error.has_it:
            remember(order, "", str(error))
        raise
    return replace(report, detail=masking.without(report.detail, payout.account))


@transaction
def remember(order: Order, reference: str, detail: str) -> bool:
    """Note that the channel has the payout; True if this is new.

    Args:
        reference: the channel's number for it, or "".
        detail: what the channel said of it, or "".
    """
    text = ", ".join(filter(None, (reference, detail))) or "-"
    return lifecycle.note_once(order, "channel", because(CODE, text=text, reference=reference), MOST)


def reference_of(order: Order) -> str | None:
    """The channel's number for a payout that it has shown, "" if it named none; None if it never showed one."""
    lines = History.select().where(History.order == order, History.code == CODE).order_by(History.id.desc())
    numbers = [str(reasons.of(line).args["reference"]) for line in lines]
    return next(filter(None, numbers), "") if numbers else None


def is_known(order: Order) -> bool:
    """Has the channel ever shown this payout?"""
    return reference_of(order) is not None
