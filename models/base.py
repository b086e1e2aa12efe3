"""The database handle, how its connections are set up, and the base of every table."""

from pathlib import Path

from peewee import BigIntegerField, Model, SqliteDatabase

LARGEST_ID = 2**63 - 1

# IMMEDIATE takes the write lock at BEGIN: with a deferred BEGIN two readers that both turn
# writers fail at once with "database is locked", whatever the busy timeout.
database = SqliteDatabase(None, lock_type="IMMEDIATE")

PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": "full",  # a committed order survives a power cut
    "foreign_keys": 1,
    "cache_size": -16_000,
}


def open_database(path: Path, busy_timeout: float = 5.0) -> None:
    """Point every model at the SQLite file `path`; `busy_timeout` in seconds."""
    database.init(str(path), pragmas=PRAGMAS, timeout=busy_timeout)


class Table(Model):
    """Base of every table."""

    class Meta:
        database = database
        legacy_table_names = False


class Fen(BigIntegerField):
    """An amount in integer fen."""


class BasisPoints(BigIntegerField):
    """A rate in integer hundredths of a percent."""


class Timestamp(BigIntegerField):
    """Unix time in whole seconds."""
