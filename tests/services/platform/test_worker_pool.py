"""The worker pool: its reserve for tenants that respond, whatever the others do, and threads that fail."""

import threading
import time
from collections import Counter

import pytest

from models.db.base import database
from services.callbacks import delivery
from services.platform.worker_pool import Health, WorkerPool
from tests.support import completed, until

WORKERS = 8
GOOD, NEW = 1000, 2000
FAILING, UNKNOWN = range(WORKERS), range(20, 40)


class Tenants:
    """Tenants with endless work, which ends when the test ends it."""

    def __init__(self, pool):
        self.pool, self.under_way, self.ends = pool, Counter(), {}
        self._lock = threading.Lock()

    def work(self, tenant):
        with self._lock:
            self.under_way[tenant] += 1
            end = self.ends.setdefault(tenant, [threading.Event(), True])
        end[0].wait(20)
        with self._lock:
            self.under_way[tenant] -= 1
        return end[1]

    def sweep(self, *tenants):
        """Take work as sweeps do until they find no more; return the tenants of the work."""
        all_taken = []
        while taken := self.pool.choose(tenants, lambda tenant, limit: [tenant] * limit):
            for tenant in taken:
                self.pool.submit(tenant, self.work, tenant)
            all_taken += taken
        until(lambda: sum(self.pool._in_flight.values()) == sum(self.under_way.values()))
        return all_taken

    def end(self, *tenants, succeeded):
        """Let all work of these tenants end."""
        for tenant in tenants:
            with self._lock:
                end = self.ends.pop(tenant)
            end[1] = succeeded
            end[0].set()
        until(lambda: not any(self.pool._in_flight[tenant] for tenant in tenants))

    def fail(self, *tenants):
        """Let each of them fail twice."""
        for _ in range(2):
            for tenant in tenants:
                assert self.sweep(tenant) == [tenant]
                self.end(tenant, succeeded=False)


@pytest.fixture
def workers():
    return WORKERS


@pytest.fixture
def tenants(workers):
    made = Tenants(WorkerPool(workers, "test"))
    yield made
    for tenant in list(made.ends):
        made.end(tenant, succeeded=True)
    made.pool.stop()


def test_failing_tenants_get_half_of_the_workers_and_unknown_ones_a_quarter_more(tenants):
    tenants.fail(*FAILING)
    assert len(tenants.sweep(*FAILING)) == WORKERS // 2
    assert len(tenants.sweep(*UNKNOWN)) == WORKERS // 4
    assert tenants.sweep(*FAILING, *UNKNOWN) == []


def test_a_tenant_that_responds_finds_workers_whatever_the_others_do(tenants):
    tenants.pool.learn({GOOD: Health.GOOD})
    tenants.fail(*FAILING)
    tenants.sweep(*FAILING, *UNKNOWN)
    assert tenants.sweep(*FAILING, *UNKNOWN, GOOD) == [GOOD] * (WORKERS // 4)


def test_a_good_tenant_has_a_quarter_of_the_workers_until_it_fails_and_any_other_has_one(tenants):
    tenants.pool.learn({GOOD: Health.GOOD})
    assert tenants.sweep(GOOD) == [GOOD] * (WORKERS // 4)
    assert tenants.sweep(GOOD) == []
    assert tenants.sweep(NEW) == [NEW]
    assert tenants.sweep(NEW) == []
    tenants.end(GOOD, succeeded=False)
    assert tenants.sweep(GOOD) == [GOOD]
    tenants.end(GOOD, succeeded=True)
    assert tenants.sweep(GOOD) == [GOOD] * (WORKERS // 4)


def test_work_in_progress_counts_for_its_tenants_present_health(tenants):
    tenants.pool.learn(dict.fromkeys(range(4), Health.GOOD))
    assert len(tenants.sweep(*range(4))) == WORKERS
    tenants.pool._health_by_tenant.update(dict.fromkeys(range(4), Health.FAILING))
    tenants.end(0, 1, succeeded=False)
    assert tenants.sweep(5, 6, 7) == [7, 6]  # the failing ones have the other four workers
    tenants.pool.learn({GOOD: Health.GOOD})
    assert tenants.sweep(GOOD) == [GOOD] * 2


def test_of_failing_tenants_the_one_that_waited_longest_comes_first_and_of_unknown_ones_the_newest(tenants):
    tenants.fail(2, 1)
    assert tenants.sweep(1, 2) == [2, 1]
    assert tenants.sweep(NEW, NEW + 1) == [NEW + 1, NEW]


def test_one_sweep_starts_little_for_tenants_that_may_fail_immediately(tenants):
    tenants.pool.learn({GOOD: Health.GOOD})
    assert len(tenants.pool.choose(range(20), lambda tenant, limit: [tenant])) == WORKERS // 4
    assert GOOD in tenants.pool.choose([*range(20), GOOD], lambda tenant, limit: [tenant])


@pytest.mark.parametrize("workers", [1, 3])
def test_a_few_workers_serve_all_tenants(tenants, workers):
    tenants.fail(1)
    assert tenants.sweep(1) == [1]


def test_a_waiting_tenant_gets_its_turn_although_others_always_have_more_work():
    woken, told, over = threading.Event(), threading.Event(), threading.Event()
    pool = WorkerPool(WORKERS, "test", wake=woken.set)
    pool.learn(dict.fromkeys(range(20), Health.GOOD))

    def work(tenant):
        time.sleep(0.002)
        if tenant == NEW:
            told.set()
        return not over.is_set()

    def sweep(*tenants):
        for tenant in pool.choose(tenants, lambda tenant, limit: [tenant] * limit):
            pool.submit(tenant, work, tenant)

    sweep(*range(20))
    pool.announce(NEW)
    while not told.is_set():
        assert woken.wait(20)
        woken.clear()
        sweep(*(pool.take_announced() or [*range(20), NEW]))
    over.set()
    pool.stop()


def test_all_tenants_get_their_turn_after_a_time_without_threads(monkeypatch):
    pool, start, refused, done = WorkerPool(WORKERS, "test"), threading.Thread.start, [], Counter()

    def refuse_some(thread):
        if len(refused) < 7:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        start(thread)

    def work(tenant):
        time.sleep(0.002)
        done[tenant] += 1
        return True

    def swept():
        for tenant in pool.choose(range(1, 9), lambda tenant, limit: [tenant] * limit):
            pool.submit(tenant, work, tenant)
        return len(done) == 8 and min(done.values()) > 5

    monkeypatch.setattr(threading.Thread, "start", refuse_some)
    until(swept)
    assert len(refused) == 7
    pool.stop()


@pytest.mark.parametrize("end", [ValueError("no"), SystemExit(3)])
def test_whatever_ends_work_its_worker_continues_with_the_next(end):
    pool, ended = WorkerPool(1, "test"), []

    def work(tenant):
        ended.append(tenant)
        raise end

    for tenant in range(3):
        until(lambda tenant=tenant: pool.choose([tenant], lambda tenant, limit: [tenant]))
        pool.submit(tenant, work, tenant)
    pool.stop()
    assert ended == [0, 1, 2]


def test_a_worker_that_sends_a_callback_opens_no_database_connection(api, shop, monkeypatch):
    pool, unconnected, deliver = WorkerPool(WORKERS, "test"), [], delivery.deliver

    def watched(callback):
        delivered = deliver(callback)
        unconnected.append(database.is_closed())
        return delivered

    monkeypatch.setattr(delivery, "deliver", watched)
    for _ in range(3):
        completed(api)
    time.sleep(0.1)  # by now the merchants' cache has expired
    until(lambda: (delivery.sweep(pool) and False) or len(unconnected) == 3)
    pool.stop()
    assert all(unconnected)
    assert len(shop.got) == 3
