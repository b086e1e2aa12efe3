"""Tries of passwords and codes by those who have signed in or know the password, counted for all services together."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from models.db.writer import transaction
from models.tables.operator import SignInTry
from services.errors import ApiError, Code
from services.platform import rate_limits

HOUR = 3_600
MOST = 10  # failed tries in an hour


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
