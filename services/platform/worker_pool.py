"""Worker threads that tenants (merchants, channels) share, so that servers that do not respond delay no other."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from enum import IntEnum
from typing import Any, Protocol, TypeVar

from models.db.base import database
from models.db.writer import transaction
from services.platform import storage_health

log = logging.getLogger(__name__)

T = TypeVar("T")
LOOK_SECONDS = 0.5  # between sweeps of all tenants, who may be thousands, while some are announced


class Claimable(Protocol):
    """A row that one process at a time may work on."""

    id: Any

    def claim(self, until: int) -> bool:
        """Claim it until a Unix time, in one conditional UPDATE; False if another process was first."""


R = TypeVar("R", bound=Claimable)


@transaction
def claim(rows: list[R], until: int) -> list[R]:
    """Claim rows until a Unix time; return those that no other process claimed first."""
    ordered = sorted(rows, key=lambda row: row.id)  # the same order in each process: no deadlocks
    claimed = {row.id for row in ordered if row.claim(until)}
    return [row for row in rows if row.id in claimed]


class Standing(IntEnum):
    """How the latest work for a tenant ended."""

    GOOD = 0  # the last succeeded
    UNKNOWN = 1  # none was done yet, or the last failed and the one before succeeded
    FAILING = 2


# By standing, the most workers for one tenant, and for all tenants of this standing and worse: shares of all workers.
LIMITS = {Standing.GOOD: (1 / 4, 1), Standing.UNKNOWN: (0, 3 / 4), Standing.FAILING: (0, 1 / 2)}


class WorkerPool:
    """A thread pool with a limit for each tenant, and with a reserve for those whose servers respond.

    The rule is LIMITS, with one worker at least. However many tenants fail, a quarter of the workers is left to those
    whose last work succeeded, and a quarter to those of whom nothing is known. The standings take turns by lot, so that
    none starves. Within one, the tenant that waited longest comes first; of unknown ones the newest, which needs one
    success to become a good one.

    Nothing is queued: a sweep takes as many due rows from the database as there are free workers. A worker that ends
    starts the next sweep if more is due to a good tenant. The others wait for the sweep at the next interval, which
    takes a quarter of the workers for them at most, so that work that fails at once does not use up the processor.
    """

    def __init__(self, workers: int, name: str, wake: Callable[[], None] = lambda: None):
        """Start with one thread; `wake` starts the next sweep at once."""
        self.sweeping = threading.Lock()  # held by a sweep until what it took is under way
        self._executor = ThreadPoolExecutor(workers, thread_name_prefix=name)
        self._executor.submit(int)  # so that one thread exists even if the system refuses the later ones
        self._own, self._shared = (
            [max(1, int(workers * LIMITS[standing][column])) for standing in Standing] for column in (0, 1)
        )
        self._wake = wake
        self._lock = threading.Lock()
        self._in_flight: Counter[int] = Counter()  # by tenant
        self._standings: dict[int, Standing] = {}
        self._served: dict[int, float] = {}  # by tenant: when its last work ended
        self._more: set[int] = set()  # tenants that may have more due than there was room for
        self._announced: set[int] = set()
        self._is_woken = False
        self._looked_at = 0.0

    def announce(self, *tenants: int) -> None:
        """Have a sweep look at these tenants at once: something is due to them."""
        with self._lock:
            self._announced.update(tenants)
            wakes, self._is_woken = not self._is_woken, True
        if wakes:
            self._wake()

    def take_announced(self) -> set[int]:
        """Return the tenants to look at now; empty if it is time to look at all of them."""
        with self._lock:
            announced, self._announced, self._is_woken = self._announced, set(), False
        now = time.monotonic()
        if announced and now - self._looked_at < LOOK_SECONDS:
            return announced
        self._looked_at = now
        return set()

    def unseen(self, tenants: Collection[int]) -> list[int]:
        """Return the tenants whose standing was never learned."""
        return [tenant for tenant in tenants if tenant not in self._standings]

    def learn(self, standings: Mapping[int, Standing]) -> None:
        """Take over the standings that are on record, of tenants that are unseen."""
        with self._lock:
            self._standings = {**standings, **self._standings}

    def choose(self, tenants: Collection[int], rows_of: Callable[[int, int], list[T]]) -> list[T]:
        """Return due rows that there are free workers for, in fair order.

        Args:
            rows_of: returns the due rows of a tenant, up to a limit.
        """
        with self._lock:
            in_flight = self._in_flight.copy()
        free, starts = self._shared.copy(), self._own[Standing.GOOD]
        for tenant, count in in_flight.items():
            self._use(free, self._standing(tenant), count)
        chosen: list[T] = []
        lots = random.sample(range(len(Standing)), len(Standing))
        for tenant in sorted(tenants, key=lambda tenant: (lots[self._standing(tenant)], self._turn(tenant))):
            standing = self._standing(tenant)
            is_good = standing is Standing.GOOD
            room = min(self._own[standing] - in_flight[tenant], *free[: standing + 1])
            room = room if is_good else min(room, starts)
            rows = rows_of(tenant, room) if room > 0 else []
            starts -= 0 if is_good else len(rows)
            self._use(free, standing, len(rows))
            chosen += rows
            if len(rows) >= room and (rows or in_flight[tenant] or is_good):
                self._more.add(tenant)
        return chosen

    @staticmethod
    def _use(free: list[int], standing: Standing, count: int) -> None:
        for better in range(standing + 1):
            free[better] -= count

    def _standing(self, tenant: int) -> Standing:
        return self._standings.get(tenant, Standing.UNKNOWN)

    def _turn(self, tenant: int) -> tuple[float, int]:
        served = self._served.get(tenant, 0.0)
        return (-served, -tenant) if self._standing(tenant) is Standing.UNKNOWN else (served, tenant)

    def submit(self, tenant: int, work: Callable[[T], bool], item: T) -> None:
        """Call `work(item)` in a worker; it returns whether the tenant's server responded well."""
        with self._lock:
            self._in_flight[tenant] += 1
        try:
            self._executor.submit(copy_context().run, self._run, tenant, work, item)
        except RuntimeError as error:  # no thread could be started; the work is queued nevertheless
            log.warning("No worker thread could be started: %s", error)

    def _run(self, tenant: int, work: Callable[[T], bool], item: T) -> None:
        succeeded = False
        try:
            succeeded = work(item)
        except BaseException as error:  # one bad item stops nothing: its claim lapses, and it is claimed again
            if storage_health.report(error) is None:
                log.exception("%s failed on %r", work.__name__, item)
        finally:
            self._done(tenant, succeeded)
            database.close()  # so that an idle worker keeps no memory for a connection

    def _done(self, tenant: int, succeeded: bool) -> None:
        with self._lock:
            self._in_flight -= Counter({tenant: 1})
            worse = Standing(min(self._standing(tenant) + 1, Standing.FAILING))
            self._standings[tenant] = Standing.GOOD if succeeded else worse
            self._served[tenant] = time.monotonic()
            more: list[int] = []
            if self._in_flight[tenant] <= self._own[Standing.GOOD] // 2:  # a sweep for each row would cost too much
                more = [each for each in self._more if self._standing(each) is Standing.GOOD]
                self._more.clear()
        if more:
            self.announce(*more)

    def is_idle(self) -> bool:
        """Return whether no work is under way; the caller holds `sweeping`, so that none begins meanwhile."""
        return not self._in_flight

    def stop(self) -> None:
        """Wait for the work that is under way."""
        self._executor.shutdown(wait=True)
