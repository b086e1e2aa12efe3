"""Results of comparisons, kept for the console: one for each file of a channel."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from models.db.base import database
from models.db.writer import transaction
from models.tables.bill import COMPARED, LATE, WAITING, Bill
from models.tables.channel import Channel
from models.tables.ledger import CLEARING, COMMISSION
from models.tables.merchant import Merchant
from models.tables.order import Order, PaymentException
from models.tables.reconciliation import Reconciliation
from runtime import clock
from services.errors import N_, OperatorError
from services.ledger import accounts
from services.ledger.postings import BILL_COSTS, OPERATOR
from services.statements import compare_file, differences, reconcile, tables
from services.statements.compare_file import Choices, Result
from services.statements.differences import MOST_DIFFERENCES
from services.statements.reconcile import Beyond, Difference

MOST_DAYS = 31
LONGEST = 100  # characters of a text from the file


@dataclass(frozen=True)
class Kept:
    """A stored result. `sums` are in fen by side, `kinds` the number and amount of all differences by kind.

    `differences` are the first MOST_DIFFERENCES.
    """

    row: Reconciliation
    sums: dict[str, dict[str, int]]
    kinds: dict[str, tuple[int, int]]
    differences: list[Difference]


def compare(channel: Channel, name: str, raw: bytes, chosen: Choices, who: str) -> Reconciliation:
    """Compare a file with the channel's orders and store the result; an earlier result of the same file is replaced.

    Raises:
        OperatorError: another file is being read, or the file can't be compared.
    """
    result = tables.alone(compare_file.compare, channel, raw, chosen)
    return _keep_upload(channel, name, raw, result, who)


@transaction
def _keep_upload(channel: Channel, name: str, raw: bytes, result: Result, who: str) -> Reconciliation:
    """Store the result of an uploaded statement, which replaces bills of its days that could not be fetched."""
    row = keep(channel, name, raw, result, who)
    if not result.statement.is_official:
        return row
    of_days = list(
        Bill.select().where(Bill.channel == channel, Bill.day.between(row.since, row.until)).order_by(Bill.day)
    )
    missing = [bill for bill in of_days if bill.state in (WAITING, LATE)]
    facts = {"state": COMPARED, "due_at": None, "problem": "", "reconciliation": row.id, "updatetime": clock.now()}
    for bill in missing:
        # The fees of all these days are posted with the first one.
        others = sum(int(each.costs) for each in of_days if each.id != bill.id)
        costs = post_costs(bill, result, others) if bill is missing[0] else int(bill.costs)
        same = (Bill.id == bill.id, Bill.state == bill.state, Bill.due_at == bill.due_at)
        if not Bill.update(facts, costs=costs).where(*same).execute():
            raise tables.Busy(N_("The bill is being fetched. Try again in a moment."))
    return row


def post_costs(bill: Bill, result: Result, others: int = 0) -> int:
    """Post by how much the fees of a bill differ from the estimates of its orders, less what was posted for it before.

    Call it in the transaction that stores the bill. Amounts in fen.

    Args:
        others: what is posted for other bills with lines in this result.

    Returns: all that is posted for the bill then.
    """
    found, channel = result.comparison.costs, bill.channel_id
    costs = (found.there - found.here if found else 0) - others
    if more := costs - int(bill.costs):
        lines = {(CLEARING, channel): more, (COMMISSION, OPERATOR): -more}
        accounts.post(f"{BILL_COSTS} {channel} {bill.day}", lines, who="service")
    return costs


def replace(earlier: Reconciliation, row: Reconciliation) -> None:
    """Drop what only an earlier version of the same bill had, in the caller's transaction."""
    if earlier.id != row.id and (earlier.since, earlier.until) == (row.since, row.until):
        differences.close_outdated(earlier, row)
        kept = json.loads(earlier.result) | {"beyond": {}}
        Reconciliation.update(result=json.dumps(kept, ensure_ascii=False)).where(
            Reconciliation.id == earlier.id
        ).execute()


@transaction
def keep(channel: Channel, name: str, raw: bytes, result: Result, who: str) -> Reconciliation:
    """Store the result of a file's comparison, and each of its differences until that is settled."""
    database.advisory_lock("reconciliation", channel.id)
    digest = hashlib.sha256(raw).hexdigest()
    found = result.comparison
    kinds: dict[str, tuple[int, int]] = {}
    for each in found.differences:
        count, fen = kinds.get(each.kind, (0, 0))
        kinds[each.kind] = (count + 1, fen + each.fen)
    kept = [
        vars(each) | {"order_no": each.order_no[:LONGEST], "reference": each.reference[:LONGEST]}
        for each in found.differences[:MOST_DIFFERENCES]
    ]
    now = clock.now()
    facts = {
        "file": name[-LONGEST:],
        "since": str(result.since),
        "until": str(result.until),
        "lines": found.lines,
        "matched": found.matched,
        "differences": len(found.differences),
        "result": json.dumps(
            {"sums": found.sums, "kinds": kinds, "differences": kept, "beyond": _listed(found.beyond)},
            ensure_ascii=False,
        ),
        "who": who,
        "updatetime": now,
    }
    same = [getattr(Reconciliation, name) == facts[name] for name in ("since", "until")]
    same += [Reconciliation.channel == channel.id, Reconciliation.hash == digest]
    if not Reconciliation.update(facts).where(*same).execute():
        Reconciliation.add(channel=channel.id, hash=digest, createtime=now, **facts)
    row = Reconciliation.get(*same)
    differences.keep(channel, row, result)
    return row


def _listed(beyond: Beyond) -> dict[str, list[Any]]:
    return {"payments": sorted(beyond.payments), "refunds": sorted(beyond.refunds)}


def of(row: Reconciliation) -> Kept:
    """Return a stored result."""
    found = json.loads(row.result)
    kinds = {kind: (count, fen) for kind, (count, fen) in found["kinds"].items()}
    return Kept(row, found["sums"], kinds, [reconcile.difference_from(facts) for facts in found["differences"]])


def find(row_id: int) -> Reconciliation:
    """Return the result with this id. Raises OperatorError."""
    row = Reconciliation.get_or_none(Reconciliation.id == row_id)
    if row is None:
        raise OperatorError(N_("There is no such result."))
    return row


def orders_of(found: list[Difference]) -> dict[str, tuple[Order, bool]]:
    """Return the orders of differences by number, each with whether it has an open exception now."""
    numbers = {each.order_no for each in found}
    rows = Order.select(Order, Merchant).join(Merchant).where(Order.order_no.in_(numbers))
    orders = {order.order_no: order for order in rows}
    unresolved = PaymentException.select(PaymentException.order).where(
        PaymentException.resolution.is_null(), PaymentException.order.in_([order.id for order in orders.values()])
    )
    is_open = {row_id for (row_id,) in unresolved.tuples()}
    return {order_no: (order, order.id in is_open) for order_no, order in orders.items()}
