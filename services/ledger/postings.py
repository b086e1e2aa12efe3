"""The postings of each event of an order: fen by account, as pure functions of the order's amounts."""

from __future__ import annotations

from models.tables.ledger import AVAILABLE, CLEARING, COMMISSION, FEES, HELD
from models.tables.order import CANCELLED, COMPLETED, Order
from models.tables.refund import BALANCE, EXCEPTION, PLATFORM, UNCREDITED, Refund

OPERATOR = 0

# Events of a withdrawal that had ended, after the channel reports that it has, or no longer has, its money.
HOLD_AGAIN, SPEND_AGAIN, RELEASE_AGAIN = "hold_again", "spend_again", "release_again"

# By which a channel's bill corrects the estimated costs of its day: `bill_costs 3 2026-05-01`, without an order.
BILL_COSTS = "bill_costs"

Account = tuple[str, int]  # kind and owner: the merchant's id, the channel's, or 0 for the operator
Lines = dict[Account, int]


def credit(order: Order) -> Lines:
    """Credit a deposit. The channel owes what it received, less what it is expected to keep."""
    return {
        (AVAILABLE, order.merchant_id): order.merchant_actual_amount,
        (FEES, OPERATOR): order.service_amount,
        (CLEARING, order.channel_id): order.cost_amount - order.received,
        (COMMISSION, OPERATOR): -order.cost_amount,
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


def refund(refund: Refund, order: Order, before: str, after: str) -> Lines:
    """Move a refund of this order from one status to another; "" is before it was placed.

    One that is paid from a deposit before its credit moves nothing: with the credit it is paid from the balance.
    """
    lines = dict.fromkeys(_of_refund(refund, order, before), 0) | _of_refund(refund, order, after)
    for account, fen in _of_refund(refund, order, before).items():
        lines[account] -= fen
    return lines


def _of_refund(refund: Refund, order: Order, status: str) -> Lines:
    """Return all that a refund in this status has moved."""
    available, deducted = (AVAILABLE, order.merchant_id), refund.merchant_actual_amount
    if status in ("", CANCELLED) or refund.paid_from in (EXCEPTION, UNCREDITED):
        return {}
    if status == COMPLETED:
        clearing = {(CLEARING, order.channel_id): refund.amount}
        if refund.paid_from == PLATFORM:
            return clearing | {(FEES, OPERATOR): -refund.amount}
        return clearing | {available: -deducted, (FEES, OPERATOR): -refund.service_amount}
    return {available: -deducted, (HELD, order.merchant_id): deducted} if refund.paid_from == BALANCE else {}


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
