"""How channels respond: after too many failures, groups leave a channel out for a while, and then try it once.

A result is that of opening one payment, by channel and payment method. What payers do later is none: a payer who leaves
never turns a channel off. Times follow the clock of orders (runtime/clock.py).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from models.db.base import database
from models.db.writer import after_commit, transaction
from models.tables.channel import Channel, ChannelHealth
from runtime import clock
from runtime.clock import in_china
from services.merchants import cache
from services.platform.safe_text import printable

KEPT = 20  # results of a channel and method
WINDOW = 900  # seconds after which a result doesn't count
JUDGED, TOO_MANY = 10, 5  # of the last JUDGED results, this many failures turn the channel off
PAUSES = (60, 300, 1_800)  # seconds for which it is off: the first time, after a failed trial, and after others
TRIAL = 60  # seconds for a trial's result; then another order tries the channel
LONGEST_REASON = 200  # characters


@dataclass(frozen=True)
class State:
    """How one payment method of a channel responds.

    Of the last 20 results within 15 minutes, `count` were taken and `failures` are failures. Groups leave the channel
    out until `off_until`; None if they don't, and in the past if the next order tries it. `level` counts these pauses
    in a row. `since` is when the first failure of this outage was, None without one. `reason` is that of the last
    failure, in English; "" without one.
    """

    channel: int
    method: str
    count: int
    failures: int
    level: int
    off_until: int | None
    since: int | None
    reason: str

    @property
    def is_off(self) -> bool:
        """Return whether groups leave the channel out, except for trials."""
        return self.level > 0


def _results(row: ChannelHealth, now: int) -> list[tuple[int, str]]:
    """Return the time and reason of each result that still counts, oldest first."""
    return [(at, why) for at, why in json.loads(row.results) if now - WINDOW < at <= now]


def _is_paused(row: ChannelHealth, now: int) -> bool:
    """Return whether a channel is off and no trial is due. A pause of a clock that was set back has ended."""
    return row.level > 0 and now < (row.off_until or 0) <= now + PAUSES[-1]


def _is_tried(row: ChannelHealth, now: int) -> bool:
    return now < (row.trial_until or 0) <= now + TRIAL


def is_off(channel_id: int, method: str, now: int | None = None) -> bool:
    """Return whether groups leave a channel out for this method: during a pause, and during another order's trial.

    Reads the cache only. False if a trial is due (`begin_trial`).
    """
    row = cache.health_of(channel_id, method)
    if row is None or row.level == 0:
        return False
    now = clock.now() if now is None else now
    return _is_paused(row, now) or _is_tried(row, now)


def is_paused(channel_id: int, method: str) -> bool:
    """Return whether a channel's pause for this method is not over yet. Reads the cache only."""
    row = cache.health_of(channel_id, method)
    return row is not None and _is_paused(row, clock.now())


def record(channel_id: int, method: str, why: str) -> None:
    """Store the result of opening one payment: `why` it failed, in English; "" for a success.

    - A success costs nothing as long as no failure of the last 15 minutes is among the last 20 results.
    - 5 failures among the last 10 results turn the channel off for a minute.
    - During a pause, results of orders that name the channel directly are kept, one a second, and change nothing else:
    if every second payment fails, a success is no reason to send it all orders again.
    - After a pause, the next result decides, whichever order it is of. A success ends the outage, and a failure starts
    a longer pause.

    In the caller's transaction, it should come last, and only once: it locks the row, and the setup version, that all
    orders of the channel share.
    """
    now, known = clock.now(), cache.health_of(channel_id, method)
    if not why and (known is None or (known.level == 0 and not any(reason for _, reason in _results(known, now)))):
        return
    why = printable(why)[:LONGEST_REASON]
    if known is not None and _is_paused(known, now) and json.loads(known.results)[-1:] == [[now, why]]:
        return
    _store(channel_id, method, why, now)


@transaction
def _store(channel_id: int, method: str, why: str, now: int) -> None:
    pair = (ChannelHealth.channel == channel_id, ChannelHealth.method == method)
    locked = database.for_update(ChannelHealth.select().where(*pair))
    row = locked.first()
    if row is None:
        new = ChannelHealth.insert(channel=channel_id, method=method, updatetime=now)
        new.on_conflict_ignore().execute()
        row = locked.clone().get()
    results = [*_results(row, now), (now, why)][-KEPT:]
    changed: dict[str, Any] = {}
    if row.level and not _is_paused(row, now):
        if why:
            level = min(row.level + 1, len(PAUSES))
            changed = {"level": level, "off_until": now + PAUSES[level - 1], "trial_until": None}
        else:
            results = results[-1:]
            changed = {"level": 0, "off_until": None, "trial_until": None, "since": None}
    elif not row.level and sum(bool(reason) for _, reason in results[-JUDGED:]) >= TOO_MANY:
        since = min(at for at, reason in results if reason)
        changed = {"level": 1, "off_until": now + PAUSES[0], "trial_until": None, "since": since}
    if changed:
        after_commit(cache.forget)
    ChannelHealth.update(results=json.dumps(results), updatetime=now, **changed).where(
        ChannelHealth.id == row.id
    ).execute()


def begin_trial(channel_id: int, method: str) -> bool:
    """Let an order try a channel after a pause, for 60 seconds; False if another order tries it already.

    True without access to the database if no trial is due.
    """
    now, row = clock.now(), cache.health_of(channel_id, method)
    if row is None or row.level == 0 or _is_paused(row, now):
        return True
    if _is_tried(row, now):
        return False
    return _claim(channel_id, method, now)


@transaction
def _claim(channel_id: int, method: str, now: int) -> bool:
    table = ChannelHealth
    pair = (table.channel == channel_id, table.method == method, table.level > 0)
    due = (table.off_until <= now) | (table.off_until > now + PAUSES[-1])
    free = table.trial_until.is_null() | (table.trial_until <= now) | (table.trial_until > now + TRIAL)
    if table.update(trial_until=now + TRIAL, updatetime=now).where(*pair, due, free).execute():
        return True
    return not table.select().where(*pair).exists()  # the outage ended a moment ago


@transaction
def try_again(channel: Channel) -> None:
    """Make a trial due now, after a change of a channel's settings or a successful connection test."""
    now, table = clock.now(), ChannelHealth
    off = (table.channel == channel, table.level > 0)
    table.update(off_until=now, trial_until=None, updatetime=now).where(*off).execute()


def states(channel_id: int | None = None) -> list[State]:
    """Return how channels with recent failures, or in an outage, respond, by channel and method.

    Args:
        channel_id: return this channel only; None for all enabled ones.
    """
    now, found = clock.now(), []
    wanted = Channel.enabled if channel_id is None else Channel.id == channel_id
    rows = ChannelHealth.select(ChannelHealth).join(Channel).where(wanted)
    for row in rows.order_by(ChannelHealth.channel, ChannelHealth.method):
        results = _results(row, now)
        reasons = [reason for _, reason in results if reason]
        if not (row.level or reasons):
            continue
        last = reasons or [why for _, why in json.loads(row.results) if why]
        found.append(
            State(
                channel=row.channel_id,
                method=row.method,
                count=len(results),
                failures=len(reasons),
                level=row.level,
                off_until=row.off_until,
                since=row.since,
                reason=last[-1] if last else "",
            )
        )
    return found


def shown(channel_id: int) -> str:
    """Return a channel's outages in English with times in China; "" without one.

    For example: "wxpay off until 12:05, 7 of the last 20 failed".
    """
    now, texts = clock.now(), []
    for each in states(channel_id):
        if each.is_off:
            until = each.off_until or 0
            pause = f"off until {in_china(until):%H:%M}" if until > now else "off until the next order succeeds"
            failed = f", {each.failures} of the last {each.count} failed" if each.count else ""
            texts.append(f"{each.method} {pause}{failed}")
    return "; ".join(texts)
