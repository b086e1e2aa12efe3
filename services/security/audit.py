"""The audit log of the console. An entry is written before the action, so that no action is unrecorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

import business_clock
from models.db.writer import transaction
from models.tables.operator import AuditEntry
from services.errors import OperatorError
from services.security import masking

T = TypeVar("T")


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


def changes(
    before: Mapping[str, str],
    after: Mapping[str, str],
    masks: Mapping[str, Callable[[str], str]] = MappingProxyType({}),
) -> str:
    """Return a form's changes for an entry's detail: `name: Shop -> New shop; enabled: yes -> no`.

    Args:
        masks: by name, the function that masks a value.
    """

    def shown(name: str, value: str) -> str:
        return masks.get(name, str)(value) or "-"

    return "; ".join(
        f"{name}: {shown(name, before.get(name, ''))} -> {shown(name, value)}"
        for name, value in after.items()
        if before.get(name, "") != value
    )


@transaction
def record(actor: Actor, action: str, about: str = "", key: str = "", detail: str = "") -> None:
    """Write one entry; `about` and `key` identify the object, such as `order` and its number."""
    if about in ("merchant", "operator"):
        key = masking.name(key)  # a mistyped name may be a password, and it is recorded before it is rejected
    AuditEntry.add(
        **{"who": actor.name, "action": action, "about": about, "key": key},
        **{"detail": detail, "address": actor.address, "at": business_clock.now()},
    )


def act(actor: Actor, action: str, about: str, key: str, do: Callable[[], T], detail: str = "") -> T:
    """Record an action and perform it; if it fails, record that in a second entry.

    It runs outside any transaction, because `do` may call a channel.

    Raises:
        OperatorError, or any error of `do`.
    """
    record(actor, action, about, key, detail)
    try:
        return do()
    except Exception as error:
        why = str(error) if isinstance(error, OperatorError) else type(error).__name__
        record(actor, action, about, key, f"not done: {why}")
        raise
