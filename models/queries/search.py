"""Search for orders by a part of the merchant's own number: a trigram index that is filled in the background.

Indexing a number costs a third of what an order costs, so no order waits for it. `index_more` fills the index later;
the orders that it has not reached yet (the tail) are searched row by row.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from peewee import SQL, IntegerField, OperationalError, fn

from models.db.base import LARGEST_ID, Table, database
from models.db.compiled import compiled
from models.db.errors import LOCKED, fault_of
from models.db.postgres import lock_key
from models.db.writer import transaction
from models.queries.order_range import EVERY_CELL, Cells, OrderRange, of_cells
from models.tables.order import Order

LEAST = 3  # characters that a trigram index needs
AT_ONCE = 250  # orders, so that one step delays others by milliseconds only
LONGEST = 0.9  # seconds that one run of the job takes at most, so that it does not delay the end of the service
RARE = 2_000  # candidates from the index, up to which each of them is checked
MOMENT = 50  # ms to wait for orders that are being committed
MOST_TRIGRAMS = 32  # the rest of a long text is compared, not looked up
SOUGHT, SAMPLE = 3, 100  # trigrams that are looked up: the rarest in a sample of so many orders


Ids = tuple[list[int], int]
ReadAll = Callable[[Callable[[], Ids]], Ids]


def at_once(read: Callable[[], Ids]) -> Ids:
    """Run a query that reads all orders, immediately."""
    return read()


@dataclass(frozen=True)
class _Index:
    """The index of a kind of database: statements to create it, add orders, and find candidates for a text.

    The candidates are then compared with the text.
    """

    create: tuple[str, ...]
    add: str
    find: str


_SQLITE = _Index(
    create=(  # contentless, and without positions
        """CREATE VIRTUAL TABLE order_search USING fts5(
    merchant_order_no, content='', columnsize=0, detail='none', tokenize='trigram')""",
    ),
    add="""INSERT INTO order_search (rowid, merchant_order_no)
    SELECT id, merchant_order_no FROM "order" WHERE id > ? AND id <= ? AND merchant_order_no <> ''""",
    find="SELECT rowid FROM order_search WHERE order_search MATCH ? LIMIT ?",
)
# One host's order may commit after another host's order with a higher id. `_settled` waits until no such order is
# uncommitted; for that, each INSERT takes a shared lock.
_LOCK = lock_key("orders")
_POSTGRES = _Index(
    create=(
        "CREATE TABLE order_search (order_id BIGINT PRIMARY KEY, merchant_order_no TEXT NOT NULL)",
        """CREATE FUNCTION trigrams(text) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT ARRAY(SELECT DISTINCT lower(substr($1, start, 3)) FROM generate_series(1, length($1) - 2) AS start) $$""",
        "CREATE INDEX order_search_trigrams ON order_search USING gin (trigrams(merchant_order_no))",
        f"""CREATE FUNCTION order_on_its_way() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_advisory_xact_lock_shared({_LOCK}, 0);
    RETURN NULL;
END $$""",
        'CREATE TRIGGER order_on_its_way BEFORE INSERT ON "order" '
        "FOR EACH STATEMENT EXECUTE FUNCTION order_on_its_way()",
    ),
    add="""INSERT INTO order_search (order_id, merchant_order_no)
    SELECT id, merchant_order_no FROM "order" WHERE id > %s AND id <= %s AND merchant_order_no <> ''""",
    find="SELECT order_id FROM order_search WHERE trigrams(merchant_order_no) @> trigrams(%s) LIMIT %s",
)


def _index() -> _Index:
    return _POSTGRES if database.is_shared else _SQLITE


def create() -> tuple[str, ...]:
    """Return the statements that create the empty index."""
    return _index().create


class SearchProgress(Table):
    """One row: the id of the last order in the index."""

    order_id = IntegerField()


@compiled
def _reached() -> Any:
    return SearchProgress.select(SearchProgress.order_id)


def _indexed() -> int:
    """Return the id of the last order in the index; all orders up to it are indexed."""
    return int(_reached.first().order_id)


@transaction
def _last_settled() -> int:
    # New orders wait for this lock, so it times out after MOMENT: one order that hangs must not delay the others.
    database.execute_sql(f"SET LOCAL lock_timeout = {MOMENT}")
    database.advisory_lock("orders")
    return Order.select(fn.MAX(Order.id)).scalar() or 0


def _settled() -> int:
    """Return the id up to which no order is uncommitted; 0 if an uncommitted one takes too long."""
    try:
        return _last_settled()
    except OperationalError as error:
        if fault_of(error) is not LOCKED:
            raise
        return 0


def index_more(most: int) -> int:
    """Add up to `most` more orders to the index; return their number. 0 if another host is indexing."""
    if not Order.select().where(Order.id > _indexed()).exists():
        return 0
    return _add(most, _settled() if database.is_shared else LARGEST_ID)


@transaction
def _add(most: int, until: int) -> int:
    reached = database.for_update(SearchProgress.select(), skip_locked=True).first()
    if reached is None:
        return 0
    done = reached.order_id
    last = Order.select(Order.id).where(Order.id > done, Order.id <= until).order_by(Order.id).limit(most).tuples()
    ids = [row[0] for row in last]
    if ids:
        database.execute_sql(_index().add, (done, ids[-1]))
        SearchProgress.update(order_id=ids[-1]).execute()
    return len(ids)


def index_all() -> None:
    """Fill an empty index with all orders, in the caller's transaction. No orders may be created meanwhile."""
    last = Order.select(fn.MAX(Order.id)).scalar() or 0
    database.execute_sql(_index().add, (0, last))
    SearchProgress.update(order_id=last).execute()


def catch_up() -> None:
    """Index newer orders in small steps, and leave three quarters of the writer's time to others."""
    until = time.monotonic() + LONGEST
    while time.monotonic() < until:
        started = time.monotonic()
        if index_more(AT_ONCE) < AT_ONCE:
            return
        time.sleep(3 * (time.monotonic() - started))


def _rarest(text: str) -> list[str]:
    """Return the trigrams of a text that are the rarest in a sample of all orders.

    SQLite reads the whole list of each given trigram, and the list of a prefix that all numbers share is as long as the
    table.
    """
    trigrams = dict.fromkeys(text[start : start + LEAST] for start in range(len(text) - LEAST + 1))
    if len(trigrams) <= SOUGHT:
        return list(trigrams)
    reached = _indexed()
    spread = _ids(list(range(1, reached + 1, reached // SAMPLE + 1)))
    numbers = [row[0].lower() for row in Order.select(Order.merchant_order_no).where(Order.id.in_(spread)).tuples()]
    return sorted(trigrams, key=lambda each: sum(each.lower() in number for number in numbers))[:SOUGHT]


def _ids(ids: list[int]) -> SQL:
    """Return ids as SQL: passing each as a parameter takes longer than the lookup."""
    return SQL(f"({','.join(map(str, ids))})")


def _candidates(text: str) -> list[int] | None:
    """Return the ids of indexed orders whose number may contain `text`.

    Returns None if the text is too short or has more than `RARE` candidates.
    """
    if len(text) < LEAST:
        return None
    sought = text[: MOST_TRIGRAMS + LEAST - 1]
    if not database.is_shared:
        sought = " AND ".join('"{}"'.format(each.replace('"', '""')) for each in _rarest(sought))
    found = database.execute_sql(_index().find, (sought, RARE + 1)).fetchall()
    return [row[0] for row in found] if len(found) <= RARE else None


def named(text: str) -> tuple[list[int], int] | None:
    """Return the ids of all merchants' orders that may contain the text, and the last indexed id.

    Returns None if the index can't help.
    """
    reached = _indexed()
    ids = _candidates(text)
    return None if ids is None else (ids, reached)


def containing(
    text: str, span: OrderRange, cells: Cells, top: int, skip: int, limit: int, read_all: ReadAll
) -> tuple[list[int], int]:
    """Return the ids of a page of orders whose number contains `text`, newest first, and the total.

    They are checked candidates from the index, and matches in the tail that is not indexed yet.

    Args:
        top: the highest `seq` of the page.
        read_all: runs a query that must read all orders of the span, because the index can't help.
    """
    reached = _indexed()
    ids = _candidates(text)
    if ids is None:
        found = Order.select(Order.id).where(*_wanted(text, span, cells, Order.merchant, Order.seq))
        newest_first = found.where(Order.seq <= top).order_by(Order.seq.desc()).limit(limit).offset(skip)
        return read_all(lambda: ([row[0] for row in newest_first.tuples()], found.count()))
    # The sums keep the database from scanning the merchant's orders instead of fetching the few candidates.
    wanted = _wanted(text, span, cells, Order.merchant + 0, Order.seq + 0)
    named = Order.select(Order.seq, Order.id).where(*wanted, Order.id.in_(_ids(ids)))
    tail = Order.select(Order.seq, Order.id).where(*wanted, Order.id > reached)
    both = sorted({*database.execute(named), *database.execute(tail)}, reverse=True)
    below = [order_id for seq, order_id in both if seq <= top]
    return below[skip : skip + limit], len(both)


def _wanted(text: str, span: OrderRange, cells: Cells, merchant: Any, seq: Any) -> list[Any]:
    wanted = [merchant == span.merchant, seq.between(span.low, span.high), Order.merchant_order_no.contains(text)]
    return wanted if cells == EVERY_CELL else [*wanted, of_cells(Order, cells)]
