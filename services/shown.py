"""Which payouts their channel has shown, in the order's history: such a payout is never handed over a second time."""

from __future__ import annotations

from gateways.base import ChannelUnknown, Report
from models.order import History, Order
from models.writer import transaction
from services import lifecycle, reasons
from services.channels import ask, driver_of, payout_of
from services.reasons import because

CODE = "payout_shown"
MOST = 5  # lines of history, each with other words


def ask_about(order: Order) -> Report:
    """Ask the channel about a payout. Raises ChannelUnknown, and remembers what that shows."""
    try:
        return ask(driver_of(order.channel).query_payout, payout_of(order))
    except ChannelUnknown as silence:
        if silence.has_it:
            remember(order, "", str(silence))
        raise


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
