"""The table of background jobs and their intervals."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from math import ceil

from models.db import sqlite_writer
from models.db.base import database
from models.queries import search
from runtime import clock
from runtime.clock import CHINA
from runtime.settings import Settings
from services.backups import scheduled
from services.callbacks import delivery, outbox
from services.console import privacy, statistics
from services.deposits import claims
from services.jobs import sweep
from services.ledger import day_sums, earnings, scheduled_checks
from services.notifications import delivery as notifications
from services.notifications import watch
from services.platform import cpu_affinity, storage_health
from services.platform.heartbeats import LONG
from services.platform.scheduler import Job, Scheduler
from services.platform.worker_pool import WorkerPool
from services.sandbox import adjustable_clock, simulator
from services.security import replay
from services.statements import bills

SWEEP_SECONDS = 0.5


def _jobs(
    chosen: Settings, senders: WorkerPool, askers: WorkerPool, tellers: WorkerPool, stopping: threading.Event
) -> list[Job]:
    back_up = partial(cpu_affinity.do, scheduled.run, chosen, stopping)
    verify = partial(scheduled_checks.run_if_due, chosen)
    erase = partial(privacy.run, chosen.erase_after_days)
    return [
        Job("callbacks", partial(delivery.sweep, senders), SWEEP_SECONDS, instances=4),
        Job("orders", partial(sweep.sweep, askers), SWEEP_SECONDS, instances=4),
        Job("log", partial(cpu_affinity.do, sqlite_writer.move_log), 1, LONG, wanted=not database.is_shared),
        Job("core", cpu_affinity.Mover(), cpu_affinity.MOVE_SECONDS, wanted=cpu_affinity.can_move()),
        Job("purge", replay.purge, 5),
        Job("search", search.catch_up, 1, LONG),
        # After a start, the first view of the overview in China finds the sums ready.
        Job("statistics", partial(statistics.of, CHINA), 60, LONG, at_once=True),
        Job("findings", watch.evaluate, 60, LONG),
        Job("notifications", partial(notifications.sweep, tellers), 5),
        Job("statements", day_sums.catch_up, 5, LONG),
        Job("earnings", earnings.catch_up, 5, LONG),
        Job("bills", bills.run, bills.RUN_SECONDS, LONG),
        # These three check whether something is due or must be tried again.
        Job("backups", back_up, 300, LONG, at_once=True, wanted=bool(chosen.backup_every)),
        Job("verification", verify, 60, LONG, wanted=bool(chosen.verify_every)),
        Job("claims", claims.take_up, claims.TAKE_UP_SECONDS, LONG, at_once=True, wanted=bool(chosen.claim_expiry)),
        Job("erasure", erase, privacy.EVERY, LONG, wanted=bool(chosen.erase_after_days)),
        Job("planned", simulator.play_planned, SWEEP_SECONDS, wanted=chosen.demo),
    ]


def start(chosen: Settings) -> Callable[[], None]:
    """Start the jobs; return a function that stops them and waits for running ones."""
    scheduler, stopping = Scheduler(), threading.Event()
    senders = WorkerPool(chosen.callback_workers, "callback", partial(scheduler.wake, "callbacks"))
    askers = WorkerPool(chosen.channel_workers, "channel", partial(scheduler.wake, "orders"))
    tellers = WorkerPool(notifications.WORKERS, "notification")
    scheduler.start(_jobs(chosen, senders, askers, tellers, stopping))

    def clock_set(ahead: float) -> None:
        delivery.release()
        sweep.release(ceil(max(ahead, 0)))
        # The jobs wait for a time of the old clock. Last, when no sweep of APScheduler can still use that clock.
        scheduler.wake_all()

    clock_watch = clock.Watch(clock_set, storage_health.report)
    clock_watch.start()
    outbox.when_enqueued(senders.announce)
    if chosen.demo:
        adjustable_clock.use(
            adjustable_clock.Sweeps(partial(scheduler.wake, "planned", "orders", "callbacks"), (askers, senders))
        )

    def stop() -> None:
        stopping.set()
        scheduled_checks.stop()
        outbox.when_enqueued(None)
        adjustable_clock.use(None)
        clock_watch.stop()
        scheduler.stop()
        senders.stop()
        askers.stop()
        tellers.stop()

    return stop
