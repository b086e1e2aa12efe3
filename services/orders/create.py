"""Create orders. Each is committed with its nonce, history and hold before the channel is called."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from gateways.base import ChannelRefused, ChannelUnknown, Driver, Opened
from models.db.base import database
from models.db.keyed_mutex import exclusive
from models.db.writer import grouped, transaction
from models.queries import order_range
from models.tables.channel import Channel
from models.tables.epay import EpayOrder
from models.tables.order import CANCELLED, PENDING, Order, OrderNote
from models.tables.payout_account import PayoutAccount
from runtime import clock
from runtime.state import current
from services.channels.bulkhead import channel_slot
from services.channels.calls import FIRST_ASK, account_details, call_driver, driver_of, lock_account, payment_of
from services.channels.order_numbers import keep_apart, new_order_no
from services.errors import ApiError, Code
from services.ledger import accounts, fees, postings
from services.merchants import cache
from services.orders import attempts, lifecycle
from services.orders.reasons import Why, because
from services.security import replay, sandbox_guard, second_operator, vault
from services.security.replay import Call


@dataclass(frozen=True)
class Placed:
    """An order, and whether it was found by a retry."""

    order: Order
    replayed: bool = False


@dataclass(frozen=True)
class Source:
    """Who creates an order, and what they may choose for it.

    Args:
        who: the actor in the order's history and in the ledger.
        order_no: its number; a new one if empty.
        expires_at: Unix time at which an unpaid deposit expires; 0 for that of the setting `buy_expiry`.
        note: what the payment is for, shown to the payer.
        bind: called in the order's transaction, to store what belongs to it.
    """

    who: str = "merchant"
    order_no: str = ""
    expires_at: int = 0
    note: str = ""
    bind: Callable[[Order], None] | None = None


MERCHANT = Source()


@dataclass(frozen=True)
class _New:
    """An order to insert: its columns except `seq` and times, and the code for a safe retry, if known.

    `config` is the encrypted config of its channel when the order was prepared.
    """

    source: Source
    call: Call
    config: str
    columns: dict[str, Any]
    outcome: int | None


def _new(
    source: Source,
    call: Call,
    channel: Channel,
    wanted: dict[str, Any],
    quote: fees.Quote,
    outcome: int | None,
    **more: Any,
) -> _New:
    columns = {
        "order_no": source.order_no or new_order_no(),
        "merchant": call.merchant.id,
        "channel": channel.id,
        "order_type": wanted["order_type"],
        "status": PENDING,
        "merchant_order_no": wanted.get("merchant_order_no") or "",
        "payment_method": wanted["paychannel_paymethod"],
        **vars(quote),
        "customer_name": "",
        "account": None,
        "expires_at": None,
        **more,
    }
    return _New(source, call, channel.config, columns, outcome)


def _owner(new: _New) -> int:
    return int(new.call.merchant.id)


@grouped(_owner)
def _insert(placed: list[_New]) -> list[Order]:
    """Insert orders with their nonces and first lines of history.

    Raises:
        ApiError: Code.SERVICE_UNAVAILABLE if a channel's config changed since it was read.
    """
    configs = {channel: lock_account(channel) for channel in {new.columns["channel"] for new in placed}}
    if any(not vault.same(new.config, configs[new.columns["channel"]]) for new in placed):
        raise ApiError(Code.SERVICE_UNAVAILABLE)
    rows = []
    latest: dict[int, tuple[int, int]] = {}
    database.advisory_lock("numbers", *{new.call.merchant.id for new in placed})
    for new in placed:
        merchant = new.call.merchant.id
        seq, before = latest.get(merchant) or order_range.newest(merchant)
        now = max(clock.now(), before)  # keeps the order of creation if the clock was set back
        latest[merchant] = seq + 1, now
        rows.append({**new.columns, "seq": seq + 1, "createtime": now, "updatetime": now})
    ids = Order.add_all(rows)
    orders = [Order(id=order_id, **row) for order_id, row in zip(ids, rows, strict=True)]
    for order in orders:
        if not order.is_buy:
            keep_apart(order)
    signed = [(new.call, order, new.outcome) for new, order in zip(placed, orders, strict=True) if new.call.nonce]
    if signed:
        replay.record(signed)
    lifecycle.begin(orders, [new.source.who for new in placed], because(Why.CREATED))
    for new, order in zip(placed, orders, strict=True):
        if new.source.note:
            OrderNote.add(order=order.id, text=new.source.note)
        if new.source.bind:
            new.source.bind(order)
    return orders


def placed_before(call: Call) -> Placed | None:
    """Return the order of an earlier request with the same Idempotency-Key, before any other check.

    Raises:
        ApiError: as the first time, or INVALID_NONCE, IDEMPOTENCY_KEY_REUSED, REQUEST_IN_PROGRESS.
    """
    row = replay.earlier(call)
    if row is None:
        return None
    if row.outcome not in (None, 1):
        raise ApiError(row.outcome, _cancelled(row.order) if row.order else None, replayed=True)
    replay.record([(replace(call, idempotency_key=""), None, None)])  # the key is stored already, this nonce is not
    return Placed(row.order, replayed=True)


def _cancelled(order: Order) -> dict[str, str]:
    """Return the `data` of CHANNEL_FAILED."""
    return {"order_no": order.order_no}


def place_buy(call: Call, channel: Channel, wanted: dict[str, Any], source: Source = MERCHANT) -> Placed:
    """Create a deposit and open it at the channel, unless that happens when the page is viewed (docs/orders.md).

    Args:
        wanted: the loaded fields; `cny_amount` in fen.

    Raises:
        ApiError: Code.CHANNEL_FAILED, the channel refused and the order is cancelled; or a code of `replay`.
    """
    now = clock.now()
    expires_at = source.expires_at or now + current().settings.buy_expiry
    driver = driver_of(channel)
    at_once = not (driver.opens_locally or driver.opens_on_view)
    name = wanted.get("customer_name")
    new = _new(
        source,
        call,
        channel,
        wanted,
        fees.quote_buy(wanted["cny_amount"], call.merchant),
        outcome=None if at_once else 1,
        customer_name=vault.encrypt(name) if name else "",
        expires_at=expires_at,
        due_at=expires_at if driver.by_hand or driver.opens_on_view else min(now + FIRST_ASK, expires_at),
    )
    order = _insert(new)
    if at_once:
        _open(call, order, driver)
    return Placed(order)


def _open(call: Call, order: Order, driver: Driver) -> None:
    """Open a committed deposit at its channel and store the response. Raises ApiError CHANNEL_FAILED."""
    try:
        with channel_slot(order.channel_id):
            opened = call_driver(driver.open_payment, payment_of(order))
    except ChannelRefused as refusal:
        _not_opened(call, order, refusal)
        raise ApiError(Code.CHANNEL_FAILED, _cancelled(order)) from refusal
    except ChannelUnknown as silence:
        # It may be open upstream: the order stays pending, and its status is checked soon.
        lifecycle.outcome_unknown(order, str(silence), ask_again=clock.now())
        replay.finish(call, 1)
    else:
        _opened(call, order, opened)


@transaction
def _not_opened(call: Call, order: Order, refusal: ChannelRefused) -> None:
    lifecycle.transition(order, CANCELLED, "channel", because(Why.REFUSED, text=str(refusal)))
    replay.finish(call, Code.CHANNEL_FAILED)


@transaction
def _opened(call: Call, order: Order, opened: Opened) -> None:
    _keep(order, opened)
    replay.finish(call, 1)


@transaction
def _keep(order: Order, opened: Opened) -> None:
    order.opened = json.dumps(asdict(opened))
    Order.update(opened=order.opened).where(Order.id == order.id).execute()


def open_again(order: Order) -> bool:
    """Open a pending deposit whose first call to the channel had no response or was never made; False for any other.

    Raises:
        ChannelUnknown: no usable response, or a refusal, which may mean that it is open already, or paid.
    """
    driver = driver_of(order.channel)
    is_local = order.opened or driver.opens_locally or order.status != PENDING
    if is_local or attempts.is_opened_on_view(order, driver):
        return False
    try:
        opened = call_driver(driver.open_payment, payment_of(order))
    except ChannelRefused as refusal:
        raise ChannelUnknown(f"refused when it was opened again: {refusal}") from refusal
    _opened_again(order, opened)
    return True


@transaction
def _opened_again(order: Order, opened: Opened) -> None:
    _keep(order, opened)
    lifecycle.outcome_known(order)


def _account(call: Call, wanted: dict[str, Any]) -> PayoutAccount:
    """Return the payout account: the card in the request (gateway_a) or the account on file.

    Raises:
        ApiError: Code.NO_PAYOUT_ACCOUNT, there is no account on file.
    """
    if "gatewaya_card_info" not in wanted:
        account = PayoutAccount.of(call.merchant)
        if account is None:
            raise ApiError(Code.NO_PAYOUT_ACCOUNT)
        return account
    card = wanted["gatewaya_card_info"]
    details = {
        "bank": "",
        "sub_bank": "",
        "card_number": card["card_no"],
        "real_name": card["card_name"],
        "gatewaya_card_info": card,
        "gatewaya_personal_data": wanted["gatewaya_personal_data"],
    }
    return PayoutAccount.create(
        merchant=call.merchant,
        on_file=False,
        details=vault.encrypt(json.dumps(details, ensure_ascii=False)),
        createtime=clock.now(),
    )


def place_sell(call: Call, channel: Channel, wanted: dict[str, Any], source: Source = MERCHANT) -> Placed:
    """Create a withdrawal and reserve its amount, fees and deposit (docs/orders.md).

    Args:
        wanted: the loaded fields; `cny_amount` in fen.

    Raises:
        ApiError: Code.INSUFFICIENT_BALANCE, Code.NO_PAYOUT_ACCOUNT, or a code of `replay`.
    """
    try:
        if cache.by_id(call.merchant.id).sandbox_money:
            raise ApiError(Code.INSUFFICIENT_BALANCE, detail=sandbox_guard.WITHHELD)
        with exclusive(call.merchant.id):
            return Placed(_hold(source, call, channel, wanted))
    except ApiError as refusal:
        if refusal.code in (Code.INSUFFICIENT_BALANCE, Code.NO_PAYOUT_ACCOUNT):
            # The order was rolled back with its transaction; the nonce and the response for retries are stored.
            replay.record([(call, None, refusal.code)])
        raise


@transaction
def _hold(source: Source, call: Call, channel: Channel, wanted: dict[str, Any]) -> Order:
    quote = fees.quote_sell(wanted["cny_amount"], call.merchant, channel)
    by_rule = wanted["cny_amount"] <= channel.auto_accept_max and not second_operator.is_above(wanted["cny_amount"])
    account, due_at = _account(call, wanted), clock.now() if by_rule else None
    # No channel is called yet, so the response is known already.
    order = _insert(_new(source, call, channel, wanted, quote, outcome=1, account=account.id, due_at=due_at))
    accounts.post("hold", postings.hold(order), who=source.who, order=order)
    return order


def note_of(order: Order) -> str:
    """Return what the payment is for, in the words of an operator or of the shop; empty without a note."""
    row = OrderNote.get_or_none(OrderNote.order == order)
    payment = EpayOrder.of_order(order.id) if row is None else None
    return row.text if row else payment.name if payment else ""


def personal_data(order: Order) -> dict[str, Any]:
    """Return an order's personal data, decrypted for an operator: the customer's name, the note, the payout account."""
    if order.is_buy:
        name, payment = vault.decrypt(order.customer_name) if order.customer_name else "", EpayOrder.of_order(order.id)
        more = {"note": note_of(order), "param": payment.param if payment else ""}
        return {"customer_name": name} | {label: value for label, value in more.items() if value}
    details = account_details(order)
    nested = {
        f"{outer}.{name}": value
        for outer, inner in details.items()
        if isinstance(inner, dict)
        for name, value in inner.items()
    }
    return {"account": {name: value for name, value in details.items() if not isinstance(value, dict)} | nested}
