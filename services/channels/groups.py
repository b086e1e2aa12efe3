"""Groups of channels: which member takes a deposit, and what its limits leave.

A group is a channel that passes its deposits on. Who names it gets a member; the order's `channel` is the member.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from models.db.base import database
from models.db.compiled import compiled, compiled_rows
from models.tables.channel import WEIGHT, Channel, ChannelMember, MemberDay
from models.tables.order import Order
from runtime import clock
from runtime.clock import in_china
from services.channels import health, pictures
from services.channels.calls import driver_of
from services.errors import N_, OperatorError
from services.merchants import cache
from services.merchants.cache import Member, Range

NO_LIMIT = 2**62
LATER = 30  # seconds after which a merchant may ask a closed channel, or a group without a free member, again

_HOURS = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])")


class NoRoom(Exception):
    """A member cannot take the order after all: its limit was reached, or another order tries it, a moment ago."""


# --- what merchants and payers see


def accepted(channel: Channel) -> dict[str, list[Range]]:
    """Return the amounts that a channel accepts of deposits, by payment method; for a group, those of its members."""
    if channel.is_group:
        ranges, members = cache.ranges_of(channel.id), cache.members_of(channel.id)
        offered = {method for each in members if not each.by_hand for method in each.methods}
        for each in members:
            if not offered.issuperset(each.methods):
                offered.update(accepted(each.channel))  # whether a manual channel has a picture is not in the cache
        return {method: found for method, found in ranges.items() if method in offered}
    unusable, own = pictures.unusable_methods(channel), [(int(channel.min_amount), int(channel.max_amount))]
    return {method: own for method in channel.pay_methods if method not in unusable}


def channels_in(channel: Channel) -> list[Channel]:
    """Return the channels at which an order of this channel can be: itself, or the members of a group."""
    return [each.channel for each in cache.members_of(channel.id)] if channel.is_group else [channel]


# --- the choice of a member


def why_closed(channel: Channel) -> str:
    """Return why a channel takes no new orders now, in English for translation; "" if it does."""
    if not channel.enabled:
        return N_("The channel is disabled.")
    if not channel.takes_orders:
        return N_("The channel takes no new orders.")
    return "" if is_within(channel.hours, clock.now()) else N_("The channel takes no orders at this time of day.")


def why_not_now(member: Member, method: str, is_chosen: bool = False) -> str:
    """Return why a group passes no deposit on to a member now, in English for translation; "" if it does.

    `is_chosen`: for an order that has it already, which may be the trial after a failure.
    """
    if closed := why_closed(member.channel):
        return closed
    if not is_within(member.row.hours, clock.now()):
        return N_("The group uses this channel at other times of the day.")
    is_left_out = health.is_paused if is_chosen else health.is_off
    if is_left_out(member.channel.id, method):
        return N_("The channel is left out after failures.")
    return ""


def why_not_passed_on(order: Order) -> str:
    """Return why the member that was chosen for a new order does not take it any more; "" if it does.

    A trial after a failure continues: this order may be the one.
    """
    mine = [each for each in cache.members_of(order.group_id) if each.channel.id == order.channel_id]
    if not mine:
        return N_("The channel is no longer in the group.")
    return why_not_now(mine[0], order.payment_method, is_chosen=True)


def choices(
    group: Channel, method: str, fen: int, left_out: list[tuple[Member, str]], tried: Collection[int] = ()
) -> Iterator[Member]:
    """Yield the members that can take a deposit now, the preferred one first.

    Args:
        left_out: gets the preferred members that cannot, each with why, in English for translation.
        tried: the ids of channels that are not tried again.
    """
    fitting: Iterable[Member] = (
        each
        for each in cache.members_of(group.id)
        if each.range[0] <= fen <= each.range[1] and method in each.methods and not (tried and each.channel.id in tried)
    )
    if driver_of(group).config.get("mode") == WEIGHT:
        fitting = _by_chance(list(fitting))
    for each in fitting:
        if method in pictures.unusable_methods(each.channel):
            continue
        if why := why_not_now(each, method) or why_full(each, fen, *today([each]).get(each.row.id, (0, 0))):
            left_out.append((each, why))
        else:
            yield each


def _by_chance(members: list[Member]) -> Iterator[Member]:
    """Yield members in an order of chance, in which one of twice the weight is first twice as often."""
    while members:
        (at,) = random.choices(range(len(members)), [each.weight for each in members])
        yield members.pop(at)


# --- what was passed on: daily limits, in the transaction of each order


def today(members: Collection[Member]) -> dict[int, tuple[int, int]]:
    """Return the amount in fen and the number of today's orders, by row id, of the members with a daily limit."""
    of_today = ((each.row.id, _day(each.row.id, day_of(clock.now()))) for each in members if each.row.has_daily_limit)
    return {row: (found[0].amount, found[0].count) for row, found in of_today if found}


def why_full(member: Member, fen: int, amount: int, count: int) -> str:
    """Return that the member's daily limits leave no room after this amount and number, in English, or ""."""
    most, most_count = member.row.daily_amount or NO_LIMIT, member.row.daily_count or NO_LIMIT
    return N_("Its daily limit is reached.") if amount + fen > most or count >= most_count else ""


@compiled
def _day(member: int, day: str) -> Any:
    return MemberDay.select(MemberDay.amount, MemberDay.count).where(MemberDay.member == member, MemberDay.day == day)


def day_of(at: int) -> str:
    """Return the day in China, such as 2026-05-01, on which an order of this time counts."""
    return str(in_china(at).date())


@compiled_rows(ChannelMember)
def _as_stored(member: int) -> Any:
    return database.relied_on(ChannelMember.select().where(ChannelMember.id == member))


@compiled
def _add(member: int, day: str, fen: int, most: int, most_count: int) -> Any:
    table = MemberDay
    left = (table.amount + fen <= most, table.count < most_count)
    return table.update(amount=table.amount + fen, count=table.count + 1).where(
        table.member == member, table.day == day, *left
    )


def _begin_day(member: int, day: str, fen: int) -> bool:
    """Insert the day with its first order; False if it is there."""
    first = MemberDay.insert(member=member, day=day, amount=fen, count=1).on_conflict_ignore()
    return bool(first.as_rowcount().execute())


def take(member: Member, method: str, fen: int, at: int) -> None:
    """Count a deposit of this time against the member's daily limits, in the transaction that creates or moves it.

    The limits are read again, so that they are never exceeded, whatever a cache knows.

    Raises:
        NoRoom: a limit is reached, the channel is no longer a member, or another order tries it after a failure.
    """
    row = _as_stored.first(member.row.id)
    if row is None:
        raise NoRoom
    if row.has_daily_limit:
        day, most, most_count = day_of(at), row.daily_amount or NO_LIMIT, row.daily_count or NO_LIMIT
        counts = (member.row.id, day, fen, most, most_count)
        if fen > most or not (_add(*counts) or _begin_day(member.row.id, day, fen) or _add(*counts)):
            raise NoRoom
    if not health.begin_trial(member.channel.id, method):  # last, because all orders of the channel share its row
        raise NoRoom


@compiled
def _move(group: int, channel: int, day: str, fen: int, one: int) -> Any:
    mine = ChannelMember.select(ChannelMember.id).where(ChannelMember.group == group, ChannelMember.channel == channel)
    changed = MemberDay.update(amount=MemberDay.amount + fen, count=MemberDay.count + one)
    return changed.where(MemberDay.member.in_(mine), MemberDay.day == day)


def give_back(order: Order) -> None:
    """Count an order no more, in the transaction that cancels it or passes it on to another member."""
    _move(order.group_id, order.channel_id, day_of(order.createtime), -order.amount, -1)


def count_again(order: Order) -> None:
    """Count a cancelled order whose payment was found, in the caller's transaction, whatever the limit."""
    _move(order.group_id, order.channel_id, day_of(order.createtime), order.amount, 1)


# --- hours


def is_within(hours: str, now: int) -> bool:
    """Return whether a time is within hours of the day in China, such as 09:00-21:00; they may pass midnight."""
    if not hours:
        return True
    begin, _, end = hours.partition("-")
    time = f"{in_china(now):%H:%M}"
    return begin <= time < end if begin < end else time >= begin or time < end


def checked_hours(text: str) -> str:
    """Return hours as they are stored; "" for the whole day. Raises OperatorError."""
    hours = text.strip()
    found = _HOURS.fullmatch(hours)
    if hours and (found is None or found[1] + found[2] == found[3] + found[4]):
        raise OperatorError(N_("Enter hours such as 09:00-21:00, or nothing for the whole day."), "hours")
    return hours
