"""What is due for a withdrawal, and what operators decide: approve, reject, mark as paid out, report as returned."""

from __future__ import annotations

from gateways.base import Report, State
from models.db.writer import transaction
from models.tables.order import COMPLETED, CONFIRMED, PAID, PENDING, REVERSED, SELL, Order
from models.tables.payout_batch import SENT, PayoutBatchLine
from runtime import clock
from services.channels import payment_numbers
from services.channels.calls import LATE, driver_of, lock_account, pause
from services.errors import N_, OperatorError, refuse
from services.orders import lifecycle
from services.orders.lifecycle import Acted, exceptions_of
from services.orders.reasons import Reason, Why, because, own_words
from services.orders.returned import UNKNOWN, Returned
from services.orders.verdict import COMPLETE
from services.security import second_operator
from services.withdrawals import money, send, settle
from services.withdrawals.money import WithdrawalMoney

APPROVED = because(Why.ACCEPTED)
CHANGED = N_("The withdrawal changed just now. Reload and try again.")


def why_not_approve(order: Order) -> str:
    """Return the reason not to approve it, or ""."""
    if order.order_type != SELL:
        return N_("Only a withdrawal can be approved.")
    return "" if order.status == PENDING else N_("Only a withdrawal that needs review can be approved.")


@transaction
def approve(order: Order, who: str = "operator", why: Reason = APPROVED, **claim: int) -> None:
    """Approve a pending withdrawal; the next sweep sends it to the channel.

    Args:
        claim: `due_at` and `asks` of a caller that has claimed it and sends it itself.

    Raises:
        OperatorError: it is not pending.
    """
    refuse(why_not_approve(order))
    lock_account(order.channel_id)
    if not lifecycle.transition(order, CONFIRMED, who, why, **{"due_at": clock.now(), **claim}):
        raise OperatorError(CHANGED)


def advance(order: Order) -> Acted:
    """Do what is due for a claimed withdrawal that has not ended: approve it if the channel's limit allows that without
    an operator, and pay it out.

    Returns: what the channel reports, and when to act again; never if an operator or the bank acts.

    Raises:
        ChannelUnknown: no usable response.
    """
    if order.status == PENDING:
        if order.amount > order.channel.auto_accept_max or second_operator.is_needed(order):
            return Acted(None)  # a limit changed since
        approve(order, "service", because(Why.ACCEPTED_BY_RULE), due_at=order.due_at, asks=1)
    report, why = send.hand_over(order)
    left_alone_until: int = order.left_alone_until or 0
    again_at = max(clock.now() + pause(order.asks - 1), left_alone_until)
    return Acted(None if driver_of(order.channel).by_hand else again_at, [report], why)


def why_not_reject(order: Order) -> str:
    """Return the reason not to reject it, apart from the channel's status, or ""."""
    if order.order_type != SELL:
        return N_("Only a withdrawal can be rejected.")
    return "" if order.status in (PENDING, CONFIRMED) else N_("This withdrawal can no longer be rejected.")


def reject(order: Order, reason: str, who: str = "operator", in_file: bool = False) -> None:
    """Reject a withdrawal and return its reserve: a pending one, or an approved one that the channel does not have.

    If the channel supports status checks, one is made first, while the sweep is kept away from the order. Checks
    continue afterwards: a payout that was sent after all becomes an exception.

    Args:
        in_file: the operator knows that it is in a bank file.

    Raises:
        OperatorError: its money may have been sent.
    """
    refuse(why_not_reject(order))
    if not reason.strip():
        raise OperatorError(N_("Enter a reason for the rejection."))
    at_a_channel = send.may_be_at_channel(order)
    if at_a_channel:
        send.check(order, send.NOT_OUT)
    if not _cancelled(order, who, reason, clock.now() + LATE[0] if at_a_channel else None, in_file):
        raise OperatorError(CHANGED)


@transaction
def _cancelled(order: Order, who: str, reason: str, ask_again: int | None, in_file: bool) -> bool:
    if not send.is_as_checked(Order.for_update(order.id), order):
        return False
    unless_in_file(order, in_file)
    if ask_again is not None:
        lifecycle.outcome_known(lifecycle.exceptions_of(order))  # the channel responded just now
    return settle.cancel(order, who, own_words(reason), due_at=ask_again)


def why_not_mark_sent(order: Order) -> str:
    """Return the reason not to accept an operator's confirmation that the money was sent, or ""."""
    if not driver_of(order.channel).by_hand:
        return N_("The channel reports payments itself. Check the status instead.")
    refused = {
        PENDING: N_("Approve the withdrawal first."),
        PAID: N_("The payout is already recorded."),
    }
    return refused.get(order.status, "")


@transaction
def mark_sent(
    order: Order,
    *,
    amount: int | None = None,
    reference: str = "",
    who: str = "operator",
    shared: bool = False,
    in_file: bool = False,
) -> bool:
    """Record an operator's confirmation that the money of a manual channel's withdrawal was sent.

    Args:
        amount: sent, in fen; None means the order's amount.
        reference: the bank's or wallet's number of the transfer; surrounding blanks are removed.
        shared: the transfer also covers other orders.
        in_file: the operator knows that it is in a bank file.

    Returns: False if this was recorded already.

    Raises:
        OperatorError: the channel reports payments itself, the withdrawal is not approved yet or in a bank file, or the
            reference is recorded for another order of the channel.
    """
    order, reference = Order.for_update(order.id), reference.strip()
    refuse(why_not_mark_sent(order))
    unless_in_file(order, in_file)
    if amount == 0:
        raise OperatorError(payment_numbers.NOTHING_RECORDED)
    report = Report(State.PAID, order.amount if amount is None else amount, reference, by_operator=True)
    if not shared and not payment_numbers.is_on_record(order, reference):
        payment_numbers.refuse_second(order, reference)
    changed = settle.apply_report(order, report, who, because(Why.MARKED_PAID))
    line = PayoutBatchLine.in_file(order)
    if line is not None and line.reference == reference:
        line.end(SENT)  # the bank's result, which needed this approval
    return changed


def unless_in_file(order: Order, is_confirmed: bool) -> None:
    """Refuse to decide about a payout that a bank may still pay by a file, unless the operator confirms to know that.

    Call it in the transaction that decides, on the locked order.

    Raises:
        OperatorError: it is in a bank file that was downloaded and has no result.
    """
    line = None if is_confirmed else PayoutBatchLine.in_file(order)
    if line is not None:
        text = N_(
            "The payout is in bank file %(batch)s, which was downloaded and has no result yet. The bank may still pay "
            "it. Check at the bank first, then confirm that (--in-bank-file)."
        )
        raise OperatorError(text, batch=str(line.batch_id))


def why_not_return(order: Order) -> str:
    """Return the reason not to accept an operator's report that the money of a payout came back, or ""."""
    if order.order_type != SELL:
        return N_("Only a withdrawal can be reported as returned.")
    if not driver_of(order.channel).by_hand:
        return N_("The channel reports payments itself. Check the status instead.")
    if order.status != COMPLETED:
        return N_("Only a completed withdrawal can be reported as returned.")
    if any(each.kind == REVERSED and each.is_open for each in exceptions_of(order)):
        return N_("The return is already recorded. Resolve its exception.")
    given_back = money.state_of(order) is not WithdrawalMoney.SPENT
    return N_("The money was already returned to the merchant.") if given_back else ""


@transaction
def report_returned(order: Order, *, transfer: Returned = UNKNOWN, reason: str = "", who: str = "operator") -> None:
    """Record an operator's report that the money of a paid withdrawal came back to the operator's account.

    It is a report like a channel's, and opens the exception `reversed`. No money moves before that is resolved.

    Args:
        transfer: the bank's transfer of the return.
        reason: the bank's reason, or "".

    Raises:
        OperatorError: the channel is not manual, or the withdrawal is not completed or was returned already, or another
            order has the transfer's number.
    """
    order = Order.for_update(order.id)
    refuse(why_not_return(order))
    transfer.refuse_second(order)
    for each in exceptions_of(order):
        if (each.kind, each.resolution) == (REVERSED, COMPLETE):  # this is a new return
            lifecycle.note_once(order, who, because(Why.REPORT_CHANGED, kind=each.kind, exception=str(each.id)))
    told = because(Why.PAYOUT_CAME_BACK, text=" · ".join(filter(None, (transfer.reference, reason.strip()))) or "-")
    lifecycle.note(order, who, told)
    settle.apply_report(order, Report(State.FAILED, reference=order.channel_reference), who, told)
    for each in exceptions_of(order):
        if each.kind == REVERSED and each.is_open:
            each.change(**transfer.columns)
