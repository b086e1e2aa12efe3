"""Notifications to systemd: the service is ready, stops, and still works (sd_notify(3), sd_watchdog_enabled(3)).

They are sent only if the unit has Type=notify. With WatchdogSec, systemd restarts the service if no WATCHDOG=1 arrives
for that time.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable

from models.db.errors import HANGING
from runtime import clock
from runtime.state import current
from services.platform import heartbeats, storage_health

log = logging.getLogger(__name__)

PER_PERIOD = 4  # checks in WatchdogSec: one that takes as long as three intervals is still in time

# Starts a trivial piece of work, and returns a function that returns whether it is done.
Check = Callable[[], Callable[[], bool]]


def notify(state: str) -> None:
    """Send a state to systemd, if it waits for states."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(state.encode(), "\0" + address[1:] if address[0] == "@" else address)
    except OSError as error:
        log.warning("Cannot send %s to systemd: %s", state, error)


def frequent_jobs() -> Callable[[], bool]:
    """Check that each frequent job ends a run, with or without an error."""
    since = clock.steady()
    return lambda: heartbeats.all_ran_since(since)


class Watchdog(threading.Thread):
    """Sends READY=1, then WATCHDOG=1 each time that all checks are done.

    A check that is never done is a hung process: no WATCHDOG=1 follows. Slow work only delays it, and work that fails
    is done, so a locked, full or unreachable database does not restart the service. Neither does one that does not
    respond at all, because a restart would not help.
    """

    def __init__(self, checks: Iterable[Check]):
        super().__init__(name="watchdog", daemon=True, target=current().bound(self._watch))
        self._checks, self._ended = list(checks), threading.Event()

    def _watch(self) -> None:
        if not os.environ.get("NOTIFY_SOCKET"):
            return
        notify("READY=1")
        period = int(os.environ.get("WATCHDOG_USEC", 0)) / 1_000_000
        if not period or os.environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
            return
        while not self._ended.wait(period / PER_PERIOD):
            try:
                if self._works():
                    notify("WATCHDOG=1")
            except Exception:  # so that systemd restarts the service if this continues, and not otherwise
                log.exception("Watchdog check failed, will be retried")

    def _works(self) -> bool:
        """Return True once all checks are done, or the database hangs; False if the service stops meanwhile."""
        began, checks = time.monotonic(), [start() for start in self._checks]
        while not all(is_done() for is_done in checks):
            if time.monotonic() - began > storage_health.HANGS and storage_health.write_fault() is HANGING:
                return True
            if self._ended.wait(1):
                return False
        return True

    def stop(self) -> None:
        """Send STOPPING=1, and nothing afterwards: systemd then waits for TimeoutStopSec."""
        self._ended.set()
        notify("STOPPING=1")
