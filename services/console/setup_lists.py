"""Lists of merchants, channels and payout accounts, the audit log, and failed sign-ins."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from peewee import fn

from models.queries.keyset import Key, Line
from models.tables.channel import Channel, ChannelLink
from models.tables.ledger import AVAILABLE, CLEARING, HELD, LedgerAccount
from models.tables.merchant import Merchant
from models.tables.operator import AuditEntry, FailedSignIn
from models.tables.payout_account import PayoutAccount
from services.channels import channel_setup
from services.console.lists import Browse, add_owners, merchants
from services.security import masking
from services.security.audit import NOT_DONE


class _SetUp(Browse):
    """Rows by `enabled`, and `text`: a part of the name or key."""

    timed = False
    named_by: tuple[Any, ...] = ()

    def conditions(self) -> list[Any]:
        """The wanted conditions."""
        text = self.wanted.get("text")
        named = [reduce(or_, (field.contains(text) for field in self.named_by))] if text else []
        return [*named, *self.equal(enabled=self.table.enabled)]

    def total(self) -> int | None:
        """The number of rows, which are few."""
        rows, wanted = self.table.select(), self.conditions()
        return int((rows.where(*wanted) if wanted else rows).count())


def _balances(kinds: tuple[str, ...], owners: list[int]) -> dict[tuple[str, int], int]:
    wanted = LedgerAccount.kind.in_(kinds) & LedgerAccount.owner.in_(owners)
    rows = LedgerAccount.select(LedgerAccount.kind, LedgerAccount.owner, LedgerAccount.balance).where(wanted)
    return {(kind, owner): balance for kind, owner, balance in rows.tuples()}


def _linked(own: Any, ids: list[int]) -> dict[int, int]:
    rows = ChannelLink.select(own, fn.COUNT(own)).where(own.in_(ids)).group_by(own)
    return dict(rows.tuples())


class Merchants(_SetUp):
    """Merchants."""

    table = Merchant
    named_by = (Merchant.key, Merchant.name)

    def rows(self, ids: list[int]) -> list[Any]:
        """The rows with `available` and `held` in fen, and `linked`: the number of channels that it may use."""
        rows, linked = super().rows(ids), _linked(ChannelLink.merchant_id, ids)
        balances = _balances((AVAILABLE, HELD), ids)
        for row in rows:
            row.available, row.held = (balances.get((kind, row.id), 0) for kind in (AVAILABLE, HELD))
            row.linked = linked.get(row.id, 0)
        return rows


class Channels(_SetUp):
    """Channels, also by `driver` and `category`."""

    table = Channel
    named_by = (Channel.name,)

    def conditions(self) -> list[Any]:
        """The wanted conditions."""
        return [*self.equal(driver=Channel.driver, category=Channel.category), *super().conditions()]

    def rows(self, ids: list[int]) -> list[Any]:
        """The rows with `clearing`: the balance of its account in fen, and `linked`: the number of merchants that may
        use it. Groups have the payment methods and amounts of their members."""
        rows, linked = super().rows(ids), _linked(ChannelLink.channel_id, ids)
        balances = _balances((CLEARING,), ids)
        for row in rows:
            row.pay_method, row.min_amount, row.max_amount = channel_setup.offer_of(row)
            row.clearing, row.linked = balances.get((CLEARING, row.id), 0), linked.get(row.id, 0)
        return rows


class Accounts(Browse):
    """Payout accounts on file, by `merchant`."""

    table = PayoutAccount
    timed = False

    def lines(self, above: Key | None, below: Key | None) -> list[Line]:
        """One line for each merchant."""
        on_file = PayoutAccount.on_file
        owners = merchants(self.wanted)
        return [self.line([on_file, PayoutAccount.merchant == owner], above, below) for owner in owners]

    def rows(self, ids: list[int]) -> list[Any]:
        """The rows with merchant; `masked` is visible to everybody, `present` means that withdrawals are paid to it
        now."""
        rows = add_owners(super().rows(ids))
        owner = PayoutAccount.merchant_id
        on_file = PayoutAccount.on_file & owner.in_({row.merchant_id for row in rows})
        newest = dict(PayoutAccount.select(owner, fn.MAX(PayoutAccount.id)).where(on_file).group_by(owner).tuples())
        for row in rows:
            row.masked, row.present = masking.account(row), newest[row.merchant_id] == row.id
        return rows


class Audit(Browse):
    """The audit log, by `who`, `action`, `about`, `key`, `since`, `until`."""

    table = AuditEntry
    timed = False

    def lines(self, above: Key | None, below: Key | None) -> list[Line]:
        """By the index of objects, or by ids."""
        if not {"about", "key"} <= self.wanted.keys():
            return super().lines(above, below)
        return [self.line(self.equal(about=AuditEntry.about, key=AuditEntry.key), above, below)]

    def conditions(self) -> list[Any]:
        """Conditions on the entry."""
        exact = self.equal(who=AuditEntry.who, action=AuditEntry.action, about=AuditEntry.about, key=AuditEntry.key)
        return [*self.within(AuditEntry.at), *exact]

    def time_of(self, key: Key) -> int | None:
        """The time of the entry."""
        return AuditEntry.select(AuditEntry.at).where(AuditEntry.id == key[0]).scalar()

    def rows(self, ids: list[int]) -> list[Any]:
        """The rows with `subject`, the name of merchants and channels and otherwise the key, and `not_done`: whether a
        newer one of these rows records that the action failed."""
        rows, failed = super().rows(ids), set()
        names = _names(rows)
        for row in rows:
            row.subject = names.get((row.about, row.key), row.key)
            same = (row.who, row.action, row.about, row.key)
            row.not_done = same in failed
            if row.detail.startswith(NOT_DONE):
                failed.add(same)
            else:
                failed.discard(same)
        return rows


def _names(rows: list[Any]) -> dict[tuple[str, str], str]:
    """Return the names of the merchants and channels that these audit entries are about, by `about` and key."""
    keys = {row.key for row in rows if row.about == "merchant"}
    ids = {int(row.key) for row in rows if row.about == "channel" and row.key.isdecimal() and len(row.key) < 19}
    found = {("merchant", row.key): row.name for row in Merchant.select().where(Merchant.key.in_(keys))}
    return found | {("channel", str(row.id)): row.name for row in Channel.select().where(Channel.id.in_(ids))}


class FailedSignIns(Browse):
    """Failed sign-ins by hour and address, by `address`, `since`, `until`."""

    table = FailedSignIn
    timed = False

    def conditions(self) -> list[Any]:
        """The wanted conditions."""
        return [*self.equal(address=FailedSignIn.address), *self.within(FailedSignIn.hour)]

    def time_of(self, key: Key) -> int | None:
        """The hour of the row."""
        return FailedSignIn.select(FailedSignIn.hour).where(FailedSignIn.id == key[0]).scalar()
