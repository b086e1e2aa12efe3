"""Attempts to pay a deposit: opened, checked and closed at its channel, each under a number of its own.

A channel that opens a payment when the page is viewed has a row for each attempt. Any other has one attempt, without
a row, under the order's own number.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from gateways.base import ChannelRefused, ChannelUnknown, Driver, NumberTaken, Opened, Payer, Payment, Report, State
from models.db.compiled import compiled_rows
from models.db.writer import transaction
from models.tables import maintenance
from models.tables.order import MONEY_IN, PENDING, Attempt, Order
from runtime import clock
from services.channels.bulkhead import channel_slot
from services.channels.calls import FIRST_ASK, LATE, call_driver, driver_for, payment_of
from services.orders import lifecycle
from services.orders.lifecycle import exceptions_of
from services.orders.reasons import Why, because
from services.orders.verdict import RETURNED

LACKING = 5  # attempts of an order that a restored database may lack
NUMBERS = 3  # that one request tries, if the channel has a payment under the first
ANSWERS_IN = 20  # seconds after which an attempt without a response is tried again


def all_of(order: Order) -> list[Attempt]:
    """Return the attempts of an order that have rows, the oldest first."""
    return _all_of(order.id)


@compiled_rows(Attempt)
def _all_of(order_id: int) -> Any:
    return Attempt.select().where(Attempt.order == order_id).order_by(Attempt.count)


def payments_of(order: Order) -> list[Payment]:
    """Return the deposit in its driver's form, once for each attempt that may be paid.

    A restored database may lack the newest attempts, and some before one that a notice was about.
    """
    made, driver = all_of(order), driver_for(order)
    last = _newest(made) + (LACKING if _may_lack_some(order) else 0) or 1
    over = {each.count for each in made if not _may_be_paid(each, driver)}
    return [_payment(order, count) for count in range(1, last + 1) if count not in over]


def _newest(made: list[Attempt]) -> int:
    return made[-1].count if made else 0


def are_several(order: Order) -> bool:
    """Return whether the channel may know more than one attempt. A notice of one then only triggers a check of all.

    The refund of an attempt that is not recorded here is not stored, so an older notice of it would seem to be new.
    """
    return _newest(all_of(order)) > 1 or _may_lack_some(order)


def _may_be_paid(attempt: Attempt, driver: Driver) -> bool:
    return not (attempt.closed and driver.closes_for_good)


def reopen(order: Order, count: int) -> None:
    """Count an attempt as one that may be paid, because a notice is about it.

    The channel may have closed it. A restored database may lack it; then its row is for no payer. Call it on the locked
    order, so that no request takes the same number.
    """
    known = Attempt.update(closed=False).where(Attempt.order == order, Attempt.count == count).execute()
    if not known and _may_lack_some(order):
        Attempt.create(order=order, count=count, browser="", payer="", triedtime=0)


def checked_again_at(order: Order) -> int | None:
    """Return when to check a deposit that ends now, because another attempt may still be paid; None if it had one."""
    several = is_opened_on_view(order, driver_for(order)) and are_several(order)
    return clock.now() + LATE[0] if several else None


def _may_lack_some(order: Order) -> bool:
    """Return whether the order is older than a restore: attempts made after the backup may be missing."""
    if not driver_for(order).opens_on_view:
        return False
    restored = maintenance.newest()
    return restored is not None and order.createtime <= restored


def _payment(order: Order, count: int, payer: Payer | None = None) -> Payment:
    return replace(payment_of(order), order_no=_number(order, count), payer=payer)


def _number(order: Order, count: int) -> str:
    return order.order_no if count == 1 else f"{order.order_no}_{count}"


def reports_of(order: Order) -> list[Report]:
    """Return the channel's reports on a deposit: one, or one for each payment if there were several attempts.

    Raises:
        ChannelUnknown: no usable response about one of them, and no money for another.
    """
    driver, payments = driver_for(order), payments_of(order)
    if not payments:
        return [Report(State.ABSENT)]  # two payers closed each other's attempts: the next one opens another
    reports, silent = [], None
    for payment in payments:
        try:
            reports.append(call_driver(driver.query, payment))
        except ChannelUnknown as silence:
            silent = silence
    if len(reports) == 1 and not silent:
        return reports
    booked = _booked(order)
    money = [each for each in reports if each.state in (State.PAID, State.RETURNED) or each.reference in booked]
    if silent and money:
        return money  # an attempt without a response does not delay the money of another one
    if silent:
        raise silent
    others = sorted((each for each in reports if each not in money), key=lambda each: _HOPE.index(each.state))
    # An attempt without money proves nothing about another one. An attempt in no report no longer exists.
    missing = booked - {each.reference for each in money}
    return money + [replace(others[0], reference=each) for each in missing if others] or others[:1]


_HOPE = (State.OPEN, State.ABSENT, State.ENDED, State.FAILED)


def _booked(order: Order) -> set[str]:
    """Return the channel's numbers of the recorded payments."""
    money = [each for each in exceptions_of(order) if each.kind in MONEY_IN]
    there = {each.reference for each in money if each.resolution != RETURNED}
    return (there | {order.channel_reference}) - {""}


def close(order: Order) -> bool:
    """Close an unpaid deposit at its channel; return False if the channel may still accept money for an attempt.

    Raises:
        ChannelRefused: an attempt was paid.
        ChannelUnknown: no usable response.
    """
    driver = driver_for(order)
    closed = [call_driver(driver.close, payment) for payment in payments_of(order)]
    return all(closed)


@dataclass(frozen=True)
class Shown:
    """The payment details of a pending deposit, or the channel's message if it refused.

    `moved`: only other browsers have an attempt that may be paid. `is_waiting`: the channel was called a moment ago and
    has not responded.
    """

    opened: Opened | None = None
    refusal: str = ""
    moved: bool = False
    is_waiting: bool = False

    @property
    def is_ready(self) -> bool:
        """True if there is anything to show."""
        return self.opened is not None or bool(self.refusal)


def is_payable(order: Order) -> bool:
    """Return whether a payer may pay the deposit now. Nothing is due while an operator decides about its money."""
    return order.status == PENDING and order.due_at is not None and clock.now() < (order.expires_at or 0)


def is_opened_on_view(order: Order, driver: Driver) -> bool:
    """Return whether the payment is opened when its page is viewed, by the present settings or those of before."""
    if order.opened or driver.opens_locally:
        return False
    return driver.opens_on_view or order.opens_on_view or bool(all_of(order))


def shown_to(order: Order, payer: Payer) -> Shown:
    """Return the payment details for the payer. Raises ChannelError."""
    driver = driver_for(order)
    if driver.opens_locally:
        return Shown(driver.open_payment(payment_of(order)))
    if not is_opened_on_view(order, driver):
        return Shown(_opened_as(order.opened) if order.opened else None)
    made = all_of(order)
    own = _attempt_for(payer, made, driver)
    if own is None:
        return Shown(moved=bool(made))
    opened = _opened_as(own.opened) if own.opened and not _is_stale(own) else None
    return Shown(opened, own.refusal, is_waiting=_is_recent(own) and not (own.opened or own.refusal))


def _attempt_for(payer: Payer, made: list[Attempt], driver: Driver) -> Attempt | None:
    """Return the newest attempt for this payer's browser that the channel has not closed, or refused to open."""
    own = [each for each in made if (each.refusal or not each.closed) and _is_for(each, payer, driver)]
    return own[-1] if own else None


def _is_for(attempt: Attempt, payer: Payer, driver: Driver) -> bool:
    needed = payer.token if driver.needs_sign_in(payer.browser) else None
    return attempt.payer == needed and driver.way(attempt.browser) == driver.way(payer.browser)


def _is_stale(attempt: Attempt) -> bool:
    """Return whether the payment details can no longer be used, although the attempt may still be paid."""
    seconds = json.loads(attempt.opened).get("seconds", 0)
    return bool(seconds) and not 0 <= clock.now() - attempt.triedtime < seconds


def _is_recent(attempt: Attempt) -> bool:
    return 0 <= clock.now() - attempt.triedtime < ANSWERS_IN


def _opened_as(stored: str) -> Opened:
    opened = json.loads(stored)
    return Opened(**opened | {"lines": tuple(map(tuple, opened.get("lines", ())))})


def signed_again(order: Order, payer: Payer) -> Opened | None:
    """Return the payment details to send the payer away with now; None if there are none. Raises ChannelError."""
    opened, driver = shown_to(order, payer).opened, driver_for(order)
    if opened is None or not opened.fields or not driver.signs_again(payer.browser):
        return opened
    own = _attempt_for(payer, all_of(order), driver)
    return driver.open_payment(_payment(order, own.count, payer)) if own else None


def open_for(order: Order, payer: Payer, again: bool = False) -> None:
    """Open a pending deposit at its channel for a payer who views the page, unless it is open for such a browser.

    Attempts for other browsers are closed first. The result is stored with the attempt.

    Args:
        again: also after a refusal.
    """
    driver = driver_for(order)
    if not is_opened_on_view(order, driver) or (driver.needs_sign_in(payer.browser) and not payer.id):
        return
    for _ in range(NUMBERS):
        begun = _begun(order.id, payer, again)
        if begun is None:
            return
        attempt, is_new = begun
        try:
            with channel_slot(order.channel_id):
                if _other_is_paid(order, attempt, driver):
                    return
                opened = call_driver(driver.open_payment, _payment(order, attempt.count, payer))
        except NumberTaken as taken:
            _refused(order, attempt, str(taken), closed=False)
            again = True  # under the next number
        except ChannelRefused as refusal:
            _refused(order, attempt, str(refusal), closed=is_new)  # otherwise an earlier request may have opened it
            return
        except ChannelUnknown as silence:
            lifecycle.outcome_unknown(order, str(silence), ask_again=clock.now())
            return
        else:
            _opened(order, attempt, opened)
            return


@transaction
def _begun(order_id: int, payer: Payer, again: bool) -> tuple[Attempt, bool] | None:
    """Return the attempt to open now, and whether it is new; None if there is none to open.

    An attempt whose payment details can no longer be used is opened again under its own number.
    """
    order, now = Order.for_update(order_id), clock.now()
    if not is_payable(order):
        return None
    made = all_of(order)
    own = _attempt_for(payer, made, driver_for(order))
    if own is None or (own.refusal and again):
        facts = {"browser": payer.browser, "payer": payer.token if payer.id else None, "triedtime": now}
        return Attempt.create(order=order, count=_newest(made) + 1, **facts), True
    is_being_opened = not own.opened and _is_recent(own)
    if own.refusal or is_being_opened or (own.opened and not _is_stale(own)):
        return None
    Attempt.update(triedtime=now, opened="").where(Attempt.id == own.id).execute()
    return own, False


def _other_is_paid(order: Order, attempt: Attempt, driver: Driver) -> bool:
    """Close all other attempts if the channel can. Return True if one is paid; the sweep then checks the status now."""
    if not driver.checks_status:
        return False
    numbers_are_new = not _may_lack_some(order)
    for other in all_of(order):
        # Anybody can collect refusals, so only the sweep checks such attempts.
        was_never_open = numbers_are_new and other.refusal and other.closed
        if other.count == attempt.count or was_never_open or not _may_be_paid(other, driver):
            continue
        payment = _payment(order, other.count)
        state = call_driver(driver.query, payment).state
        is_closed = state is State.FAILED
        if state in (State.OPEN, State.ABSENT) and not other.closed:
            try:
                is_closed = call_driver(driver.close, payment)
            except ChannelRefused:
                state = State.PAID
        if state in (State.PAID, State.RETURNED):
            order.set_due(clock.now())
            return True
        if is_closed:
            _closed(other)
    return False


@transaction
def _closed(attempt: Attempt) -> None:
    Attempt.update(closed=True).where(Attempt.id == attempt.id).execute()


@transaction
def _refused(order: Order, attempt: Attempt, text: str, closed: bool) -> None:
    Attempt.update(refusal=text, closed=Attempt.closed | closed).where(Attempt.id == attempt.id).execute()
    why = because(Why.ATTEMPT_REFUSED, number=_number(order, attempt.count), text=text)
    lifecycle.note(order, "channel", why)


@transaction
def _opened(order: Order, attempt: Attempt, opened: Opened) -> None:
    order = Order.for_update(order.id)
    stored = json.dumps(asdict(opened), ensure_ascii=False)
    Attempt.update(opened=stored).where(Attempt.id == attempt.id).execute()
    why = because(Why.ATTEMPT_OPENED, number=_number(order, attempt.count), browser=attempt.browser)
    lifecycle.note(order, "channel", why)
    first_check = clock.now() + FIRST_ASK
    if order.status == PENDING and first_check < (order.due_at or 0):
        order.set_due(first_check)
