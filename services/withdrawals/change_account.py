"""Put a payout that the bank refused to the account that its merchant has on file now."""

from __future__ import annotations

from models.db.writer import transaction
from models.tables.order import CONFIRMED, SELL, History, Order
from models.tables.payout_account import PayoutAccount
from models.tables.payout_batch import SENT, PayoutBatchLine
from runtime import clock
from services.channels.calls import driver_of
from services.errors import N_, OperatorError, refuse
from services.orders import lifecycle
from services.orders.reasons import Why, because
from services.security import masking, second_operator
from services.withdrawals import bank_files

CHANGED = N_("The withdrawal or the merchant's payout account changed just now. Reload and try again.")


def why_not(order: Order) -> str:
    """Return the reason not to put a payout to the merchant's present account on file, or "".

    The bank's refusal proves that the money was not sent. A withdrawal with a card of its own (gateway_a) may be for
    a customer of the merchant, so it keeps its card. The second operator of a large payout approved its account.
    """
    if order.order_type != SELL or order.status != CONFIRMED or not driver_of(order.channel).by_hand:
        return N_("Only an approved payout of a manual channel can get another account.")
    if bank_files.refused(order) is None:
        return N_("Only a payout that the bank refused can get another account.")
    if any(each.is_open for each in lifecycle.exceptions_of(order)):
        return bank_files.IN_QUESTION
    if second_operator.is_needed(order) or second_operator.waiting(order) or second_operator.has_approved(order):
        return N_("A second operator approved this account. Reject the withdrawal; the merchant creates a new one.")
    if not order.account.on_file:
        return N_("The merchant sent this account with the withdrawal. Reject it; the merchant creates a new one.")
    if present(order) is None:
        return N_("The merchant has no other payout account on file. Add it first, or reject the withdrawal.")
    return ""


def present(order: Order) -> PayoutAccount | None:
    """Return the merchant's present account on file, unless the withdrawal is paid to it already."""
    account = PayoutAccount.of(order.merchant)
    return None if account is None or account.id == order.account_id else account


def ending(account: PayoutAccount) -> str:
    """Return the last digits of an account's number, "-" once they were erased."""
    return masking.account(account)["card_number"].lstrip("*") or "-"


def paid_earlier(order: Order, reference: str) -> PayoutAccount | None:
    """Return the account that the bank paid by the transfer with this number, or None if it is the order's present one.

    Args:
        reference: "" for a transfer without a number; then its line must have its result.
    """
    lines = PayoutBatchLine.select().where(PayoutBatchLine.order == order, PayoutBatchLine.reference == reference)
    known = [line for line in lines if reference or line.result == SENT]
    line = max(known, key=lambda each: (each.result == SENT, each.id), default=None)
    return line.account if line is not None and line.account_id != order.account_id else None


def is_changed(order: Order) -> bool:
    """Return whether the payout was put to another account since the bank refused it."""
    codes = (Why.BANK_REFUSED, Why.BANK_REFUSED_BARE, Why.ACCOUNT_CHANGED)
    lines = History.select(History.code).where(History.order == order, History.code.in_(codes))
    last = lines.order_by(History.id.desc()).first()
    return last is not None and last.code == Why.ACCOUNT_CHANGED


@transaction
def change(order: Order, account_id: int, who: str) -> str:
    """Put the payout to the merchant's present account, with a line of history; return the account's last digits.

    Args:
        account_id: the account that the operator saw.

    Raises:
        OperatorError: it can't get another account, or this is no longer the merchant's present one.
    """
    order = Order.for_update(order.id)
    refuse(why_not(order))
    account = present(order)
    same = (Order.id == order.id, Order.status == CONFIRMED, Order.account == order.account_id)
    if account is None or account.id != account_id:
        raise OperatorError(CHANGED)
    if not Order.update(account=account.id, updatetime=clock.now()).where(*same).execute():
        raise OperatorError(CHANGED)
    lifecycle.note(order, who, because(Why.ACCOUNT_CHANGED, before=ending(order.account), after=ending(account)))
    return ending(account)
