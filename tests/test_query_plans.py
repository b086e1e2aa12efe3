"""No statement of the service reads more, the more orders there are (the rule: `tests.plans.unbounded`).

Not walked are those that read everything on purpose: `ledger verify`, `db backup`, `db migrate`, `seed`.
"""

import inspect
import itertools
import json
import shutil
import sqlite3
from contextlib import closing

import pytest
from flask import request, request_started

from models import search
from models.order import STATUSES
from services import replay
from tests.pages import CASHIER, CLAIM, FORM, STATUS
from tests.plans import Heard, in_triggers, plan, told, unbounded
from tests.services import walks
from tests.support import CARD, PERSON, completed, free_port, sandbox_notice

ORDERS = 3_000
KEY = {"Idempotency-Key": "key-1"}
READS_EVERYTHING = {("ledger", "verify"), ("db", "backup"), ("db", "migrate"), ("seed",)}
NO_DATABASE = {("serve",), ("demo-curl",)}


@pytest.fixture
def settings_of_app():
    return {"requests_per_second": 1_000_000, "refused_per_minute": 1_000_000, "port": free_port()}


@pytest.fixture
def grown(flask):
    """A database that orders have come to for months, and of which SQLite keeps no statistics."""
    flask("seed", "--orders", ORDERS)


@pytest.fixture
def raw(instance, grown):
    """A connection of its own."""
    with closing(sqlite3.connect(instance / "orders.sqlite")) as connection:
        assert not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_stat1'").fetchall()
        yield connection


@pytest.fixture
def judge(raw):
    """`judge(heard)` lists what is unbounded among the statements that ran."""

    def bad(heard):
        found = {sql: unbounded(raw, sql, values) for sql, values in heard.statements.items()}
        assert len(found) > 5
        return [told(sql, lines) for sql, lines in found.items() if lines]

    return bad


def none(found):
    """Nothing was found; else say what, in full."""
    assert not found, f"{len(found)} statements\n" + "\n".join(found)


def test_the_lives_of_orders(grown, judge, world):
    every = [each for each in vars(walks).values() if inspect.isfunction(each) and inspect.getfullargspec(each).args[:1] == ["w"]]
    every.remove(walks.claim)
    every += [walks.played(outcome) for outcome in ("success", "fail", "silent", "duplicate", "late", "timeout")]
    with Heard() as heard:
        for walk in every:
            walk(world)
            world.later(0)
            world.flask("channel", "set", 2, "--settlement-days", 0, "--auto-accept-max", 0, "--config", "open=accept")
        world.later(100_000, times=3)
    none(judge(heard))
