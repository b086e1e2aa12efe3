"""Prometheus metrics of the database, the machine and the process; platform/counted_metrics.py has the counted ones."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from peewee import DatabaseError, fn
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from models.tables.channel import Channel
from models.tables.maintenance import HOLDS
from models.tables.merchant import Merchant
from models.tables.order import STATUSES, TYPES, PaymentException
from models.tables.order_counts import OrderCount
from models.tables.outbox import DEAD, Callback
from runtime import clock
from runtime.state import Part, current
from services.backups import scheduled
from services.channels import health
from services.ledger import scheduled_checks
from services.operations import to_do
from services.platform import heartbeats, storage_health
from services.platform.counted_metrics import counters

log = logging.getLogger(__name__)

FRESH = 5.0  # seconds for which values from the database are reused
RECENT = 7 * 86_400  # seconds for which a failed callback counts
TYPE_NAMES = dict(zip(TYPES, ("buy", "sell"), strict=True))

Rows = list[tuple[tuple[str, ...], float]]  # label values and value
Family = tuple[str, str, tuple[str, ...], Rows]  # name, meaning, labels


def _one(name: str, meaning: str, value: float) -> Family:
    """Return a metric without labels."""
    return name, meaning, (), [((), value)]


def _of_database() -> Iterator[Family]:
    every_merchant = Merchant.select(Merchant.id)  # named, so that indexes by merchant are used
    kind, status = OrderCount.order_type, OrderCount.status
    totals = OrderCount.select(kind, status, fn.SUM(OrderCount.count)).where(OrderCount.merchant.in_(every_merchant))
    counts = {(one, two): count for one, two, count in totals.group_by(kind, status).tuples()}
    orders: Rows = [((TYPE_NAMES[one], two), counts.get((one, two), 0)) for one in TYPES for two in STATUSES]
    yield "orders_orders", "orders", ("type", "status"), orders

    waiting = Callback.merchant.in_(every_merchant) & Callback.due_at.is_null(False)
    count, due = Callback.select(fn.COUNT(Callback.id), fn.MIN(Callback.due_at)).where(waiting).tuples().get()
    yield _one("orders_callbacks_waiting", "callbacks to deliver", count)
    overdue = max(0, clock.exactly() - due) if due is not None else 0
    yield _one("orders_callbacks_oldest_seconds", "seconds since the oldest callback to deliver was due", overdue)
    is_recent = Callback.createtime >= clock.now() - RECENT
    dead = (Callback.merchant == Merchant.id) & (Callback.state == DEAD) & is_recent
    by_merchant = Merchant.select(Callback.select(fn.COUNT(Callback.id)).where(dead)).tuples()
    failed = sum(number for (number,) in by_merchant)
    yield _one("orders_callbacks_failed", "callbacks of the last seven days that failed after all retries", failed)

    waits, now = to_do.waiting_counts(), clock.exactly()
    queues = {
        **waits.queues,
        "stuck": waits.stuck,
        "refund_late": waits.refund_late,
        "stuck_refunds": waits.stuck_refunds,
    }
    lengths: Rows = [((name,), queue.count) for name, queue in queues.items()]
    yield "orders_to_do", "items that await an operator", ("queue",), lengths
    ages: Rows = [((name,), max(0, now - (queue.oldest or now))) for name, queue in queues.items()]
    yield "orders_to_do_oldest_seconds", "age of the oldest item that awaits an operator", ("queue",), ages
    kinds = PaymentException.select(PaymentException.kind, fn.COUNT(PaymentException.id))
    opened = kinds.where(PaymentException.resolution.is_null()).group_by(PaymentException.kind).tuples()
    yield "orders_exceptions_open", "open exceptions", ("kind",), [((name,), count) for name, count in opened]

    labels, states = ("channel", "method"), {(each.channel, each.method): each for each in health.states()}
    off: Rows = []
    failures: Rows = []
    deposits = (row for row in Channel.select().where(Channel.enabled).order_by(Channel.id) if not row.is_group)
    for channel, method in ((row.id, method) for row in deposits for method in row.pay_methods):
        state = states.get((channel, method))
        off.append(((str(channel), method), bool(state and state.is_off)))
        failures.append(((str(channel), method), state.failures if state else 0))
    yield "orders_channel_off", "1 if groups leave the channel out after failures", labels, off
    yield "orders_channel_failures", "failures among the last 20 new payments, within 15 minutes", labels, failures

    is_overdue = scheduled_checks.overdue(current().settings.verify_every)
    yield _one("orders_ledger_overdue", "1 if the last ledger integrity check is too old", is_overdue)
    newest = scheduled_checks.last()
    if newest is not None:
        faults = 0 if newest.outcome == HOLDS else sum(len(lines) for lines in newest.off.values())
        ended = newest.started + (newest.milliseconds or 0) / 1000
        meaning = "time of the last ledger integrity check"
        yield _one("orders_ledger_last_verified_timestamp_seconds", meaning, ended)
        yield _one("orders_ledger_faults", "problems that the last ledger integrity check found", faults)


def _of_machine() -> Iterator[Family]:
    chosen = current().settings
    free: Rows = []
    for name, folder in (("instance", chosen.instance), ("backups", chosen.backups)):
        if name == "instance" or chosen.backup_every:
            with suppress(OSError):
                free.append(((name,), storage_health.free(folder)))
    yield "orders_disk_free_bytes", "free space on the disk of a folder", ("folder",), free
    if chosen.backup_every:
        yield _one("orders_backup_failed", "1 if the last scheduled backup failed", scheduled.has_failed())
        if made := scheduled.newest(chosen):
            yield _one("orders_backup_age_seconds", "age of the newest scheduled backup", time.time() - made)
    jobs: Rows = [((name,), age) for name, age in heartbeats.ages().items()]
    yield "orders_job_age_seconds", "time since a job last finished", ("job_name",), jobs
    running, waiting = counters().load()
    yield _one("orders_requests_running", "requests that have a thread", running)
    yield _one("orders_requests_waiting", "requests that wait for a thread", waiting)


class _Looked(Collector):
    """Metrics that are read from the database for each scrape, without those that can't be read."""

    def __init__(self) -> None:
        self._lock, self._at = threading.Lock(), -FRESH
        self._known: list[Family] | None = None

    def describe(self) -> Iterable[Any]:
        """Describe nothing in advance, because that would query the database."""
        return []

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Return all metrics, at most FRESH seconds old."""
        with self._lock:
            if clock.steady() - self._at >= FRESH:
                try:
                    self._known = None if storage_health.write_fault() else list(_of_database())
                except (DatabaseError, sqlite3.Error, OSError) as error:
                    storage_health.report(error)
                    self._known = None
                self._at = clock.steady()
            known = self._known
        up = _one("orders_database_up", "1 if the database accepts writes", known is not None)
        for name, meaning, labels, rows in [up, *(known or []), *_of_machine()]:
            family = GaugeMetricFamily(name, meaning, labels=labels)
            for values, value in rows:
                family.add_metric(values, float(value))
            yield family
        yield CounterMetricFamily("orders_clock_set_back", "times that the clock was set back", clock.seen().set_backs)


def _registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_Looked())
    # Memory, processor time, open files and garbage collection, under the names that all exporters use.
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    return registry


_looked = Part(_registry)


def text() -> bytes:
    """Return all metrics in Prometheus's text format."""
    return generate_latest(counters().registry) + generate_latest(_looked())
