"""The yardstick transaction: the rows that one createOrder writes, written by sqlite3.

`learn` compares the service's file before and after an order. `python -m bench.raw_orders TEMPLATE DATABASE SECONDS`
writes equal rows, one transaction an order.
"""

from __future__ import annotations

import json
import random
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

Rows = dict[str, list[dict[str, Any]]]
DAY = 86_400


def contents(database: Path) -> Rows:
    """All rows of all ordinary tables."""
    with closing(sqlite3.connect(database)) as file:
        file.row_factory = sqlite3.Row
        names = [
            row["name"]
            for row in file.execute("PRAGMA table_list")
            if row["schema"] == "main" and row["type"] == "table" and not row["name"].startswith("sqlite_")
        ]
        rows: Rows = {}
        for name in names:
            own = ", ".join(f'"{column["name"]}"' for column in file.execute(f'PRAGMA table_info("{name}")'))
            rows[name] = [dict(row) for row in file.execute(f'SELECT {own} FROM "{name}"')]  # without generated columns
        return rows


def learn(database: Path, before: Rows, merchant_order_no: str) -> dict[str, Any]:
    """Return the rows of the order that was created after `before`.

    Changed rows are left out, which can only make the yardstick faster.

    Returns: `rows`, each with its table and columns, parents first; `fresh`, the texts that must
    differ from order to order; `at`, its approximate time.
    """
    added = {}
    for name, rows in contents(database).items():
        new = [row for row in rows if row not in before[name]]
        if len(new) == len(rows) - len(before[name]) > 0:
            added[name] = new
    with closing(sqlite3.connect(database)) as file:
        for name in _by_triggers(file, added):
            added.pop(name, None)
        rows = [_described(file, name, row, set(added)) for name in _parents_first(file, added) for row in added[name]]
        unique = {row["columns"][column] for row in rows for column in row["unique"]}
    fresh = sorted({text for text in unique if isinstance(text, str)} | {merchant_order_no})
    return {"rows": rows, "fresh": fresh, "at": int(time.time())}


def _by_triggers(file: sqlite3.Connection, added: Rows) -> set[str]:
    """The tables that triggers write when these rows are inserted; the yardstick's inserts run the same triggers."""
    found: set[str] = set()

    def watch(action: int, table: str | None, _: Any, __: Any, trigger: str | None) -> int:
        if trigger and table and action in (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE):
            found.add(table)
        return sqlite3.SQLITE_OK

    file.set_authorizer(watch)
    for name, rows in added.items():
        file.execute(f"EXPLAIN {_insert(name, list(rows[0]))}", list(rows[0].values()))
    file.set_authorizer(None)
    return found


def _insert(name: str, columns: list[str]) -> str:
    named = ", ".join(f'"{column}"' for column in columns)
    return f'INSERT INTO "{name}" ({named}) VALUES ({", ".join("?" * len(columns))})'


def _parents_first(file: sqlite3.Connection, added: Rows) -> list[str]:
    """Return the tables, each after those that its foreign keys refer to."""
    waiting = {
        name: {row[2] for row in file.execute(f'PRAGMA foreign_key_list("{name}")')} & set(added) - {name}
        for name in added
    }
    ordered: list[str] = []
    while waiting:
        ordered += [name for name, parents in waiting.items() if parents <= set(ordered)]
        waiting = {name: parents for name, parents in waiting.items() if name not in ordered}
    return ordered


def _described(file: sqlite3.Connection, name: str, row: dict[str, Any], added: set[str]) -> dict[str, Any]:
    """A row with its id column, its foreign keys and its unique columns."""
    info = file.execute(f'PRAGMA table_info("{name}")').fetchall()
    keys = [column[1] for column in info if column[5]]
    numbered = [column[1] for column in info if column[5] and column[2].upper() == "INTEGER"]
    row_id = keys[0] if numbered == keys and len(keys) == 1 else ""
    pointing = {each[3]: each[2] for each in file.execute(f'PRAGMA foreign_key_list("{name}")')}
    indexes = [index[1] for index in file.execute(f'PRAGMA index_list("{name}")') if index[2]]
    unique = [{column[2] for column in file.execute(f'PRAGMA index_info("{index}")')} for index in indexes]
    # A foreign key to a new row makes the row unique.
    unique = [columns for columns in [*unique, set(keys)] if not any(pointing.get(each) in added for each in columns)]
    return {
        "table": name,
        "id": row_id,
        "columns": row,
        "parents": {column: table for column, table in pointing.items() if row[column] is not None},
        "unique": sorted(set().union(*unique) - {row_id, None} - set(pointing)),
    }


def _renewed(text: str) -> Callable[[int], str]:
    """A function that replaces a unique text in the `n`th order by one of the same length and kind."""
    start, size = text[:8], len(text) - 8
    if text.isdigit():
        return lambda n: f"{start}{random.randrange(10**size):0{size}d}"
    if text.startswith("B-"):
        return lambda n: f"{start}{n:0{size}d}"
    return lambda n: f"{random.getrandbits(4 * len(text)):0{len(text)}x}"


def _column(name: str, value: Any, row: dict[str, Any], template: dict[str, Any]) -> tuple[str, Any]:
    """Return how a column is filled: another row's id, a new text, a time, the next number, or the same value."""
    parent = row["parents"].get(name)
    for other in template["rows"]:
        if other["table"] == parent and other["columns"].get(other["id"]) == value:
            return "id of", parent
    if value in template["fresh"]:
        return "fresh", value
    if isinstance(value, int) and abs(value - template["at"]) < DAY:
        return "time", value - template["at"]
    if isinstance(value, int) and name in row["unique"]:
        return "number", value + 1
    return "same", value


def write(template: dict[str, Any], database: Path, seconds: float) -> tuple[int, float]:
    """Write orders for this number of seconds; return their number and the seconds."""
    makers = {text: _renewed(text) for text in template["fresh"]}
    plan = []
    for row in template["rows"]:
        columns = {name: value for name, value in row["columns"].items() if name != row["id"]}
        fill = [_column(name, value, row, template) for name, value in columns.items()]
        plan.append((row["table"], _insert(row["table"], list(columns)), fill))
    with closing(sqlite3.connect(database, isolation_level=None)) as file:
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = 1"):
            file.execute(f"PRAGMA {pragma}")
        done, began = 0, time.perf_counter()
        while (took := time.perf_counter() - began) < seconds:
            ids: dict[str, int] = {}
            known = {"fresh": {text: make(done) for text, make in makers.items()}, "id of": ids}
            start = {"time": int(time.time()), "number": done}
            file.execute("BEGIN IMMEDIATE")
            for table, statement, fill in plan:
                values = [
                    known[kind][what] if kind in known else start[kind] + what if kind in start else what
                    for kind, what in fill
                ]
                ids[table] = file.execute(statement, values).lastrowid or 0
            file.execute("COMMIT")
            done += 1
        return done, took


if __name__ == "__main__":
    orders, spent = write(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]), float(sys.argv[3]))
    print(json.dumps({"orders": orders, "seconds": spent}))
