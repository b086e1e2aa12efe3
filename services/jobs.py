"""The jobs that the service does by itself, and how often: callbacks, orders that are due, purges, the search index."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler

from models import search
from services import callbacks, reconciliation, replay, storage
from services.fairpool import FairPool
from settings import Settings

SWEEP_SECONDS = 0.5
SEARCH_SECONDS = 1
PURGE_SECONDS = 5


def start(chosen: Settings) -> Callable[[], None]:
    """Start them; the returned call ends them and waits for what is under way."""
    senders = FairPool(chosen.callback_workers, "callback")
    askers = FairPool(chosen.channel_workers, "channel")
    jobs = ThreadPoolExecutor()
    scheduler = BackgroundScheduler(
        timezone=UTC,
        executors={"default": jobs},
        job_defaults={"max_instances": 1, "coalesce": True, "misfire_grace_time": None},
    )
    scheduler.add_job(storage.surviving(callbacks.sweep), "interval", [senders], seconds=SWEEP_SECONDS, id="callbacks")
    scheduler.add_job(storage.surviving(reconciliation.sweep), "interval", [askers], seconds=SWEEP_SECONDS, id="orders")
    scheduler.add_job(storage.surviving(replay.purge), "interval", seconds=PURGE_SECONDS, id="purge")
    scheduler.add_job(storage.surviving(search.catch_up), "interval", seconds=SEARCH_SECONDS, id="search")
    scheduler.start()

    def wake() -> None:
        with suppress(JobLookupError):  # it was stopped just now
            scheduler.modify_job("callbacks", next_run_time=datetime.now(UTC))

    callbacks.when_enqueued(wake)

    def stop() -> None:
        callbacks.when_enqueued(None)
        # While it waits for jobs it holds a lock that `wake` needs; they may wait for the writer, which calls `wake`.
        scheduler.shutdown(wait=False)
        jobs.shutdown()
        senders.stop()
        askers.stop()

    return stop
