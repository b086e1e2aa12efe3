"""Delivery of notifications: select due rows, claim them, send each, record the result."""

from __future__ import annotations

import hmac
import logging
import time
from typing import Any

from models.db.writer import transaction
from models.tables.notification import DELIVERED, FAILED, WAITING, Destination, Notification
from models.tables.outbox import webhook_key
from services.notifications import destinations, sending
from services.notifications.messages import Message
from services.notifications.sending import Outcome
from services.platform.worker_pool import WorkerPool, claim

log = logging.getLogger(__name__)

RETRY_SECONDS = (60, 300, 1_800, 7_200)  # seconds after the first to the fourth failed attempt; the fifth is the last
LEASE = 30  # seconds that one attempt may take; then its claim expires, and the message is due again
WORKERS = 8


def sweep(pool: WorkerPool) -> int:
    """Start an attempt for each due message that the pool has a worker for; return the number of attempts."""
    with pool.sweeping:
        now = int(time.time())
        # A time that no retry has is from before the clock was set back.
        waits = Notification.due_at.between(now + 1, now + RETRY_SECONDS[-1])
        is_due = (Notification.state == WAITING) & ~waits & Destination.enabled

        def due_of(destination_id: int, limit: int) -> list[Notification]:
            rows = Notification.select(Notification, Destination).join(Destination)
            rows = rows.where(is_due, Notification.destination == destination_id)
            return list(rows.order_by(Notification.id).limit(limit))

        rows = Notification.select(Notification.destination).join(Destination).where(is_due).distinct()
        claimed = claim(pool.choose([row.destination_id for row in rows], due_of), now + LEASE)
        for row in claimed:
            pool.submit(row.destination_id, deliver, row)
    return len(claimed)


def message_of(row: Notification) -> Message:
    """Return a stored message; its id is the same on every attempt."""
    name = f"notification\n{row.id}\n{row.createtime}"
    number = hmac.digest(webhook_key(), name.encode(), "sha256").hex()[:32]
    return Message(f"msg_{number}", row.event, row.changes, row.destination.language, int(time.time()))


def deliver(row: Notification) -> bool:
    """Send a claimed message once and record the result; return whether it was delivered."""
    outcome = sending.send(row.destination.kind, destinations.config_of(row.destination), message_of(row))
    _record(row, outcome)
    return not outcome.problem


@transaction
def _record(row: Notification, outcome: Outcome) -> None:
    """Store the result, unless the claim expired or the destination changed meanwhile."""
    now, attempts = int(time.time()), row.attempts + 1
    facts: dict[str, Any] = {"attempts": attempts, "updatetime": now, "due_at": None, "state": DELIVERED}
    if outcome.problem and attempts > len(RETRY_SECONDS):
        facts["state"] = FAILED
        log.warning("Notification %s to destination %s failed: %s", row.id, row.destination_id, outcome.problem)
    elif outcome.problem:
        facts |= {"state": WAITING, "due_at": now + RETRY_SECONDS[attempts - 1]}
    same = (Notification.id == row.id) & (Notification.due_at == row.due_at) & (Notification.attempts == row.attempts)
    changed = Notification.update(problem=outcome.problem, detail=outcome.detail, **facts).where(same).execute()
    if changed:
        failures = Destination.failures + 1 if outcome.problem else 0
        Destination.update(failures=failures).where(Destination.id == row.destination_id).execute()
