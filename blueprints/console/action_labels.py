"""The texts of actions: the button, the effect on the money, and the outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flask_babel import gettext, lazy_gettext, ngettext

from blueprints.console import labels
from blueprints.console.locale import sentences, yuan
from models.tables.ledger import FEES
from models.tables.order import Order
from services.console.available_actions import Action
from services.orders import exceptions


@dataclass(frozen=True)
class ActionText:
    """The texts of an action: its button, its effect, and the button that confirms it."""

    label: str
    text: str
    sure: str
    kind: str = "primary"


_AT_ONCE = lazy_gettext("Another amount moves nothing and becomes an exception, which you then settle.")
_STAYS = lazy_gettext("The order stays %(status)s.")
_CANCELS = lazy_gettext("The order ends as cancelled.")
_NOTHING = lazy_gettext("Nothing moves in the books: the exception is closed.")
_FEE = lazy_gettext("%(available)s is credited to the merchant: %(came)s came, less %(fee)s fee.")
_BACK = lazy_gettext(
    "You send %(came)s back to the payer yourself, outside of this service. Nothing moves in the books."
)
_MARK, _MARK_SURE = lazy_gettext("Mark as paid"), lazy_gettext("Yes, mark as paid")
_MORE, _MORE_SURE = lazy_gettext("Record another payment"), lazy_gettext("Yes, record it")
_NOT_RECEIVED, _NOT_RECEIVED_SURE = lazy_gettext("Payment not received"), lazy_gettext("Cancel the deposit")
_OUT, _OUT_SURE = lazy_gettext("It was paid out"), lazy_gettext("Yes, it was paid out")
_NOT_OUT, _NOT_OUT_SURE = lazy_gettext("It was not paid out"), lazy_gettext("Yes, it was not paid out")
_CREDIT, _CREDIT_SURE = lazy_gettext("Credit what came"), lazy_gettext("Yes, credit it")
_SEND, _SEND_SURE = lazy_gettext("Send it back"), lazy_gettext("Yes, send it back")
_COMPLETE, _COMPLETE_SURE = lazy_gettext("Complete the order"), lazy_gettext("Complete and notify the merchant")
_AGAIN = lazy_gettext("It is sent with the same number and the same body, and is tried from the first attempt on.")
_REJECT, _REJECT_SURE = lazy_gettext("Reject"), lazy_gettext("Yes, reject it")
_ACCEPT, _ACCEPT_SURE = lazy_gettext("Accept"), lazy_gettext("Yes, accept it")
_ASK, _ASK_SURE = lazy_gettext("Ask the channel"), lazy_gettext("Yes, ask it")
_AGAIN_SURE = lazy_gettext("Yes, deliver it")

_TWO = lazy_gettext("Payouts of this size need a second operator: nothing takes effect until another one approves.")

# By name and case: label, texts, the button that does it, its kind.
_TEXTS: dict[tuple[str, str], tuple[Any, tuple[Any, ...], Any, str]] = {
    ("accept", "by hand"): (
        _ACCEPT,
        (lazy_gettext("%(amount)s stays held. You then send it yourself, and mark the withdrawal as paid."),),
        *(_ACCEPT_SURE, "primary"),
    ),
    ("accept", "at the channel"): (
        _ACCEPT,
        (lazy_gettext("The service hands it to %(channel)s, which pays %(amount)s out."),),
        *(_ACCEPT_SURE, "primary"),
    ),
    ("accept", "request"): (
        lazy_gettext("Request approval"),
        (_TWO, lazy_gettext("Once it is approved, %(amount)s can be paid out.")),
        *(lazy_gettext("Request approval"), "primary"),
    ),
    ("paid", "request"): (
        _MARK,
        (lazy_gettext("You sent the money."), _TWO),
        *(lazy_gettext("Request approval"), "primary"),
    ),
    ("approve", "accept"): (
        lazy_gettext("Approve payout"),
        (lazy_gettext("You are the second operator: the withdrawal of %(amount)s is approved at once."),),
        *(lazy_gettext("Approve payout"), "primary"),
    ),
    ("approve", "paid"): (
        lazy_gettext("Approve as paid"),
        (lazy_gettext("You are the second operator: the withdrawal of %(amount)s is marked as paid at once."),),
        *(lazy_gettext("Approve as paid"), "primary"),
    ),
    ("withdraw-request", "any"): (
        lazy_gettext("Withdraw the request"),
        (lazy_gettext("Nothing is paid out. The payout can be requested again."),),
        *(lazy_gettext("Withdraw the request"), "danger"),
    ),
    ("reject", "return"): (
        _REJECT,
        (lazy_gettext("It is not paid out. %(available)s goes back to the merchant's available balance."), _CANCELS),
        *(_REJECT_SURE, "danger"),
    ),
    ("reject", "ask first"): (
        _REJECT,
        (
            lazy_gettext("%(channel)s is asked first: if it has the withdrawal, or can't say, nothing changes."),
            lazy_gettext("Else %(available)s goes back to the merchant's available balance."),
            _CANCELS,
        ),
        *(_REJECT_SURE, "danger"),
    ),
    ("not-received", "cancel"): (
        _NOT_RECEIVED,
        (lazy_gettext("You checked your account: the payer's claim is false. No money moves."), _CANCELS),
        *(_NOT_RECEIVED_SURE, "danger"),
    ),
    ("not-received", "ask first"): (
        _NOT_RECEIVED,
        (
            lazy_gettext("The service checks the status at %(channel)s first. If it is paid there, it is credited."),
            _CANCELS,
        ),
        *(_NOT_RECEIVED_SURE, "danger"),
    ),
    ("paid", "credit"): (
        _MARK,
        (
            lazy_gettext(
                "You saw the money come. If it is %(amount)s, %(available)s is credited to the merchant at once, "
                "after %(fee)s fee."
            ),
            _AT_ONCE,
        ),
        *(_MARK_SURE, "primary"),
    ),
    ("paid", "credit later"): (
        _MARK,
        (
            lazy_gettext(
                "You saw the money come. If it is %(amount)s, it is credited to the merchant after the channel's "
                "settlement delay."
            ),
            _AT_ONCE,
        ),
        *(_MARK_SURE, "primary"),
    ),
    ("paid", "paid again"): (
        _MORE,
        (lazy_gettext("It is paid already. More money becomes an exception, which you then credit or send back."),),
        *(_MORE_SURE, ""),
    ),
    ("paid", "late"): (
        _MORE,
        (
            lazy_gettext(
                "It is cancelled. Money that came all the same becomes an exception, which you then credit or "
                "send back."
            ),
        ),
        *(_MORE_SURE, ""),
    ),
    ("paid", "spend"): (
        _MARK,
        (
            lazy_gettext("You sent the money. If it was %(amount)s, %(spent)s of what is held is spent."),
            _AT_ONCE,
        ),
        *(_MARK_SURE, "primary"),
    ),
    ("paid", "sent again"): (
        _MORE,
        (lazy_gettext("It is paid out already. Money that went out once more becomes an exception."),),
        *(_MORE_SURE, ""),
    ),
    ("paid", "sent although cancelled"): (
        _MORE,
        (lazy_gettext("Its hold is returned. Money that went out all the same becomes an exception."),),
        *(_MORE_SURE, ""),
    ),
    ("ask", "deposit"): (
        _ASK,
        (lazy_gettext("%(channel)s is asked whether it is paid, and what it says counts. It may take some seconds."),),
        *(_ASK_SURE, ""),
    ),
    ("ask", "withdrawal"): (
        _ASK,
        (lazy_gettext("%(channel)s is asked what became of it, and what it says counts. It may take some seconds."),),
        *(_ASK_SURE, ""),
    ),
    ("settle", "credit what came, cancel"): (_CREDIT, (_FEE, _CANCELS), _CREDIT_SURE, "primary"),
    ("settle", "credit what came"): (_CREDIT, (_FEE, _STAYS), _CREDIT_SURE, "primary"),
    ("settle", "complete the order"): (
        _COMPLETE,
        (
            lazy_gettext("The order is completed with %(came)s received."),
            _FEE,
            lazy_gettext("The merchant is notified by the callback order.completed."),
        ),
        *(_COMPLETE_SURE, "primary"),
    ),
    ("settle", "good after all"): (
        lazy_gettext("Credit it after all"),
        (lazy_gettext("The deposit is good after all: %(available)s is credited to the merchant, after %(fee)s fee."),),
        *(_CREDIT_SURE, "primary"),
    ),
    ("settle", "send back, cancel"): (_SEND, (_BACK, _CANCELS), _SEND_SURE, "danger"),
    ("settle", "send back"): (_SEND, (_BACK, _STAYS), _SEND_SURE, "danger"),
    ("settle", "stays credited"): (
        lazy_gettext("Leave it credited"),
        (
            _NOTHING,
            lazy_gettext("The merchant keeps %(credited)s, unless you take it back by an adjustment."),
            _STAYS,
        ),
        *(lazy_gettext("Yes, leave it credited"), "danger"),
    ),
    ("settle", "nobody paid"): (
        lazy_gettext("Nobody paid"),
        (lazy_gettext("You looked at the channel: nobody paid."), _CANCELS),
        *(lazy_gettext("Yes, nobody paid"), "danger"),
    ),
    ("settle", "money is out"): (
        _OUT,
        (
            lazy_gettext("The money is out as ordered: %(spent)s of what is held is spent."),
            lazy_gettext("The order ends as completed."),
        ),
        *(_OUT_SURE, "primary"),
    ),
    ("settle", "out after all"): (
        _OUT,
        (lazy_gettext("The merchant pays for it: %(spent)s is taken from the available balance."), _STAYS),
        *(_OUT_SURE, "primary"),
    ),
    ("settle", "is completed"): (_OUT, (_NOTHING, _STAYS), _OUT_SURE, "primary"),
    ("settle", "money is not out"): (
        _NOT_OUT,
        (
            lazy_gettext("You looked at the channel: %(available)s goes back to the merchant's available balance."),
            _CANCELS,
        ),
        *(_NOT_OUT_SURE, "danger"),
    ),
    ("settle", "is cancelled"): (_NOT_OUT, (_NOTHING, _STAYS), _NOT_OUT_SURE, "danger"),
    ("settle", "give back"): (
        lazy_gettext("Give it back"),
        (
            lazy_gettext("%(available)s goes back to the merchant: all that the withdrawal took, fees too."),
            _STAYS,
        ),
        *(lazy_gettext("Yes, give it back"), "primary"),
    ),
    ("redeliver", "pending"): (lazy_gettext("Deliver now"), (_AGAIN,), _AGAIN_SURE, ""),
    ("redeliver", "delivered"): (lazy_gettext("Deliver again"), (_AGAIN,), _AGAIN_SURE, ""),
    ("redeliver", "dead"): (lazy_gettext("Deliver again"), (_AGAIN,), _AGAIN_SURE, ""),
    ("redeliver-all", "all"): (
        lazy_gettext("Deliver all again"),
        (_AGAIN,),
        *(lazy_gettext("Yes, deliver them"), ""),
    ),
}


def money(fen: int) -> str:
    """An amount in yuan, with its sign."""
    return f"-¥{yuan(-fen)}" if fen < 0 else f"¥{yuan(fen)}"


def status(order: Order) -> str:
    """An order's state, inside a sentence."""
    return labels.name_of(labels.STATUSES, order.status).lower()


def describe(action: Action, order: Order) -> ActionText:
    """The texts of an action, with its amounts."""
    label, texts, sure, kind = _TEXTS[action.name, action.case]
    values = {
        "amount": money(order.amount),
        "available": money(action.available),
        "spent": money(-action.held - action.available),
        "fee": money(action.moves(FEES)),
        "came": money(action.exception.amount) if action.exception else "",
        "credited": money(order.merchant_actual_amount),
        "channel": order.channel.name,
        "status": status(order),
    }
    return ActionText(str(label), sentences(*(str(text) % values for text in texts)), str(sure), kind)


STATES_OF_CHANNEL = {
    "open": lazy_gettext("it is not paid yet, or under way"),
    "paid": lazy_gettext("it is paid"),
    "failed": lazy_gettext("it failed"),
    "absent": lazy_gettext("it has no such order"),
}


def outcome(action: Action, result: Any, order: Order) -> str:
    """The outcome of an action as a message; `order` is as it is now."""
    if action.case == "request":
        return gettext("Requested. Another operator must approve it.")
    if action.name == "withdraw-request":
        return gettext("The request is withdrawn.")
    if "paid" in (action.name, action.case) and not result:
        return gettext("This was on record already: nothing changed.")
    if action.name.startswith("redeliver"):
        count = int(result)
        return ngettext("%(num)s callback is delivered again now.", "%(num)s callbacks are delivered again now.", count)
    message = gettext("Done: the order is %(status)s.", status=status(order))
    if action.name == "ask":
        heard = ", ".join(str(STATES_OF_CHANNEL[report.state.value]) for report in result)
        message = gettext("The channel says: %(heard)s. The order is %(status)s.", heard=heard, status=status(order))
    if exceptions.open_exceptions(order):
        message = sentences(message, gettext("There is an exception to settle, see below."))
    return message
