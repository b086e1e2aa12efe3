"""Finding orders by a part of the merchant's own number: a trigram index that is filled after the fact.

Indexing a number costs a third of what an order costs, so no order waits for it: `index_more` follows
behind, and what it has not reached yet (the tail) is looked through row by row.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from peewee import IntegerField

from models.base import Statement, Table, database
from models.order import Order
from models.writer import transaction

LEAST = 3  # characters that a trigram index needs
AT_ONCE = 250  # orders, so that one step holds up others for milliseconds
LONGEST = 0.9  # seconds that one run of the job takes at most, so that it holds up no end of the service
MOST_TRIGRAMS = 32  # the rest of a long text is compared, not looked up
# Contentless, and without positions: it names candidates, which are compared with the text itself.
CREATE = """CREATE VIRTUAL TABLE order_search USING fts5(
    merchant_order_no, content='', columnsize=0, detail='none', tokenize='trigram')"""


class SearchProgress(Table):
    """One row: the last order that is in the index."""

    order_id = IntegerField()


_indexed = Statement(lambda v: SearchProgress.select(SearchProgress.order_id))


def indexed() -> int:
    """The id of the last order in the index; all up to it are there."""
    return _indexed.run().fetchone()[0]


@transaction
def index_more(most: int) -> int:
    """Put up to `most` more orders into the index; how many it took."""
    done = indexed()
    last = Order.select(Order.id).where(Order.id > done).order_by(Order.id).limit(most).tuples()
    ids = [row[0] for row in last]
    if ids:
        database.execute_sql(
            """INSERT INTO order_search (rowid, merchant_order_no)
            SELECT id, merchant_order_no FROM "order" WHERE id > ? AND id <= ? AND merchant_order_no <> ''""",
            (done, ids[-1]),
        )
        SearchProgress.update(order_id=ids[-1]).execute()
    return len(ids)


def catch_up() -> None:
    """Index what came since, a little at a time, and leave the writer to others for three quarters of it."""
    until = time.monotonic() + LONGEST
    while time.monotonic() < until:
        started = time.monotonic()
        if index_more(AT_ONCE) < AT_ONCE:
            return
        time.sleep(3 * (time.monotonic() - started))


def _trigrams(text: str) -> Iterator[str]:
    for start in range(min(len(text) - LEAST + 1, MOST_TRIGRAMS)):
        escaped = text[start : start + LEAST].replace('"', '""')
        yield f'"{escaped}"'


def candidates(text: str, most: int) -> list[int] | None:
    """The ids of indexed orders whose number may contain `text`.

    Returns: None where the index can't help: the text is too short, or more than `most` would be named.
    """
    if len(text) < LEAST:
        return None
    found = database.execute_sql(
        "SELECT rowid FROM order_search WHERE order_search MATCH ? LIMIT ?",
        (" AND ".join(_trigrams(text)), most + 1),
    ).fetchall()
    return [row[0] for row in found] if len(found) <= most else None
