"""Edit conflicts: a form contains a hash of the row that it showed, and is refused if the row has changed since."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from models.db.base import database
from models.tables.channel import Channel
from models.tables.merchant import Merchant
from services.errors import N_, OperatorError
from services.merchants import links

CONFLICT = N_("Someone else changed this in the meantime. Reload the page and try again.")


def version_of(row: Any) -> str:
    """Return a hash that changes with any value of a row, or with the links of a merchant or channel."""
    linked: list[int] = []
    if isinstance(row, Merchant):
        linked = links.channels_of(row)
    elif isinstance(row, Channel):
        linked = links.merchants_of(row)
    return sha256(repr((sorted(row.__data__.items()), linked)).encode()).hexdigest()[:16]


def check_version(row: Any, mark: str | None) -> Any:
    """Return the row as it is now, locked until the caller's transaction ends.

    Args:
        mark: `version_of` the row that was shown; None to skip the check.

    Raises:
        OperatorError: the row or its links have changed since.
    """
    table = type(row)
    now = database.for_update(table.select().where(table.id == row.id)).get()
    if mark is not None and mark != version_of(now):
        raise OperatorError(CONFLICT)
    return now
