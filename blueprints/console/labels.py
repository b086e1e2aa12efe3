"""Labels of statuses, kinds, codes and fields, in the reader's language."""

from __future__ import annotations

from typing import Any

from flask import g
from flask_babel import get_locale, gettext, lazy_gettext, pgettext
from markupsafe import Markup, escape

from gateways import registry
from models.tables.ledger import AVAILABLE, CLEARING, COMMISSION, FEES, HELD
from models.tables.order import BUY, CANCELLED, COMPLETED, CONFIRMED, OF_REFUNDS, PAID, PENDING, SELL
from schemas.views import CATEGORY_TEXTS, PAY_METHOD_TEXTS, STATUS_TEXTS
from services.callbacks import epay_notices
from services.console.timeline import NextStep
from services.ledger.postings import BILL_COSTS
from services.orders.reasons import Reason, Why, reason_of
from services.orders.verdict import CREDIT
from services.platform.language import language_of
from services.platform.safe_text import printable
from services.security.audit import NOT_DONE
from services.withdrawals.bank_templates import TEMPLATES

TYPES = {BUY: lazy_gettext("Deposit"), SELL: lazy_gettext("Withdrawal")}
# By order type and status.
STATUSES = {key: lazy_gettext(text) for key, text in STATUS_TEXTS.items()}
# The parts of a channel that a connection test checks.
CHECKS = {
    "connection": lazy_gettext("Connection"),
    "keys": lazy_gettext("Keys"),
    "status": lazy_gettext("Status checks"),
    "collect": lazy_gettext("Deposits"),
    "pay_out": lazy_gettext("Payouts"),
    "jsapi": lazy_gettext("Sign-in"),
    "clock": lazy_gettext("Clock"),
    "version": lazy_gettext("Version"),
    **{name: lazy_gettext(text) for name, text in PAY_METHOD_TEXTS.items()},
}
METHODS = {name: lazy_gettext(text) for name, text in PAY_METHOD_TEXTS.items()}
DRIVERS = {name: lazy_gettext(driver.title) if driver.title else name for name, driver in registry.DRIVERS.items()}
CATEGORIES = {name: lazy_gettext(text) for name, text in CATEGORY_TEXTS.items()}
CALLBACKS = {
    "pending": lazy_gettext("Waiting"),
    "delivered": lazy_gettext("Delivered"),
    "dead": lazy_gettext("Failed"),
}
# Kinds of destination of notifications, and the states of messages to them.
DESTINATIONS = {
    "email": lazy_gettext("Email"),
    "wecom": lazy_gettext("WeCom group robot"),
    "dingtalk": lazy_gettext("DingTalk group robot"),
    "feishu": lazy_gettext("Feishu group robot"),
    "telegram": lazy_gettext("Telegram bot"),
    "webhook": lazy_gettext("Signed webhook"),
}
NOTIFICATIONS = {
    "pending": CALLBACKS["pending"],
    "delivered": CALLBACKS["delivered"],
    "failed": CALLBACKS["dead"],
}
EXCEPTIONS = {
    "wrong_amount": lazy_gettext("Wrong amount"),
    "late_payment": lazy_gettext("Late payment"),
    "paid_twice": lazy_gettext("Paid twice"),
    "amount_corrected": lazy_gettext("Amount corrected"),
    "shared_reference": lazy_gettext("Transaction ID of another order"),
    "payout_conflict": lazy_gettext("Payout conflict"),
    "payout_in_progress": lazy_gettext("Payout in progress"),
    "payout_missing": lazy_gettext("Payout missing at the channel"),
    "reversed": lazy_gettext("Returned or reversed"),
    "unknown_outcome": lazy_gettext("No response from the channel"),
    "refund_abnormal": lazy_gettext("Refund not received"),
    "refund_conflict": lazy_gettext("Refund result contradicted"),
}
RESOLUTIONS = {
    "credit": lazy_gettext("Credited"),
    "refund": lazy_gettext("Sent back"),
    "complete": lazy_gettext("Completed"),
    "cancel": lazy_gettext("Cancelled"),
    "corrected": lazy_gettext("Corrected by the channel"),
    "answered": lazy_gettext("Channel responded"),
    "returned": lazy_gettext("Returned by the channel"),
    "paid_out": lazy_gettext("Paid out by the channel"),
    "failed": lazy_gettext("Failed at the channel"),
    "sandbox_removed": lazy_gettext("Sandbox money removed"),
}
# Of exceptions about refunds.
REFUND_RESOLUTIONS = {
    "complete": lazy_gettext("Payer received it"),
    "cancel": lazy_gettext("Money came back"),
}
REFUNDS_AT_CHANNEL = {
    "open": lazy_gettext("in progress"),
    "paid": lazy_gettext("refunded"),
    "failed": lazy_gettext("failed"),
    "absent": lazy_gettext("not found"),
    "stuck": lazy_gettext("not received by the payer"),
}
# The same as the text of a reason, which says already that the payer did not receive it.
REPORTED = REFUNDS_AT_CHANNEL | {"stuck": lazy_gettext("an operator must act at the channel")}
REFUND_STATUSES = {
    PENDING: lazy_gettext("Queued"),
    CONFIRMED: lazy_gettext("In progress"),
    COMPLETED: lazy_gettext("Refunded"),
    CANCELLED: lazy_gettext("Cancelled"),
}
REFUNDS_PAID_FROM = {
    "balance": lazy_gettext("Merchant's balance"),
    "uncredited": lazy_gettext("Deposit, before it is credited"),
    "platform": lazy_gettext("Platform's fees"),
    "exception": lazy_gettext("Money of an exception, never credited"),
}
REFUND_MODES = {
    "off": lazy_gettext("Off"),
    "approval": lazy_gettext("With approval"),
    "automatic": lazy_gettext("Automatic up to an amount"),
}
REFUND_FEES = {
    "keep": lazy_gettext("Keep the fee"),
    "proportional": lazy_gettext("Return the fee in proportion"),
    "full_only": lazy_gettext("Return the fee if the whole deposit is refunded"),
}
ACCOUNTS = {
    AVAILABLE: lazy_gettext("Available"),
    HELD: lazy_gettext("Reserved"),
    FEES: lazy_gettext("Fees"),
    COMMISSION: lazy_gettext("Channel cost"),
    CLEARING: lazy_gettext("Channel clearing"),
}
PURPOSES = {
    "credit": lazy_gettext("Deposit credited"),
    "hold": lazy_gettext("Withdrawal reserved"),
    "release": lazy_gettext("Reserve released"),
    "spend": lazy_gettext("Withdrawal paid out"),
    "return": lazy_gettext("Withdrawal returned"),
    "hold_again": lazy_gettext("Withdrawal reserved again"),
    "release_again": lazy_gettext("Second reserve released"),
    "spend_again": lazy_gettext("Withdrawal paid out after cancellation"),
    "refund_hold": lazy_gettext("Refund reserved"),
    "refund": lazy_gettext("Deposit refunded"),
    "refund_release": lazy_gettext("Refund reserve released"),
    "refund_return": lazy_gettext("Refund returned"),
    "adjustment": lazy_gettext("Adjustment"),
    "sandbox_removal": lazy_gettext("Sandbox money removed"),
    BILL_COSTS: lazy_gettext("Channel costs by bill"),
}


# The reasons whose text is a key of REPORTED if the channel gave no further words.
REPORTS = {Why.REFUND_STUCK, Why.REFUND_CONTRADICTED}


def reason(why: Reason) -> str:
    """Return the reason of an exception or event as text."""
    kind = BUY if why.code is Why.NOT_PAID_THERE else SELL  # the other reasons with a status are about withdrawals

    def called(name: str, value: str) -> str:
        if name == "status" and why.code is Why.REFUND_CONTRADICTED:
            return name_of(REFUND_STATUSES, value)
        if name == "text":
            return known(name_of(REPORTED, value) if why.code in REPORTS else value)
        return status(kind, value) if name == "status" else name_inside(name, value)

    return why.text(gettext(why.code.template), called)


def status(order_type: int, value: str) -> str:
    """Return the label of an order's status."""
    return name_of(STATUSES, (order_type, value))


def refund_status(refund: Any) -> tuple[str, str]:
    """Return the state of a refund, which selects its colour, and its label."""
    if refund.status == PENDING and not refund.approved_by:
        return "pending", gettext("Needs review")
    if refund.status == CONFIRMED and registry.DRIVERS[refund.channel.driver].by_hand:
        return "pending", gettext("To send")
    state = "under-way" if refund.is_open else refund.status
    return state, name_of(REFUND_STATUSES, refund.status)


def resolution(exception: Any) -> str:
    """Return the label of an exception's resolution. `exception.order` is its order."""
    if exception.resolution == CREDIT and exception.order.order_type == SELL:
        return gettext("Returned to merchant")
    names = REFUND_RESOLUTIONS if exception.kind in OF_REFUNDS else RESOLUTIONS
    return name_of(names, exception.resolution)


def needs_review() -> str:
    """Return the mark of an order with an open exception."""
    return pgettext("exception", "Needs review")


# What an actor did and its subject, by the stored names in the audit log.
ACTIONS = {
    "sign in": lazy_gettext("signed in"),
    "sign out": lazy_gettext("signed out"),
    "sign out everywhere": lazy_gettext("signed out everywhere"),
    "end session": lazy_gettext("ended one of their sessions"),
    "end other sessions": lazy_gettext("ended all their other sessions"),
    "confirm identity": lazy_gettext("confirmed their identity"),
    "set up second factor": lazy_gettext("turned on two-factor authentication"),
    "remove second factor": lazy_gettext("turned off two-factor authentication of %(subject)s"),
    "renew recovery codes": lazy_gettext("generated new recovery codes"),
    "use recovery code": lazy_gettext("used a recovery code"),
    "enter incorrect code": lazy_gettext("entered an incorrect code"),
    "enter incorrect password": lazy_gettext("entered an incorrect password while signed in"),
    "create payment link": lazy_gettext("created payment link %(subject)s"),
    "create test order": lazy_gettext("created test order %(subject)s"),
    "write note": lazy_gettext("wrote a note on %(subject)s"),
    "accept order": lazy_gettext("approved withdrawal %(subject)s"),
    "reject order": lazy_gettext("rejected withdrawal %(subject)s"),
    "mark paid": lazy_gettext("confirmed the payment of %(subject)s"),
    "request payout": lazy_gettext("requested approval for the payout of %(subject)s"),
    "approve payout": lazy_gettext("approved the payout of %(subject)s as second operator"),
    "approve payouts": lazy_gettext("approved several payouts at once"),
    "reject payouts": lazy_gettext("rejected several payouts at once"),
    "mark payouts paid": lazy_gettext("marked several payouts as paid out at once"),
    "create batch": lazy_gettext("created bank file %(subject)s"),
    "download batch": lazy_gettext("downloaded bank file %(subject)s"),
    "discard batch": lazy_gettext("discarded bank file %(subject)s"),
    "import batch result": lazy_gettext("imported the bank's result of file %(subject)s"),
    "refund": lazy_gettext("refunded %(subject)s"),
    "approve refund": lazy_gettext("approved refund %(subject)s"),
    "mark refunded": lazy_gettext("marked refund %(subject)s as refunded"),
    "check refund": lazy_gettext("checked the status of refund %(subject)s"),
    "reject refund": lazy_gettext("rejected refund %(subject)s"),
    "approve refunds": lazy_gettext("approved several refunds at once"),
    "reject refunds": lazy_gettext("rejected several refunds at once"),
    "withdraw payout request": lazy_gettext("withdrew the payout request for %(subject)s"),
    "remove sandbox": lazy_gettext("removed the sandbox money of %(subject)s"),
    "report not received": lazy_gettext("reported that the payment of %(subject)s was not received"),
    "report payout returned": lazy_gettext("reported that the payout of %(subject)s was returned"),
    "change payout account": lazy_gettext("put the payout of %(subject)s to another account"),
    "confirm claims": lazy_gettext("confirmed several claims"),
    "dismiss claims": lazy_gettext("reported several payments as not received"),
    "confirm columns": lazy_gettext("confirmed the columns of files for channel %(subject)s"),
    "match statement": lazy_gettext("uploaded a statement for channel %(subject)s"),
    "act": lazy_gettext("tried an unknown action on %(subject)s"),
    "ask channel": lazy_gettext("checked the status of %(subject)s"),
    "settle exception": lazy_gettext("resolved an exception of %(subject)s"),
    "redeliver callback": lazy_gettext("resent callback %(subject)s"),
    "redeliver callbacks": lazy_gettext("resent all callbacks of %(subject)s"),
    "resend callbacks": lazy_gettext("resent several callbacks at once"),
    "reveal": lazy_gettext("viewed the personal data of %(subject)s"),
    "export": lazy_gettext("exported %(subject)s"),
    "reconcile": lazy_gettext("compared a statement of %(subject)s"),
    "fetch bill": lazy_gettext("fetched a bill of channel %(subject)s"),
    "check difference": lazy_gettext("checked difference %(subject)s again"),
    "explain difference": lazy_gettext("explained difference %(subject)s"),
    "explain differences": lazy_gettext("explained the differences of result %(subject)s"),
    "export earnings": lazy_gettext("downloaded earnings"),
    "export statement": lazy_gettext("downloaded a statement of %(subject)s"),
    "export statements": lazy_gettext("downloaded the statements of all merchants"),
    "verify ledger": lazy_gettext("started a ledger check"),
    "record account balance": lazy_gettext("recorded the account balance of channel %(subject)s"),
    "adjust balance": lazy_gettext("adjusted the balance of %(subject)s"),
    "add merchant": lazy_gettext("added merchant %(subject)s"),
    "set merchant": lazy_gettext("changed merchant %(subject)s"),
    "rotate API secret": lazy_gettext("replaced the API secret of %(subject)s"),
    "rotate callback secret": lazy_gettext("replaced the callback secret of %(subject)s"),
    "reveal callback secret": lazy_gettext("viewed the callback secret of %(subject)s"),
    "enable epay gateway": lazy_gettext("enabled the epay gateway of %(subject)s"),
    "disable epay gateway": lazy_gettext("disabled the epay gateway of %(subject)s"),
    "set epay gateway": lazy_gettext("changed the epay gateway of %(subject)s"),
    "rotate epay MD5 key": lazy_gettext("replaced the epay MD5 key of %(subject)s"),
    "rotate epay RSA key": lazy_gettext("created new epay RSA keys of %(subject)s"),
    "set payment page": lazy_gettext("changed the payment page of %(subject)s"),
    "set logo": lazy_gettext("uploaded a logo for %(subject)s"),
    "remove logo": lazy_gettext("removed the logo of %(subject)s"),
    "add payout account": lazy_gettext("added a payout account for %(subject)s"),
    "test callback": lazy_gettext("sent a test callback to %(subject)s"),
    "add channel": lazy_gettext("added channel %(subject)s"),
    "set channel": lazy_gettext("changed channel %(subject)s"),
    "add member": lazy_gettext("added a channel to group %(subject)s"),
    "set member": lazy_gettext("changed a channel of group %(subject)s"),
    "remove member": lazy_gettext("removed a channel from group %(subject)s"),
    "move merchants": lazy_gettext("moved the merchants of channel %(subject)s to another channel"),
    "share merchants": lazy_gettext("gave the merchants of channel %(subject)s another channel"),
    "set QR code image": lazy_gettext("uploaded a QR code image for channel %(subject)s"),
    "remove QR code image": lazy_gettext("removed a QR code image of channel %(subject)s"),
    "try channel": lazy_gettext("tested the connection of channel %(subject)s"),
    "add destination": lazy_gettext("added notification destination %(subject)s"),
    "set destination": lazy_gettext("changed notification destination %(subject)s"),
    "delete destination": lazy_gettext("deleted notification destination %(subject)s"),
    "test destination": lazy_gettext("sent a test notification to %(subject)s"),
    "set balance limits": lazy_gettext("changed the balance limits of channels"),
    "add operator": lazy_gettext("added account %(subject)s"),
    "restore": lazy_gettext("restored a backup"),
    "resume": lazy_gettext("resumed the service after a restore"),
    "set operator": lazy_gettext("changed account %(subject)s"),
    "set password": lazy_gettext("set the password of %(subject)s"),
    "enable operator": lazy_gettext("enabled account %(subject)s"),
    "disable operator": lazy_gettext("disabled account %(subject)s"),
    "make administrator": lazy_gettext("made %(subject)s an administrator"),
    "make operator": lazy_gettext("made %(subject)s an operator"),
    "make viewer": lazy_gettext("made %(subject)s a viewer"),
    "end sessions": lazy_gettext("signed %(subject)s out everywhere"),
    "erase": lazy_gettext("erased the personal data of %(subject)s"),
    "export personal data": lazy_gettext("exported the personal data of %(subject)s"),
}
ABOUT = {
    "order": lazy_gettext("order"),
    "callback": lazy_gettext("callback"),
    "callbacks": lazy_gettext("several callbacks"),
    "merchant": lazy_gettext("merchant"),
    "channel": lazy_gettext("channel"),
    "operator": lazy_gettext("operator"),
    "ledger": lazy_gettext("ledger"),
    "list": lazy_gettext("list"),
    "database": lazy_gettext("database"),
    "orders": lazy_gettext("several orders"),
    "payouts": lazy_gettext("several payouts"),
    "refund": lazy_gettext("refund"),
    "refunds": lazy_gettext("several refunds"),
    "batch": lazy_gettext("bank file"),
    "account": lazy_gettext("payout account"),
    "destination": lazy_gettext("notification destination"),
    "difference": lazy_gettext("difference"),
    "reconciliation": lazy_gettext("result of a comparison"),
    "statements": lazy_gettext("statements"),
    "earnings": lazy_gettext("earnings"),
}
MEANING = {
    (True, PENDING): lazy_gettext("Waiting for the payment."),
    (True, PAID): lazy_gettext("The customer says they paid. Not confirmed yet."),
    (True, CONFIRMED): lazy_gettext("Payment received. It is credited after the settlement delay."),
    (True, COMPLETED): lazy_gettext("Credited to the merchant."),
    (True, CANCELLED): lazy_gettext("Cancelled before it was credited."),
    (False, PENDING): lazy_gettext("Waiting for review. The amount is reserved."),
    (False, PAID): lazy_gettext("The money was sent."),
    (False, CONFIRMED): lazy_gettext("Approved. Payout in progress. The amount is reserved."),
    (False, COMPLETED): lazy_gettext("Paid out. The reserved amount is spent."),
    (False, CANCELLED): lazy_gettext("Not paid out. The reserved amount was returned."),
}
NEXT_STEPS = {
    NextStep.ASK: lazy_gettext("check the payment status"),
    NextStep.EXPIRE: lazy_gettext("expire if unpaid"),
    NextStep.END_CLAIM: lazy_gettext("cancel if the payment is not confirmed"),
    NextStep.CREDIT: lazy_gettext("credit the merchant"),
    NextStep.ASK_FOR_LATE_MONEY: lazy_gettext("check for a late payment"),
    NextStep.APPROVE: lazy_gettext("approve automatically"),
    NextStep.HAND_OVER: lazy_gettext("send to the channel, or check status"),
    NextStep.ASK_FOR_SECOND_PAYMENT: lazy_gettext("check for a second payment"),
    NextStep.ASK_FOR_LATE_PAYOUT: lazy_gettext("check for a late payout"),
}
FIELDS = {
    "customer_name": lazy_gettext("Customer name"),
    "note": lazy_gettext("Note for the payer"),
    "param": lazy_gettext("Shop’s own data"),
    "bank": lazy_gettext("Bank"),
    "sub_bank": lazy_gettext("Branch"),
    "card_number": lazy_gettext("Account number"),
    "real_name": lazy_gettext("Account holder"),
    "gatewaya_personal_data.name": lazy_gettext("Name on ID document"),
    "gatewaya_personal_data.cert_type": lazy_gettext("ID document type"),
    "gatewaya_personal_data.cert_no": lazy_gettext("ID document number"),
    "gatewaya_personal_data.cert_validity_type": lazy_gettext("ID document validity"),
    "gatewaya_personal_data.cert_begin_date": lazy_gettext("ID document valid from"),
    "gatewaya_personal_data.cert_end_date": lazy_gettext("ID document valid until"),
    "gatewaya_personal_data.mobile_no": lazy_gettext("Mobile number"),
    "gatewaya_personal_data.email": lazy_gettext("Email"),
    "gatewaya_personal_data.address": lazy_gettext("Address"),
    "gatewaya_card_info.card_type": lazy_gettext("Card type"),
    "gatewaya_card_info.card_name": lazy_gettext("Cardholder"),
    "gatewaya_card_info.card_no": lazy_gettext("Card number"),
    "gatewaya_card_info.prov_id": lazy_gettext("Card province"),
    "gatewaya_card_info.area_id": lazy_gettext("Card city or district"),
}
ROLES = {
    "viewer": lazy_gettext("Viewer"),
    "operator": lazy_gettext("Operator"),
    "administrator": lazy_gettext("Administrator"),
}
OPERATOR = "operator "
WHO = {
    "merchant": lazy_gettext("merchant"),
    "payer": lazy_gettext("payer"),
    "channel": lazy_gettext("channel"),
    "service": lazy_gettext("system"),
    "operator": lazy_gettext("operator (command line)"),
    "shop": lazy_gettext("shop"),
    "seed": lazy_gettext("demo data"),
}
ACTORS = {"command line": lazy_gettext("command line"), "erasure job": lazy_gettext("erasure job")}
# The lists, by the name in the audit entry of an export, and the names of values in the details of audit entries.
LISTS = {
    "orders": lazy_gettext("Orders"),
    "payouts": lazy_gettext("Payouts"),
    "refunds": lazy_gettext("Refunds"),
    "claims": lazy_gettext("Claims"),
    "exceptions": lazy_gettext("Exceptions"),
    "callbacks": lazy_gettext("Callbacks"),
    "batches": lazy_gettext("Bank files"),
    "entries": lazy_gettext("Ledger entries"),
    "bills": lazy_gettext("Bills"),
    "differences": lazy_gettext("Differences"),
    "reconciliations": lazy_gettext("Reconciliation"),
    "merchants": lazy_gettext("Merchants"),
    "channels": lazy_gettext("Channels"),
    "accounts": lazy_gettext("Payout accounts"),
    "audit": lazy_gettext("Audit log"),
    "failed_sign_ins": lazy_gettext("Failed sign-ins"),
}
RECORDED = {
    "account": lazy_gettext("Account"),
    "amount": lazy_gettext("Amount"),
    "channel": lazy_gettext("Channel"),
    "completed_since": lazy_gettext("Completed from"),
    "completed_until": lazy_gettext("Completed to"),
    "driver": lazy_gettext("Provider"),
    "exception": lazy_gettext("Exception"),
    "kind": lazy_gettext("Kind"),
    "least": lazy_gettext("Minimum amount"),
    "merchant": lazy_gettext("Merchant"),
    "method": lazy_gettext("Method"),
    "most": lazy_gettext("Maximum amount"),
    "note": lazy_gettext("Note"),
    "position": lazy_gettext("Place"),
    "order": lazy_gettext("Order number"),
    "resolution": lazy_gettext("Resolution"),
    "since": lazy_gettext("From"),
    "state": lazy_gettext("Status"),
    "status": lazy_gettext("Status"),
    "text": lazy_gettext("Search"),
    "type": lazy_gettext("Type"),
    "until": lazy_gettext("To"),
    "who": lazy_gettext("User"),
}
FREE = {"channel", "merchant", "text", "who"}  # of these, the values are names or typed texts
# Labels of values inside a service's text (`OperatorError.values`, `Reason.args`).
INSIDE = {
    "exception": EXCEPTIONS,
    "kind": EXCEPTIONS,
    "resolution": RESOLUTIONS,
}


def name_of(names: dict[Any, Any], key: Any) -> str:
    """Return the label from one of the tables above; the key itself if the table does not have it."""
    known: dict[tuple[int, Any], str] = g.setdefault("names", {})  # an export looks the same keys up in every row
    if (id(names), key) not in known:
        known[id(names), key] = str(names.get(key, key))
    return known[id(names), key]


def name_inside(name: str, value: str) -> str:
    """Return the label of a value inside a service's text."""
    if name == "who":
        return who(value)
    if name == "status":  # a label of `STATUS_TEXTS`
        return gettext(value)
    if name == "template":
        return gettext(TEMPLATES[value].title) if value in TEMPLATES else value
    return name_of(INSIDE[name], value).lower() if name in INSIDE else value


def known(text: str) -> str:
    """Translate a text that the service stored in English, such as a driver's; return others unchanged."""
    return language_of(str(get_locale().language)).known(text, name_inside)


def recorded(detail: str) -> str:
    """Return the detail of an audit entry: one text that the service wrote, or several with what the actor entered."""
    if detail.startswith(NOT_DONE):
        return gettext("Not done: %(why)s", why=not_done(detail))
    parts = []
    for part in detail.split("; "):
        name, _, value = part.partition(": ")
        label, kind = recorded_name(name), name.partition(" ")[0]
        in_words = value if name in FREE else known(gettext(value))
        shown = name_inside(kind, value) if value in INSIDE.get(kind, ()) else in_words
        parts.append(gettext("%(label)s: %(value)s", label=label, value=shown) if value and label else known(part))
    return gettext("; ").join(parts)


def not_done(detail: str) -> str:
    """Return why the action of an audit entry failed: a service's refusal, or what the entry recorded."""
    why = detail.removeprefix(NOT_DONE)
    told = known(why)
    return told if told != why else recorded(why)


def recorded_name(name: str) -> str:
    """Return the label of a value in an audit entry, such as `Channel 3` of `channel 3`; empty if it has none."""
    kind, _, number = name.partition(" ")
    has_label = kind in RECORDED and (number.isdecimal() or kind == name)
    return f"{RECORDED[kind]} {number}".rstrip() if has_label else ""


def who(text: str) -> str:
    """Return the label of an actor in a timeline or the ledger."""
    if text.startswith(OPERATOR):
        return gettext("operator %(name)s", name=text.removeprefix(OPERATOR))
    return name_of(WHO, text)


def actor(name: str) -> str:
    """Return the label of an actor in the audit log: an operator's name, or one that no operator can have."""
    return name_of(ACTORS, name)


def callback_body(event: str, body: str) -> str:
    """Return the body of a callback that will be sent, or the fields of an epay notice."""
    return epay_notices.readable(body) if event == epay_notices.TYPE else body


def action(name: str, subject: str = "…") -> str:
    """Return what an audit entry's actor did, such as `added merchant Shop`."""
    return action_template(name) % {"subject": subject}


def action_template(name: str) -> str:
    """Return the same with `%(subject)s` for the subject. A name that this version does not know is escaped."""
    return name_of(ACTIONS, name) if name in ACTIONS else str(escape(name)).replace("%", "%%") + " %(subject)s"


def list_name(name: str) -> str:
    """Return the name of a list, such as in the audit entry of its export."""
    return gettext("the list %(name)s", name=name_of(LISTS, name))


def purpose_of(name: str) -> str:
    """Return the label of a posting's purpose, with the number of the exception that it resolved."""
    kind, _, number = name.partition(" ")
    return gettext("Exception") + f" {number}" if kind == "exception" and number else name_of(PURPOSES, kind)


def detail(exception: Any) -> Markup:
    """Return the reason of an exception as HTML."""
    return text(reason(reason_of(exception)))


def text(value: Any) -> Markup:
    """Escape an untrusted text, so that it cannot reverse or hide the text around it."""
    return Markup("<bdi>{}</bdi>").format(printable(value))


def text_lines(value: str) -> Markup:
    """Escape an untrusted text of several lines; the style `words` shows its line breaks."""
    return Markup("\n").join(text(line) for line in value.split("\n"))
