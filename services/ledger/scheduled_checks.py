"""Integrity checks in the background, scheduled or requested: one at a time, each recorded."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
import time
from typing import Any

from peewee import fn

import settings
from models.db.base import database
from models.db.writer import transaction
from models.tables.ledger import LedgerAccount, Posting
from models.tables.maintenance import FAILED, HOLDS, OFF, Verification
from runtime import Part, current
from services.errors import N_, OperatorError
from services.platform import cpu_affinity, storage_health
from settings import Settings

log = logging.getLogger(__name__)

KEPT = 100  # runs
BEAT = 5  # seconds from one sign of life to the next
SILENCE = 60  # seconds without one after which a run counts as killed
STOPPED = "the service stopped"
AGAIN = 3_600  # seconds after a run that came to no end
HOUR = 3_600
LONG, LONG_BY_HAND = 2, 7 * 24 * HOUR  # times `verify_every`, or seconds if that is 0


class GivenUp(Exception):
    """The proof came to no end; the text says why."""


def _alive() -> Any:
    now = int(time.time())
    return Verification.outcome.is_null() & Verification.beat.between(now - SILENCE, now + SILENCE)


def running() -> Verification | None:
    """The run that is under way, in whichever process; not one that was killed."""
    return Verification.select().where(_alive()).order_by(Verification.id.desc()).first()


def state(run: Verification) -> str:
    """How it stands: running, holds, off, failed, or killed: of that one nothing was heard any more."""
    silent = abs(int(time.time()) - run.beat) > SILENCE
    return str(run.outcome or ("killed" if silent else "running"))


def last() -> Verification | None:
    """The newest run that came to an end and says how the books are."""
    ended = Verification.select().where(Verification.outcome.in_([HOLDS, OFF]))
    return ended.order_by(Verification.id.desc()).first()


def recent(limit: int = KEPT) -> list[Verification]:
    """The newest runs first."""
    return list(Verification.select().order_by(Verification.id.desc()).limit(limit))


def overdue(every: int) -> bool:
    """Whether the last integrity check is too old. `every` is the setting, in hours."""
    limit = int(time.time()) - (LONG * every * HOUR or LONG_BY_HAND)
    newest = last()
    if newest is not None:
        return bool(newest.started < limit)
    oldest = Posting.select(Posting.createtime).order_by(Posting.id).limit(1).scalar()
    return oldest is not None and oldest < limit


def _add(who: str, **facts: Any) -> Verification:
    now = int(time.time())
    entries = LedgerAccount.select(fn.COALESCE(fn.SUM(LedgerAccount.entries), 0)).scalar()
    return Verification.create(**{"who": who, "started": now, "beat": now, "entries": entries} | facts)


@transaction
def _begin(who: str) -> Verification:
    """Raises OperatorError if one is running."""
    database.advisory_lock("verification")
    if running() is not None:
        raise OperatorError(N_("the ledger is being verified just now"))
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
        log.error("verification of the ledger: %s: %s: %s", outcome, name, "; ".join(lines[:5]))


def record(who: str, found: dict[str, list[str]], seconds: float) -> None:
    """Put down a run that was made elsewhere, and what it found, by check."""
    _end(_add(who), OFF if any(found.values()) else HOLDS, found, seconds)


class _Runs:
    """The runs of this process: the proof in a process of its own, and a thread that waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopping = False
        self._child: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None

    def start(self, run: Verification) -> None:
        """See to a run that was begun, in a thread of its own."""
        with self._lock:
            self._thread = threading.Thread(
                target=current().bound(self._run), args=[run], name="verification", daemon=True
            )
            self._thread.start()

    def _run(self, run: Verification) -> None:
        try:
            storage_health.surviving(self.see_to)(run)
        finally:
            database.close()

    def see_to(self, run: Verification) -> None:
        """Wait for its end, and put that down."""
        began = time.monotonic()
        try:
            found = self._proven(run)
            _end(run, OFF if any(found.values()) else HOLDS, found, time.monotonic() - began)
        except (GivenUp, OSError) as error:
            _end(run, FAILED, {"the verification came to no end": [str(error)]}, time.monotonic() - began)

    def _proven(self, run: Verification) -> dict[str, list[str]]:
        child = self._child_of(current().settings)
        try:
            while True:
                try:
                    said, complaint = child.communicate(timeout=BEAT)
                    break
                except subprocess.TimeoutExpired:
                    _beat(run)
        finally:
            child.kill()
            self._child = None
        if child.returncode:
            lines = complaint.strip().splitlines() or [f"it ended with status {child.returncode}"]
            raise GivenUp(STOPPED if self._stopping else lines[-1])
        return dict(json.loads(line) for line in said.splitlines())

    def _child_of(self, chosen: Settings) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "services.ledger.integrity_process"]
        pipe = subprocess.PIPE
        with self._lock:
            if self._stopping:
                raise GivenUp(STOPPED)
            child = cpu_affinity.do(
                lambda: subprocess.Popen(
                    command, cwd=settings.ROOT, stdin=pipe, stdout=pipe, stderr=pipe, encoding="utf-8"
                )
            )
            self._child = child
        assert child.stdin
        child.stdin.write(json.dumps({"url": chosen.database_url, "file": str(chosen.database)}) + "\n")
        child.stdin.flush()
        return child

    def stop(self) -> None:
        """Give up what is under way, and wait until that is put down."""
        with self._lock:
            self._stopping = True
            child, thread = self._child, self._thread
        if child is not None:
            child.kill()
        if thread is not None:
            thread.join()


_runs = Part(_Runs)


def stop() -> None:
    """Give up what is under way, and wait until that is put down."""
    _runs().stop()


def start(who: str) -> None:
    """Start a check in the background. Raises OperatorError if one is running."""
    _runs().start(_begin(who))


def _is_due(every: int) -> bool:
    newest = Verification.select().order_by(Verification.id.desc()).first()
    if newest is None:
        return Posting.select().exists()
    pause = every * HOUR if newest.outcome in (HOLDS, OFF) else AGAIN if newest.outcome else 0
    return not 0 <= int(time.time()) - newest.started < pause


def run_if_due(chosen: Settings) -> None:
    """The job: verify where the last time is `verify_every` hours ago, and wait for the end."""
    if not _is_due(chosen.verify_every):
        return
    try:
        run = _begin("service")
    except OperatorError:  # another process was first, or a run was killed a moment ago
        return
    _runs().see_to(run)
