"""Place refunds: what is left of a payment, who pays for it, which fee the merchant gets back, and its first commit."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from typing import Any

from peewee import IntegrityError

from gateways.base import Driver
from models.db.writer import transaction
from models.tables.merchant import AUTOMATIC, FULL_ONLY, KEEP, OFF, Merchant
from models.tables.order import (
    COMPLETED,
    CONFIRMED,
    OF_REFUNDS,
    PENDING,
    REVERSED,
    UNKNOWN_OUTCOME,
    Order,
    PaymentException,
)
from models.tables.outbox import webhook_key
from models.tables.refund import (
    BALANCE,
    EXCEPTION,
    PLATFORM,
    UNCREDITED,
    Refund,
    RefundHistory,
    lives,
    refunds_of,
)
from runtime import clock
from runtime.money import grouped, hundredths
from services.channels.calls import LEASE, driver_of, lock_account
from services.deposits import money as deposit_money
from services.errors import N_, ApiError, Code, OperatorError
from services.ledger import accounts, postings
from services.orders.lifecycle import exceptions_of, lines_about
from services.orders.reasons import Why, because, reason_of
from services.orders.verdict import REFUND
from services.security import replay
from services.security.replay import Call

DAY = 86_400
MOST_REASON = 80  # bytes


class Refusal(StrEnum):
    """Why a deposit can't be refunded, as `data.reason` of error 40904."""

    DISABLED = "disabled"
    STATE = "state"
    WINDOW = "window"
    DRIVER = "driver"
    EXCEPTION = "exception"
    AMOUNT = "amount"


# Message ids for translation.
REFUSALS = {
    Refusal.DISABLED: N_("Refunds are not enabled for this merchant."),
    Refusal.STATE: N_("Only a received deposit can be refunded."),
    Refusal.WINDOW: N_("The payment is too old: its channel does not refund it any more."),
    Refusal.DRIVER: N_("This channel has no refunds."),
    Refusal.EXCEPTION: N_("An exception of this payment is open. Resolve it first."),
    Refusal.AMOUNT: N_("The amount is more than what can be refunded: %(left)s."),
}


class NotRefundable(Exception):
    """A deposit can't be refunded, or not by this amount; `left` is what can be refunded, in fen."""

    def __init__(self, reason: Refusal, left: int):
        super().__init__(reason)
        self.reason, self.left = reason, left

    @property
    def for_api(self) -> ApiError:
        """The error for a caller of the API."""
        return ApiError(Code.NOT_REFUNDABLE, {"reason": str(self.reason), "left": hundredths(self.left)})

    @property
    def for_operator(self) -> OperatorError:
        """The error for an operator."""
        values = {"left": grouped(self.left)} if self.reason is Refusal.AMOUNT else {}
        return OperatorError(REFUSALS[self.reason], "amount" if values else "", **values)


@dataclass(frozen=True)
class Quote:
    """A refund before it is placed: what of it each side pays, in fen.

    `left` can be refunded now in all. `fee` goes back to the merchant, `deducted` is what the merchant pays.
    """

    amount: int
    left: int
    fee: int
    deducted: int
    paid_from: str


def quote(order: Order, amount: int | None, *, by_platform: bool = False) -> Quote:
    """Return what a refund of a deposit does. Call it on the locked order before it is placed.

    Args:
        amount: in fen; None for all that is left.
        by_platform: the operator pays, from the fees.

    Raises:
        NotRefundable. OperatorError: the platform can't pay before the credit.
    """
    made = lives(refunds_of(order))
    own = [each for each in made if each.paid_from != EXCEPTION and each.reference == order.channel_reference]
    back = [each for each in exceptions_of(order) if each.kind == REVERSED and each.resolution == REFUND]
    left = order.received - sum(each.amount for each in own)
    left -= sum(each.amount for each in back if each.reference == order.channel_reference)
    left = max(left, 0)
    if not order.is_buy or order.status not in (CONFIRMED, COMPLETED):
        raise NotRefundable(Refusal.STATE, 0)
    driver = driver_of(order.channel)
    if not driver.refunds or not (order.channel_reference or driver.by_hand):
        raise NotRefundable(Refusal.DRIVER, 0)
    if is_too_old(driver, order.createtime):
        raise NotRefundable(Refusal.WINDOW, 0)
    open_ones = [each for each in exceptions_of(order) if each.is_open and each.kind != UNKNOWN_OUTCOME]
    if any(each.reference == order.channel_reference or each.kind in OF_REFUNDS for each in open_ones):
        raise NotRefundable(Refusal.EXCEPTION, left)
    amount = left if amount is None else amount
    if not 0 < amount <= left:
        raise NotRefundable(Refusal.AMOUNT, left)
    if by_platform and order.status != COMPLETED:
        raise OperatorError(N_("The platform can pay for a refund once the deposit is credited."), "by_platform")
    if by_platform:
        return Quote(amount, left, 0, 0, PLATFORM)
    of_merchant = [each for each in own if each.paid_from != PLATFORM]
    if order.status == COMPLETED:
        fee = _fee_back(order, amount, of_merchant)
        return Quote(amount, left, fee, amount - fee, BALANCE)
    if amount == order.received - sum(each.amount for each in of_merchant if each.status == COMPLETED):
        return Quote(amount, left, 0, 0, UNCREDITED)  # all of it goes back, so it is never credited
    fee = _fee_back(order, amount, of_merchant)
    # The credit pays for the refund, so both together must not make the balance negative.
    covered = order.merchant_actual_amount - sum(each.merchant_actual_amount for each in of_merchant)
    if amount - fee > covered:
        raise NotRefundable(Refusal.AMOUNT, covered)
    return Quote(amount, left, fee, amount - fee, UNCREDITED)


def is_too_old(driver: Driver, paid_at: int) -> bool:
    """Return whether the channel no longer refunds a payment of this time."""
    return driver.refund_days != 0 and clock.now() - paid_at > driver.refund_days * DAY


def _fee_back(order: Order, amount: int, made: list[Refund]) -> int:
    """Return the fee that goes back with a refund of `amount`: the rounded share of all refunds, less what went back
    before, so that the parts add up to the whole fee."""
    policy = Merchant.get_by_id(order.merchant_id).refund_fees
    refunded = amount + sum(each.amount for each in made)
    if policy == KEEP or (policy == FULL_ONLY and refunded < order.received):
        return 0
    share = (2 * order.service_amount * refunded + order.received) // (2 * order.received)
    return min(max(share - sum(each.service_amount for each in made), 0), amount)


@dataclass(frozen=True)
class Wanted:
    """What a refund is for. `approved_by` is empty if an operator must approve it first.

    `claimed_until` is set if the caller sends it at once: a sweep takes it up after that time.
    """

    amount: int | None
    who: str
    approved_by: str = ""
    reason: str = ""
    merchant_refund_no: str | None = None
    by_platform: bool = False
    claimed_until: int | None = None


@transaction
def place(order: Order, wanted: Wanted, call: Call | None = None) -> Refund:
    """Place a refund of a deposit's own payment, and reserve what the merchant pays.

    Args:
        call: the request of a merchant, whose nonce is stored with the refund.

    Raises:
        NotRefundable. ApiError: Code.INSUFFICIENT_BALANCE, or a code of `replay`.
    """
    order = Order.for_update(order.id)
    lock_account(order.channel_id)
    quoted = quote(order, wanted.amount, by_platform=wanted.by_platform)
    if wanted.merchant_refund_no is None:
        number = _next_refund_no(order, order.channel_reference, quoted.amount)
    elif (number := merchants_refund_no(order.merchant_id, wanted.merchant_refund_no)) in _made_elsewhere(order):
        # The channel made it before a restore, and its exception `reversed` settles it.
        raise NotRefundable(Refusal.EXCEPTION, quoted.left)
    refund = _insert(order, wanted, quoted, order.channel_reference, number)
    if call is not None and call.nonce:
        replay.record([(call, order, None)])
    return refund


@transaction
def send_back(order: Order, exception: PaymentException, who: str, approved_by: str) -> Refund:
    """Place the refund of an open exception's money, which was never credited, in the caller's transaction."""
    lock_account(exception.channel_id)
    quoted = Quote(int(exception.amount), int(exception.amount), 0, 0, EXCEPTION)
    wanted = Wanted(quoted.amount, who, approved_by)
    number = _next_refund_no(order, exception.reference, quoted.amount)
    return _insert(order, wanted, quoted, exception.reference, number, exception)


def merchants_refund_no(merchant_id: int, merchant_refund_no: str) -> str:
    """Return the number of the refund with this number of a merchant: 24 digits, always the same.

    So after a restore to a backup that lacks the refund, the merchant's repeated request has the number that the
    channel knows, and no money goes back twice.
    """
    return _number("refund", str(merchant_id), merchant_refund_no)


def _next_refund_no(order: Order, reference: str, amount: int) -> str:
    """Return the number of a refund without a merchant's number: the first that is free for this payment and amount.

    After a restore, the same refund gets the same number again, as that of a merchant does.
    """
    taken = {each.refund_no for each in refunds_of(order)} | _made_elsewhere(order)
    numbers = (_number("payment", order.order_no, reference, str(amount), str(number)) for number in count())
    return next(number for number in numbers if number not in taken)


def _number(*parts: str) -> str:
    digest = hmac.digest(webhook_key(), "\n".join(parts).encode(), "sha256")
    return f"{int.from_bytes(digest) % 10**24:024d}"


def _made_elsewhere(order: Order) -> set[str]:
    """Return the numbers of refunds that the channel reported and this database lacked."""
    return {str(reason_of(line).args["number"]) for line in lines_about(order, Why.REFUND_ELSEWHERE)}


def _insert(
    order: Order,
    wanted: Wanted,
    quoted: Quote,
    reference: str,
    refund_no: str,
    exception: PaymentException | None = None,
) -> Refund:
    now = clock.now()
    total = deposit_money.received(order, reference, exceptions_of(order), refunds_of(order))
    refund = Refund(
        refund_no=refund_no,
        order=order,
        merchant=order.merchant_id,
        channel=exception.channel_id if exception else order.channel_id,
        exception=exception,
        merchant_refund_no=wanted.merchant_refund_no,
        reference=reference,
        amount=quoted.amount,
        total=total,
        service_amount=quoted.fee,
        merchant_actual_amount=quoted.deducted,
        paid_from=quoted.paid_from,
        status=PENDING,
        reason=wanted.reason,
        who=wanted.who,
        approved_by=wanted.approved_by,
        channel_reference="",
        due_at=(wanted.claimed_until or now) if wanted.approved_by else None,
        asks=1 if wanted.claimed_until else 0,
        createtime=now,
        updatetime=now,
    )
    refund.id = Refund.add(**{name: value for name, value in refund.__data__.items() if name != "id"})
    lines = postings.refund(refund, order, "", PENDING)
    if any(lines.values()):
        accounts.post(accounts.numbered(order, "refund_hold"), lines, who=wanted.who, order=order)
    RefundHistory.add(
        refund=refund.id,
        before="",
        after=PENDING,
        who=wanted.who,
        at=now,
        **because(Why.REFUND_REQUESTED).columns,
    )
    return refund


def placed_before(merchant: Merchant, wanted: dict[str, Any]) -> Refund | None:
    """Return the merchant's refund with this number, or None.

    Args:
        wanted: the loaded fields of the request.

    Raises:
        ApiError: Code.IDEMPOTENCY_KEY_REUSED, it was requested with other data.
    """
    number = Refund.merchant_refund_no == wanted["merchant_refund_no"]
    found: Refund | None = (
        Refund.select(Refund, Order).join(Order).where(Refund.merchant == merchant.id, number).first()
    )
    if found is None:
        return None
    same = (found.order.order_no, found.amount) == (wanted["order_no"], wanted["cny_amount"])
    is_erased = not (found.reason or found.is_open)  # or it never had a reason
    if not same or not (is_erased or found.reason == wanted["reason"]):
        raise ApiError(Code.IDEMPOTENCY_KEY_REUSED)
    return found


def requested(merchant: Merchant, amount: int, who: str, number: str | None, reason: str = "") -> Wanted:
    """Return a merchant's request for a refund. It is approved and claimed if the merchant's settings allow that.

    Raises:
        NotRefundable: refunds are not enabled.
    """
    if merchant.refund_mode == OFF:
        raise NotRefundable(Refusal.DISABLED, 0)
    by_rule = merchant.refund_mode == AUTOMATIC and amount <= merchant.refund_auto_max
    return Wanted(
        amount=amount,
        who=who,
        approved_by="service" if by_rule else "",
        reason=reason,
        merchant_refund_no=number,
        claimed_until=clock.now() + LEASE if by_rule else None,
    )


def for_merchant(call: Call, wanted: dict[str, Any]) -> tuple[Refund, bool]:
    """Place a merchant's refund, or return the one that an earlier request placed. The caller sends it.

    Args:
        wanted: the loaded fields: order_no, cny_amount (fen), merchant_refund_no, reason.

    Returns: the refund as it is now, and whether it was placed by an earlier request.

    Raises:
        ApiError: Code.ORDER_NOT_FOUND, NOT_REFUNDABLE, INSUFFICIENT_BALANCE or IDEMPOTENCY_KEY_REUSED.
    """
    earlier = placed_before(call.merchant, wanted)
    if earlier is not None:
        return earlier, True
    order = Order.find(wanted["order_no"])
    if order is None or order.merchant_id != call.merchant.id:
        raise ApiError(Code.ORDER_NOT_FOUND)
    merchant, number = Merchant.get_by_id(call.merchant.id), wanted["merchant_refund_no"]
    try:
        return place(
            order, requested(merchant, wanted["cny_amount"], "merchant", number, wanted["reason"]), call
        ), False
    except (NotRefundable, ApiError, IntegrityError) as error:
        # A concurrent request with the same number may have been faster, and have taken what is left.
        earlier = placed_before(call.merchant, wanted)
        if earlier is not None:
            return earlier, True
        if isinstance(error, NotRefundable):
            raise error.for_api from None
        raise
