"""Destinations of notifications: add, change, delete, test; and the balances below which channels are findings."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from marshmallow import ValidationError
from peewee import fn

from models.db.base import LARGEST_ID, database
from models.db.writer import transaction
from models.tables.channel import Channel
from models.tables.notification import FAILED, WAITING, BalanceWarning, Destination, Notification
from runtime.clock import in_china
from services.callbacks import outbox
from services.errors import N_, OperatorError
from services.notifications import sending
from services.notifications.destination_kinds import SCHEMAS, addresses
from services.notifications.messages import TEST, Message
from services.notifications.sending import Outcome
from services.security import vault

MOST = 50  # destinations
STOPPED = N_("The destination was disabled or changed.")


def every() -> list[Destination]:
    """Return all destinations by name."""
    return list(Destination.select().order_by(Destination.name))


def find(destination_id: int) -> Destination:
    """Return the destination with this id. Raises OperatorError."""
    row = Destination.get_or_none(Destination.id == destination_id) if destination_id <= LARGEST_ID else None
    if row is None:
        raise OperatorError(N_("no destination %(name)s"), name=str(destination_id))
    return row


def named(name: str) -> Destination:
    """Return the destination with this name. Raises OperatorError."""
    row = Destination.get_or_none(Destination.name == name)
    if row is None:
        raise OperatorError(f"no destination {name!r}: `tillbook notification list` shows all of them")
    return row


def config_of(row: Destination) -> dict[str, Any]:
    """Return a destination's config, decrypted."""
    return dict(json.loads(vault.decrypt(row.config)))


def target(row: Destination) -> str:
    """Return where its messages go, without secrets: recipients, the chat, or the host of an address."""
    config = config_of(row)
    if row.kind == "email":
        return ", ".join(addresses(config["recipients"]))
    return str(config["chat_id"]) if row.kind == "telegram" else urlsplit(config["url"]).netloc.rpartition("@")[2]


def wrong_config(kind: str, config: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the errors of a config: `{"config.FIELD": [messages]}`."""
    found = SCHEMAS[kind]().validate(config)
    return {f"config.{name}": [str(text) for text in texts] for name, texts in found.items()}


def _encrypted(kind: str, config: Mapping[str, Any]) -> str:
    try:
        loaded = SCHEMAS[kind]().load(config)
    except ValidationError:
        raise OperatorError(N_("The settings of the destination are not valid."), wrong_config(kind, config)) from None
    return vault.encrypt(json.dumps(loaded, ensure_ascii=False))


def china_day(now: float) -> tuple[int, int]:
    """Return the number of the day in China, and the hour."""
    there = in_china(now)
    return there.toordinal(), there.hour


def _last_digest(hour: int | None) -> int:
    """Return the day whose digest counts as sent, so that the first one is sent when `hour` comes next."""
    today, now_hour = china_day(time.time())
    return today if hour is None or now_hour >= hour else today - 1


def _check_name(name: str, besides: int = 0) -> None:
    database.advisory_lock("names of destinations")
    if Destination.select().where(Destination.name == name, Destination.id != besides).exists():
        raise OperatorError(N_("A destination with this name already exists. Choose another name."), "name")


@transaction
def add(kind: str, config: Mapping[str, Any], *, name: str, **facts: Any) -> Destination:
    """Add a destination.

    Args:
        config: validated by the schema of its kind.
        facts: severity, language, digest_hour (None for no digest), enabled.

    Raises:
        OperatorError: invalid value; it names the field.
    """
    _check_name(name)
    if Destination.select().count() >= MOST:
        raise OperatorError(N_("There are too many destinations. Delete one first."))
    now = int(time.time())
    day = _last_digest(facts["digest_hour"])
    times = {"digest_day": day, "createtime": now, "updatetime": now}
    return Destination.create(kind=kind, config=_encrypted(kind, config), name=name, **times, **facts)


@transaction
def change(row: Destination, config: Mapping[str, Any], *, name: str, **facts: Any) -> None:
    """Change a destination; `config` is merged into the present one. Waiting messages are not sent any more.

    Raises:
        OperatorError: invalid value; it names the field.
    """
    row = database.for_update(Destination.select().where(Destination.id == row.id)).first()
    if row is None:
        raise OperatorError(N_("This destination was deleted."))
    _check_name(name, row.id)
    now = int(time.time())
    if facts["digest_hour"] != row.digest_hour:
        facts["digest_day"] = _last_digest(facts["digest_hour"])
    if config:
        facts["config"] = _encrypted(row.kind, {**config_of(row), **config})
    if config or not facts["enabled"]:
        stopped = {"state": FAILED, "due_at": None, "problem": STOPPED, "detail": "", "updatetime": now}
        Notification.update(stopped).where(Notification.destination == row, Notification.state == WAITING).execute()
        facts["failures"] = 0
    Destination.update(name=name, updatetime=now, **facts).where(Destination.id == row.id).execute()


@transaction
def delete(row: Destination) -> None:
    """Delete a destination and its messages."""
    Notification.delete().where(Notification.destination == row).execute()
    Destination.delete().where(Destination.id == row.id).execute()


def test(row: Destination) -> Outcome:
    """Send a test message now, in at most ten seconds; return the result. Nothing is stored, except that it works."""
    message = Message(outbox.new_webhook_id(), TEST, [], row.language, int(time.time()))
    outcome = sending.send(row.kind, config_of(row), message)
    if not outcome.problem:
        _works(row)
    return outcome


@transaction
def _works(row: Destination) -> None:
    Destination.update(failures=0).where(Destination.id == row.id).execute()


def recent(limit: int, row: Destination | None = None) -> list[Notification]:
    """Return the newest messages of all destinations, or of one, newest first."""
    rows = Notification.select(Notification, Destination).join(Destination)
    if row is not None:
        rows = rows.where(Notification.destination == row)
    return list(rows.order_by(Notification.id.desc()).limit(limit))


def newest() -> dict[int, Notification]:
    """Return the newest message of each destination, by its id."""
    ids = Notification.select(fn.MAX(Notification.id)).group_by(Notification.destination)
    return {row.destination_id: row for row in Notification.select().where(Notification.id.in_(ids))}


def balance_limits() -> dict[int, int]:
    """Return the balances in fen below which a channel is a finding, by channel id."""
    return dict(BalanceWarning.select(BalanceWarning.channel, BalanceWarning.amount).tuples())


@transaction
def set_balance_limits(limits: Mapping[int, int]) -> None:
    """Set the balances in fen below which channels are findings, by channel id; 0 for none."""
    database.advisory_lock("balance warnings")
    BalanceWarning.delete().where(BalanceWarning.channel.in_(list(limits))).execute()
    known = {row.id for row in Channel.select(Channel.id).where(Channel.id.in_(list(limits)))}
    for channel, amount in sorted(limits.items()):
        if amount and channel in known:
            BalanceWarning.add(channel=channel, amount=amount)
