"""The texts of actions: the button, the effect on the money, and the outcome."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from flask_babel import gettext, lazy_gettext

from blueprints.console import labels
from blueprints.console.locale import ngettext, sentences
from models.tables.ledger import FEES, HELD
from models.tables.order import BUY, SELL, Order
from models.tables.outbox import DEAD, DELIVERED, WAITING
from models.tables.refund import Refund, refunds_of
from runtime.money import grouped
from services.operations.actions import Act, Action, Effect
from services.orders import lifecycle
from services.orders.resolution import Case


@dataclass(frozen=True)
class Button:
    """The labels of an action's button and of the button that confirms it, and the style of both."""

    label: Any
    sure: Any
    kind: str = "primary"


@dataclass(frozen=True)
class ActionText(Button):
    """The texts of an action: its buttons and its effect."""

    text: str = ""


_AT_ONCE = lazy_gettext("A different amount needs review before it is credited.")
_STAYS = lazy_gettext("The order status does not change: %(status)s.")
_CANCELS = lazy_gettext("The order is cancelled.")
_NOTHING = lazy_gettext("The exception is closed. No money is recorded in the ledger.")
_FEE = lazy_gettext("%(available)s is credited to the merchant: %(came)s received, less a %(fee)s fee.")
_BACK = lazy_gettext("You send %(came)s back to the payer outside this service.")
_AGAIN = lazy_gettext("The callback is sent with the same id and body, and its retries start over.")
_TWO = lazy_gettext("Payouts of this amount need a second operator. Nothing happens until another operator approves.")

_APPROVE = Button(lazy_gettext("Approve"), lazy_gettext("Approve withdrawal"))
_REJECT = Button(lazy_gettext("Reject"), lazy_gettext("Reject withdrawal"), "danger")
_REQUEST = Button(lazy_gettext("Request approval"), lazy_gettext("Request approval"))
_RECEIVED = Button(lazy_gettext("Confirm received"), lazy_gettext("Confirm received"))
_SENT = Button(lazy_gettext("Mark as paid out"), lazy_gettext("Mark as paid out"))
_MORE = Button(lazy_gettext("Record another payment"), lazy_gettext("Record payment"), "")
_RETURNED = Button(lazy_gettext("Payout returned"), lazy_gettext("Report payout as returned"), "danger")
_NOT_RECEIVED = Button(lazy_gettext("Payment not received"), lazy_gettext("Cancel deposit"), "danger")
_ASK = Button(lazy_gettext("Check status"), lazy_gettext("Check status"), "")
_CREDIT = Button(lazy_gettext("Credit balance"), lazy_gettext("Credit %(available)s"))
_SEND = Button(lazy_gettext("Send back"), lazy_gettext("Mark %(came)s as sent back"), "danger")
_REJECT_REFUND = Button(lazy_gettext("Reject"), lazy_gettext("Reject refund"), "danger")
_APPROVE_REFUND = Button(lazy_gettext("Approve"), lazy_gettext("Approve refund"))
_NOT_OUT = Button(lazy_gettext("Mark as not paid out"), lazy_gettext("Mark as not paid out"), "danger")
_DELIVER = Button(lazy_gettext("Resend"), lazy_gettext("Resend callback"), "")

# By the act and its effect: its button, then sentences about that. A second approval has one for each act, a check for
# each type of order, a redelivery for each state of the callback.
_TEXTS: dict[tuple[Act, Effect | Case | Act | int | str], tuple[Any, ...]] = {
    (Act.APPROVE, Effect.PAID_BY_HAND): (
        _APPROVE,
        lazy_gettext("%(amount)s stays reserved. Send the money yourself, then mark the withdrawal as paid out."),
    ),
    (Act.APPROVE, Effect.PAID_BY_CHANNEL): (
        _APPROVE,
        lazy_gettext("The service sends the payout of %(amount)s to %(channel)s."),
    ),
    (Act.APPROVE, Effect.REQUESTED): (_REQUEST, _TWO, lazy_gettext("After approval, %(amount)s can be paid out.")),
    (Act.MARK_PAID, Effect.REQUESTED): (
        replace(_REQUEST, label=_SENT.label),
        lazy_gettext("You have sent the money."),
        _TWO,
    ),
    (Act.SECOND_APPROVAL, Act.APPROVE): (
        Button(lazy_gettext("Approve payout"), lazy_gettext("Approve payout")),
        lazy_gettext("You are the second operator. The withdrawal of %(amount)s is approved immediately."),
    ),
    (Act.SECOND_APPROVAL, Act.MARK_PAID): (
        Button(lazy_gettext("Approve as paid out"), lazy_gettext("Approve as paid out")),
        lazy_gettext("You are the second operator. The withdrawal of %(amount)s is marked as paid out immediately."),
    ),
    (Act.WITHDRAW_REQUEST, Effect.AT_ONCE): (
        Button(lazy_gettext("Withdraw request"), lazy_gettext("Withdraw request"), "danger"),
        lazy_gettext("Nothing is paid out. You can request the payout again."),
    ),
    (Act.REJECT, Effect.AT_ONCE): (
        _REJECT,
        lazy_gettext("Nothing is paid out. %(available)s returns to the merchant's available balance."),
        _CANCELS,
    ),
    (Act.REJECT, Effect.AFTER_CHECK): (
        _REJECT,
        lazy_gettext(
            "The service first checks the status at %(channel)s. If the channel has the payout or gives "
            "no clear response, nothing changes."
        ),
        lazy_gettext("Otherwise %(available)s returns to the merchant's available balance."),
        _CANCELS,
    ),
    (Act.NOT_RECEIVED, Effect.AT_ONCE): (
        _NOT_RECEIVED,
        lazy_gettext("You have checked your account and the payment did not arrive. No money moves."),
        _CANCELS,
    ),
    (Act.NOT_RECEIVED, Effect.AFTER_CHECK): (
        _NOT_RECEIVED,
        lazy_gettext(
            "The service first checks the status at %(channel)s. If the deposit is paid there, it is credited."
        ),
        _CANCELS,
    ),
    (Act.MARK_PAID, Effect.CREDITED): (
        _RECEIVED,
        lazy_gettext(
            "You have received the payment. If it is %(amount)s, %(available)s is credited to the "
            "merchant immediately, after a %(fee)s fee."
        ),
        _AT_ONCE,
    ),
    (Act.MARK_PAID, Effect.CREDITED_LATER): (
        _RECEIVED,
        lazy_gettext(
            "You have received the payment. If it is %(amount)s, it is credited to the merchant after "
            "the settlement delay."
        ),
        _AT_ONCE,
    ),
    (Act.MARK_PAID, Effect.PAID_AGAIN): (
        _MORE,
        lazy_gettext("This deposit is already paid. Another payment becomes an exception, which you credit or refund."),
    ),
    (Act.MARK_PAID, Effect.PAID_LATE): (
        _MORE,
        lazy_gettext("This deposit is cancelled. A late payment becomes an exception, which you credit or refund."),
    ),
    (Act.MARK_PAID, Effect.SPENT): (
        _SENT,
        lazy_gettext("You have sent the money. If it was %(amount)s, %(spent)s of the reserved balance is spent."),
        lazy_gettext("A different amount needs review."),
    ),
    (Act.MARK_PAID, Effect.SENT_AGAIN): (
        _MORE,
        lazy_gettext("This withdrawal is already paid out. A second payout becomes an exception."),
    ),
    (Act.MARK_PAID, Effect.SENT_AFTER_END): (
        _MORE,
        lazy_gettext("The reserved amount was returned. If you paid it out, the payout becomes an exception."),
    ),
    (Act.CHANGE_ACCOUNT, Effect.AT_ONCE): (
        Button(lazy_gettext("Change account"), lazy_gettext("Change account"), ""),
        lazy_gettext("The payout of %(amount)s goes to the account that the merchant has on file now."),
        lazy_gettext("No money moves. The next bank file contains the payout with the new account."),
        _STAYS,
    ),
    (Act.REPORT_RETURNED, Effect.AT_ONCE): (
        _RETURNED,
        lazy_gettext("The %(amount)s that you sent came back to your account. This opens an exception."),
        lazy_gettext("No money moves until you resolve it with Return to merchant."),
        _STAYS,
    ),
    (Act.CHECK, BUY): (
        _ASK,
        lazy_gettext(
            "The service checks whether the order is paid at %(channel)s and applies the result. This "
            "can take a few seconds."
        ),
    ),
    (Act.CHECK, SELL): (
        _ASK,
        lazy_gettext(
            "The service checks the payout at %(channel)s and applies the result. This can take a few seconds."
        ),
    ),
    (Act.RESOLVE, Case.CREDIT_AND_CANCEL): (_CREDIT, _FEE, _CANCELS),
    (Act.RESOLVE, Case.CREDIT): (_CREDIT, _FEE, _STAYS),
    (Act.RESOLVE, Case.COMPLETE_ORDER): (
        Button(lazy_gettext("Complete order"), lazy_gettext("Complete order")),
        lazy_gettext("The order is completed with %(came)s received."),
        _FEE,
    ),
    (Act.RESOLVE, Case.VALID_AFTER_ALL): (
        _CREDIT,
        lazy_gettext("The deposit is valid. %(available)s is credited to the merchant, after a %(fee)s fee."),
    ),
    (Act.RESOLVE, Case.SEND_BACK_AND_CANCEL): (_SEND, _BACK, _CANCELS),
    (Act.RESOLVE, Case.SEND_BACK): (_SEND, _BACK, _STAYS),
    (Act.RESOLVE, Case.STAYS_CREDITED): (
        Button(lazy_gettext("Keep credited"), lazy_gettext("Keep credited"), "danger"),
        _NOTHING,
        lazy_gettext("The merchant keeps %(credited)s. To take it back, adjust the balance."),
        _STAYS,
    ),
    (Act.RESOLVE, Case.NOBODY_PAID): (
        Button(lazy_gettext("Mark as unpaid"), lazy_gettext("Cancel deposit"), "danger"),
        lazy_gettext("You have checked at the channel that no payment was made."),
        _CANCELS,
    ),
    (Act.RESOLVE, Case.PAID_OUT): (
        _SENT,
        lazy_gettext("The payout was made as ordered. %(spent)s of the reserved balance is spent."),
        lazy_gettext("The order is completed."),
    ),
    (Act.RESOLVE, Case.PAID_AFTER_ALL): (
        _SENT,
        lazy_gettext("The merchant pays for it. %(spent)s is deducted from the available balance."),
        _STAYS,
    ),
    (Act.RESOLVE, Case.IS_COMPLETED): (
        Button(lazy_gettext("Keep as paid out"), lazy_gettext("Keep as paid out"), "danger"),
        lazy_gettext("The payout stays paid out, for example because the report was wrong."),
        _NOTHING,
        _STAYS,
    ),
    (Act.RESOLVE, Case.NOT_PAID_OUT): (
        _NOT_OUT,
        lazy_gettext("You have checked at the channel. %(available)s returns to the merchant's available balance."),
        _CANCELS,
    ),
    (Act.RESOLVE, Case.IS_CANCELLED): (_NOT_OUT, _NOTHING, _STAYS),
    (Act.RESOLVE, Case.GIVE_BACK): (
        Button(lazy_gettext("Return to merchant"), lazy_gettext("Return to merchant")),
        lazy_gettext("%(available)s returns to the merchant. This is all that the withdrawal cost, fees included."),
        lazy_gettext("No callback is sent. Inform the merchant yourself."),
        _STAYS,
    ),
    (Act.RESOLVE, Case.SEND_BACK_BY_CHANNEL): (
        Button(
            lazy_gettext("Refund %(came)s through the channel"),
            lazy_gettext("Refund %(came)s through the channel"),
            "danger",
        ),
        lazy_gettext("The service refunds %(came)s through %(channel)s. The merchant's balance does not change."),
        lazy_gettext("The exception is resolved once the refund is completed."),
    ),
    (Act.RESOLVE, Case.REFUND_RECEIVED): (
        Button(lazy_gettext("Payer received it"), lazy_gettext("Mark as received by the payer")),
        lazy_gettext("You have checked that the payer received %(came)s. The refund is completed."),
        _STAYS,
    ),
    (Act.RESOLVE, Case.REFUND_CAME_BACK): (
        Button(lazy_gettext("Money came back"), lazy_gettext("Mark as returned"), "danger"),
        lazy_gettext("You have checked that %(came)s is in your account at the channel. The refund is cancelled."),
        _STAYS,
    ),
    (Act.REFUND, Effect.AT_ONCE): (Button(lazy_gettext("Refund"), lazy_gettext("Refund")),),
    (Act.APPROVE_REFUND, Effect.PAID_BY_HAND): (
        _APPROVE_REFUND,
        lazy_gettext("Send %(amount)s to the payer yourself, then mark the refund as refunded."),
    ),
    (Act.APPROVE_REFUND, Effect.PAID_BY_CHANNEL): (
        _APPROVE_REFUND,
        lazy_gettext("The service sends the refund of %(amount)s to %(channel)s."),
    ),
    (Act.MARK_REFUNDED, Effect.AT_ONCE): (
        Button(lazy_gettext("Mark as refunded"), lazy_gettext("Mark as refunded")),
        lazy_gettext("You have sent %(amount)s to the payer."),
    ),
    (Act.CHECK_REFUND, Effect.AT_ONCE): (
        _ASK,
        lazy_gettext(
            "The service checks the refund at %(channel)s and applies the result. This can take a few seconds."
        ),
    ),
    (Act.REJECT_REFUND, Effect.AT_ONCE): (
        _REJECT_REFUND,
        lazy_gettext("Nothing is refunded. What was reserved for it returns to the merchant's available balance."),
    ),
    (Act.REJECT_REFUND, Effect.AFTER_CHECK): (
        _REJECT_REFUND,
        lazy_gettext(
            "The service first checks the status at %(channel)s. If the channel has the refund or gives "
            "no clear response, nothing changes."
        ),
        lazy_gettext("Otherwise nothing is refunded, and what was reserved returns to the merchant."),
    ),
    (Act.REDELIVER, WAITING): (replace(_DELIVER, label=lazy_gettext("Deliver now")), _AGAIN),
    (Act.REDELIVER, DELIVERED): (_DELIVER, _AGAIN),
    (Act.REDELIVER, DEAD): (_DELIVER, _AGAIN),
    (Act.REDELIVER_ALL, Effect.AT_ONCE): (
        Button(lazy_gettext("Resend all"), lazy_gettext("Resend callbacks"), ""),
        _AGAIN,
    ),
}


def money(fen: int) -> str:
    """Format fen as yuan with sign and currency: "-¥12.50"."""
    return f"-¥{grouped(-fen)}" if fen < 0 else f"¥{grouped(fen)}"


def status(order: Order) -> str:
    """Return the label of the order's status."""
    return labels.status(order.order_type, order.status)


def describe(action: Action, order: Order) -> ActionText:
    """Return the texts of an action with its amounts."""
    about = action.callback.state if action.callback else order.order_type if action.act is Act.CHECK else action.effect
    button, *texts = _TEXTS[action.act, action.requested or about]
    values = {
        "amount": money(action.refund.amount if action.refund else order.amount),
        "available": money(action.available),
        "spent": money(-action.moves(HELD) - action.available),
        "fee": money(action.moves(FEES)),
        "came": money(action.exception.amount) if action.exception else "",
        "credited": money(order.merchant_actual_amount),
        "channel": order.channel.name,
        "status": status(order),
    }
    label, sure = (str(text) % values for text in (button.label, button.sure))
    return ActionText(label, sure, button.kind, sentences(*(str(text) % values for text in texts)))


STATES_OF_CHANNEL = {
    "open": lazy_gettext("not paid yet, or in progress"),
    "paid": lazy_gettext("paid"),
    "failed": lazy_gettext("failed"),
    "absent": lazy_gettext("not found"),
}


def refund_outcome(action: Action, result: Any) -> str:
    """Return a message about the outcome of an action on a refund."""
    refund = Refund.get_by_id(result.id if action.refund is None else action.refund.id)
    values = {"amount": money(refund.amount), "status": str(labels.refund_status(refund)[1])}
    if action.act is Act.CHECK_REFUND:
        heard = labels.name_of(labels.REFUNDS_AT_CHANNEL, result.state.value)
        return gettext("Channel result: %(heard)s. Refund status: %(status)s.", heard=heard, **values)
    if action.act is Act.REFUND and not refund.approved_by:
        return gettext("Refund of %(amount)s requested. Another operator must approve it.", **values)
    return gettext("Refund of %(amount)s. Status: %(status)s.", **values)


def _own_outcome(action: Action, result: Any, order: Order) -> str:
    """Return the message about an action that does not simply lead the order on; "" for the others."""
    if action.refund is not None or action.act is Act.REFUND:
        return refund_outcome(action, result)
    if action.effect is Case.SEND_BACK_BY_CHANNEL:
        if any(each.exception_id == result.id and each.is_open and not each.approved_by for each in refunds_of(order)):
            return gettext(
                "Refund of %(amount)s requested. Another operator must approve it.", amount=money(result.amount)
            )
        return gettext(
            "Refund of %(amount)s begun. The exception is resolved once it is completed.", amount=money(result.amount)
        )
    if action.effect is Effect.REQUESTED:
        return gettext("Approval requested. Another operator must approve it.")
    if action.act is Act.WITHDRAW_REQUEST:
        return gettext("Request withdrawn.")
    if Act.MARK_PAID in (action.act, action.requested) and not result:
        return gettext("Already recorded. Nothing was changed.")
    if action.act is Act.CHANGE_ACCOUNT:
        return gettext("The payout now goes to the account ending in %(ending)s.", ending=result)
    if action.act in (Act.REDELIVER, Act.REDELIVER_ALL):
        count = int(result)
        return ngettext("%(num)s callback will be resent.", "%(num)s callbacks will be resent.", count)
    return ""


def outcome(action: Action, result: Any, order: Order) -> tuple[str, str]:
    """Return the kind of a message about the outcome of an action, and its text. `order` is the order after it."""
    if own := _own_outcome(action, result, order):
        return "good", own
    message = gettext("Done. Order status: %(status)s.", status=status(order))
    if action.act is Act.CHECK:
        heard = gettext(", ").join(str(STATES_OF_CHANNEL[report.state.value]) for report in result)
        message = gettext("Channel result: %(heard)s. Order status: %(status)s.", heard=heard, status=status(order))
    if action.act is Act.REPORT_RETURNED:
        message = gettext("The payout is recorded as returned.")
    if action.effect is Case.GIVE_BACK:
        text = gettext("%(amount)s returned to the merchant.", amount=money(action.available))
        message = sentences(text, gettext("No callback is sent. Inform the merchant yourself."))
    if lifecycle.open_exceptions(order):
        return "warn", sentences(message, gettext("An exception needs your decision. See below."))
    return "good", message
