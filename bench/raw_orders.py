"""The yardstick transaction: the rows that one createOrder writes, written by sqlite3 without anything else."""

from __future__ import annotations

import hashlib
import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

Rows = dict[str, list[dict[str, Any]]]
Make = Callable[[int, int], Any]  # the value of the `n`th order, at a time
DAY = 86_400


def contents(database: Path) -> Rows:
    """All rows of all ordinary tables, without generated columns."""
    with closing(sqlite3.connect(database)) as file:
        file.row_factory = sqlite3.Row
        rows: Rows = {}
        for table in file.execute("PRAGMA table_list").fetchall():
            name = table["name"]
            if (table["schema"], table["type"]) == ("main", "table") and not name.startswith("sqlite_"):
                own = ", ".join(f'"{column["name"]}"' for column in file.execute(f'PRAGMA table_info("{name}")'))
                rows[name] = [dict(row) for row in file.execute(f'SELECT {own} FROM "{name}"')]
        return rows


def learn(database: Path, before: Rows, between: Rows, after: Rows) -> list[tuple[str, list[Make]]]:
    """Return the inserts of one order: statements, and what makes their values.

    `before`, `between` and `after` are the contents around two equal orders. What differs between the two is made for
    each order: numbers, among them ids, continue in the same steps.
    """
    first, second = _added(before, between), _added(between, after)
    inserts = []
    with closing(sqlite3.connect(database)) as file:
        # The yardstick's inserts run the same triggers.
        triggers = file.execute("SELECT tbl_name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        by_trigger = {
            name
            for table, sql in triggers
            if table in second and re.search(r"(AFTER|BEFORE) INSERT", sql)
            for name in re.findall(r'(?:INTO|UPDATE) "?(\w+)', sql)
        }
        added = first.keys() & second.keys() - by_trigger
        parents = {name: {row[2] for row in file.execute(f'PRAGMA foreign_key_list("{name}")')} for name in added}
    for name in TopologicalSorter({name: parents[name] & added - {name} for name in added}).static_order():
        for old, new in zip(first[name], second[name], strict=True):
            columns = ", ".join(f'"{column}"' for column in new)
            statement = f'INSERT INTO "{name}" ({columns}) VALUES ({", ".join("?" * len(new))})'
            inserts.append((statement, [_maker(old[column], value) for column, value in new.items()]))
    return inserts


def _added(before: Rows, after: Rows) -> Rows:
    """The new rows by table. Changed rows are left out, which can only make the yardstick faster."""
    new = {name: [row for row in rows if row not in before[name]] for name, rows in after.items()}
    return {name: rows for name, rows in new.items() if len(rows) == len(after[name]) - len(before[name]) > 0}


def _maker(old: Any, new: Any) -> Make:
    if isinstance(new, int | float) and abs(new - time.time()) < DAY:
        offset = new - int(time.time())
        return lambda n, now: now + offset
    if old == new:
        return lambda n, now: new
    if isinstance(new, int):
        return lambda n, now: new + n * (new - old)
    if new.startswith("B-"):  # the merchant's own numbers (`traffic.bodies`)
        return lambda n, now: f"{new[:-8]}{n:08d}"
    size = len(new)

    def unique(n: int, now: int) -> str:
        """Random of the same kind, and the same in each table."""
        digest = hashlib.sha256(f"{new} {n}".encode()).hexdigest()
        return f"{new[:8]}{int(digest, 16) % 10 ** (size - 8):0{size - 8}d}" if new.isdigit() else digest[:size]

    return unique


def write(inserts: list[tuple[str, list[Make]]], database: Path, seconds: float) -> float:
    """Write orders for this number of seconds, each in a transaction; return their number in a second."""
    with closing(sqlite3.connect(database, isolation_level=None)) as file:
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = 1"):
            file.execute(f"PRAGMA {pragma}")
        done, began = 0, time.perf_counter()
        while (took := time.perf_counter() - began) < seconds:
            done, now = done + 1, int(time.time())
            file.execute("BEGIN IMMEDIATE")
            for statement, makers in inserts:
                file.execute(statement, [make(done, now) for make in makers])
            file.execute("COMMIT")
        return done / took
