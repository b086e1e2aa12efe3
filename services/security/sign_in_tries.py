"""Sign-ins to the console: a limit of tries for passwords and codes, and counts of those that failed.

The limit is for those who have signed in or know the password, for all services together. Failures are counted per
address and hour, so that a flood of them stays small and visible.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from peewee import DatabaseError

from models.db.writer import transaction
from models.tables.operator import FailedSignIn, SignInTry
from services.errors import ApiError, Code
from services.platform import rate_limits, storage_health

HOUR = 3_600
MOST = 10  # failed tries in an hour
KEPT_SECONDS = 30 * 86_400
MOST_ADDRESSES = 200  # with a row of their own in an hour; the others share one
OTHERS = ""  # the address of that row
LOCAL = "127.0.0.1"  # this machine


def count(who: str) -> Callable[[], None]:
    """Count a try before it is made, so that simultaneous tries cannot exceed the limit.

    Args:
        who: the session, device or account that it counts for.

    Returns:
        a function that cancels the count.

    Raises:
        ApiError: TOO_MANY_REQUESTS.
    """
    now = int(time.time())
    hour = now // HOUR * HOUR
    if seconds := _count(who, hour, now - hour):
        raise ApiError(Code.TOO_MANY_REQUESTS, retry_after=seconds)
    return partial(_take_back, who, hour)


@transaction
def _count(who: str, hour: int, gone: int) -> int:
    """Count a try, `gone` seconds after the hour began. Return 0, or the seconds until one is allowed."""
    SignInTry.delete().where(SignInTry.hour < hour - HOUR).execute()
    SignInTry.insert(who=who, hour=hour, tries=0).on_conflict_ignore().execute()
    tries = dict(SignInTry.select(SignInTry.hour, SignInTry.tries).where(SignInTry.who == who).tuples())
    before = tries.get(hour - HOUR, 0)
    # Those of the hour before count by the share of it that is within the last 3,600 seconds.
    allowed = (MOST * HOUR - before * (HOUR - gone)) // HOUR
    this = (SignInTry.hour == hour) & (SignInTry.who == who)
    if SignInTry.update(tries=SignInTry.tries + 1).where(this, SignInTry.tries < allowed).execute():
        return 0
    return rate_limits.wait(MOST, HOUR, tries.get(hour, 0), before, gone / HOUR)


@transaction
def _take_back(who: str, hour: int) -> None:
    this = (SignInTry.hour == hour) & (SignInTry.who == who)
    SignInTry.update(tries=SignInTry.tries - 1).where(this, SignInTry.tries > 0).execute()


def count_failed(address: str, *, code: bool = False) -> None:
    """Count a failed sign-in: an incorrect password, or an incorrect `code` after a correct password.

    Args:
        address: the IP address, or the network of an IPv6 address.

    A write error is logged only: the sign-in is refused in any case.
    """
    try:
        _count_failed(address, "codes" if code else "passwords", int(time.time()) // HOUR * HOUR)
    except DatabaseError as error:
        if not storage_health.report(error):
            raise


@transaction
def _count_failed(address: str, column: str, hour: int) -> None:
    changed = {getattr(FailedSignIn, column): getattr(FailedSignIn, column) + 1}
    of_hour = FailedSignIn.select().where(FailedSignIn.hour == hour)
    if not of_hour.where(FailedSignIn.address == address).exists():
        FailedSignIn.delete().where(FailedSignIn.hour <= hour - KEPT_SECONDS).execute()
        if of_hour.count() >= MOST_ADDRESSES:
            address = OTHERS
    # Another process on the same database may have inserted it meanwhile.
    row = {"address": address, "hour": hour, "passwords": 0, "codes": 0, column: 1}
    FailedSignIn.insert(row).on_conflict(
        conflict_target=[FailedSignIn.hour, FailedSignIn.address], update=changed
    ).execute()
