"""The audit log: who did what in the console. It is written before the thing is done, so nothing is done unwritten."""

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
        """As it stands in an order's history and in the ledger."""
        return f"operator {self.name}"


# The actor of a command.
HERE = Actor("command line")


def changes(
    before: Mapping[str, str],
    after: Mapping[str, str],
    masks: Mapping[str, Callable[[str], str]] = MappingProxyType({}),
) -> str:
    """The changes by a form, for an entry's detail: `name: Shop -> New shop; enabled: yes -> no`.

    Args:
        masks: by name, what makes of a value what may be read by everybody.
    """

    def told(name: str, value: str) -> str:
        return masks.get(name, str)(value) or "-"

    return "; ".join(
        f"{name}: {told(name, before.get(name, ''))} -> {told(name, value)}"
        for name, value in after.items()
        if before.get(name, "") != value
    )


@transaction
def record(actor: Actor, action: str, about: str = "", key: str = "", detail: str = "") -> None:
    """Write one entry; `about` and `key` say what it is about, such as `order` and its number."""
    if about in ("merchant", "operator"):
        key = masking.name(key)  # it is recorded before it is refused
    AuditEntry.add(
        **{"who": actor.name, "action": action, "about": about, "key": key},
        **{"detail": detail, "address": actor.address, "at": business_clock.now()},
    )


def act(actor: Actor, action: str, about: str, key: str, do: Callable[[], T], detail: str = "") -> T:
    """Write down what is about to be done, and do it; where it could not be done, a second entry says so.

    It runs outside any transaction: `do` may ask a channel.

    Raises:
        OperatorError, or whatever `do` raises.
    """
    record(actor, action, about, key, detail)
    try:
        return do()
    except Exception as error:
        why = str(error) if isinstance(error, OperatorError) else type(error).__name__
        record(actor, action, about, key, f"not done: {why}")
        raise
