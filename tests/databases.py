"""The database of a test's instance folder: its own SQLite file, or one on Postgres (`TEST_DATABASE=postgres`)."""

from __future__ import annotations

import re
import shutil
import sqlite3
import tomllib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from models.db import writer
from models.db.base import close_database, database, open_database
from runtime.settings import Settings
from runtime.state import Runtime
from tests import postgres, tiers

CONFIG = "config.toml"
ERRORS = (sqlite3.Error, psycopg.Error)  # errors of a separate connection


def _url(folder: Path) -> str:
    config = Path(folder) / CONFIG
    return tomllib.loads(config.read_text()).get("database_url", "") if config.exists() else ""


def _place(folder: Path, template: str) -> str:
    """Give a folder a new Postgres database, a copy of another one; return its address."""
    url = postgres.cluster().url(postgres.cluster().create(template))
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / CONFIG
    others = config.read_text().splitlines() if config.exists() else []
    lines = [f'database_url = "{url}"', *(line for line in others if not line.startswith("database_url"))]
    config.write_text("\n".join(lines) + "\n")
    return url


def _name(url: str) -> str:
    return url.partition("@/")[2].partition("?")[0]


def url_of(folder: Path) -> str:
    """The address of the folder's database, created empty if missing; "" if the tests run on SQLite."""
    assert tiers.has_database, "a test that has a database uses the fixture `any_database`, or one that uses it"
    if not postgres.IN_USE:
        return ""
    return _url(folder) or _place(folder, "template0")


def settings_of(folder: Path, **more: Any) -> Settings:
    """The settings of a service in a folder, whose channels and merchants are on this machine."""
    here = {"private_channels": True, "private_callbacks": True}
    return Settings(**{"instance": folder, "database_url": url_of(folder)} | here | more)


def copied(seeded: Path, folder: Path) -> Path:
    """Copy an unused instance into a new folder."""
    shutil.copytree(seeded, folder)
    if postgres.IN_USE:
        _place(folder, _name(_url(seeded)))
    return folder


def remove(folder: Path) -> None:
    """Delete the folder's database on Postgres."""
    if postgres.IN_USE and _url(folder):
        if database.is_shared:
            disconnect()  # Postgres checks only each 100 ms whether terminated connections have ended
        postgres.cluster().drop(_name(_url(folder)))


def disconnect() -> None:
    """Close this process's connections to the database."""
    if Runtime._newest is not None:
        writer.stop()
        close_database()


def close() -> None:
    """Close as `disconnect` does, after everything is in the SQLite file itself, which can then be copied."""
    writer.stop()
    if not database.is_shared:
        database.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    disconnect()


class Raw:
    """A separate connection, as an outsider would open; each statement is committed immediately."""

    def __init__(self, connection: Any):
        self._connection = connection

    def execute(self, sql: str, values: Any = ()) -> Any:
        """Execute a statement, its values written as `?` or `:name`; return the cursor."""
        if isinstance(self._connection, psycopg.Connection):
            sql = re.sub(r"(?<!:):([a-z]+)", r"%(\1)s", sql.replace("%", "%%").replace("?", "%s"))
        return self._connection.execute(sql, values)


@contextmanager
def raw(folder: Path) -> Iterator[Raw]:
    """A connection to the folder's database in addition to the service's."""
    url, file = _url(folder), Path(folder) / "orders.sqlite"
    connection: Any = psycopg.connect(url, autocommit=True) if url else sqlite3.connect(file, isolation_level=None)
    with closing(connection):
        yield Raw(connection)


@contextmanager
def orders_held_up(folder: Path) -> Iterator[None]:
    """Lock orders against writing (on SQLite: all tables); writers wait."""
    with raw(folder) as other:
        other.execute("BEGIN" if postgres.IN_USE else "BEGIN IMMEDIATE")
        if postgres.IN_USE:
            other.execute('LOCK TABLE "order" IN EXCLUSIVE MODE')
        yield
        other.execute("ROLLBACK")


@contextmanager
def unguarded(folder: Path) -> Iterator[Raw]:
    """A connection to the folder's database without protection against damage."""
    with raw(folder) as books:
        if postgres.IN_USE:
            books.execute("SET session_replication_role = replica")  # no triggers, no foreign keys
            checks = """SELECT conrelid::regclass, conname FROM pg_constraint
                WHERE contype = 'c' AND connamespace = 'public'::regnamespace"""
            for table, name in books.execute(checks).fetchall():
                books.execute(f'ALTER TABLE {table} DROP CONSTRAINT "{name}"')
        else:
            for (trigger,) in books.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                books.execute(f"DROP TRIGGER {trigger}")
            books.execute("PRAGMA ignore_check_constraints = ON")
        yield books


@contextmanager
def impatient() -> Iterator[None]:
    """Make this process wait for no lock of another one."""
    writer.stop()
    if database.is_shared:
        database.close_all()
        given = database._conninfo
        database.obj._conninfo = given.replace("lock_timeout=5000", "lock_timeout=200")
        yield
        database.close_all()
        database.obj._conninfo = given
        return
    path = database.path
    open_database(path, busy_timeout=0.2)
    yield
    writer.stop()
    open_database(path)
