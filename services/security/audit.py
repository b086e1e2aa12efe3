"""The audit log of the console. An entry is written before the action, so that no action is unrecorded."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

from models.db.writer import transaction
from models.tables.operator import AuditEntry
from runtime import clock
from services.errors import OperatorError
from services.security import masking

T = TypeVar("T")

NOT_DONE = "not done: "  # begins the detail of an entry about an action that failed


@dataclass(frozen=True)
class Actor:
    """A console user and their IP address."""

    name: str
    address: str = ""

    @property
    def who(self) -> str:
        """The actor's name in an order's history and in the ledger."""
        return f"operator {self.name}"


# The actor of a command.
HERE = Actor("command line")


@dataclass(frozen=True)
class Changes:
    """The changes of a form: name, old and new value of each changed field; an empty value is "-". False if none.

    As text: `name: Shop -> New shop; enabled: yes -> no; NOTE`.
    """

    fields: tuple[tuple[str, str, str], ...]
    note: str = ""

    def __bool__(self) -> bool:
        return bool(self.fields)

    def __str__(self) -> str:
        fields = [f"{name}: {old} -> {new}" for name, old, new in self.fields]
        return "; ".join([*fields, self.note] if self.note else fields)


def changes(
    before: Mapping[str, str],
    after: Mapping[str, str],
    masks: Mapping[str, Callable[[str], str]] = MappingProxyType({}),
) -> Changes:
    """Return a form's changes for an entry's detail.

    Args:
        masks: by name, the function that masks a value.
    """

    def shown(name: str, value: str) -> str:
        return masks.get(name, str)(value) or "-"

    return Changes(
        tuple(
            (name, shown(name, before.get(name, "")), shown(name, value))
            for name, value in after.items()
            if before.get(name, "") != value
        )
    )


@transaction
def record(actor: Actor, action: str, about: str = "", key: str = "", detail: str | Changes = "") -> None:
    """Write one entry; `about` and `key` identify the object, such as `order` and its number."""
    if about in ("merchant", "operator"):
        key = masking.name(key)  # a mistyped name may be a password, and it is recorded before it is rejected
    AuditEntry.add(
        who=actor.name,
        action=action,
        about=about,
        key=key,
        detail=str(detail),
        address=actor.address,
        at=clock.now(),
        changed=json.dumps(detail.fields) if isinstance(detail, Changes) and detail else None,
    )


def record_failure(actor: Actor, action: str, about: str, key: str, error: Exception) -> None:
    """Record that an action failed, with the reason of an OperatorError, otherwise with the error's type."""
    why = str(error) if isinstance(error, OperatorError) else type(error).__name__
    record(actor, action, about, key, NOT_DONE + why)


def act(actor: Actor, action: str, about: str, key: str, do: Callable[[], T], detail: str | Changes = "") -> T:
    """Record an action and perform it; if it fails, record that in a second entry.

    It runs outside any transaction, because `do` may call a channel.

    Raises:
        OperatorError, or any error of `do`.
    """
    record(actor, action, about, key, detail)
    try:
        return do()
    except Exception as error:
        record_failure(actor, action, about, key, error)
        raise
