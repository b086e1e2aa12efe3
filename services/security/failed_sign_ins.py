"""Failed sign-ins of the console, counted per address and hour, so that a flood of them stays small and visible."""

from __future__ import annotations

import time

from peewee import DatabaseError

from models.db.writer import transaction
from models.tables.operator import FailedSignIn
from services.platform import storage_health

HOUR = 3_600
KEPT_SECONDS = 30 * 86_400
MOST_ADDRESSES = 200  # with a row of their own in an hour; the others share one
OTHERS = ""  # the address of that row
LOCAL = "127.0.0.1"  # this machine


def count(address: str, *, code: bool = False) -> None:
    """Count a failed sign-in: an incorrect password, or an incorrect `code` after a correct password.

    Args:
        address: the IP address, or the network of an IPv6 address.

    A write error is logged only: the sign-in is refused in any case.
    """
    try:
        _count(address, "codes" if code else "passwords", int(time.time()) // HOUR * HOUR)
    except DatabaseError as error:
        if not storage_health.report(error):
            raise


@transaction
def _count(address: str, column: str, hour: int) -> None:
    if _add(address, column, hour):
        return
    FailedSignIn.delete().where(FailedSignIn.hour <= hour - KEPT_SECONDS).execute()
    of_hour = FailedSignIn.select().where(FailedSignIn.hour == hour).count()
    if of_hour >= MOST_ADDRESSES:
        address = OTHERS
        if _add(address, column, hour):
            return
    # Another process on the same database may have inserted it meanwhile.
    changed = {getattr(FailedSignIn, column): getattr(FailedSignIn, column) + 1}
    FailedSignIn.insert(**{"address": address, "hour": hour, "passwords": 0, "codes": 0, column: 1}).on_conflict(
        conflict_target=[FailedSignIn.hour, FailedSignIn.address], update=changed
    ).execute()


def _add(address: str, column: str, hour: int) -> bool:
    """Add one to the row of this address and hour; return False if there is none."""
    row = (FailedSignIn.hour == hour) & (FailedSignIn.address == address)
    return bool(FailedSignIn.update(**{column: getattr(FailedSignIn, column) + 1}).where(row).execute())
