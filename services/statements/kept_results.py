"""Results of comparisons, kept for the console: one for each file of a channel."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from models.db.base import database
from models.db.writer import transaction
from models.tables.channel import Channel
from models.tables.merchant import Merchant
from models.tables.order import Order, PaymentException
from models.tables.reconciliation import Reconciliation
from runtime import clock
from services.errors import N_, OperatorError
from services.statements import compare_file, tables
from services.statements.compare_file import Choices, Result
from services.statements.reconcile import Difference, Note, Remark

MOST_DAYS = 31
MOST_DIFFERENCES = 500  # that are kept of one result
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
    return _store(channel, hashlib.sha256(raw).hexdigest(), name[-LONGEST:], result, who)


@transaction
def _store(channel: Channel, digest: str, name: str, result: Result, who: str) -> Reconciliation:
    database.advisory_lock("reconciliation", channel.id)
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
        "file": name,
        "since": str(result.since),
        "until": str(result.until),
        "lines": found.lines,
        "matched": found.matched,
        "differences": len(found.differences),
        "result": json.dumps({"sums": found.sums, "kinds": kinds, "differences": kept}, ensure_ascii=False),
        "who": who,
        "updatetime": now,
    }
    same = (Reconciliation.channel == channel.id, Reconciliation.hash == digest)
    if not Reconciliation.update(facts).where(*same).execute():
        Reconciliation.add(channel=channel.id, hash=digest, createtime=now, **facts)
    return Reconciliation.get(*same)


def of(row: Reconciliation) -> Kept:
    """Return a stored result."""
    found = json.loads(row.result)
    kinds = {kind: (count, fen) for kind, (count, fen) in found["kinds"].items()}
    differences = []
    for facts in found["differences"]:
        facts["notes"] = tuple(Note(Remark(code), values) for code, values in facts["notes"])
        facts["exceptions"] = tuple((kind, ended) for kind, ended in facts["exceptions"])
        differences.append(Difference(**facts))
    return Kept(row, found["sums"], kinds, differences)


def find(row_id: int) -> Reconciliation:
    """Return the result with this id. Raises OperatorError."""
    row = Reconciliation.get_or_none(Reconciliation.id == row_id)
    if row is None:
        raise OperatorError(N_("There is no such result."))
    return row


def orders_of(differences: list[Difference]) -> dict[str, tuple[Order, bool]]:
    """Return the orders of differences by number, each with whether it has an open exception now."""
    numbers = {each.order_no for each in differences}
    rows = Order.select(Order, Merchant).join(Merchant).where(Order.order_no.in_(numbers))
    orders = {order.order_no: order for order in rows}
    unresolved = PaymentException.select(PaymentException.order).where(
        PaymentException.resolution.is_null(), PaymentException.order.in_([order.id for order in orders.values()])
    )
    is_open = {row_id for (row_id,) in unresolved.tuples()}
    return {order_no: (order, order.id in is_open) for order_no, order in orders.items()}
