"""The postings of each event of an order: fen by account, as pure functions of the order's amounts."""

from __future__ import annotations

from models.tables.ledger import AVAILABLE, CLEARING, COMMISSION, FEES, HELD
from models.tables.order import Order

OPERATOR = 0

# Events of a withdrawal that had ended and whose money the channel still has, or no longer has.
HOLD_AGAIN, SPEND_AGAIN, RELEASE_AGAIN = "hold_again", "spend_again", "release_again"

Account = tuple[str, int]  # kind, owner: the merchant's id, the channel's, or 0 for the operator
Lines = dict[Account, int]


def credit(order: Order) -> Lines:
    """A deposit is credited."""
    return {
        (AVAILABLE, order.merchant_id): order.merchant_actual_amount,
        (FEES, OPERATOR): order.service_amount,
        (CLEARING, order.channel_id): -order.received,
    }


def hold(order: Order) -> Lines:
    """A withdrawal is placed: all that it may cost, and the security deposit, are set aside."""
    held = order.merchant_actual_amount + order.deposit_amount
    return {(AVAILABLE, order.merchant_id): -held, (HELD, order.merchant_id): held}


def release(order: Order) -> Lines:
    """A withdrawal is cancelled: all that was set aside comes back."""
    return _reversed(hold(order))


def spend(order: Order) -> Lines:
    """A withdrawal is paid out: the hold is spent, and the security deposit comes back."""
    return _cost(order) | {
        (HELD, order.merchant_id): -(order.merchant_actual_amount + order.deposit_amount),
        (AVAILABLE, order.merchant_id): order.deposit_amount,
    }


def give_back(order: Order) -> Lines:
    """A withdrawal that was paid out bounced: all that it took comes back, fees too."""
    return _reversed(_cost(order)) | {(AVAILABLE, order.merchant_id): order.merchant_actual_amount}


def late_spend(order: Order) -> Lines:
    """A cancelled withdrawal was paid out after all: deduct it from the merchant's balance."""
    return _cost(order) | {(AVAILABLE, order.merchant_id): -order.merchant_actual_amount}


def _cost(order: Order) -> Lines:
    """The destination of a withdrawal's money."""
    return {
        (FEES, OPERATOR): order.service_amount,
        # What the channel keeps or takes: the money paid out, its surcharge and its commission.
        (CLEARING, order.channel_id): order.amount + order.passage_amount + order.channel_amount,
        (COMMISSION, OPERATOR): -order.channel_amount,
    }


def _reversed(lines: Lines) -> Lines:
    return {account: -fen for account, fen in lines.items()}
