"""Notices of completed epay orders: what a shop's plug-in learns instead of a callback (docs/epay-inbound.md)."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import parse_qsl, unquote_plus, urlencode

from gateways.epay_protocol import ambiguous
from models.tables.epay import EpayAccount, EpayOrder
from models.tables.order import Order
from models.tables.outbox import Callback
from runtime.money import hundredths
from services.merchants import cache, epay_accounts, epay_signing
from services.security import masking

TYPE = "epay.notify"  # of its row in the outbox
RECEIVED = "success"


def payment_of(order: Order) -> EpayOrder | None:
    """Return what a shop asked for if the order came through the gateway, or None."""
    if cache.by_id(order.merchant_id).epay is None:
        return None
    return EpayOrder.of_order(order.id) or EpayOrder.of_replaced(order)


def type_of(account: EpayAccount, payment: EpayOrder, order: Order) -> str:
    """Return epay's type of a payment: the one that the shop named or, without one, that of the payer's choice."""
    return payment.type or epay_accounts.type_of(account, order.group_id or order.channel_id, order.payment_method)


def body_of(account: EpayAccount, payment: EpayOrder, order: Order) -> str:
    """Return the notice of a completed order, unsigned, as a query string. It is signed when it is sent."""
    fields = {
        "pid": account.pid,
        "trade_no": payment.trade_no,
        "out_trade_no": payment.out_trade_no,
        "type": type_of(account, payment, order),
        "name": payment.name,
        "money": hundredths(payment.amount),
        "trade_status": "TRADE_SUCCESS",
        "param": payment.param,
    }
    return urlencode({name: value for name, value in fields.items() if value or name not in ("name", "param")})


def readable(body: str) -> str:
    """Return a notice for reading, a field a line, without the value of `param`, which may be personal."""
    fields = ((name, masking.HIDDEN if name == "param" else value) for name, value in parse_qsl(body))
    return "\n".join(f"{name}={value}" for name, value in fields)


def address(account: EpayAccount, payment: EpayOrder, body: str, attempt: int = 0, *, back: bool = False) -> str:
    """Return the address of a notice, with its signature.

    Args:
        attempt: the number of earlier attempts.
        back: where the payer returns to the shop, instead of where the shop's server is notified.
    """
    fields = dict(parse_qsl(body))
    for name in ambiguous(fields):  # a name or param of a payment that an earlier version accepted
        del fields[name]
    signed = epay_signing.signed(account, payment.version, fields, attempt)
    base, mark, query = (payment.return_url if back else payment.notify_url).partition("?")
    # A field of the shop's own with one of these names would be read instead of ours by some shops.
    own = [each for each in query.split("&") if unquote_plus(each.partition("=")[0]) not in signed]
    return base + "?" + "&".join([*own, urlencode(signed)] if mark else [urlencode(signed)])


def is_received(status: int | None, answer: str) -> bool:
    """Return whether the shop confirmed a notice: its body is `success`, apart from spaces and a byte order mark."""
    return status == 200 and answer.strip("\ufeff \r\n\t").lower() == RECEIVED


def erase(orders: Iterable[Order]) -> None:
    """Erase the names and params of orders, also from their notices, in the caller's transaction."""
    ids = [order.id for order in orders]
    EpayOrder.update(name="", param="").where(EpayOrder.order.in_(ids)).execute()
    for callback in Callback.select().where(Callback.order.in_(ids), Callback.type == TYPE):
        fields = [(name, value) for name, value in parse_qsl(callback.body) if name not in ("name", "param")]
        Callback.update(body=urlencode(fields)).where(Callback.id == callback.id).execute()
