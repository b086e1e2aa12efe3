"""The texts of actions: the button, the effect on the money, and the outcome."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from flask_babel import gettext, lazy_gettext, ngettext

from blueprints.console import labels
from blueprints.console.locale import sentences, yuan
from models.tables.ledger import FEES, HELD
from models.tables.order import Order
from services.console.available_actions import Action
from services.orders import exceptions


@dataclass(frozen=True)
class Button:
    """The button of an action, the button that confirms it, and what both look like."""

    label: Any
    sure: Any
    kind: str = "primary"


@dataclass(frozen=True)
class ActionText(Button):
    """The texts of an action: its buttons, and its effect."""

    text: str = ""


_AT_ONCE = lazy_gettext("Another amount moves nothing and becomes an exception, which you then settle.")
_STAYS = lazy_gettext("The order stays %(status)s.")
_CANCELS = lazy_gettext("The order ends as cancelled.")
_NOTHING = lazy_gettext("Nothing moves in the books: the exception is closed.")
_FEE = lazy_gettext("%(available)s is credited to the merchant: %(came)s came, less %(fee)s fee.")
_BACK = lazy_gettext(
    "You send %(came)s back to the payer yourself, outside of this service. Nothing moves in the books."
)
_AGAIN = lazy_gettext("It is sent with the same number and the same body, and is tried from the first attempt on.")
_TWO = lazy_gettext("Payouts of this size need a second operator: nothing takes effect until another one approves.")

_ACCEPT = Button(lazy_gettext("Accept"), lazy_gettext("Yes, accept it"))
_REJECT = Button(lazy_gettext("Reject"), lazy_gettext("Yes, reject it"), "danger")
_REQUEST = Button(lazy_gettext("Request approval"), lazy_gettext("Request approval"))
_MARK = Button(lazy_gettext("Mark as paid"), lazy_gettext("Yes, mark as paid"))
_MORE = Button(lazy_gettext("Record another payment"), lazy_gettext("Yes, record it"), "")
_NOT_RECEIVED = Button(lazy_gettext("Payment not received"), lazy_gettext("Cancel the deposit"), "danger")
_ASK = Button(lazy_gettext("Ask the channel"), lazy_gettext("Yes, ask it"), "")
_CREDIT = Button(lazy_gettext("Credit what came"), lazy_gettext("Yes, credit it"))
_SEND = Button(lazy_gettext("Send it back"), lazy_gettext("Yes, send it back"), "danger")
_OUT = Button(lazy_gettext("It was paid out"), lazy_gettext("Yes, it was paid out"))
_NOT_OUT = Button(lazy_gettext("It was not paid out"), lazy_gettext("Yes, it was not paid out"), "danger")
_DELIVER = Button(lazy_gettext("Deliver again"), lazy_gettext("Yes, deliver it"), "")

# By name and case: the button, then the sentences that say what it does.
_TEXTS: dict[tuple[str, str], tuple[Any, ...]] = {
    ("accept", "by hand"): (
        _ACCEPT,
        lazy_gettext("%(amount)s stays held. You then send it yourself, and mark the withdrawal as paid."),
    ),
    ("accept", "at the channel"): (
        _ACCEPT,
        lazy_gettext("The service hands it to %(channel)s, which pays %(amount)s out."),
    ),
    ("accept", "request"): (_REQUEST, _TWO, lazy_gettext("Once it is approved, %(amount)s can be paid out.")),
    ("paid", "request"): (replace(_REQUEST, label=_MARK.label), lazy_gettext("You sent the money."), _TWO),
    ("approve", "accept"): (
        Button(lazy_gettext("Approve payout"), lazy_gettext("Approve payout")),
        lazy_gettext("You are the second operator: the withdrawal of %(amount)s is approved at once."),
    ),
    ("approve", "paid"): (
        Button(lazy_gettext("Approve as paid"), lazy_gettext("Approve as paid")),
        lazy_gettext("You are the second operator: the withdrawal of %(amount)s is marked as paid at once."),
    ),
    ("withdraw-request", "any"): (
        Button(lazy_gettext("Withdraw the request"), lazy_gettext("Withdraw the request"), "danger"),
        lazy_gettext("Nothing is paid out. The payout can be requested again."),
    ),
    ("reject", "return"): (
        _REJECT,
        lazy_gettext("It is not paid out. %(available)s goes back to the merchant's available balance."),
        _CANCELS,
    ),
    ("reject", "ask first"): (
        _REJECT,
        lazy_gettext("%(channel)s is asked first: if it has the withdrawal, or can't say, nothing changes."),
        lazy_gettext("Else %(available)s goes back to the merchant's available balance."),
        _CANCELS,
    ),
    ("not-received", "cancel"): (
        _NOT_RECEIVED,
        lazy_gettext("You checked your account: the payer's claim is false. No money moves."),
        _CANCELS,
    ),
    ("not-received", "ask first"): (
        _NOT_RECEIVED,
        lazy_gettext("The service checks the status at %(channel)s first. If it is paid there, it is credited."),
        _CANCELS,
    ),
    ("paid", "credit"): (
        _MARK,
        lazy_gettext(
            "You saw the money come. If it is %(amount)s, %(available)s is credited to the merchant at once, "
            "after %(fee)s fee."
        ),
        _AT_ONCE,
    ),
    ("paid", "credit later"): (
        _MARK,
        lazy_gettext(
            "You saw the money come. If it is %(amount)s, it is credited to the merchant after the channel's "
            "settlement delay."
        ),
        _AT_ONCE,
    ),
    ("paid", "paid again"): (
        _MORE,
        lazy_gettext("It is paid already. More money becomes an exception, which you then credit or send back."),
    ),
    ("paid", "late"): (
        _MORE,
        lazy_gettext(
            "It is cancelled. Money that came all the same becomes an exception, which you then credit or send back."
        ),
    ),
    ("paid", "spend"): (
        _MARK,
        lazy_gettext("You sent the money. If it was %(amount)s, %(spent)s of what is held is spent."),
        _AT_ONCE,
    ),
    ("paid", "sent again"): (
        _MORE,
        lazy_gettext("It is paid out already. Money that went out once more becomes an exception."),
    ),
    ("paid", "sent although cancelled"): (
        _MORE,
        lazy_gettext("Its hold is returned. Money that went out all the same becomes an exception."),
    ),
    ("ask", "deposit"): (
        _ASK,
        lazy_gettext("%(channel)s is asked whether it is paid, and what it says counts. It may take some seconds."),
    ),
    ("ask", "withdrawal"): (
        _ASK,
        lazy_gettext("%(channel)s is asked what became of it, and what it says counts. It may take some seconds."),
    ),
    ("settle", "credit what came, cancel"): (_CREDIT, _FEE, _CANCELS),
    ("settle", "credit what came"): (_CREDIT, _FEE, _STAYS),
    ("settle", "complete the order"): (
        Button(lazy_gettext("Complete the order"), lazy_gettext("Complete and notify the merchant")),
        lazy_gettext("The order is completed with %(came)s received."),
        _FEE,
        lazy_gettext("The merchant is notified by the callback order.completed."),
    ),
    ("settle", "good after all"): (
        replace(_CREDIT, label=lazy_gettext("Credit it after all")),
        lazy_gettext("The deposit is good after all: %(available)s is credited to the merchant, after %(fee)s fee."),
    ),
    ("settle", "send back, cancel"): (_SEND, _BACK, _CANCELS),
    ("settle", "send back"): (_SEND, _BACK, _STAYS),
    ("settle", "stays credited"): (
        Button(lazy_gettext("Leave it credited"), lazy_gettext("Yes, leave it credited"), "danger"),
        _NOTHING,
        lazy_gettext("The merchant keeps %(credited)s, unless you take it back by an adjustment."),
        _STAYS,
    ),
    ("settle", "nobody paid"): (
        Button(lazy_gettext("Nobody paid"), lazy_gettext("Yes, nobody paid"), "danger"),
        lazy_gettext("You looked at the channel: nobody paid."),
        _CANCELS,
    ),
    ("settle", "money is out"): (
        _OUT,
        lazy_gettext("The money is out as ordered: %(spent)s of what is held is spent."),
        lazy_gettext("The order ends as completed."),
    ),
    ("settle", "out after all"): (
        _OUT,
        lazy_gettext("The merchant pays for it: %(spent)s is taken from the available balance."),
        _STAYS,
    ),
    ("settle", "is completed"): (_OUT, _NOTHING, _STAYS),
    ("settle", "money is not out"): (
        _NOT_OUT,
        lazy_gettext("You looked at the channel: %(available)s goes back to the merchant's available balance."),
        _CANCELS,
    ),
    ("settle", "is cancelled"): (_NOT_OUT, _NOTHING, _STAYS),
    ("settle", "give back"): (
        Button(lazy_gettext("Give it back"), lazy_gettext("Yes, give it back")),
        lazy_gettext("%(available)s goes back to the merchant: all that the withdrawal took, fees too."),
        _STAYS,
    ),
    ("redeliver", "pending"): (replace(_DELIVER, label=lazy_gettext("Deliver now")), _AGAIN),
    ("redeliver", "delivered"): (_DELIVER, _AGAIN),
    ("redeliver", "dead"): (_DELIVER, _AGAIN),
    ("redeliver-all", "all"): (
        Button(lazy_gettext("Deliver all again"), lazy_gettext("Yes, deliver them"), ""),
        _AGAIN,
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
    button, *texts = _TEXTS[action.name, action.case]
    values = {
        "amount": money(order.amount),
        "available": money(action.available),
        "spent": money(-action.moves(HELD) - action.available),
        "fee": money(action.moves(FEES)),
        "came": money(action.exception.amount) if action.exception else "",
        "credited": money(order.merchant_actual_amount),
        "channel": order.channel.name,
        "status": status(order),
    }
    return ActionText(button.label, button.sure, button.kind, sentences(*(str(text) % values for text in texts)))


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
