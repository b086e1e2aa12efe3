"""The personal data of one person: the orders and accounts on file that contain it, and its erasure on request."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Iterator
from typing import Any

from peewee import chunked, fn

from models.db.base import database
from models.db.writer import transaction
from models.tables.epay import EpayOrder
from models.tables.maintenance import ErasureDelayed, ErasureProgress
from models.tables.order import CANCELLED, COMPLETED, Attempt, InternalNote, Order, OrderNote, PaymentException
from models.tables.outbox import WAITING, Callback
from models.tables.payout_account import PayoutAccount
from models.tables.refund import OPEN, Refund
from runtime import clock
from runtime.clock import in_china
from runtime.state import Part
from services import kinds
from services.callbacks import epay_notices
from services.console import timeline
from services.errors import N_, OperatorError
from services.security import audit, vault

log = logging.getLogger(__name__)

EVERY = 5  # seconds between runs
LONGEST = 0.9  # seconds that one run may take
BATCH = 100  # orders that one transaction examines, so that it delays others by milliseconds
DAY = 86_400
UNORDERED = 1_000  # newest refunds that are looked up again, because transactions may commit in another order
JOB = audit.Actor("erasure job")


def needed_for(orders: list[Order]) -> dict[int, str]:
    """Return, by order id, the reason why these orders' personal data is still needed; without orders that may be
    erased."""
    ids = [order.id for order in orders]
    is_open = PaymentException.resolution.is_null()
    questioned = _orders_of(PaymentException, PaymentException.order.in_(ids) & is_open)
    untold = _orders_of(Callback, Callback.order.in_(ids) & (Callback.state == WAITING))
    refunding = _orders_of(Refund, Refund.order.in_(ids) & Refund.status.in_(OPEN))
    refunded = _orders_of(Refund, Refund.order.in_(ids) & Refund.due_at.is_null(False))

    def why(order: Order) -> str:
        if order.status not in (COMPLETED, CANCELLED):
            return N_("its status is %(status)s") % {"status": order.status}
        if order.id in questioned:
            return N_("it has an open exception")
        if order.id in untold:
            return N_("a callback is not delivered yet")
        if order.id in refunding:
            return N_("a refund is in progress")
        is_checked = order.due_at is not None or order.id in refunded or kinds.of(order).is_in_progress(order)
        return N_("its channel is still being checked") if is_checked else ""

    return {order.id: reason for order in orders if (reason := why(order))}


def _orders_of(
    table: type[PaymentException | Callback | OrderNote | InternalNote | EpayOrder | Attempt | Refund], which: object
) -> set[int]:
    return {row[0] for row in table.select(table.order).where(which).tuples()}


def _ended_at(orders: list[Order]) -> dict[int, int]:
    """Return the time of the last change of each order, its refunds or its internal notes, by order id."""
    ids = [order.id for order in orders]
    refunded = Refund.select(Refund.order, fn.MAX(Refund.updatetime)).where(Refund.order.in_(ids))
    noted = InternalNote.select(InternalNote.order, fn.MAX(InternalNote.createtime)).where(InternalNote.order.in_(ids))
    refunds = dict(refunded.group_by(Refund.order).tuples())
    notes = dict(noted.group_by(InternalNote.order).tuples())
    return {order.id: max(int(order.updatetime), refunds.get(order.id, 0), notes.get(order.id, 0)) for order in orders}


@transaction
def examine_again(order: Order) -> None:
    """Examine an order again if it was examined before, because personal data is added in the same transaction."""
    database.advisory_lock("erasure")
    if order.id <= ErasureProgress.reached():
        ErasureDelayed.insert(order=order.id, due_at=clock.now()).on_conflict_ignore().execute()


def clear(orders: list[Order]) -> list[Order]:
    """Erase the personal data of orders, in the caller's transaction. Accounts on file stay.

    Returns: the orders that had personal data.
    """
    holders = having(orders)
    own = PayoutAccount.id.in_([order.account_id for order in holders if order.account_id])
    PayoutAccount.update(details="").where(own).execute()
    Order.update(customer_name="").where(Order.id.in_([order.id for order in holders if order.customer_name])).execute()
    for notes in (OrderNote, InternalNote):
        notes.delete().where(notes.order.in_([order.id for order in holders])).execute()
    Attempt.update(payer=None).where(Attempt.order.in_([order.id for order in holders])).execute()
    epay_notices.erase(holders)
    _clear_refunds(holders)
    return holders


def _clear_refunds(orders: list[Order]) -> None:
    """Erase the reasons of refunds, also in the callbacks about them."""
    reasons = (Refund.order.in_([order.id for order in orders]), Refund.reason != "")
    refunded = _orders_of(Refund, reasons[0] & reasons[1])
    Refund.update(reason="").where(*reasons).execute()
    for callback in Callback.select().where(Callback.order.in_(refunded), Callback.type.startswith("refund.")):
        told = json.loads(callback.body)
        told["data"]["reason"] = ""
        body = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
        Callback.update(body=body).where(Callback.id == callback.id).execute()


def having(orders: list[Order]) -> list[Order]:
    """Return those of the orders that have personal data of their own, not only an account on file."""
    accounts = [order.account_id for order in orders if order.account_id]
    own = (PayoutAccount.id.in_(accounts)) & ~PayoutAccount.on_file & (PayoutAccount.details != "")
    sent = {row[0] for row in PayoutAccount.select(PayoutAccount.id).where(own).tuples()}
    ids = [order.id for order in orders]
    described = (EpayOrder.name != "") | (EpayOrder.param != "")
    noted = _orders_of(OrderNote, OrderNote.order.in_(ids)) | _orders_of(InternalNote, InternalNote.order.in_(ids))
    noted |= _orders_of(EpayOrder, EpayOrder.order.in_(ids) & described)
    noted |= _orders_of(Attempt, Attempt.order.in_(ids) & Attempt.payer.is_null(False))
    noted |= _orders_of(Refund, Refund.order.in_(ids) & (Refund.reason != ""))
    return [order for order in orders if order.customer_name or order.account_id in sent or order.id in noted]


def run(days: int) -> int:
    """Erase due personal data, in batches, and leave the writer to others most of the time.

    Args:
        days: the minimum age of an order's end.

    Returns: the number of erased orders.
    """
    erased, until = 0, time.monotonic() + LONGEST
    while time.monotonic() < until:
        started = time.monotonic()
        examined, done = _step(days)
        erased += done
        if not examined:
            break
        time.sleep(3 * (time.monotonic() - started))
    if erased:
        log.info("Erased the personal data of %d orders", erased)
    return erased


@transaction
def _step(days: int) -> tuple[int, int]:
    """Examine a batch; return the number of examined and of erased orders."""
    database.advisory_lock("erasure")
    batch = _Batch(days)
    batch.find_refunds()
    batch.look_again()
    batch.go_on()
    forgotten = EpayOrder.delete_open(f"{in_china(batch.until + DAY):%Y%m%d}", batch.until, BATCH)
    if forgotten:
        audit.record(
            JOB,
            "erase",
            "orders",
            forgotten[-1],
            N_("%(count)s epay payments without an order") % {"count": len(forgotten)},
        )
    erased = clear(batch.ready)
    if erased:
        newest = max(erased, key=lambda order: int(order.id))
        audit.record(
            JOB, "erase", "orders", newest.order_no, N_("%(count)s orders, this is the newest") % {"count": len(erased)}
        )
    return batch.examined + len(forgotten), len(erased)


class _LaterRefunds:
    """The id of the newest refund whose order was looked up (`_Batch.find_refunds`); 0 after a start."""

    seen = 0


_later_refunds = Part(_LaterRefunds)


class _Batch:
    """Orders that are examined together. `ready` are those whose personal data is erased now."""

    def __init__(self, days: int) -> None:
        self.now, self.wait = clock.now(), days * DAY
        self.until = self.now - self.wait
        self.ready: list[Order] = []
        self.examined = 0

    def find_refunds(self) -> None:
        """Delay orders that got a refund with a reason after they were examined."""
        later, reached = _later_refunds(), ErasureProgress.reached()
        newest = Refund.select(fn.MAX(Refund.id)).scalar() or 0
        wanted = (Refund.id > later.seen - UNORDERED, Refund.reason != "", Refund.order <= reached)
        delayed = ErasureDelayed.select(ErasureDelayed.order)
        found = {row[0] for row in Refund.select(Refund.order).where(*wanted, Refund.order.not_in(delayed)).tuples()}
        for chunk in chunked(sorted(found), BATCH):
            ErasureDelayed.add_all([{"order": order, "due_at": self.now} for order in chunk])
        later.seen = newest

    def look_again(self) -> None:
        """Examine orders that were delayed."""
        due = ErasureDelayed.select(ErasureDelayed.order).where(ErasureDelayed.due_at <= self.now)
        ids = [row[0] for row in due.order_by(ErasureDelayed.due_at).limit(BATCH).tuples()]
        orders = list(Order.select().where(Order.id.in_(ids)))
        needed, ended = needed_for(orders), _ended_at(orders)
        for order in orders:
            if order.id in needed or ended[order.id] > self.until:
                again = self._again_at(ended[order.id], order.id in needed)
                ErasureDelayed.update(due_at=again).where(ErasureDelayed.order == order).execute()
            else:
                self.ready.append(order)
        ErasureDelayed.delete().where(ErasureDelayed.order.in_([order.id for order in self.ready])).execute()
        self.examined += len(orders)

    def go_on(self) -> None:
        """Examine the orders after the last examined one, as long as they are old enough."""
        reached = ErasureProgress.reached()
        orders = list(Order.select().where(Order.id > reached).order_by(Order.id).limit(BATCH))
        orders = [order for order in orders if order.createtime <= self.until]
        holders = having(orders)
        needed, held, ended = needed_for(holders), {order.id for order in holders}, _ended_at(holders)
        last, delayed = reached, []
        for order in orders:
            if order.id in held and (order.id in needed or ended[order.id] > self.until):
                if order.id not in needed and ended[order.id] - order.createtime < DAY:
                    break  # almost every order ends soon after its creation, so wait for it here
                delayed.append({"order": order.id, "due_at": self._again_at(ended[order.id], order.id in needed)})
            elif order.id in held:
                self.ready.append(order)
            last = order.id
            self.examined += 1
        if delayed:
            ErasureDelayed.add_all(delayed)
        if last != reached:
            ErasureProgress.reach(last)

    def _again_at(self, ended: int, is_needed: bool) -> int:
        """Return when to examine an order again that ended at that time: within a day, because exceptions are
        resolved and settings change."""
        tomorrow = self.now + DAY
        return tomorrow if is_needed else min(ended + self.wait, tomorrow)


STEP = 200  # orders that are decrypted at a time
NAMES = ("customer_name", "real_name", "gatewaya_card_info.card_name", "gatewaya_personal_data.name")
CARDS = ("card_number", "gatewaya_card_info.card_no")


def find(numbers: tuple[str, ...], name: str, card: str) -> list[str]:
    """Return the numbers of these orders, and of those with exactly this name or card number, without repeats.

    Raises:
        OperatorError: an unknown order number, or nothing to search for.
    """
    if not (numbers or name or card):
        raise OperatorError("specify order numbers, --name or --card")
    named = [timeline.find(number).order_no for number in numbers]
    return list(dict.fromkeys([*named, *_matching(name, card)]))


def _matching(name: str, card: str) -> Iterator[str]:
    """Decrypt all orders page by page; names and cards are encrypted, so no index can find them."""
    last = 0
    stored = (Order.customer_name != "") | (PayoutAccount.details != "")
    every = Order.select(Order, PayoutAccount).left_outer_join(PayoutAccount).where(stored).order_by(Order.id)
    while (name or card) and (page := list(every.where(Order.id > last).limit(STEP))):
        for order in page:
            if _is_of(timeline.personal_values(order), name, card):
                yield order.order_no
        last = page[-1].id


def _is_of(values: dict[str, Any], name: str, card: str) -> bool:
    """Return whether these values have exactly this name, or this card number."""
    is_named = name and name in (values.get(field) for field in NAMES)
    return bool(is_named or (card and card in (values.get(field) for field in CARDS)))


def details_of(account: PayoutAccount) -> dict[str, Any]:
    """Return an account on file, decrypted."""
    return json.loads(vault.decrypt(account.details))


def accounts(name: str, card: str) -> list[PayoutAccount]:
    """Return the accounts on file with exactly this name or card number, by id."""
    stored = PayoutAccount.on_file & (PayoutAccount.details != "")
    rows = PayoutAccount.select().where(stored).order_by(PayoutAccount.id) if name or card else []
    return [row for row in rows if _is_of(details_of(row), name, card)]


def is_current(account: PayoutAccount) -> bool:
    """Return whether the merchant's withdrawals are paid to it now."""
    return bool(PayoutAccount.of(account.merchant) == account)


def export_account(account: PayoutAccount) -> dict[str, Any]:
    """Return all data of an account on file, after recording the export in the audit log."""
    audit.record(audit.HERE, "export personal data", "account", str(account.id))
    facts = {"account": account.id, "merchant": account.merchant.key, "createtime": account.createtime}
    return facts | {"current": is_current(account), "personal_data": details_of(account)}


def export(order_no: str) -> Order:
    """Return the order, after recording the export of its personal data in the audit log."""
    order = timeline.find(order_no)
    audit.record(audit.HERE, "export personal data", "order", order_no)
    return order


def survey(numbers: list[str]) -> list[dict[str, Any]]:
    """Return the effect of an erasure on each order: number, status, stored fields, and why it is refused or empty."""
    orders = [timeline.find(number) for number in numbers]
    needed = needed_for(orders)
    return [
        {
            "order_no": order.order_no,
            "status": order.status,
            "fields": len(timeline.personal_values(order)),
            "on_file": bool(order.account_id and order.account.on_file),
            "refused": needed.get(order.id, ""),
        }
        for order in orders
    ]


@transaction
def erase(numbers: list[str], on_file: Iterable[PayoutAccount] = ()) -> int:
    """Erase the personal data of all these orders or of none; return the number of orders that had any.

    Args:
        on_file: accounts to erase as well, except those that withdrawals are paid to now. Orders to them have their
            name
            and card, so they are among `numbers` if both were found by those.

    Raises:
        OperatorError: some have not ended; the text lists them.
    """
    orders = [timeline.find(number) for number in numbers]
    needed = needed_for(orders)
    if needed:
        refused = [f"  {order.order_no}: {needed[order.id]}" for order in orders if order.id in needed]
        raise OperatorError("\n".join(["nothing was erased, because these orders are still open:", *refused]))
    erased = clear(orders)
    for order in erased:
        audit.record(audit.HERE, "erase", "order", order.order_no)
    for account in on_file:
        if not is_current(account):
            PayoutAccount.update(details="").where(PayoutAccount.id == account.id).execute()
            audit.record(audit.HERE, "erase", "account", str(account.id))
    return len(erased)
