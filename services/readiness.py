"""Readiness of this service for requests."""

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


def check() -> dict[str, str]:
    """Return the fault of each check, or ""."""
    fault = storage_health.write_fault()
    disk = ""
    try:
        if storage_health.free(current().settings.instance) < LEAST_FREE:
            disk = "less than 16 MiB free"
    except OSError as error:
        disk = error.strerror or "unknown"
    return {
        "database": fault.word if fault else "",
        "scheduler": " ".join(f"{name} is late" for name in heartbeats.late()) if heartbeats.ages() else "not running",
        "disk": disk,
        "clock": _clock(),
    }


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


def warnings() -> dict[str, str]:
    """Return, by check, a sentence on the setting to change, or ""; requests can still be served."""
    return {"proxy": proxies.warning()}
