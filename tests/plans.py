"""What SQLite would do for the statements that the service runs: heard while it runs them, judged by their query plans."""

import re

from models.base import database

# Tables that grow with the orders; of merchants, channels and ledger accounts there are as many as an operator made.
GROWING = {
    *("order", "history", "posting", "entry", "callback", "callback_attempt", "nonce", "idempotency_key"),
    *("payment_exception", "receiving_account", "order_search", "tally"),
}
OWNERS = {"merchant_id", "channel_id"}
OF_ONE_ORDER = {"rowid", "order_id", "order_no", "posting_id", "callback_id", "webhook_id"}

_ROWS = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b", re.IGNORECASE)
_ALIAS = re.compile(r'"(\w+)" AS "(t\d+)"')
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
    """The lines of a statement's query plan, by the tables' names."""
    names = {alias: table for table, alias in _ALIAS.findall(sql)}
    lines = [row[3] for row in raw.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
    return [re.sub(r"\bt\d+\b", lambda alias: names.get(alias[0], alias[0]), line) for line in lines]


def unbounded(raw, sql, values=()):
    """The lines of a statement's plan that read more, the more orders there are.

    Bad are a SCAN of a growing table, a SEARCH in one by nothing but whose it is, and a sort (TEMP B-TREE) of other rows
    than those of one order, but for a walk along an index that a LIMIT ends and on which nothing is filtered or sorted.
    Counts per bucket may be searched and summed by merchant (a row for thousands of orders), and a MATCH is no SCAN.
    """
    lines = plan(raw, sql, values)
    sorts = [line for line in lines if "TEMP B-TREE" in line]
    where = "".join(_WHERE.findall(sql))
    ends = " LIMIT " in sql and not sorts
    bad = [line for line in lines if "AUTOMATIC" in line]
    reads_one_order = True
    for line in lines:
        how, table, by = (found := _READ.match(line)) and found.groups() or ("", "", "")
        columns = set(re.findall(r"(\w+)[<>=]", by))
        if table not in GROWING or ("VIRTUAL TABLE" in by and ":M" in by):
            continue
        if (how == "SCAN" and not (ends and not where)) or (
            how == "SEARCH" and columns <= OWNERS and table != "tally" and not (ends and " AND " not in where)
        ):
            bad.append(line)
        reads_one_order &= bool(columns & OF_ONE_ORDER) or table == "tally"
    return bad + ([] if reads_one_order else sorts)


def in_triggers(raw):
    """The statements of the database's triggers, with a number in place of each value of the row."""
    for (sql,) in raw.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger'").fetchall():
        parts = _TRIGGER.search(re.sub(r"\b(NEW|OLD)\.\w+", "1", sql))
        if parts["when"]:
            yield f"SELECT {parts['when']}"
        yield from (each for each in parts["body"].split(";") if _ROWS.match(each) and "RAISE" not in each)


def told(sql, lines):
    """A statement and the bad lines of its plan, for a person to read."""
    short = re.sub(r"SELECT (?!EXISTS|COUNT)(?:(?!SELECT).)*? FROM", "SELECT … FROM", " ".join(sql.split()))
    return "\n    ".join(["", *lines, re.sub(r"(\?, )+\?", "?, …", short)])
