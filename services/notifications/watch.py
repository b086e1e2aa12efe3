"""Compare the findings with those that destinations know, and write the messages that are due.

A finding is sent when it is new, when it becomes urgent, and when it is resolved. The known findings are in the
database, and each change of one is a conditional update: of several hosts, one writes the messages.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from models.db.writer import transaction
from models.tables.notification import Destination, KnownFinding, Notification
from runtime.clock import CHINA
from services.notifications.destinations import china_day
from services.notifications.messages import DIGEST, EASED, FINDINGS, NEW, OPEN, RESOLVED, WORSE
from services.operations import alerts
from services.operations.alert_texts import page, sentence
from services.operations.alerts import SOON, URGENT
from services.platform.language import language_of

GONE = ""
RANKS = {GONE: 0, SOON: 1, URGENT: 2}
# Seconds that a finding must last until it is sent, so that short ones cause no messages.
PATIENCE = {URGENT: 0, SOON: 120}
CALM = 300  # seconds that it must stay away, or less urgent, until that is sent
KEPT = 200  # messages of one destination
LANGUAGES = ("en", "zh")
IDENTITY = ("channel", "order_type", "destination")  # facts that distinguish findings of one kind

Texts = dict[str, str]


@dataclass(frozen=True)
class Seen:
    """A present finding, with its sentence by language, and its page in the console."""

    key: str
    kind: str
    severity: str
    texts: Texts
    page: str


@dataclass(frozen=True)
class Change:
    """A finding whose severity changed from `before` to `after`; GONE is none."""

    kind: str
    before: str
    after: str
    texts: Texts
    page: str = ""


def evaluate() -> None:
    """Write the messages that are due now. Without an enabled destination, forget the known findings."""
    if not Destination.select().where(Destination.enabled).exists():
        if KnownFinding.select().exists():
            _forget()
        return
    _tell(_seen(), time.time())


def _seen() -> dict[str, Seen]:
    """Return the present findings by key."""
    found = {}
    for each in alerts.now(CHINA):
        key = ":".join([each.kind, *(str(each.facts[name]) for name in IDENTITY if name in each.facts)])
        texts = {name: " ".join(sentence(each, language_of(name)).split()) for name in LANGUAGES}
        found[key] = Seen(key, each.kind, each.severity, texts, page(each))
    return found


@transaction
def _forget() -> None:
    KnownFinding.delete().execute()


@transaction
def _tell(seen: dict[str, Seen], now: float) -> None:
    """Store what is present, and write the messages of its changes and the digests, by the key of a finding."""
    known = {row.key: row for row in KnownFinding.select()}
    # All hosts change rows in the same order, so that no two wait for each other.
    keys = sorted(seen.keys() | known.keys())
    changes = [each for key in keys if (each := _step(known.get(key), seen.get(key), int(now)))]
    for row in Destination.select().where(Destination.enabled).order_by(Destination.id):
        if lines := [line for each in changes if (line := _line(each, row))]:
            _write(row, FINDINGS, lines, int(now))
        if _takes_digest(row, now):
            open_lines = [
                {
                    "change": OPEN,
                    "kind": each.kind,
                    "severity": each.severity,
                    "text": each.texts[row.language],
                    "page": each.page,
                }
                for each in seen.values()
                if RANKS[each.severity] >= RANKS[row.severity]
            ]
            _write(row, DIGEST, open_lines, int(now))


def _step(row: KnownFinding | None, seen: Seen | None, now: int) -> Change | None:
    """Store the present state of a finding; return the change if it must be sent."""
    told, severity = row.severity if row else GONE, seen.severity if seen else GONE
    if told == severity:
        if row and row.since is not None:  # it is again as destinations know it
            _set(row, since=None) if seen else _delete(row)
        return None
    since = now if row is None or row.since is None else row.since
    patience = PATIENCE[severity] if RANKS[severity] > RANKS[told] else CALM
    if 0 <= now - since < patience:
        if seen and row is None:
            _insert(seen, GONE, since)
        elif row and row.since is None:
            _set(row, since=since)
        return None
    if seen is None:
        return Change(row.kind, told, GONE, json.loads(row.texts)) if row and _delete(row) else None
    texts = json.dumps(seen.texts, ensure_ascii=False)
    first = _set(row, severity=severity, since=None, texts=texts) if row else _insert(seen, severity, None)
    return Change(seen.kind, told, severity, seen.texts, seen.page) if first else None


def _insert(seen: Seen, severity: str, since: int | None) -> bool:
    """Insert a finding; False if another host was quicker."""
    texts = json.dumps(seen.texts, ensure_ascii=False)
    row = KnownFinding.insert(key=seen.key, kind=seen.kind, severity=severity, since=since, texts=texts)
    return bool(row.on_conflict_ignore().as_rowcount().execute())


def _unchanged(row: KnownFinding) -> Any:
    since = KnownFinding.since.is_null() if row.since is None else KnownFinding.since == row.since
    return (KnownFinding.id == row.id) & (KnownFinding.severity == row.severity) & since


def _set(row: KnownFinding, **facts: Any) -> bool:
    """Change a finding; False if another host was quicker."""
    return bool(KnownFinding.update(facts).where(_unchanged(row)).execute())


def _delete(row: KnownFinding) -> bool:
    """Delete a finding; False if another host was quicker."""
    return bool(KnownFinding.delete().where(_unchanged(row)).execute())


def _line(change: Change, row: Destination) -> dict[str, str] | None:
    """Return what a change means for a destination, None if nothing."""
    before, after, least = RANKS[change.before], RANKS[change.after], RANKS[row.severity]
    if before < least <= after:
        word = NEW
    elif after < least <= before:
        word = EASED if after else RESOLVED
    elif least <= before < after:
        word = WORSE
    else:
        return None
    severity, text = change.after or change.before, change.texts[row.language]
    return {"change": word, "kind": change.kind, "severity": severity, "text": text, "page": change.page}


def _takes_digest(row: Destination, now: float) -> bool:
    """Return whether the day's digest is due and no other host has written it."""
    day, hour = china_day(now)
    # A host whose clock is ahead may have written tomorrow's. A later day is from before the clock was set back.
    if row.digest_hour is None or hour < row.digest_hour or day <= row.digest_day <= day + 1:
        return False
    same = (Destination.id == row.id) & (Destination.digest_day == row.digest_day)
    return bool(Destination.update(digest_day=day).where(same).execute())


def _write(row: Destination, event: str, lines: list[dict[str, str]], now: int) -> None:
    text = json.dumps(lines, ensure_ascii=False)
    times = {"due_at": now, "createtime": now, "updatetime": now}
    Notification.add(
        destination=row.id, event=event, lines=text, state="pending", attempts=0, problem="", detail="", **times
    )
    own = Notification.destination == row.id
    oldest = Notification.select(Notification.id).where(own).order_by(Notification.id.desc()).offset(KEPT).limit(1)
    if too_old := oldest.scalar():
        Notification.delete().where(own, Notification.id <= too_old).execute()
