"""Payments that shops ask for: placed at a channel, or kept until the payer has chosen one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from peewee import IntegrityError

from gateways.base import METHODS
from models.db.writer import transaction
from models.tables import maintenance
from models.tables.channel import Channel
from models.tables.epay import EpayOrder
from models.tables.order import BUY, CANCELLED, COMPLETED, CONFIRMED, PENDING, History, Order, PaymentException
from runtime import clock
from runtime.clock import in_china
from runtime.state import current
from services import kinds
from services.channels import groups
from services.channels.calls import driver_of
from services.channels.order_numbers import new_order_no
from services.deposits import epay_payments
from services.deposits import place as deposits
from services.epay.refusals import Refusal, Refused
from services.errors import ApiError, Code
from services.merchants import cache, epay_accounts
from services.merchants.cache import Known
from services.orders import lifecycle
from services.orders.new import Source
from services.orders.reasons import Why, because
from services.security.replay import Call

MOST_ORDERS = 5  # of one payment, of which all but the last are cancelled
SAME = ("amount", "name", "notify_url", "return_url", "param")  # what must not change under the shop's number
TRIES = 3
DAY = 86_400


@dataclass(frozen=True)
class Wanted:
    """A verified request for a payment: the shop's fields, the amount in fen."""

    known: Known
    version: int
    out_trade_no: str
    type: str
    amount: int
    name: str
    notify_url: str
    return_url: str
    param: str


def choices_of(known: Known, kind: str, fen: int | None = None) -> list[tuple[Channel, str]]:
    """Return the channels with their payment methods for epay's type, or for any type if it is empty.

    Args:
        fen: the amount that they must accept; None for any.
    """
    types = epay_accounts.types_of(known.account)
    if types:
        pairs = types.get(kind, []) if kind else [pair for each in types.values() for pair in each]
    else:
        pairs = [
            (channel.id, method) for method in METHODS if kind in ("", method) for channel in known.channels.values()
        ]
    found = [(known.channels[channel], method) for channel, method in dict.fromkeys(pairs) if channel in known.channels]
    accepted = {channel: groups.accepted(channel) for channel in {channel for channel, _ in found}}
    return [
        (channel, method)
        for channel, method in found
        if method in accepted[channel]
        and not groups.why_closed(channel)
        and (fen is None or any(low <= fen <= high for low, high in accepted[channel][method]))
    ]


class _Overtaken(Exception):
    """Another request placed this payment at the same time."""


def place(wanted: Wanted) -> EpayOrder:
    """Return the payment with the shop's number: a new one, or the one that it asked for before with the same data.

    With a `type` that leads to one channel, the payment has an order. Otherwise the payer chooses the channel.

    Raises:
        Refused: it can't be placed, or was paid or has expired already.
    """
    for _ in range(TRIES):
        try:
            return _placed(wanted)
        except _Overtaken:
            continue
    raise Refused(Refusal.BUSY)


def _placed(wanted: Wanted) -> EpayOrder:
    found = EpayOrder.of_shop(wanted.known.merchant.id, wanted.out_trade_no)
    if found is not None:
        last = found.order
        if any(getattr(found, name) != getattr(wanted, name) for name in SAME):
            raise Refused(Refusal.CHANGED)
        if last is not None and last.status == COMPLETED:
            raise Refused(Refusal.PAID_ALREADY, page=last.order_no)
        if last is not None and last.status == CANCELLED and not may_order(found):
            raise Refused(Refusal.ENDED, page=last.order_no)
        if last is not None and last.status != CANCELLED and found.type != wanted.type:
            raise Refused(Refusal.OTHER_TYPE, page=last.order_no)
        if not may_order(found):
            return found
        # A version 1 request has no time: a payer who repeats an old one must not get a new order at an old price. The
        # payment's number begins with the day of its first request, in China.
        if found.trade_no[:8] < f"{in_china(clock.now() - DAY):%Y%m%d}":
            raise Refused(Refusal.ENDED)
        if _is_older_than_restore(found) and not found.renumber(new_order_no(), clock.now()):
            raise _Overtaken
    choices = choices_of(wanted.known, wanted.type, wanted.amount)
    if not choices:
        any_amount = choices_of(wanted.known, wanted.type)
        raise Refused(Refusal.AMOUNT_LIMITS if any_amount else Refusal.NO_CHANNEL)
    payment = found or EpayOrder(
        merchant=wanted.known.merchant.id,
        out_trade_no=wanted.out_trade_no,
        trade_no=new_order_no(),
        order=None,
        version=wanted.version,
        type=wanted.type,
        **{name: getattr(wanted, name) for name in SAME},
        createtime=clock.now(),
    )
    if wanted.type and len(choices) == 1:
        _create_order(payment, wanted.known, *choices[0], epay_type=wanted.type)
    elif found is None:
        _insert(payment, None)
    elif not found.renew(wanted.type, clock.now()):
        raise _Overtaken
    return payment


def _is_older_than_restore(payment: EpayOrder) -> bool:
    """Return whether a payment without an order may have had one, which the restored backup lacks.

    Then a channel may know the number that its order would get.
    """
    restored = maintenance.newest() if payment.order is None else None
    return restored is not None and payment.createtime < restored


def may_order(payment: EpayOrder) -> bool:
    """Return whether an order may be created for the payment: it has none, or no money can arrive for its last one.

    That is the case if the channel refused it, or if it expired and was closed at the channel, but not because the shop
    closed it. A few are possible.
    """
    last = payment.order
    if last is None:
        return True
    mine = (Order.merchant == payment.merchant_id) & (Order.merchant_order_no == payment.out_trade_no)
    return _is_replaceable(last) and bool(Order.select().where(mine).count() < MOST_ORDERS)


def _is_replaceable(last: Order) -> bool:
    if last.status != CANCELLED or _has_money(last):
        return False
    codes = [row[0] for row in History.select(History.code).where(History.order == last).order_by(History.id).tuples()]
    # Without status checks, an expired payment may have been paid.
    ends = (Why.REFUSED, Why.EXPIRED) if driver_of(last.channel).checks_status else (Why.REFUSED,)
    is_watched = last.due_at is not None and codes[-1] != Why.REFUSED
    return codes[-1] in ends and Why.CLOSE_REQUESTED not in codes and not is_watched


def _has_money(order: Order) -> bool:
    """Return whether an exception was opened for the order, so that its money did or may arrive."""
    return bool(PaymentException.select().where(PaymentException.order == order).exists())


@transaction
def _insert(payment: EpayOrder, order_id: int | None) -> None:
    """Insert a new payment, in the transaction of its order if it has one. Raises _Overtaken."""
    try:
        EpayOrder.add(**payment.__data__ | {"order": order_id})
    except IntegrityError:
        raise _Overtaken from None


def _create_order(payment: EpayOrder, known: Known, channel: Channel, method: str, epay_type: str) -> None:
    """Create the order of a payment at a channel, and open it there.

    Args:
        epay_type: as the shop asked for it last; empty if it named none.

    Raises:
        Refused: the channel refused it.
        _Overtaken: another request created an order at the same time.
    """
    is_new, before = payment.id is None, payment.order_id

    def bind(order: Order) -> None:
        if is_new:
            _insert(payment, order.id)
            return
        # Locked, so that neither its money nor the shop's close can arrive unseen.
        last = Order.for_update(before) if before is not None else None
        if (last is not None and not _is_replaceable(last)) or not payment.bind(order.id, before, epay_type):
            raise _Overtaken
        if last is not None:
            epay_payments.replaced(last, order)

    wanted = {
        "order_type": BUY,
        "cny_amount": payment.amount,
        "paychannel_paymethod": method,
        "merchant_order_no": payment.out_trade_no,
    }
    source = Source(order_no=payment.trade_no if before is None else new_order_no(), bind=bind)
    try:
        payment.order = deposits.place(Call(known.merchant, "", {}), channel, wanted, source).order
        payment.order.channel = cache.channel_of(payment.order)  # its page is read next
    except IntegrityError:
        if Order.find(source.order_no) is None:
            raise
        raise _Overtaken from None
    except ApiError as refusal:
        if refusal.code != Code.CHANNEL_FAILED:
            raise
        raise Refused(Refusal.CHANNEL_REFUSED, page=source.order_no) from refusal


def choose(trade_no: str, channel_id: int, method: str) -> EpayOrder:
    """Create the order of a payment at the channel that its payer chose; return the payment, whose order may be older.

    Raises:
        Refused: the payment does not exist, or has ended, or the channel refused it.
    """
    payment = find_open(trade_no)
    if payment is None or is_over(payment):
        raise Refused(Refusal.ENDED)
    known = cache.by_id(payment.merchant_id)
    for channel, allowed in choices_of(known, payment.type, payment.amount):
        if (channel.id, allowed) == (channel_id, method):
            with suppress(_Overtaken):  # by the same payer's second click
                _create_order(payment, known, channel, method, payment.type)
            return EpayOrder.get_by_id(payment.id)
    raise Refused(Refusal.NO_CHANNEL)


def find_open(number: str) -> EpayOrder | None:
    """Return the payment with this number, of its own or of its last order, if its payer can choose a channel."""
    payment = EpayOrder.without_order(number)
    if payment is None and (last := Order.find(number)) is not None:
        payment = EpayOrder.of_order(last.id)
    return payment if payment is not None and may_order(payment) else None


def replacement(order: Order) -> Order | None:
    """Return the order that replaced this one, or None."""
    payment = EpayOrder.of_replaced(order)
    if payment is None or _has_money(order):
        return None  # its payer must not pay again
    return Order.get_by_id(payment.order_id)


def is_over(payment: EpayOrder) -> bool:
    """Return whether no channel can be chosen any more: the time has passed or the database was restored, until the
    shop's next request, or the merchant or its account is disabled.
    """
    known = cache.by_id(payment.merchant_id)
    if not (known.merchant.enabled and known.epay is not None and known.epay.enabled):
        return True
    expired = clock.now() >= payment.createtime + current().settings.buy_expiry
    return bool(expired or _is_older_than_restore(payment))


def close(payment: EpayOrder) -> None:
    """Expire an unpaid payment now, after a status check at its channel. No other order is created for it.

    Raises:
        Refused: it is or may be paid.
    """
    if payment.order is None or not driver_of(payment.order.channel).checks_status:
        raise Refused(Refusal.NOT_CLOSED)
    _request_close(payment.order)
    kinds.expire(payment.order)
    last = EpayOrder.get_by_id(payment.id).order
    if last.status in (CONFIRMED, COMPLETED):
        raise Refused(Refusal.PAID_ALREADY)
    if last != payment.order or last.status != CANCELLED or last.due_at is not None or _has_money(last):
        raise Refused(Refusal.NOT_CLOSED)


@transaction
def _request_close(order: Order) -> None:
    if Order.for_update(order.id).status in (PENDING, CANCELLED):
        lifecycle.note_once(order, "merchant", because(Why.CLOSE_REQUESTED))
