"""The query plans with which SQLite runs the service's statements, recorded while the service runs them."""

import re

from models.db.base import database

# Tables that grow with the orders. The number of merchants, channels and ledger accounts is chosen by an operator.
# An index of due rows also grows while a channel or a merchant's server is down.
GROWING = {
    *("order", "history", "posting", "entry", "callback", "callback_attempt", "nonce", "idempotency_key"),
    *("payment_exception", "receiving_account", "order_search", "tally", "attempt"),
    "erasure_delayed",
    "payment_page",  # does not grow, but has the images of logos: each payer's browser asks for one
}
OWNERS = {"merchant_id", "channel_id"}
# Indexes that an operator keeps small: open exceptions and orders that wait for an operator are the to do list,
# accounts on file are added one by one.
KEPT_SHORT = ("exception_open", "order_waiting", "receiving_account_on_file")
# From a whole key to a whole key, such as from one number of an account's entries to another: such a range has a known
# number of rows.
BETWEEN_KEYS = re.compile(r"\)>\(.*\)<\(|account_id=\? AND number>\? AND number<\?")
OF_ONE_ORDER = {"rowid", "order_id", "order_no", "posting_id", "callback_id", "webhook_id"}

_ROWS = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b", re.IGNORECASE)
_ALIAS = re.compile(r'"(\w+)" AS "(t\d+)"')
_COLUMN = re.compile(r"(\w+)[<>=]")
_NOTHING = "(0 = 1)"  # peewee's `IN ()`: SQLite reads nothing for it, although its plan does not show that
_READ = re.compile(r"(SCAN|SEARCH) (\w+)(.*)")
_WHERE = re.compile(r"\bWHERE (.*?)(?: ORDER BY| GROUP BY| LIMIT|$)", re.DOTALL)
_TRIGGER = re.compile(r"(?:\bWHEN\b(?P<when>.*?))?\bBEGIN\b(?P<body>.*)\bEND", re.DOTALL)


class Heard:
    """Each distinct statement that runs meanwhile, with the values of its first run."""

    def __init__(self):
        self.statements = {}

    def __enter__(self):
        database.query_hooks.append(self._hear)
        return self

    def __exit__(self, *_):
        database.query_hooks.remove(self._hear)

    def _hear(self, event):
        if _ROWS.match(event.sql):
            self.statements.setdefault(event.sql, tuple(event.params or ()))


def plan(raw, sql, values=()):
    """Return the lines of a statement's query plan, by the tables' names."""
    names = {alias: table for table, alias in _ALIAS.findall(sql)}
    lines = [row[3] for row in raw.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
    return [re.sub(r"\bt\d+\b", lambda alias: names.get(alias[0], alias[0]), line) for line in lines]


def unbounded(raw, sql, values=()):
    """Return the lines of a statement's plan that read more with more orders.

    Bad are a SCAN of a growing table, a SEARCH in one by only its owner, and a sort (TEMP B-TREE) of more than the rows
    of one order. Allowed is a scan along an index that a LIMIT ends, without a filter or sort.
    Counts per bucket may be searched and summed by merchant (a row for thousands of orders), and a MATCH is not a SCAN.
    """
    if _NOTHING in sql:
        return []
    lines = plan(raw, sql, values)
    sorts = [line for line in lines if "TEMP B-TREE" in line]
    asked = "".join(_WHERE.findall(sql))
    bad = [line for line in lines if "AUTOMATIC" in line]
    one_order = True
    for how, table, by in (found.groups() for line in lines if (found := _READ.match(line))):
        if table not in GROWING or ("VIRTUAL TABLE" in by and ":M" in by) or any(name in by for name in KEPT_SHORT):
            continue
        if BETWEEN_KEYS.search(by):
            continue
        columns = set(_COLUMN.findall(by))
        filtered = bool(asked) if how == "SCAN" else " AND " in asked
        read_all = (how == "SCAN" or columns <= OWNERS) and (how, table) != ("SEARCH", "tally")
        if read_all and (filtered or sorts or " LIMIT " not in sql):
            bad.append(f"{how} {table}{by}")
        one_order &= bool(columns & OF_ONE_ORDER) or table == "tally"
    return bad + ([] if one_order else sorts)


def in_triggers(raw):
    """The statements of the database's triggers, with a number in place of each value of the row."""
    for (sql,) in raw.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger'").fetchall():
        parts = _TRIGGER.search(re.sub(r"\b(NEW|OLD)\.\w+", "1", sql))
        if parts["when"]:
            yield f"SELECT {parts['when']}"
        yield from (each for each in parts["body"].split(";") if _ROWS.match(each) and "RAISE" not in each)


def findings(raw, statements):
    """Return the unbounded statements for the report, one for each set of plan lines."""
    found = {}
    for sql, values in statements.items():
        lines = unbounded(raw, sql, values)
        if lines:
            found.setdefault(tuple(lines), []).append(sql)
    return [in_short(sqls[0], [*lines, f"in {len(sqls)} statements, such as"]) for lines, sqls in found.items()]


def in_short(sql, lines):
    """A statement under some lines about it, without its columns."""
    short = re.sub(r"SELECT (?!EXISTS|COUNT)(?:(?!SELECT).)*? FROM", "SELECT … FROM", " ".join(sql.split()))
    return "\n    ".join(["", *lines, re.sub(r"(\?, )+\?", "?, …", short)])
