"""The postings of each event of an order: fen by account, as pure functions of the order's amounts."""

from __future__ import annotations

from models.tables.ledger import AVAILABLE, CLEARING, COMMISSION, FEES, HELD
from models.tables.order import Order

OPERATOR = 0

# Events of a withdrawal that had ended, after the channel reports that it has, or no longer has, its money.
HOLD_AGAIN, SPEND_AGAIN, RELEASE_AGAIN = "hold_again", "spend_again", "release_again"

Account = tuple[str, int]  # kind and owner: the merchant's id, the channel's, or 0 for the operator
Lines = dict[Account, int]


def credit(order: Order) -> Lines:
    """Credit a deposit."""
    return {
        (AVAILABLE, order.merchant_id): order.merchant_actual_amount,
        (FEES, OPERATOR): order.service_amount,
        (CLEARING, order.channel_id): -order.received,
    }


def hold(order: Order) -> Lines:
    """Place a withdrawal: reserve its full cost and the security deposit."""
    held = order.merchant_actual_amount + order.deposit_amount
    return {(AVAILABLE, order.merchant_id): -held, (HELD, order.merchant_id): held}


def release(order: Order) -> Lines:
    """Cancel a withdrawal: return the whole reserve."""
    return _reversed(hold(order))


def spend(order: Order) -> Lines:
    """Pay out a withdrawal: spend the reserve, and return the security deposit."""
    return _cost(order) | {
        (HELD, order.merchant_id): -(order.merchant_actual_amount + order.deposit_amount),
        (AVAILABLE, order.merchant_id): order.deposit_amount,
    }


def give_back(order: Order) -> Lines:
    """Reverse a withdrawal whose payout bounced: return its full cost, including fees."""
    return _reversed(_cost(order)) | {(AVAILABLE, order.merchant_id): order.merchant_actual_amount}


def late_spend(order: Order) -> Lines:
    """Deduct a cancelled withdrawal that was paid out after all."""
    return _cost(order) | {(AVAILABLE, order.merchant_id): -order.merchant_actual_amount}


def _cost(order: Order) -> Lines:
    """Return the destination of a withdrawal's money."""
    return {
        (FEES, OPERATOR): order.service_amount,
        # The channel receives the money to pay out, the channel fee and the channel cost.
        (CLEARING, order.channel_id): order.amount + order.passage_amount + order.channel_amount,
        (COMMISSION, OPERATOR): -order.channel_amount,
    }


def _reversed(lines: Lines) -> Lines:
    return {account: -fen for account, fen in lines.items()}
