"""Worker threads that tenants (merchants, channels) share, so that unresponsive servers do not delay the others."""

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
SWEEP_SECONDS = 0.5  # between sweeps of all tenants, possibly thousands, while some are announced


class Claimable(Protocol):
    """A row that one process at a time may work on."""

    id: Any

    def claim(self, until: int) -> bool:
        """Claim it until a Unix time, in one conditional UPDATE; False if another process was first."""


R = TypeVar("R", bound=Claimable)


@transaction
def claim(rows: list[R], until: int) -> list[R]:
    """Claim rows until a Unix time; return those that no other process claimed first."""
    ordered = sorted(rows, key=lambda row: row.id)  # the same order in each process prevents deadlocks
    claimed = {row.id for row in ordered if row.claim(until)}
    return [row for row in rows if row.id in claimed]


class Health(IntEnum):
    """The health of a tenant's server, by the latest work for the tenant."""

    GOOD = 0  # the last succeeded
    UNKNOWN = 1  # none was done yet, or the last failed and the one before succeeded
    FAILING = 2


# By health, the most workers for one tenant, and for all tenants of this health or worse, as shares of all workers.
LIMITS = {Health.GOOD: (1 / 4, 1), Health.UNKNOWN: (0, 3 / 4), Health.FAILING: (0, 1 / 2)}


class WorkerPool:
    """A thread pool with a limit for each tenant, and a reserve for tenants whose servers respond.

    The rule is LIMITS, with a minimum of one worker. However many tenants fail, a quarter of the workers is reserved
    for those whose last work succeeded, and a quarter for unknown ones. The order of the three groups is random, so
    that none starves. Within a group, the tenant that waited longest comes first; of unknown ones the newest, which
    needs one success to become a good one.

    Nothing is queued: a sweep takes as many due rows from the database as there are free workers. A worker that
    finishes starts the next sweep if more is due to a good tenant. The others wait for the sweep at the next interval.
    It uses at most a quarter of the workers for them, so that work that fails immediately does not use up the
    processor.
    """

    def __init__(self, workers: int, name: str, wake: Callable[[], None] = lambda: None):
        """Start with one thread; `wake` starts the next sweep immediately."""
        self.sweeping = threading.Lock()  # locked by a sweep until its rows are in progress
        self._executor = ThreadPoolExecutor(workers, thread_name_prefix=name)
        self._executor.submit(int)  # so that one thread exists even if the system refuses later ones
        self._own, self._shared = (
            [max(1, int(workers * LIMITS[health][column])) for health in Health] for column in (0, 1)
        )
        self._wake = wake
        self._lock = threading.Lock()
        self._in_flight: Counter[int] = Counter()  # by tenant
        self._health_by_tenant: dict[int, Health] = {}
        self._served: dict[int, float] = {}  # by tenant: the end of its last work
        self._more: set[int] = set()  # tenants that may have more due rows than there were workers
        self._announced: set[int] = set()
        self._is_woken = False
        self._swept_at = 0.0

    def announce(self, *tenants: int) -> None:
        """Start a sweep of these tenants, to which something is due."""
        with self._lock:
            self._announced.update(tenants)
            wakes, self._is_woken = not self._is_woken, True
        if wakes:
            self._wake()

    def take_announced(self) -> set[int]:
        """Return the tenants to sweep now; empty if it is time to sweep all of them."""
        with self._lock:
            announced, self._announced, self._is_woken = self._announced, set(), False
        now = time.monotonic()
        if announced and now - self._swept_at < SWEEP_SECONDS:
            return announced
        self._swept_at = now
        return set()

    def unseen(self, tenants: Collection[int]) -> list[int]:
        """Return the tenants of unknown health."""
        return [tenant for tenant in tenants if tenant not in self._health_by_tenant]

    def learn(self, health_by_tenant: Mapping[int, Health]) -> None:
        """Take over stored health, for tenants that this process has not served yet."""
        with self._lock:
            self._health_by_tenant = {**health_by_tenant, **self._health_by_tenant}

    def choose(self, tenants: Collection[int], rows_of: Callable[[int, int], list[T]]) -> list[T]:
        """Return due rows for the free workers, in fair order.

        Args:
            rows_of: returns the due rows of a tenant, up to a limit.
        """
        with self._lock:
            in_flight = self._in_flight.copy()
        free, starts = self._shared.copy(), self._own[Health.GOOD]
        for tenant, count in in_flight.items():
            self._use(free, self._health_of(tenant), count)
        chosen: list[T] = []
        order = random.sample(range(len(Health)), len(Health))

        def turn(tenant: int) -> tuple[int, float, int]:
            health, served = self._health_of(tenant), self._served.get(tenant, 0.0)
            if health is Health.UNKNOWN:
                return order[health], -served, -tenant
            return order[health], served, tenant

        for tenant in sorted(tenants, key=turn):
            health = self._health_of(tenant)
            is_good = health is Health.GOOD
            room = min(self._own[health] - in_flight[tenant], *free[: health + 1])
            room = room if is_good else min(room, starts)
            rows = rows_of(tenant, room) if room > 0 else []
            starts -= 0 if is_good else len(rows)
            self._use(free, health, len(rows))
            chosen += rows
            if len(rows) >= room and (rows or in_flight[tenant] or is_good):
                self._more.add(tenant)
        return chosen

    @staticmethod
    def _use(free: list[int], health: Health, count: int) -> None:
        for better in range(health + 1):
            free[better] -= count

    def _health_of(self, tenant: int) -> Health:
        return self._health_by_tenant.get(tenant, Health.UNKNOWN)

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
        except BaseException as error:  # one bad item stops nothing: its claim expires, and it is claimed again
            if storage_health.report(error) is None:
                log.exception("%s failed on %r", work.__name__, item)
        finally:
            self._done(tenant, succeeded)
            database.hand_back()  # so that an idle worker keeps no memory for a connection

    def _done(self, tenant: int, succeeded: bool) -> None:
        with self._lock:
            self._in_flight -= Counter({tenant: 1})
            worse = Health(min(self._health_of(tenant) + 1, Health.FAILING))
            self._health_by_tenant[tenant] = Health.GOOD if succeeded else worse
            self._served[tenant] = time.monotonic()
            more: list[int] = []
            if self._in_flight[tenant] <= self._own[Health.GOOD] // 2:  # a sweep for each row would cost too much
                more = [each for each in self._more if self._health_of(each) is Health.GOOD]
                self._more.clear()
        if more:
            self.announce(*more)

    def is_idle(self) -> bool:
        """Return whether no work is in progress; the caller has locked `sweeping`, so none starts meanwhile."""
        return not self._in_flight

    def stop(self) -> None:
        """Wait for the work in progress."""
        self._executor.shutdown(wait=True)
