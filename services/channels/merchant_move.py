"""Move all merchants of one channel to another: what changes for them, and the move itself in one transaction.

Orders at the present channel go on there. Merchants that name a channel in their requests name the new one themselves,
so the present one can stay linked until they do.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256

from gateways import registry
from models.db.writer import transaction
from models.tables.channel import Channel, ChannelLink
from models.tables.epay import EpayAccount
from models.tables.merchant import Merchant
from runtime import clock
from runtime.money import hundredths
from services.channels import groups
from services.channels.calls import driver_of
from services.errors import N_, OperatorError
from services.merchants import edit_conflicts, epay_accounts, links
from services.merchants.epay_accounts import Types

OF_WITHDRAWALS = ("passage_rate", "deposit_rate", "auto_accept_max")
METHODS_OF = ("deposits", "withdrawals")
OUTDATED = N_("The channels or their merchants were changed in the meantime. Check what changes now.")


class Outdated(OperatorError):
    """What the move would change is no longer what was shown."""


@dataclass(frozen=True)
class Setting:
    """A setting in which the two channels differ; both values are texts, amounts in yuan and rates in percent.

    `name` is one of `deposits` and `withdrawals` (payment methods), `amounts`, and the columns `category`,
    `settlement_days`, `passage_rate`, `deposit_rate`, `auto_accept_max`. `loses` are the payment methods that the other
    channel lacks.
    """

    name: str
    present: str
    new: str
    loses: str = ""


@dataclass(frozen=True)
class Moved:
    """A merchant of the move.

    `types` and `new_types` are the channels by type of its epay gateway, as text; both are empty if it has none. The
    payers of `left` types cannot pay through the new channel, which lacks their payment method. `chooses` means that
    its types follow from the payment methods of all its channels, so that its payers can choose each.
    """

    id: int
    key: str
    name: str
    has_target: bool
    types: str = ""
    new_types: str = ""
    left: tuple[str, ...] = ()
    chooses: bool = False


@dataclass(frozen=True)
class Plan:
    """What the move changes. `closed` is why the other channel takes no new orders now; "" if it does."""

    source: int
    target: int
    keep: bool
    settings: tuple[Setting, ...]
    merchants: tuple[Moved, ...]
    closed: str

    @property
    def detail(self) -> str:
        """The detail of the entry in the audit log."""
        return f"channel: {self.target}; merchant: {', '.join(each.key for each in self.merchants)}"

    @property
    def mark(self) -> str:
        """A hash that changes with anything that the plan shows."""
        return sha256(repr(self).encode()).hexdigest()[:16]


def plan(source: Channel, target: Channel, *, keep: bool) -> Plan:
    """Return what a move of all merchants changes.

    Args:
        keep: the merchants can use `source` as well.

    Raises:
        OperatorError: it is the same channel, `target` is disabled, `source` has no merchants, or payers cannot pay
            through `target`.
    """
    number = str(target.id)
    if source.id == target.id:
        raise OperatorError(N_("Choose another channel than the present one."), "target")
    if target.driver not in registry.usable() or not target.enabled:
        raise OperatorError(N_("Channel %(channel_id)s is disabled. Enable it first."), "target", channel_id=number)
    if not groups.accepted(target):
        raise OperatorError(N_("Payers cannot pay through channel %(channel_id)s."), "target", channel_id=number)
    rows = list(Merchant.select().join(ChannelLink).where(ChannelLink.channel == source).order_by(Merchant.id))
    if not rows:
        raise OperatorError(N_("Channel %(channel_id)s has no merchants."), channel_id=str(source.id))
    at_target = set(links.merchants_of(target))
    accounts = {each.merchant_id: each for each in EpayAccount.select()}
    return Plan(
        source=source.id,
        target=target.id,
        keep=keep,
        settings=_settings(source, target),
        merchants=tuple(_moved(row, row.id in at_target, accounts.get(row.id), source, target) for row in rows),
        closed=groups.why_closed(target),
    )


def _settings(source: Channel, target: Channel) -> tuple[Setting, ...]:
    """Return the settings in which the two differ, of those that matter to merchants."""
    present, new = _values(source), _values(target)
    differ = [name for name in present if name in new and present[name] != new[name]]
    return tuple(
        Setting(name, present[name], new[name], _without(present[name], new[name]) if name in METHODS_OF else "")
        for name in differ
    )


def _values(channel: Channel) -> dict[str, str]:
    """Return a channel's settings as texts by name. Those of withdrawals are missing if it takes none, as a group."""
    accepted, payouts = groups.accepted(channel), driver_of(channel).payout_methods
    able = [] if channel.is_group else [each for each in channel.pay_methods if each in payouts]
    ranges = sorted({each for ranges in accepted.values() for each in ranges})
    values = {
        "category": channel.category,
        "deposits": ",".join(accepted),
        "withdrawals": ",".join(able),
        "amounts": ", ".join(f"{hundredths(low)}-{hundredths(high)}" for low, high in ranges),
        "settlement_days": str(channel.settlement_days),
    }
    return values | ({name: hundredths(getattr(channel, name)) for name in OF_WITHDRAWALS} if able else {})


def _without(present: str, new: str) -> str:
    """Return the payment methods that only the first of these lists has."""
    return ",".join(each for each in present.split(",") if each and each not in new.split(","))


def _moved(
    merchant: Merchant, has_target: bool, account: EpayAccount | None, source: Channel, target: Channel
) -> Moved:
    facts = {"id": merchant.id, "key": merchant.key, "name": merchant.name, "has_target": has_target}
    types = epay_accounts.types_of(account) if account else {}
    if not types:
        return Moved(**facts, chooses=account is not None)
    new = _new_types(types, source, target, groups.accepted(target))
    left = tuple(name for name, pairs in new.items() if source.id in [channel for channel, _ in pairs])
    return Moved(**facts, types=epay_accounts.types_text(types), new_types=epay_accounts.types_text(new), left=left)


def _new_types(types: Types, source: Channel, target: Channel, able: Collection[str]) -> Types:
    """Return channels by type with `target` instead of `source`, for the payment methods that it is able to take.

    The others keep `source`, so that the shop's list never becomes empty, which would allow all channels.
    """
    return {
        name: list(
            dict.fromkeys(
                (target.id, method) if channel == source.id and method in able else (channel, method)
                for channel, method in pairs
            )
        )
        for name, pairs in types.items()
    }


@transaction
def move(source: Channel, target: Channel, *, keep: bool, mark: str) -> Plan:
    """Move all merchants to another channel, with the types of their epay gateways; return what was changed.

    Args:
        keep: the merchants can use `source` as well.
        mark: that of the plan that was shown.

    Raises:
        Outdated: something else would change.
        OperatorError: as for `plan`.
    """
    locked = {each.id: edit_conflicts.check_version(each, None) for each in sorted((source, target), key=_id)}
    source, target = locked[source.id], locked[target.id]
    found = plan(source, target, keep=keep)
    if found.mark != mark or not links.move([each.id for each in found.merchants], source, target, keep=keep):
        raise Outdated(OUTDATED)
    changed, able = [each.id for each in found.merchants if each.types != each.new_types], groups.accepted(target)
    for account in EpayAccount.select().where(EpayAccount.merchant.in_(changed)).order_by(EpayAccount.id):
        new = _new_types(epay_accounts.types_of(account), source, target, able)
        facts = {"types": json.dumps(new, separators=(",", ":")), "updatetime": clock.now()}
        same = (EpayAccount.id == account.id) & (EpayAccount.types == account.types)
        if not EpayAccount.update(facts).where(same).execute():
            raise Outdated(OUTDATED)
    return found


def _id(channel: Channel) -> int:
    return int(channel.id)
