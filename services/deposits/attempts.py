"""Attempts to pay a deposit: opened, checked and closed at its channel, each under a number of its own.

A channel that opens a payment when the page is viewed has a row for each attempt. Any other has one attempt, without
a row, under the order's own number. A group may pass an order on after a failed attempt: then all have rows, and each
names its channel. The order's own channel is the last one. The others refused, so they are only watched.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from gateways.base import ChannelRefused, ChannelUnknown, Driver, NumberTaken, Opened, Payer, Payment, Report, State
from models.db.base import database
from models.db.compiled import compiled_rows
from models.db.writer import transaction
from models.tables import maintenance
from models.tables.channel import Channel
from models.tables.order import MONEY_IN, PENDING, Attempt, Order
from runtime import clock
from services.channels import groups, health
from services.channels.bulkhead import Busy, channel_slot
from services.channels.calls import FIRST_ASK, LATE, call_driver, driver_for, driver_of, lock_account, payment_of
from services.ledger import fees
from services.merchants import cache
from services.merchants.cache import Member
from services.orders import lifecycle
from services.orders.lifecycle import exceptions_of
from services.orders.reasons import Why, because
from services.orders.verdict import RETURNED
from services.security import vault

LACKING = 5  # attempts of an order that a restored database may lack
NUMBERS = 3  # that one request tries, if the channel has a payment under the first
PATIENCE = 10  # seconds for which one request passes an order on to other members of a group
ANSWERS_IN = 20  # seconds after which an attempt without a response is tried again


def all_of(order: Order) -> list[Attempt]:
    """Return the attempts of an order that have rows, the oldest first."""
    return _all_of(order.id)


@compiled_rows(Attempt)
def _all_of(order_id: int) -> Any:
    return Attempt.select().where(Attempt.order == order_id).order_by(Attempt.count)


def payments_of(order: Order) -> list[tuple[Channel, Payment]]:
    """Return the deposit in its drivers' form, once for each attempt that may be paid, with its channel.

    A restored database may lack the newest attempts, and some before one that a notice was about.
    """
    made, own = all_of(order), cache.channel_of(order)
    channels = {each.count: cache.channel_with(each.channel_id) for each in made}
    last = _newest(made) + (LACKING if _may_lack_some(order) else 0) or 1
    over = {each.count for each in made if not _may_be_paid(each)}
    return [(channels.get(count, own), _payment(order, count)) for count in range(1, last + 1) if count not in over]


def payment_now(order: Order) -> Payment:
    """Return the deposit in its driver's form, under the number of the newest attempt at its channel."""
    if not order.group_id:
        return payment_of(order)
    return _payment(order, _newest(_own(order, all_of(order))) or 1)


def _newest(made: list[Attempt]) -> int:
    return made[-1].count if made else 0


def are_several(order: Order) -> bool:
    """Return whether the channel may know more than one attempt. A notice of one then only triggers a check of all.

    The refund of an attempt that is not recorded here is not stored, so an older notice of it would seem to be new.
    """
    return len(_own(order, all_of(order))) > 1 or _may_lack_some(order)


def can_be_checked(order: Order) -> bool:
    """Return whether the order's channel, or an earlier one of its group, reports a deposit's status."""
    if driver_for(order).checks_status:
        return True
    return bool(order.group_id) and any(driver_of(channel).checks_status for channel, _ in payments_of(order))


def _may_be_paid(attempt: Attempt) -> bool:
    driver = driver_of(cache.channel_with(attempt.channel_id))
    return attempt.sent and not (attempt.closed and driver.closes_for_good)


def channels_before(order: Order) -> list[Channel]:
    """Return the other channels that may have an attempt of the order, because its group tried them.

    A restored database may lack attempts, so that they may be at any member.
    """
    found = [each.channel_id for each in all_of(order)] if order.group_id else []
    if order.group_id and is_older_than_restore(order):
        found += [member.channel.id for member in cache.members_of(order.group_id)]
    return [cache.channel_with(each) for each in dict.fromkeys(found) if each != order.channel_id]


def is_of(order: Order, channel: Channel, count: int) -> bool:
    """Return whether a payment with this number can be at the channel: no other channel has it."""
    known = [each.channel_id for each in all_of(order) if each.count == count]
    return channel.id in known if known else channel.id == order.channel_id or is_older_than_restore(order)


def reopen(order: Order, channel: int, count: int) -> None:
    """Count an attempt at a channel as one that may be paid, because a notice is about it.

    The channel may have closed it. A restored database may lack it; then its row is for no payer. Call it on the locked
    order, so that no request takes the same number.
    """
    mine = (Attempt.order == order, Attempt.count == count)
    known = Attempt.update(closed=False, sent=True).where(*mine, Attempt.channel == channel).execute()
    if not known and (_may_lack_some(order) or channel != order.channel_id):
        Attempt.create(order=order, count=count, browser="", payer="", triedtime=0, channel=channel)


def checked_again_at(order: Order) -> int | None:
    """Return when to check a deposit that ends now, because another attempt may still be paid; None if it had one."""
    return clock.now() + LATE[0] if are_several(order) or (order.group_id and len(payments_of(order)) > 1) else None


def _may_lack_some(order: Order) -> bool:
    """Return whether the order is older than a restore: attempts made after the backup may be missing."""
    return driver_for(order).opens_on_view and is_older_than_restore(order)


def is_older_than_restore(order: Order) -> bool:
    """Return whether the database was restored after the order was created, so that it may lack attempts."""
    restored = maintenance.newest()
    return restored is not None and bool(order.createtime <= restored)


def _payment(order: Order, count: int, payer: Payer | None = None) -> Payment:
    return replace(payment_of(order), order_no=_number(order, count), payer=payer)


def _number(order: Order, count: int) -> str:
    return order.order_no if count == 1 else f"{order.order_no}_{count}"


def reports_of(order: Order) -> list[Report]:
    """Return the channel's reports on a deposit: one, or one for each payment if there were several attempts.

    Raises:
        ChannelUnknown: no usable response about one of them, and no money for another.
    """
    booked, reports, silent = _booked(order), list[Report](), None
    for channel, payment in payments_of(order):
        driver, is_own = driver_of(channel), channel.id == order.channel_id
        if not driver.checks_status:
            continue
        try:
            report = call_driver(driver.query, payment)
        except ChannelUnknown as silence:
            if is_own or channel.id in {at for _, at in booked}:  # one that refused the order does not delay its end
                silent = silence
            continue
        # The order may be at another channel of its group once the report is applied.
        reports.append(replace(report, channel=channel.id) if order.group_id else report)
    if len(reports) == 1 and not silent and reports[0].channel in (0, order.channel_id):
        return reports
    numbers = {reference for reference, _ in booked}
    money = [each for each in reports if each.state in (State.PAID, State.RETURNED) or each.reference in numbers]
    if silent and money:
        return money  # an attempt without a response does not delay the money of another one
    if silent:
        raise silent
    others = sorted((each for each in reports if each not in money), key=lambda each: _HOPE.index(each.state))
    # An attempt without money proves nothing about another one. An attempt in no report no longer exists.
    for reference, channel_id in booked - {(each.reference, each.channel or order.channel_id) for each in money}:
        at = [each for each in others if (each.channel or order.channel_id) == channel_id]
        money += [replace(each, reference=reference) for each in at[:1]]
    if money or not driver_for(order).checks_status:
        return money  # what other channels do not have proves nothing about a channel without status checks
    # Without any: two payers closed each other's attempts, and the next one opens another.
    return [each for each in others if each.channel in (0, order.channel_id)][:1] or [Report(State.ABSENT)]


_HOPE = (State.OPEN, State.ABSENT, State.ENDED, State.FAILED)


def _booked(order: Order) -> set[tuple[str, int]]:
    """Return the channels' numbers of the recorded payments, each with the id of its channel."""
    money = [each for each in exceptions_of(order) if each.kind in MONEY_IN and each.resolution != RETURNED]
    found = {(order.channel_reference, order.channel_id), *((each.reference, each.channel_id) for each in money)}
    return {(reference, channel) for reference, channel in found if reference}


def close(order: Order) -> bool:
    """Close an unpaid deposit at its channel; return False if the channel may still accept money for an attempt.

    Raises:
        ChannelRefused: an attempt was paid.
        ChannelUnknown: no usable response.
    """
    driver = driver_for(order)
    own = [payment for channel, payment in payments_of(order) if channel.id == order.channel_id]
    closed = [call_driver(driver.close, payment) for payment in own]
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
    return driver.opens_on_view or order.opens_on_view or any(each.browser for each in all_of(order))


def shown_to(order: Order, payer: Payer) -> Shown:
    """Return the payment details for the payer. Raises ChannelError."""
    driver = driver_for(order)
    if driver.opens_locally:
        return Shown(driver.open_payment(payment_now(order)))
    if not is_opened_on_view(order, driver):
        return Shown(_opened_as(order.opened) if order.opened else None)
    made = _own(order, all_of(order))
    own = _attempt_for(payer, made, driver)
    if own is None:
        return Shown(moved=bool(made))
    opened = _opened_as(own.opened) if own.opened and not _is_stale(own) else None
    return Shown(opened, own.refusal, is_waiting=_is_recent(own) and not (own.opened or own.refusal))


def _own(order: Order, made: list[Attempt]) -> list[Attempt]:
    """Return the attempts at the order's present channel."""
    return [each for each in made if each.channel_id == order.channel_id]


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
    own = _attempt_for(payer, _own(order, all_of(order)), driver)
    return driver.open_payment(_payment(order, own.count, payer)) if own else None


def open_for(order: Order, payer: Payer, again: bool = False) -> None:
    """Open a pending deposit at its channel for a payer who views the page, unless it is open for such a browser.

    Attempts for other browsers are closed first. The result is stored with the attempt.

    Args:
        again: also after a refusal.
    """
    if leave_closed_member(order):
        payer = replace(payer, id="", token="")  # it is that of the channel before
    began, numbers = clock.steady(), NUMBERS
    while numbers:
        driver = driver_for(order)
        if not is_opened_on_view(order, driver) or (driver.needs_sign_in(payer.browser) and not payer.id):
            return
        begun = _begun(order, payer, again)
        if begun is None:
            return
        attempt, is_new = begun
        is_called = False
        try:
            with channel_slot(order.channel_id):
                if _other_is_paid(order, attempt):
                    return
                is_called = True
                opened = call_driver(driver.open_payment, _payment(order, attempt.count, payer))
        except NumberTaken as taken:
            _refused(order, attempt, str(taken), closed=False)
            numbers, again = numbers - 1, True  # under the next number
        except (ChannelRefused, ChannelUnknown) as failure:
            if is_new and clock.steady() - began < PATIENCE and pass_on(order, failure, attempt):
                payer = replace(payer, id="", token="")
                continue
            if isinstance(failure, ChannelRefused):
                # If it is not new, an earlier request may have opened it.
                _refused(order, attempt, str(failure), closed=is_new)
            else:
                lifecycle.outcome_unknown(order, str(failure), ask_again=clock.now())
            is_last_refusal = isinstance(failure, ChannelRefused) and order.group_id and attempt.count > 1
            if is_called and not is_last_refusal:
                health.record(order.channel_id, order.payment_method, str(failure))
            return
        else:
            _opened(order, attempt, opened)
            return


def leave_closed_member(order: Order) -> bool:
    """Pass a group's order on if its member takes it no more, and nothing was sent to it; return whether it was."""
    # An order that was not to be opened on view may be open without a row.
    if not (order.group_id and order.opens_on_view) or all_of(order):
        return False
    why = groups.why_not_passed_on(order)
    return bool(why) and pass_on(order, why)


@transaction
def pass_on(order: Order, failure: ChannelRefused | ChannelUnknown | str, attempt: Attempt | None = None) -> bool:
    """Pass a group's order on to the next member that can take it; False, with nothing changed, if it stays.

    It stays after an unknown outcome, and once a payer may have seen a payment: two could be paid then.

    Args:
        failure: of the only request, or why the member does not take the order any more.
        attempt: the one that failed; None for the only one at the channel.
    """
    is_unknown = isinstance(failure, ChannelUnknown) and failure.sent
    if is_unknown or not order.group_id or is_older_than_restore(order):
        return False
    locked, made = Order.for_update(order.id), all_of(order)
    database.advisory_lock("group", order.group_id)  # two orders may change places, and count at both members
    attempt = attempt or next(iter(_own(order, made)), None)
    if not is_payable(locked) or locked.opened or locked.channel_id != order.channel_id:
        return False
    if made and isinstance(failure, str):
        return False  # another browser tries it now
    if attempt is not None and attempt.browser and not locked.opens_on_view:
        return False  # it was opened when it was created, perhaps with an unknown outcome
    if any(not (each.closed and each.refusal) for each in made if attempt is None or each.id != attempt.id):
        return False
    group, before, method = cache.channel_with(order.group_id), cache.channel_of(order), order.payment_method
    left_out, tried = list[tuple[Member, str]](), {before.id, *(each.channel_id for each in made)}
    for member in groups.choices(group, method, order.amount, left_out, tried):
        if not vault.same(member.channel.config, lock_account(member.channel.id)):
            continue  # it was changed a moment ago
        with suppress(groups.NoRoom), database.atomic():  # undoes what it counted without room
            groups.take(member, method, order.amount, order.createtime)
            break
    else:
        return False
    groups.give_back(locked)
    was_sent = isinstance(failure, ChannelRefused)
    if attempt is not None:
        ended = {"refusal": str(failure), "closed": True, "sent": was_sent}
        Attempt.update(ended).where(Attempt.id == attempt.id).execute()
    elif not isinstance(failure, str):
        _add(order, _newest(made) + 1, before, refusal=str(failure), closed=True, sent=was_sent)
    driver = driver_of(member.channel)
    opens_on_view = driver.opens_on_view or (order.opens_on_view and not driver.opens_locally)
    change_channel(order, member.channel, opens_on_view=opens_on_view, due_at=first_act(driver, order.expires_at))
    if not order.opens_on_view:
        _add(order, _newest(all_of(order)) + 1, member.channel)
    note_left_out(order, left_out)
    names: dict[str, str | int] = {"channel": before.name, "next": member.channel.name}
    if isinstance(failure, str):
        lifecycle.note(order, "service", because(Why.MEMBER_CHANGED, **names, text=failure))
    else:
        lifecycle.note(order, "channel", because(Why.MEMBER_FAILED, **names, text=str(failure)))
        if isinstance(failure, ChannelUnknown) and not isinstance(failure, Busy):
            health.record(before.id, method, str(failure))
    return True


def change_channel(order: Order, channel: Channel, **facts: Any) -> None:
    """Give an order another channel, with the cost that is expected there, and store `facts` with it."""
    facts |= {"channel": channel.id, "cost_amount": fees.cost_of(order.amount, channel.cost_rate(order.payment_method))}
    Order.update(facts).where(Order.id == order.id, Order.status == order.status).execute()
    for name, value in facts.items():
        setattr(order, name, value)


def blame_refusals(order: Order) -> None:
    """Count the refusals of an order as failures of their channels, because another member of the group took it.

    An order that all members refuse is to blame itself, or one merchant could turn them off for all others.
    """
    for each in all_of(order):
        if each.channel_id != order.channel_id and each.refusal and each.sent:
            health.record(each.channel_id, order.payment_method, each.refusal)


def _add(order: Order, count: int, channel: Channel, **facts: Any) -> None:
    """Insert an attempt that is for no payer."""
    Attempt.create(order=order, count=count, browser="", triedtime=clock.now(), channel=channel, **facts)


def note_left_out(order: Order, left_out: list[tuple[Member, str]]) -> None:
    """Write why a group did not choose its preferred members, in the caller's transaction."""
    for member, why in left_out:
        lifecycle.note(order, "service", because(Why.MEMBER_LEFT_OUT, channel=member.channel.name, text=why))


def first_act(driver: Driver, expires_at: int) -> int:
    """Return when to act first on a new deposit of this driver."""
    return expires_at if driver.by_hand or driver.opens_on_view else min(clock.now() + FIRST_ASK, expires_at)


@transaction
def _begun(shown: Order, payer: Payer, again: bool) -> tuple[Attempt, bool] | None:
    """Return the attempt to open now, and whether it is new; None if there is none to open, or not at this channel.

    An attempt whose payment details can no longer be used is opened again under its own number.
    """
    order, now = Order.for_update(shown.id), clock.now()
    if not is_payable(order) or order.channel_id != shown.channel_id:
        return None  # a group passed it on a moment ago: the next view opens it there
    if order.group_id and is_older_than_restore(order):
        return None  # it may be open at a member that the restored database does not know
    made = all_of(order)
    own = _attempt_for(payer, _own(order, made), driver_for(order))
    if own is None or (own.refusal and again):
        facts = {"browser": payer.browser, "payer": payer.token if payer.id else None, "triedtime": now}
        facts["channel"] = order.channel_id
        return Attempt.create(order=order, count=_newest(made) + 1, **facts), True
    is_being_opened = not own.opened and _is_recent(own)
    if own.refusal or is_being_opened or (own.opened and not _is_stale(own)):
        return None
    Attempt.update(triedtime=now, opened="").where(Attempt.id == own.id).execute()
    return own, False


def _other_is_paid(order: Order, attempt: Attempt) -> bool:
    """Close all other attempts if the channel can. Return True if one is paid; the sweep then checks the status now."""
    numbers_are_new = not _may_lack_some(order)
    for other in all_of(order):
        # Anybody can collect refusals, so only the sweep checks such attempts.
        was_never_open = numbers_are_new and other.refusal and other.closed
        driver = driver_of(cache.channel_with(other.channel_id))
        if other.count == attempt.count or was_never_open or not (driver.checks_status and _may_be_paid(other)):
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
    health.record(order.channel_id, order.payment_method, "")
    if order.group_id and attempt.count > 1:
        blame_refusals(order)
