"""Notifications of findings: destinations, the findings that they know, and the messages to them."""

from __future__ import annotations

import json
from typing import Any

from peewee import BooleanField, Check, ForeignKeyField, IntegerField, TextField

from models.db.base import Fen, Table, Timestamp
from models.db.compiled import compiled
from models.tables.channel import Channel

KINDS = ("email", "wecom", "dingtalk", "feishu", "telegram", "webhook")
WAITING, DELIVERED, FAILED = ("pending", "delivered", "failed")


class Destination(Table):
    """Where notifications are sent. `config` is an encrypted JSON object (services/notifications/destination_kinds.py).

    `severity` is the lowest that it receives. With `digest_hour` (China time) it receives a daily digest; `digest_day`
    is the number of the last day that has one. `failures` counts failed attempts since the last success.
    """

    name = TextField(unique=True)
    kind = TextField(constraints=[Check("kind IN ('email', 'wecom', 'dingtalk', 'feishu', 'telegram', 'webhook')")])
    config = TextField()
    severity = TextField(constraints=[Check("severity IN ('urgent', 'soon')")])
    language = TextField(constraints=[Check("language IN ('en', 'zh')")])
    digest_hour = IntegerField(null=True, constraints=[Check("digest_hour BETWEEN 0 AND 23")])
    digest_day = IntegerField(default=0)
    failures = IntegerField(default=0)
    enabled = BooleanField(default=True)
    createtime = Timestamp()
    updatetime = Timestamp()


class KnownFinding(Table):
    """A finding that destinations know, or soon will.

    `severity` is the one that they know, "" before the first notification. `since` is the time since which the finding
    differs from that, null if it does not. `texts` is a JSON object: by language, the sentence that was sent.
    """

    key = TextField(unique=True)
    kind = TextField()
    severity = TextField(constraints=[Check("severity IN ('', 'urgent', 'soon')")])
    since = Timestamp(null=True)
    texts = TextField()


class Notification(Table):
    """One message to one destination. `lines` is a JSON list of objects: change, kind, severity, text.

    `event` is `findings` or `digest`. `due_at` is the time of the next attempt, null once it is delivered or has
    failed. After a failed attempt `problem` is the reason in English, and `detail` the receiver's own words.
    """

    destination = ForeignKeyField(Destination)
    event = TextField(constraints=[Check("event IN ('findings', 'digest')")])
    lines = TextField()
    state = TextField(default=WAITING, constraints=[Check("state IN ('pending', 'delivered', 'failed')")])
    attempts = IntegerField(default=0)
    due_at = Timestamp(null=True)
    problem = TextField(default="")
    detail = TextField(default="")
    createtime = Timestamp()
    updatetime = Timestamp()

    class Meta:
        constraints = [Check("(state = 'pending') = (due_at IS NOT NULL)")]

    @property
    def changes(self) -> list[dict[str, str]]:
        """The lines of the message."""
        found: list[dict[str, str]] = json.loads(self.lines)
        return found

    def claim(self, until: int) -> bool:
        """Claim it for one attempt, until `until`; False if another worker was quicker."""
        taken: bool = _claim(self.id, self.due_at, until) == 1
        if taken:
            self.due_at = until  # type: ignore[assignment]
        return taken


@compiled
def _claim(notification_id: int, due_at: int, until: int) -> Any:
    return Notification.update(due_at=until).where(Notification.id == notification_id, Notification.due_at == due_at)


class BalanceWarning(Table):
    """The balance at a channel in fen below which it is a finding."""

    channel = ForeignKeyField(Channel, unique=True)
    amount = Fen(constraints=[Check("amount > 0")])
