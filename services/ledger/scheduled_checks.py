"""Integrity checks in the background, scheduled or requested: one at a time, each recorded."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time

from peewee import fn

from models.db.base import database
from models.db.writer import transaction
from models.tables.ledger import LedgerAccount, Posting
from models.tables.maintenance import FAILED, HOLDS, OFF, Verification
from runtime import settings
from runtime.settings import Settings
from runtime.state import Part, current
from services.errors import N_, OperatorError
from services.platform import cpu_affinity, storage_health

log = logging.getLogger(__name__)

KEPT = 100  # runs
BEAT = 5  # seconds between heartbeats
SILENCE = 60  # seconds without a heartbeat after which a run counts as killed
STOPPED = "the service stopped"
AGAIN = 3_600  # seconds after a run that did not finish
HOUR = 3_600
LONG, LONG_UNSCHEDULED = 2, 7 * 24 * HOUR  # times `verify_every`, or seconds if that is 0


class CheckAborted(Exception):
    """The integrity check did not finish; the text gives the reason."""


def running() -> Verification | None:
    """Return the running check of any process, or None; a killed one does not count."""
    now = int(time.time())
    alive = Verification.outcome.is_null() & Verification.beat.between(now - SILENCE, now + SILENCE)
    return Verification.select().where(alive).order_by(Verification.id.desc()).first()


def state(run: Verification) -> str:
    """Return a run's state: running, holds, off, failed, or killed if its heartbeats stopped."""
    silent = abs(int(time.time()) - run.beat) > SILENCE
    return str(run.outcome or ("killed" if silent else "running"))


def last() -> Verification | None:
    """Return the newest run with a result, or None."""
    ended = Verification.select().where(Verification.outcome.in_([HOLDS, OFF]))
    return ended.order_by(Verification.id.desc()).first()


def recent(limit: int = KEPT) -> list[Verification]:
    """Return the newest runs, newest first."""
    return list(Verification.select().order_by(Verification.id.desc()).limit(limit))


def overdue(every: int) -> bool:
    """Return whether the last integrity check is too old. `every` is the setting, in hours."""
    limit = int(time.time()) - (LONG * every * HOUR or LONG_UNSCHEDULED)
    newest = last()
    if newest is not None:
        return bool(newest.started < limit)
    oldest = Posting.select(Posting.createtime).order_by(Posting.id).limit(1).scalar()
    return oldest is not None and oldest < limit


def _add(who: str) -> Verification:
    now = int(time.time())
    entries = LedgerAccount.select(fn.COALESCE(fn.SUM(LedgerAccount.entries), 0)).scalar()
    return Verification.create(who=who, started=now, beat=now, entries=entries)


@transaction
def _begin(who: str) -> Verification:
    """Record the start of a run. Raises OperatorError if one is running."""
    database.advisory_lock("verification")
    if running() is not None:
        raise OperatorError(N_("A ledger check is already running."))
    return _add(who)


@transaction
def _beat(run: Verification) -> None:
    Verification.update(beat=int(time.time())).where(Verification.id == run.id).execute()


@transaction
def _end(run: Verification, outcome: str, found: dict[str, list[str]], seconds: float) -> None:
    off = {name: lines for name, lines in found.items() if lines}
    facts = {"outcome": outcome, "found": json.dumps(off, ensure_ascii=False), "milliseconds": round(seconds * 1000)}
    Verification.update(beat=int(time.time()), **facts).where(Verification.id == run.id).execute()
    newest = Verification.select(Verification.id).order_by(Verification.id.desc()).limit(KEPT)
    Verification.delete().where(Verification.id.not_in([row.id for row in newest])).execute()
    for name, lines in off.items():
        if lines == [STOPPED]:
            log.info("Ledger integrity check interrupted: %s", STOPPED)
        else:
            log.error("Ledger integrity check, result %s: %s: %s", outcome, name, "; ".join(lines[:5]))


def record(who: str, found: dict[str, list[str]], seconds: float) -> None:
    """Record a finished run and its failures, by check."""
    _end(_add(who), OFF if any(found.values()) else HOLDS, found, seconds)


class _Runs:
    """The runs of this process: each check in a process of its own, and a thread that waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopping = False
        self._child: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None

    def start(self, run: Verification) -> None:
        """Start a recorded run in a thread of its own."""

        def wait() -> None:
            try:
                storage_health.surviving(self.wait_for)(run)
            finally:
                database.close()

        with self._lock:
            self._thread = threading.Thread(target=current().bound(wait), name="verification", daemon=True)
            self._thread.start()

    def wait_for(self, run: Verification) -> None:
        """Wait for the end of a run, and record it."""
        began = time.monotonic()
        try:
            found = self._result_of(run)
            _end(run, OFF if any(found.values()) else HOLDS, found, time.monotonic() - began)
        except (CheckAborted, OSError) as error:
            _end(run, FAILED, {"the check did not finish": [str(error)]}, time.monotonic() - began)

    def _result_of(self, run: Verification) -> dict[str, list[str]]:
        """Run the check in a process; return its failures, by check. Raises CheckAborted, OSError."""
        chosen = current().settings
        reading, writing = os.pipe()  # open until the check or this service ends, which ends the check
        try:
            os.write(writing, json.dumps({"url": chosen.database_url, "file": str(chosen.database)}).encode() + b"\n")
            with self._lock:
                if self._stopping:
                    raise CheckAborted(STOPPED)
                child = self._child = cpu_affinity.do(
                    lambda: subprocess.Popen(
                        [sys.executable, "-m", "services.ledger.integrity_process"],
                        cwd=settings.ROOT,
                        stdin=reading,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE,
                        encoding="utf-8",
                        start_new_session=True,  # Ctrl-C reaches the service only, which ends the check
                    )
                )
            while True:
                try:
                    output, errors = child.communicate(timeout=BEAT)
                    break
                except subprocess.TimeoutExpired:
                    _beat(run)
        finally:
            if self._child is not None:
                self._child.kill()
            self._child = None
            os.close(reading)
            os.close(writing)
        if child.returncode:
            lines = errors.strip().splitlines() or [f"it ended with status {child.returncode}"]
            raise CheckAborted(STOPPED if self._stopping else lines[-1])
        return dict(json.loads(line) for line in output.splitlines())

    def stop(self) -> None:
        """Stop the running check, and wait until that is recorded."""
        with self._lock:
            self._stopping = True
            child, thread = self._child, self._thread
        if child is not None:
            child.kill()
        if thread is not None:
            thread.join()


_runs = Part(_Runs)


def stop() -> None:
    """Stop the running check, and wait until that is recorded."""
    _runs().stop()


def start(who: str) -> None:
    """Start a check in the background. Raises OperatorError if one is running."""
    _runs().start(_begin(who))


def run_if_due(chosen: Settings) -> None:
    """Run the check if the last one is `verify_every` hours ago, and wait for its end."""
    newest = Verification.select().order_by(Verification.id.desc()).first()
    if newest is None:
        is_due = Posting.select().exists()
    else:
        pause = chosen.verify_every * HOUR if newest.outcome in (HOLDS, OFF) else AGAIN if newest.outcome else 0
        is_due = not 0 <= int(time.time()) - newest.started < pause
    if not is_due:
        return
    try:
        run = _begin("service")
    except OperatorError:  # another process was first, or a run was killed a moment ago
        return
    _runs().wait_for(run)
