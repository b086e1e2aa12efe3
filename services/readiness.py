"""Readiness of this service for requests: a table of checks, each of which returns a fault or ""."""

from __future__ import annotations

import time

from peewee import DatabaseError

from models.db.base import database
from runtime import clock
from runtime.state import current
from services.platform import heartbeats, proxies, storage_health
from services.security import replay

LEAST_FREE = 16 * 1024 * 1024  # bytes: the space for some minutes of orders
MOST_OFF = 60  # seconds between this machine's clock and Postgres's


def _database() -> str:
    fault = storage_health.write_fault()
    return fault.word if fault else ""


def _scheduler() -> str:
    if not heartbeats.ages():
        return "not running"
    return " ".join(f"{name} is late" for name in heartbeats.late())


def _disk() -> str:
    try:
        free = storage_health.free(current().settings.instance)
    except OSError as error:
        return error.strerror or "unknown"
    return "" if free >= LEAST_FREE else "less than 16 MiB free"


def _clock() -> str:
    now = int(time.time())
    if clock.seen().is_lost(now, replay.WINDOW + 1, replay.GOOD_FOR):
        return "it was set back: nonces of this time are forgotten"
    if not database.is_shared or storage_health.write_fault():
        return ""
    try:
        (theirs,) = database.execute_sql("SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS bigint)").fetchone()
    except DatabaseError as error:
        storage_health.report(error)
        return ""  # the fault is the database's, which another check reports
    off = time.time() - float(theirs)
    return f"{off:+.0f} seconds off the database's" if abs(off) > MOST_OFF else ""


CHECKS = {"database": _database, "scheduler": _scheduler, "disk": _disk, "clock": _clock}


# Problems with which requests can still be served.
WARNINGS = {"proxy": proxies.warning}


def check() -> dict[str, str]:
    """Return the fault of each check, or ""."""
    return {name: find() for name, find in CHECKS.items()}


def warnings() -> dict[str, str]:
    """Return, by check, a sentence on the setting to change, or ""."""
    return {name: find() for name, find in WARNINGS.items()}
