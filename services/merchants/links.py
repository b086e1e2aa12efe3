"""The channels that merchants may use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from models.db.writer import after_commit, transaction
from models.tables.channel import Channel, ChannelLink
from models.tables.merchant import Merchant
from services.errors import N_, OperatorError
from services.merchants import cache


@transaction
def link(channel: Channel, merchant: Merchant) -> None:
    """Let a merchant use a channel."""
    after_commit(cache.forget)
    ChannelLink.insert(channel=channel, merchant=merchant).on_conflict_ignore().execute()


@transaction
def unlink(channel: Channel, merchant: Merchant) -> None:
    """Unlink a channel from a merchant; existing orders continue. Raises OperatorError if it is not linked."""
    after_commit(cache.forget)
    own = (ChannelLink.channel == channel) & (ChannelLink.merchant == merchant)
    if not ChannelLink.delete().where(own).execute():
        raise OperatorError(
            N_("%(key)s is not linked to channel %(channel_id)s"), key=merchant.key, channel_id=str(channel.id)
        )


def channels_of(merchant: Merchant) -> list[int]:
    """Return the ids of the channels that a merchant may use, including disabled ones."""
    links = ChannelLink.select(ChannelLink.channel).where(ChannelLink.merchant == merchant)
    return sorted(channel for (channel,) in links.tuples())


def merchants_of(channel: Channel) -> list[int]:
    """Return the ids of the merchants that may use a channel."""
    links = ChannelLink.select(ChannelLink.merchant).where(ChannelLink.channel == channel)
    return sorted(merchant for (merchant,) in links.tuples())


@transaction
def set_channels(merchant: Merchant, wanted: Iterable[int]) -> None:
    """Let a merchant use exactly the channels with these ids."""
    _replace(channels_of(merchant), wanted, lambda channel: {"merchant": merchant.id, "channel": channel})


@transaction
def set_merchants(channel: Channel, wanted: Iterable[int]) -> None:
    """Let exactly the merchants with these ids use a channel."""
    _replace(merchants_of(channel), wanted, lambda merchant: {"merchant": merchant, "channel": channel.id})


@transaction
def move(merchants: Collection[int], source: Channel, target: Channel, *, keep: bool) -> bool:
    """Let these merchants use the channel `target`, and unless `keep`, no longer the channel `source`.

    Returns: whether all of them still had `source`; the caller undoes the change otherwise.
    """
    after_commit(cache.forget)
    new = [{"merchant": merchant, "channel": target.id} for merchant in merchants]
    ChannelLink.insert_many(new).on_conflict_ignore().execute()
    own = (ChannelLink.channel == source) & ChannelLink.merchant.in_(merchants)
    found = ChannelLink.select().where(own).count() if keep else ChannelLink.delete().where(own).execute()
    return bool(found == len(merchants))


def _replace(present: Iterable[int], wanted: Iterable[int], row: Callable[[int], dict[str, int]]) -> None:
    after_commit(cache.forget)
    new, gone = set(wanted) - set(present), set(present) - set(wanted)
    for each in sorted(gone):
        pair = row(each)
        own = (ChannelLink.merchant == pair["merchant"]) & (ChannelLink.channel == pair["channel"])
        ChannelLink.delete().where(own).execute()
    if new:
        ChannelLink.insert_many([row(each) for each in sorted(new)]).on_conflict_ignore().execute()
