"""Setup of groups of channels: their members, with the limits of what the group passes on to each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from peewee import fn

from gateways.base import Driver
from models.db.base import database
from models.db.writer import after_commit, transaction
from models.tables.channel import Channel, ChannelMember, MemberDay
from models.tables.order import CANCELLED, Order
from runtime import clock
from services.channels import groups, pictures
from services.channels.calls import driver_of
from services.channels.groups import checked_hours, day_of
from services.errors import N_, OperatorError
from services.merchants import cache, edit_conflicts
from services.merchants.cache import Member

MOST = 50  # members of a group
MOST_WEIGHT = 1_000
MOST_COUNT = 1_000_000  # orders of a day
LIMITS = ("min_amount", "max_amount", "daily_amount", "daily_count")


@dataclass(frozen=True)
class MemberState:
    """A member with what its daily limits have counted today, in fen and orders; both are None without such limits.

    `why_not`: why the group passes no deposit on to it now, by payment method, in English for translation.
    """

    member: Member
    amount: int | None
    count: int | None
    why_not: dict[str, str]


def states(group: Channel) -> list[MemberState]:
    """Return the members of a group as they are now, in their order."""
    members = cache.members_of(group.id)
    used = groups.today(members)
    return [_state(each, *used.get(each.row.id, (0, 0))) for each in members]


def _state(member: Member, amount: int, count: int) -> MemberState:
    row, channel = member.row, member.channel
    why_not = dict(pictures.unusable_methods(channel))
    for method in channel.pay_methods:
        why = groups.why_not_now(member, method) or groups.why_full(member, member.range[0], amount, count)
        if method not in why_not and why:
            why_not[method] = why
    used = (amount, count) if row.has_daily_limit else (None, None)
    return MemberState(member, used[0], used[1], why_not)


def find_group(group: Channel) -> Channel:
    """Return a channel that is a group. Raises OperatorError for any other."""
    if not group.is_group:
        raise OperatorError(N_("channel %(channel_id)s is not a group"), channel_id=str(group.id))
    return group


def find_member(group: Channel, channel_id: int) -> ChannelMember:
    """Return the place of a channel in a group. Raises OperatorError."""
    pair = (ChannelMember.group == group, ChannelMember.channel == channel_id)
    row: ChannelMember | None = ChannelMember.get_or_none(*pair)
    if row is None:
        text = N_("channel %(channel_id)s is not a member of group %(group)s")
        raise OperatorError(text, channel_id=str(channel_id), group=str(group.id))
    return row


@transaction
def add_member(group: Channel, channel: Channel, *, position: int | None = None, **facts: Any) -> ChannelMember:
    """Add a channel to a group.

    Args:
        position: 1 for the first place; None for the last. Later members move down.
        facts: columns of ChannelMember; amounts in fen, None for no limit.

    Raises:
        OperatorError: the channel does not fit the group, or a value is invalid.
    """
    # Locked, so that no other transaction changes the settlement delay of either, or adds a member.
    pair = Channel.select().where(Channel.id.in_([group.id, channel.id])).order_by(Channel.id)
    found = {row.id: row for row in database.for_update(pair)}
    group, channel = find_group(found[group.id]), found[channel.id]
    if channel.is_group:
        raise OperatorError(N_("A group cannot be a member of a group."), "channel")
    if channel.category != group.category:
        raise OperatorError(N_("The channel must have the category of the group."), "channel")
    if channel.settlement_days != group.settlement_days:
        text = N_(
            "The settlement delay of the channel is T+%(its)s, and that of the group is T+%(days)s. They must be equal."
        )
        raise OperatorError(text, "channel", its=str(channel.settlement_days), days=str(group.settlement_days))
    if type(driver_of(channel)).open_payment is Driver.open_payment:
        raise OperatorError(N_("This channel accepts no deposits."), "channel")
    members = list(ChannelMember.select().where(ChannelMember.group == group))
    if channel.id in {row.channel_id for row in members}:
        raise OperatorError(N_("This channel is a member already."), "channel")
    if len(members) >= MOST:
        raise OperatorError(N_("A group has at most %(most)s members."), "channel", most=str(MOST))
    last = 1 + max((row.position for row in members), default=0)
    row: ChannelMember = ChannelMember.create(group=group, channel=channel, position=last, **_checked(channel, facts))
    if position is not None:
        _put(row, position)
    if row.has_daily_limit:
        _count_today(row)
    after_commit(cache.forget)
    return row


@transaction
def set_member(member: ChannelMember, *, position: int | None = None, mark: str | None = None, **facts: Any) -> None:
    """Change the limits or the place of a member.

    Args:
        position: the new place, 1 for the first; None for no change. The others move up or down.
        mark: `edit_conflicts.version_of` the member when it was shown; a later change is not overwritten.
        facts: columns of ChannelMember; amounts in fen, None for no limit.

    Raises:
        OperatorError: a value is invalid, or someone changed or removed the member meanwhile.
    """
    _lock_order(member)
    # `groups.take` makes new orders wait for this row, so each is either counted below or finds the new limit.
    now: ChannelMember | None = database.for_update(
        ChannelMember.select().where(ChannelMember.id == member.id), alone=True
    ).first()
    if now is None or (mark is not None and mark != edit_conflicts.version_of(now)):
        raise OperatorError(edit_conflicts.CONFLICT)
    was_limited = now.has_daily_limit
    present = {name: getattr(now, name) for name in LIMITS}
    checked = _checked(Channel.get_by_id(now.channel_id), present | facts)
    if checked:
        ChannelMember.update(checked).where(ChannelMember.id == now.id).execute()
    for name, value in checked.items():
        setattr(now, name, value)
    if position is not None:
        _put(now, position)
    if now.has_daily_limit and not was_limited:
        _count_today(now)
    after_commit(cache.forget)


@transaction
def remove_member(member: ChannelMember) -> None:
    """Remove a channel from its group. Its open orders continue. Raises OperatorError if it is not a member."""
    _lock_order(member)
    if not ChannelMember.delete().where(ChannelMember.id == member.id).execute():
        raise OperatorError(edit_conflicts.CONFLICT)
    _arrange(list(_in_order(member.group_id)))
    after_commit(cache.forget)


def _checked(channel: Channel, facts: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a member as they are stored. Raises OperatorError, naming the field."""
    for name in LIMITS:
        if facts.get(name) is not None and facts[name] < 1:
            raise OperatorError(N_("Must be greater than 0."), name)
    low, high = facts.get("min_amount") or 1, facts.get("max_amount") or channel.max_amount
    if low > high and facts.get("max_amount") is not None:
        raise OperatorError(N_("The minimum amount is above the maximum."), "min_amount")
    if max(low, channel.min_amount) > min(high, channel.max_amount):
        text = N_("The channel takes no amount between these limits.")
        raise OperatorError(text, "min_amount" if facts.get("min_amount") else "max_amount")
    if not 1 <= facts.get("weight", 1) <= MOST_WEIGHT:
        raise OperatorError(N_("The weight must be from 1 to %(most)s."), "weight", most=f"{MOST_WEIGHT:,}")
    if (facts.get("daily_count") or 0) > MOST_COUNT:
        raise OperatorError(N_("Is too large."), "daily_count")
    return facts | ({"hours": checked_hours(facts["hours"])} if "hours" in facts else {})


def _count_today(row: ChannelMember) -> None:
    """Count today's orders of a member that gets its first daily limit, while new ones wait for its row."""
    now = clock.now()
    midnight = clock.in_china(now).replace(hour=0, minute=0, second=0, microsecond=0)
    its = (Order.group == row.group_id, Order.channel == row.channel_id, Order.createtime >= int(midnight.timestamp()))
    sums = Order.select(fn.COALESCE(fn.SUM(Order.amount), 0), fn.COUNT(Order.id)).where(*its, Order.status != CANCELLED)
    amount, count = sums.tuples().get()
    MemberDay.insert(member=row.id, day=day_of(now), amount=int(amount), count=count).on_conflict(
        conflict_target=[MemberDay.member, MemberDay.day], update={"amount": int(amount), "count": count}
    ).execute()


def _lock_order(member: ChannelMember) -> None:
    """Make other changes of the group's order of members wait."""
    database.for_update(Channel.select().where(Channel.id == member.group_id)).get()


def _in_order(group: int) -> Any:
    return ChannelMember.select().where(ChannelMember.group == group).order_by(ChannelMember.position, ChannelMember.id)


def _put(row: ChannelMember, position: int) -> None:
    """Give a member its place, and number all members of its group from 1."""
    others = [each for each in _in_order(row.group_id) if each.id != row.id]
    others.insert(max(position, 1) - 1, row)
    _arrange(others)


def _arrange(rows: list[ChannelMember]) -> None:
    for number, row in enumerate(rows, 1):
        if row.position != number:
            ChannelMember.update(position=number).where(ChannelMember.id == row.id).execute()
            row.position = number
