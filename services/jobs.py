"""The jobs that the service does by itself, and how often: callbacks, orders that are due, purges, the search index."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from math import ceil
from typing import Any

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler

from models.queries import search
from services.backups import scheduled
from services.callbacks import outbox
from services.console import privacy
from services.ledger import scheduled_checks
from services.orders import claims, due
from services.platform import clock, cpu_affinity, heartbeats, storage_health
from services.platform.fair_pool import FairPool
from services.sandbox import adjustable_clock, simulator
from services.security import replay
from settings import Settings

SWEEP_SECONDS = 0.5
SEARCH_SECONDS = 1
PURGE_SECONDS = 5
BACKUP_SECONDS = 300  # until it is looked again whether a backup is due, or one that failed is tried again
VERIFY_SECONDS = 60  # until it is looked again whether a verification of the ledger is due


def start(chosen: Settings, for_long_work: Callable[[Any], Any] = lambda job: job) -> Callable[[], None]:
    """Start them; the returned call ends them and waits for what is under way.

    Args:
        for_long_work: wraps a job that takes long.
    """
    cpu_affinity.use(for_long_work)
    senders = FairPool(chosen.callback_workers, "callback")
    askers = FairPool(chosen.channel_workers, "channel")
    jobs = ThreadPoolExecutor()
    scheduler = BackgroundScheduler(
        timezone=UTC,
        executors={"default": jobs},
        job_defaults={"max_instances": 1, "coalesce": True, "misfire_grace_time": None},
    )
    for name, job, arguments, seconds, limit in (
        ("callbacks", outbox.sweep, [senders], SWEEP_SECONDS, heartbeats.SHORT),
        ("orders", due.sweep, [askers], SWEEP_SECONDS, heartbeats.SHORT),
        ("purge", replay.purge, [], PURGE_SECONDS, heartbeats.SHORT),
        ("search", search.catch_up, [], SEARCH_SECONDS, heartbeats.LONG),
    ):
        surviving = storage_health.surviving(heartbeats.beating(name, job, limit))
        scheduler.add_job(surviving, "interval", arguments, seconds=seconds, id=name)
    stopping = threading.Event()
    if chosen.backup_every:
        back_up = for_long_work(heartbeats.beating("backups", scheduled.run, heartbeats.LONG))
        first, its = datetime.now(UTC), [chosen, stopping]
        scheduler.add_job(back_up, "interval", its, seconds=BACKUP_SECONDS, next_run_time=first, id="backups")
    if chosen.verify_every:
        verify = storage_health.surviving(
            heartbeats.beating("verification", scheduled_checks.run_if_due, heartbeats.LONG)
        )
        scheduler.add_job(verify, "interval", [chosen], seconds=VERIFY_SECONDS, id="verification")
    if chosen.claim_expiry:
        take_up = storage_health.surviving(heartbeats.beating("claims", claims.take_up, heartbeats.LONG))
        scheduler.add_job(
            take_up, "interval", seconds=claims.TAKE_UP_SECONDS, next_run_time=datetime.now(UTC), id="claims"
        )
    if chosen.erase_after_days:
        erase = storage_health.surviving(heartbeats.beating("erasure", privacy.run, heartbeats.LONG))
        scheduler.add_job(erase, "interval", [chosen.erase_after_days], seconds=privacy.EVERY, id="erasure")
    if chosen.demo:
        planned = storage_health.surviving(heartbeats.beating("planned", simulator.play_planned, heartbeats.SHORT))
        scheduler.add_job(planned, "interval", seconds=SWEEP_SECONDS, id="planned")
    scheduler.start()

    def wake(job: str = "callbacks") -> None:
        with suppress(JobLookupError):  # it was stopped just now
            scheduler.modify_job(job, next_run_time=datetime.now(UTC))

    def hurry() -> None:
        for job in ("planned", "orders", "callbacks"):
            wake(job)

    def clock_set(ahead: float) -> None:
        for job in scheduler.get_jobs():  # they wait for the time that it was
            with suppress(JobLookupError):
                job.modify(next_run_time=datetime.now(UTC))
        outbox.release()
        due.release(ceil(max(ahead, 0)))

    watch = clock.Watch(clock_set)
    watch.start()
    outbox.when_enqueued(wake)
    adjustable_clock.use(adjustable_clock.Sweeps(hurry, (askers, senders)) if chosen.demo else None)

    def stop() -> None:
        stopping.set()
        heartbeats.forget()
        scheduled_checks.stop()
        outbox.when_enqueued(None)
        adjustable_clock.use(None)
        watch.stop()
        # While it waits for jobs it holds a lock that `wake` needs; they may wait for the writer, which calls `wake`.
        scheduler.shutdown(wait=False)
        jobs.shutdown()
        senders.stop()
        askers.stop()
        cpu_affinity.use(None)

    return stop
