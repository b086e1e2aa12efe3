"""Find a time among orders and ledger entries by bisection, without an index of times."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from peewee import fn

from models.db.base import database
from models.db.compiled import compiled
from models.tables.ledger import Entry, Posting

APART = 3_600  # seconds by which entries may be out of order, because hosts' clocks differ
_SAMPLES = 64

# Each merchant's orders are numbered without a gap in the order of time (`Order.seq`), and of id within a second.
_EARLIER = """(SELECT (createtime, id) < ({0}, {0}) FROM "order"
    WHERE "order".merchant_id = steps.merchant_id AND seq = (low + high) / 2)"""
_HALVED = f"""WITH RECURSIVE steps (merchant_id, low, high) AS (
    SELECT id, CAST(1 AS BIGINT), 1 + COALESCE(
        (SELECT MAX(seq) FROM "order" WHERE merchant_id = merchant.id AND seq > 0), 0)
    FROM merchant
    UNION ALL
    SELECT merchant_id,
        CASE WHEN {_EARLIER} THEN (low + high) / 2 + 1 ELSE low END,
        CASE WHEN {_EARLIER} THEN high ELSE (low + high) / 2 END
    FROM steps WHERE low < high
) SELECT merchant_id, low FROM steps WHERE low = high"""


def first_from(createtime: int, order_id: int = 0) -> dict[int, int]:
    """Return, by merchant, the `seq` of its first order from a time on; its last `seq` plus one if there is none.

    Orders of the same second follow each other by id.
    """
    return dict(database.execute_sql(_HALVED.format(database.param), (createtime, order_id) * 2).fetchall())


@compiled
def _posted(entry: int) -> Any:
    return Entry.select(Posting.createtime).join(Posting).where(Entry.id >= entry).order_by(Entry.id).limit(1)


@compiled
def _numbered(account: int, number: int) -> Any:
    return Entry.select(Entry.id).where(Entry.account == account, Entry.number == number)


def _are_in_order(last: int) -> bool:
    """Return whether the times of entries rise with their ids, by a sample; seeded entries may have past times."""
    evenly = {last * at // _SAMPLES for at in range(1, _SAMPLES)}
    ends = {2**power for power in range(last.bit_length())}
    ids = sorted(evenly | ends | {last - each for each in ends} | {last})
    sampled = Entry.select(Posting.createtime).join(Posting).where(Entry.id.in_(ids)).order_by(Entry.id).tuples()
    latest = 0
    for (at,) in sampled:
        if at < latest - APART:
            return False
        latest = max(latest, at)
    return True


def entries_between(since: int | None, until: int | None) -> tuple[int | None, int | None]:
    """Return exclusive bounds of the ids of all entries in a range of Unix time; None for no bound."""
    newest = Entry.select(fn.MAX(Entry.id)).scalar()
    if newest is None or (since is None and until is None) or not _are_in_order(newest):
        return None, None

    def time_of(entry: int) -> int:
        return int(_posted.first(entry).createtime)

    ids = range(1, newest + 1)
    above = None if since is None else bisect_left(ids, since - APART, key=time_of)
    below = None if until is None else bisect_left(ids, until + APART + 1, key=time_of) + 1
    return above, below


def number_from(account: Any, entry: int) -> int:
    """Return the number of an account's first entry from this id on; one more than its last if there is none.

    An account's entries are created one after the other, so their ids rise with their numbers.
    """

    def id_of(number: int) -> int:
        return int(_numbered.first(account.id, number).id)

    return 1 + bisect_left(range(1, account.entries + 1), entry, key=id_of)
