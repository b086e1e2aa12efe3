"""Passwords of operators: their required strength, and hashing them one at a time.

A hash takes 64 MiB and about 0.4 s of a core, so parallel sign-ins could take all memory and every request thread.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from werkzeug.security import check_password_hash, generate_password_hash
from zxcvbn import zxcvbn

from services.errors import N_, ApiError, Code, OperatorError
from services.platform import cpu_affinity

T = TypeVar("T")

METHOD = "scrypt:65536:8:2"
AS_SLOW = "scrypt:131072:8:1"  # of release 0.4.0: takes the same time, and twice the memory
SHORTEST, LONGEST = 10, 200  # characters
JUDGED = 40  # characters that are rated; more do not weaken a password
STRONG = 3  # of zxcvbn's scores 0 to 4: more than 10^8 guesses
# Parts of common passwords that zxcvbn's English lists lack or rate as rare.
COMMON = ("woaini", "woaiwojia", "5201314", "1314520", "1314", "520", "admin", "administrator", "console", "operator")
MOST_WAITING = 4  # callers that hash or wait to hash, separately for unknown and known devices

_hashing = threading.Lock()
_queues = {known: threading.BoundedSemaphore(MOST_WAITING) for known in (False, True)}


def _alone(work: Callable[[], T], known: bool) -> T:
    """Run `work` on any core once earlier hashes are done, unless too many wait already.

    Args:
        known: the caller uses the queue of known devices, which strangers can't fill.

    Raises:
        ApiError: TOO_MANY_REQUESTS.
    """
    if not _queues[known].acquire(blocking=False):
        raise ApiError(Code.TOO_MANY_REQUESTS, retry_after=2)
    try:
        with _hashing:
            return cpu_affinity.do(work)
    finally:
        _queues[known].release()


def check_strength(password: str, name: str) -> None:
    """Raise OperatorError if a password is too short, too long, common, or like the account's name."""
    if not SHORTEST <= len(password) <= LONGEST:
        message = N_("Passwords have %(least)s to %(most)s characters.")
        raise OperatorError(message, "password", least=str(SHORTEST), most=str(LONGEST))
    if zxcvbn(password[:JUDGED], user_inputs=[name, *COMMON])["score"] < STRONG:
        message = N_("This password is easy to guess. Use a longer one, such as four unrelated words.")
        raise OperatorError(message, "password")


def hashed(password: str) -> str:
    """Return the hash to store for a password."""
    return _alone(lambda: generate_password_hash(password, METHOD), known=True)


@cache
def _of_nobody() -> str:
    return generate_password_hash(secrets.token_hex(16), METHOD)


def is_correct(stored: str | None, password: str, *, known: bool) -> bool:
    """Compare a password with a stored hash, in the same time for None and for a wrong password with an older hash.

    Args:
        known: the caller has been here before (see `_alone`).

    Raises:
        ApiError: Code.TOO_MANY_REQUESTS, too many wait.
    """
    given = password[:LONGEST]

    def compare() -> bool:
        if stored is not None and check_password_hash(stored, given):
            return True
        if stored is None or not stored.startswith((f"{METHOD}$", f"{AS_SLOW}$")):
            # Otherwise the time would reveal which names exist.
            check_password_hash(_of_nobody(), given)
        return False

    return _alone(compare, known)


def is_older(stored: str) -> bool:
    """Return whether this was hashed with an older method, which took less time or more memory."""
    return not stored.startswith(f"{METHOD}$")
