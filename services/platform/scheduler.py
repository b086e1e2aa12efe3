"""Background jobs at intervals: APScheduler with a heartbeat for each job, which continue after database errors.

APScheduler times jobs by the system clock. `wake_all` after a clock change makes them run on time again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger

from runtime.state import current
from services.platform import heartbeats, storage_health


@dataclass(frozen=True)
class Job:
    """A job and its interval.

    Args:
        seconds: the interval between runs.
        limit: seconds without a completed run after which the job counts as late.
        at_once: whether the first run is at the start, and not after the first interval.
        instances: the maximum of simultaneous runs. APScheduler skips one more, so a job that is woken needs several:
        one that runs, one that waits for it, and those that are just ending.
        wanted: whether the settings enable the job.
    """

    name: str
    run: Callable[[], Any]
    seconds: float
    limit: int = heartbeats.SHORT
    at_once: bool = False
    instances: int = 1
    wanted: bool = True


class _Every(BaseTrigger):
    """Fires at an interval from the present time.

    APScheduler's own interval trigger counts from the last run. After a clock change of a year, it would list 63
    million missed runs of a job that runs twice a second, while `wake` waits.
    """

    def __init__(self, seconds: float):
        self._interval = timedelta(seconds=seconds)

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime:
        """Return the time of the next run, whenever the previous one was."""
        return now + self._interval


class Scheduler:
    """Runs jobs in threads of its own, at their intervals and when they are woken."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor()
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            executors={"default": self._threads},
            job_defaults={"coalesce": True, "misfire_grace_time": None},
        )

    def start(self, jobs: Iterable[Job]) -> None:
        """Start the enabled jobs."""
        for job in jobs:
            if job.wanted:
                run = current().bound(storage_health.surviving(heartbeats.beating(job.name, job.run, job.limit)))
                options: dict[str, Any] = {"id": job.name, "name": job.name, "max_instances": job.instances}
                if job.at_once:
                    options["next_run_time"] = datetime.now(UTC)
                self._scheduler.add_job(run, _Every(job.seconds), **options)
        self._scheduler.start()

    def wake(self, *names: str) -> None:
        """Run these jobs now."""
        for name in names:
            with suppress(JobLookupError):  # it was stopped just now
                self._scheduler.modify_job(name, next_run_time=datetime.now(UTC))

    def wake_all(self) -> None:
        """Run all jobs now."""
        self.wake(*(job.id for job in self._scheduler.get_jobs()))

    def stop(self) -> None:
        """Start no more runs, and wait for running ones."""
        heartbeats.forget()
        # Waiting here would hold a lock that `wake` needs, while a run may wait for the writer, which calls `wake`.
        self._scheduler.shutdown(wait=False)
        self._threads.shutdown()
