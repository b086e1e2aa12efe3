"""Lists of exceptions, ledger entries and callbacks, for the console and for commands."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Any

from peewee import JOIN, SQL, fn

from models.queries import time_bisect
from models.queries.keyset import Key, Line
from models.tables.bill import DIFFERENCE_STATES, UNSETTLED, Bill, StatementDifference
from models.tables.channel import Channel
from models.tables.ledger import AVAILABLE, CLEARING, COMMISSION, FEES, HELD, Entry, LedgerAccount, Posting
from models.tables.merchant import Merchant
from models.tables.order import Order, PaymentException
from models.tables.outbox import CALLBACK_STATES, DEAD, Callback, CallbackAttempt
from models.tables.payout_batch import FAILED, PayoutBatch, PayoutBatchLine
from models.tables.reconciliation import Reconciliation
from models.tables.refund import PLATFORM, Refund
from runtime import clock
from services.console.lists import Browse, add_owners, capped, merchants
from services.statements import differences, kept_results
from services.withdrawals.bank_files import IS_OPEN

OPEN, SETTLED = "open", "settled"
RECENT = 7 * 86_400  # seconds for which a failed callback is reported
OWNERS = {"merchant": Merchant, "channel": Channel}
OWN = {"merchant": (AVAILABLE, HELD), "channel": (CLEARING,)}  # kinds of their accounts
ACCOUNTS = (AVAILABLE, HELD, FEES, COMMISSION, CLEARING)


class Exceptions(Browse):
    """Exceptions, by `state` (OPEN, SETTLED), `kind`, `type`, `merchant`, `channel`, `amount`, `text`, times.

    `amount` is that of the exception or of its order, `text` an order's number or a part of the transaction ID, and
    `channel` the one that has the money. The list leaves out those of the causes `apart`.
    """

    table = PaymentException

    @property
    def timed(self) -> bool:  # type: ignore[override]
        """True if the index of open exceptions, which has their times, is used."""
        return self.wanted.get("state") == OPEN

    def lines(self, above: Key | None, below: Key | None) -> list[Line]:
        """Open ones by their index, all by their ids."""
        if not self.timed:
            return super().lines(above, below)
        return [self.line([PaymentException.resolution.is_null()], *self.in_time(above, below))]

    def conditions(self) -> list[Any]:
        """Conditions on the exception and its order."""
        text = [PaymentException.reference.contains(self.wanted["text"])] if "text" in self.wanted else []
        return [*self._plain_conditions(), *text]

    def _plain_conditions(self) -> list[Any]:
        """All conditions but the text."""
        own = self.equal(kind=PaymentException.kind, channel=PaymentException.channel)
        own += [] if self.timed else self.within(PaymentException.createtime)
        if of_order := self.equal(merchant=Order.merchant, type=Order.order_type):
            own.append(fn.EXISTS(Order.select(SQL("1")).where(Order.id == PaymentException.order_id, *of_order)))
        if (amount := self.wanted.get("amount")) is not None:
            of_amount = Order.select(SQL("1")).where(Order.id == PaymentException.order_id, Order.amount == amount)
            own.append((PaymentException.amount == amount) | fn.EXISTS(of_amount))
        if self.wanted.get("state") == SETTLED:
            own.append(PaymentException.resolution.is_null(False))
        for cause in self.wanted.get("apart", ()):
            own.append((PaymentException.kind != cause.kind) | (PaymentException.channel != cause.channel))
        return own

    def few(self) -> list[Key] | None:
        """Those with this whole transaction ID or order number; None if there are none."""
        text = self.wanted.get("text")
        if not text:
            return None
        of_order = Order.select(Order.id).where(Order.order_no == text)
        whole = (PaymentException.reference == text, PaymentException.reference != "")
        state = [PaymentException.resolution.is_null()] if self.timed else []
        rest = [*self._plain_conditions(), *state, *self.within(PaymentException.createtime)]
        keys = [
            key
            for sought in (whole, (PaymentException.order.in_(of_order),))
            for key in PaymentException.select(*self.columns).where(*sought, *rest).tuples()
        ]
        return list(dict.fromkeys(keys)) or None

    def query(self) -> Any:
        """The query with their orders."""
        return PaymentException.select(PaymentException, Order).join(Order)

    def rows(self, ids: list[int]) -> list[Any]:
        """The rows with their channel, and their order with its merchant and channel."""
        rows = super().rows(ids)
        add_owners([row.order for row in rows])
        return add_owners(rows)


@dataclass(frozen=True)
class Cause:
    """Open exceptions of one kind at one channel.

    Args:
        amount: the sum of their amounts in fen; that of the order for an exception without an amount.
        oldest: the Unix time since when the first of them is open.
    """

    kind: str
    channel: Channel
    count: int
    amount: int
    oldest: int


def frequent_causes(wanted: dict[str, Any]) -> list[Cause]:
    """Return the causes of more than one of the wanted open exceptions, the most frequent first.

    There are none if the filters select the closed ones, a kind, a channel or a single exception.
    """
    if wanted.get("state") != OPEN or wanted.keys() & {"kind", "channel", "amount", "text"}:
        return []
    browse = Exceptions(wanted)
    about = PaymentException.resolution.is_null(), *browse.conditions(), *browse.within(PaymentException.createtime)
    count, fen = fn.COUNT(PaymentException.id), fn.COALESCE(fn.NULLIF(PaymentException.amount, 0), Order.amount)
    cause = (PaymentException.kind, PaymentException.channel)
    found = PaymentException.select(*cause, count, fn.SUM(fen), fn.MIN(PaymentException.createtime)).join(Order)
    grouped = found.where(*about).group_by(*cause).having(count > 1)
    rows = list(grouped.order_by(count.desc(), *cause).tuples())
    channels = {each.id: each for each in Channel.select()}
    return [Cause(kind, channels[channel], number, int(amount), at) for kind, channel, number, amount, at in rows]


def exceptions_open() -> int:
    """Return the number of open exceptions, counted up to 100."""
    return capped(PaymentException.select(PaymentException.createtime).where(PaymentException.resolution.is_null()))


def _beside(accounts: list[LedgerAccount]) -> Any:
    """Return the query for the ids of the entries of these accounts in the posting of an entry."""
    other = Entry.alias()
    return other.select(other.id).where(other.posting == Entry.posting, other.account.in_(accounts))


class Entries(Browse):
    """Ledger entries, by `account` (a kind), `merchant`, `channel`, `purpose`, `order` (its number), `since`, `until`.

    `merchant` means its own accounts, `channel` its clearing account. The operator's fees and costs belong to the
    merchant and the channel whose accounts are in the same posting, or else to the merchant of its order.
    """

    table = Entry
    timed = False

    @property
    def _owners(self) -> dict[str, int]:
        return {name: self.wanted[name] for name in ("merchant", "channel") if name in self.wanted}

    def _accounts(self, kinds: Collection[str], owner: int | None = None) -> list[LedgerAccount]:
        wanted = [LedgerAccount.kind.in_(kinds), *self.equal(account=LedgerAccount.kind)]
        wanted += [] if owner is None else [LedgerAccount.owner == owner]
        return list(LedgerAccount.select().where(*wanted).order_by(LedgerAccount.id))

    def lines(self, above: Key | None, below: Key | None) -> list[Line]:
        """All by their ids, or those of each account by their numbers."""
        after, until = time_bisect.entries_between(self.wanted.get("since"), self.wanted.get("until"))
        low = max((each for each in (above and above[0], after) if each), default=None)
        high = min((each for each in (below and below[0], until) if each), default=None)
        if self._owners:
            return [*self._of_owners(low, high), *self._of_operator(low, high)]
        if "account" in self.wanted:
            return [self._of_account(account, low, high) for account in self._accounts(ACCOUNTS)]
        return super().lines(None if low is None else (low,), None if high is None else (high,))

    def _of_account(self, account: LedgerAccount, low: int | None, high: int | None, more: int = 0) -> Line:
        """Return the entries of an account with ids between two bounds, and `more` of them beyond each."""
        return Line(
            table=Entry,
            part=[Entry.account == account],
            position=(Entry.number,),
            key=(Entry.id,),
            above=None if low is None else (time_bisect.number_from(account, low + 1) - 1 - more,),
            below=None if high is None else (time_bisect.number_from(account, high) + more,),
            condition=self.condition(),
        )

    def _of_owners(self, low: int | None, high: int | None) -> list[Line]:
        if len(self._owners) > 1:
            return []  # no account is that of a merchant and a channel
        ((name, owner),) = self._owners.items()
        return [self._of_account(account, low, high) for account in self._accounts(OWN[name], owner)]

    def _of_operator(self, low: int | None, high: int | None) -> Iterator[Line]:
        """Yield the operator's entries in the postings of an owner's accounts, by the numbers in these accounts."""
        accounts = {
            name: list(LedgerAccount.select().where(LedgerAccount.kind.in_(OWN[name]), LedgerAccount.owner == owner))
            for name, owner in self._owners.items()
        }
        name = next(iter(accounts))
        own = sorted(accounts.pop(name), key=lambda account: str(account.kind))
        rest = [*self.conditions(), *(fn.EXISTS(_beside(others)) for others in accounts.values())]
        operators = self._accounts((FEES, COMMISSION))
        for place, account in enumerate(own):
            # A posting with both accounts of a merchant counts once.
            once = [~fn.EXISTS(_beside(own[:place]))] if place else []
            # The posting at a bound may have entries on both sides of it.
            line = self._of_account(account, low, high, more=1)
            for operator in operators:
                other = Entry.alias()
                found = other.select(other.id).where(other.posting == Entry.posting, other.account == operator)
                within = [*([] if low is None else [other.id > low]), *([] if high is None else [other.id < high])]
                known = reduce(and_, [fn.EXISTS(found.where(*within)), *once, *rest])
                yield replace(line, key=(fn.COALESCE(found, Entry.id),), condition=known)
        if name == "merchant" and (postings := self._of_platform()):
            part = [Entry.posting.in_(postings), Entry.account.in_(operators)]
            none = ~fn.EXISTS(_beside(own))
            above, below = (None if bound is None else (bound,) for bound in (low, high))
            yield Line(Entry, part, (Entry.id,), (Entry.id,), above, below, reduce(and_, [none, *rest]))

    def _of_platform(self) -> list[int]:
        """Return the postings of refunds of the wanted merchant that the platform paid: none of its accounts is in."""
        paid = Refund.select(Refund.order).where(
            Refund.merchant == self.wanted["merchant"], Refund.paid_from == PLATFORM
        )
        found = Posting.select(Posting.id).where(Posting.order.in_(paid), Posting.purpose.startswith("refund"))
        return [row_id for (row_id,) in found.tuples()]

    def conditions(self) -> list[Any]:
        """Conditions on the posting."""
        wanted = self.within(Posting.createtime)
        if purpose := self.wanted.get("purpose"):  # some postings are numbered: "exception 7"
            wanted.append((Posting.purpose == purpose) | Posting.purpose.between(f"{purpose} ", f"{purpose} :"))
        of_entry = Posting.select(SQL("1")).where(Posting.id == Entry.posting_id, *wanted)
        return [fn.EXISTS(of_entry)] if wanted else []

    def few(self) -> list[Key] | None:
        """The entries of one order."""
        if "order" not in self.wanted:
            return None
        own = Entry.select(Entry.id).join(Posting).join(Order).where(Order.order_no == self.wanted["order"])
        found = own.where(Entry.account.in_(self._accounts(ACCOUNTS)), *self.conditions()).tuples()
        rows = self.rows([row_id for (row_id,) in found])
        return [(row.id,) for row in rows if self._concerns(row)]

    def _concerns(self, row: Any) -> bool:
        """Return whether a row is of the wanted merchant and channel."""
        return all((found := getattr(row, name)) and found.id == owner for name, owner in self._owners.items())

    def total(self) -> int | None:
        """The total by the accounts' own counts."""
        if self._owners or self.condition() is not None:
            return None
        return sum(account.entries for account in self._accounts(ACCOUNTS))

    def time_of(self, key: Key) -> int | None:
        """The time of its posting."""
        return Entry.select(Posting.createtime).join(Posting).where(Entry.id == key[0]).scalar()

    def query(self) -> Any:
        """The query with posting, account and order."""
        with_posting = Entry.select(Entry, Posting, LedgerAccount, Order.order_no, Order.merchant).join(Posting)
        with_order = with_posting.join(Order, JOIN.LEFT_OUTER, attr="of_order")
        return with_order.switch(Entry).join(LedgerAccount)

    def rows(self, ids: list[int]) -> list[Any]:
        """The rows, each with `merchant`, `channel` and `owner`: the owner of its account, None for the operator."""
        rows = super().rows(ids)
        beside = _owners_in({row.posting_id for row in rows if row.account.kind in (FEES, COMMISSION)})
        tables = {name: {each.id: each for each in table.select()} for name, table in OWNERS.items()}
        for row in rows:
            names = [name for name, kinds in OWN.items() if row.account.kind in kinds]
            found = dict.fromkeys(names, row.account.owner) or beside.get(row.posting_id, {})
            if not names and row.posting.order_id:
                found = {"merchant": row.posting.of_order.merchant_id, **found}
            for name, table in tables.items():
                setattr(row, name, table.get(found.get(name)))
            row.owner = (row.merchant or row.channel) if names else None
        return rows


def _owners_in(postings: set[int]) -> dict[int, dict[str, int]]:
    """Return the merchant and the channel, as ids, whose accounts have entries in these postings."""
    found: dict[int, dict[str, int]] = {}
    columns = (Entry.posting, LedgerAccount.kind, LedgerAccount.owner)
    rows = Entry.select(*columns).join(LedgerAccount).where(Entry.posting.in_(postings)).order_by(Entry.id)
    for posting, kind, owner in rows.tuples() if postings else ():
        for name, kinds in OWN.items():
            if kind in kinds:
                found.setdefault(posting, {}).setdefault(name, owner)
    return found


class Callbacks(Browse):
    """Callbacks, by `state`, `merchant`, `event`, `order` (its number), `since`, `until`."""

    table = Callback

    @property
    def states(self) -> tuple[str, ...]:
        """The wanted states."""
        return (self.wanted["state"],) if "state" in self.wanted else CALLBACK_STATES

    def lines(self, above: Key | None, below: Key | None) -> list[Line]:
        """One line for each merchant and state."""
        bounds = self.in_time(above, below)
        return [
            self.line([Callback.merchant == merchant, Callback.state == state], *bounds)
            for merchant in merchants(self.wanted)
            for state in self.states
        ]

    def conditions(self) -> list[Any]:
        """The condition on the event."""
        return self.equal(event=Callback.type)

    def few(self) -> list[Key] | None:
        """The callbacks of one order."""
        if "order" not in self.wanted:
            return None
        wanted = self.equal(order=Order.order_no, merchant=Callback.merchant)
        wanted += [Callback.state.in_(self.states), *self.conditions(), *self.within(Callback.createtime)]
        return list(Callback.select(*self.columns).join(Order).where(*wanted).tuples())

    def query(self) -> Any:
        """The query without the body."""
        columns = [field for field in Callback._meta.sorted_fields if field is not Callback.body]
        return Callback.select(*columns, Order.order_no).join(Order)

    def rows(self, ids: list[int]) -> list[Any]:
        """The rows with the order's number, the merchant, and `last`: the newest attempt, or None."""
        rows = add_owners(super().rows(ids))
        newest = CallbackAttempt.select(fn.MAX(CallbackAttempt.id)).where(CallbackAttempt.callback.in_(ids))
        last = CallbackAttempt.select().where(CallbackAttempt.id.in_(newest.group_by(CallbackAttempt.callback)))
        by_callback = {attempt.callback_id: attempt for attempt in last} if ids else {}
        for row in rows:
            row.last = by_callback.get(row.id)
        return rows


def callbacks_failing() -> int:
    """Return the number of recently failed callbacks, counted up to 100."""
    recent = Callback.createtime >= clock.now() - RECENT
    dead = (Callback.state == DEAD) & Callback.merchant.in_(merchants({}))
    return capped(Callback.select(Callback.createtime).where(dead, recent))


class Reconciliations(Browse):
    """Compared statements, by `channel`."""

    table = Reconciliation
    timed = False

    def conditions(self) -> list[Any]:
        """The condition on the channel."""
        return self.equal(channel=Reconciliation.channel)

    def rows(self, ids: list[int]) -> list[Any]:
        """The rows with their channels."""
        return add_owners(super().rows(ids))


class Bills(Browse):
    """Bills, by `channel` and `state`; the newest day first."""

    table = Bill
    timed = False

    @property
    def columns(self) -> tuple[Any, ...]:
        """The day and the id."""
        return Bill.day, Bill.id

    def lines(self, above: Key | None, below: Key | None) -> list[Line]:
        """One line for each channel; a channel has few rows, so that the state needs no index."""
        every = [row_id for (row_id,) in Channel.select(Channel.id).order_by(Channel.id).tuples()]
        channels, state = [self.wanted["channel"]] if "channel" in self.wanted else every, self.equal(state=Bill.state)
        return [self.line([Bill.channel == channel, *state], above, below) for channel in channels]

    def rows(self, ids: list[int]) -> list[Any]:
        """The rows with their channels and results, each with the number of its `unsettled` differences."""
        rows = add_owners(super().rows(ids))
        results = Reconciliation.select().where(Reconciliation.id.in_([row.reconciliation_id for row in rows]))
        by_id = {each.id: each for each in results} if rows else {}
        table = StatementDifference
        unsettled = table.select(table.reconciliation, fn.COUNT(table.id)).where(
            table.reconciliation.in_(list(by_id)), table.state.in_(UNSETTLED)
        )
        counts = dict(unsettled.group_by(table.reconciliation).tuples()) if by_id else {}
        for row in rows:
            row.reconciliation = by_id.get(row.reconciliation_id)
            row.unsettled = counts.get(row.reconciliation_id, 0)
        return rows


class Differences(Browse):
    """Differences between statements and orders, by `state` and `channel`."""

    table = StatementDifference
    timed = False

    def lines(self, above: Key | None, below: Key | None) -> list[Line]:
        """One line for each state."""
        states = [self.wanted["state"]] if "state" in self.wanted else DIFFERENCE_STATES
        return [self.line([StatementDifference.state == state], above, below) for state in states]

    def conditions(self) -> list[Any]:
        """The condition on the channel."""
        return self.equal(channel=StatementDifference.channel)

    def rows(self, ids: list[int]) -> list[Any]:
        """The rows with their channels.

        Each has `difference`, its facts, `of_order`, its order or None, and whether an exception of that is open now.
        """
        rows = add_owners(super().rows(ids))
        for row in rows:
            row.difference = differences.facts_of(row)
        orders = kept_results.orders_of([row.difference for row in rows])
        for row in rows:
            row.of_order, row.is_in_exception = orders.get(row.difference.order_no, (None, False))
        return rows


def differences_open() -> int:
    """Return the number of open differences, counted up to 100."""
    return capped(StatementDifference.select(StatementDifference.id).where(StatementDifference.state == OPEN))


class Batches(Browse):
    """Batches, by `since` and `until`."""

    table = PayoutBatch

    def lines(self, above: Key | None, below: Key | None) -> list[Line]:
        """The batches of the wanted time."""
        return [self.line([], *self.in_time(above, below))]

    def rows(self, ids: list[int]) -> list[Any]:
        """The rows with their channel, each with the numbers of its payouts without a result, `open`, and `refused`."""
        rows = add_owners(super().rows(ids))
        lines = PayoutBatchLine.select(PayoutBatchLine.batch, fn.COUNT(PayoutBatchLine.id)).join(Order)
        for name, condition in (("open", IS_OPEN), ("refused", PayoutBatchLine.result == FAILED)):
            found = lines.where(PayoutBatchLine.batch.in_(ids), condition).group_by(PayoutBatchLine.batch)
            counts = dict(found.tuples()) if ids else {}
            for row in rows:
                setattr(row, name, counts.get(row.id, 0))
        return rows
