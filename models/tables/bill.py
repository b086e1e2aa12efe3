"""Bills of channels, which the service fetches, and differences between statements and orders that are not settled."""

from __future__ import annotations

from peewee import BigIntegerField, Check, ForeignKeyField, TextField

from models.db.base import Fen, Table, Timestamp
from models.tables.channel import Channel
from models.tables.order import Order
from models.tables.reconciliation import Reconciliation

WAITING, LATE, COMPARED, NONE = BILL_STATES = ("waiting", "late", "compared", "none")
CHECKING, EXPECTED, OPEN, EXPLAINED, CLOSED = DIFFERENCE_STATES = (
    *("checking", "expected", "open", "explained", "closed"),
)
UNSETTLED = (CHECKING, EXPECTED, OPEN)


def _one_of(column: str, values: tuple[str, ...]) -> Check:
    return Check(f"{column} IN ({', '.join(repr(each) for each in values)})")


class Bill(Table):
    """The bill of one China day (such as 2026-05-01) that the service fetches from a channel's upstream.

    `state`: waiting for it; late, without a usable one until the evening; compared, with the result in
    `reconciliation`; none, as the upstream has none and nothing was booked on that day. `due_at` is the time of the
    next fetch, or None; the host that fetches moves it first. `problem` is why the last fetch failed, in
    English. `costs` are the fen by which the fees in the bill exceed the estimates of its orders, as posted so far.
    """

    channel = ForeignKeyField(Channel, index=False)
    day = TextField()
    state = TextField(constraints=[_one_of("state", BILL_STATES)])
    attempts = BigIntegerField(default=0)
    due_at = Timestamp(null=True)
    problem = TextField(default="")
    costs = Fen(default=0)
    reconciliation = ForeignKeyField(Reconciliation, null=True, index=False)
    createtime = Timestamp()
    updatetime = Timestamp()

    class Meta:
        indexes = ((("channel", "day"), True),)

    def claim(self, until: int) -> bool:
        """Claim the fetch that is due, until `until`; False if another host was quicker."""
        same = (Bill.id == self.id, Bill.due_at == self.due_at)
        taken: bool = Bill.update(due_at=until, attempts=Bill.attempts + 1).where(*same).execute() == 1
        if taken:
            self.due_at, self.attempts = until, self.attempts + 1  # type: ignore[assignment]
        return taken


Bill.add_index(Bill.index(Bill.due_at, where=Bill.due_at.is_null(False), name="bill_due"))


class StatementDifference(Table):
    """One difference between a channel's statements and the orders, until it is settled or explained.

    `name` identifies it among those of its channel, so that later comparisons find it again. `state`: checking, as the
    order's status is checked at the channel first; expected, as the statement of a neighbouring day may have the line;
    open, for an operator; explained by one, with `note`; closed, as a comparison does not find it any more. `facts` are
    those of the difference and `lines` the statement's lines about the same order or number (JSON, see
    services/statements/differences.py). `since` and `until` are the days of the statement. `fen` is the amount that
    differs, `asked_at` the time of the last status check, `due_at` that of the next comparison.
    """

    channel = ForeignKeyField(Channel, index=False)
    name = TextField()
    state = TextField(constraints=[_one_of("state", DIFFERENCE_STATES)])
    kind = TextField()
    order = ForeignKeyField(Order, null=True, index=False)
    since = TextField()
    until = TextField()
    fen = Fen()
    facts = TextField()
    lines = TextField()
    reconciliation = ForeignKeyField(Reconciliation, index=False)
    due_at = Timestamp(null=True)
    asked_at = Timestamp(null=True)
    note = TextField(default="")
    who = TextField(default="")
    createtime = Timestamp()
    updatetime = Timestamp()

    class Meta:
        indexes = ((("channel", "name"), True),)

    def claim(self, until: int) -> bool:
        """Claim the comparison that is due, until `until`; False if another host was quicker."""
        row = StatementDifference
        same = (row.id == self.id, row.due_at == self.due_at)
        taken: bool = row.update(due_at=until).where(*same).execute() == 1
        if taken:
            self.due_at = until  # type: ignore[assignment]
        return taken


_row = StatementDifference
_row.add_index(_row.index(_row.due_at, where=_row.due_at.is_null(False), name="statement_difference_due"))
_row.add_index(_row.state, _row.id, name="statement_difference_state")
