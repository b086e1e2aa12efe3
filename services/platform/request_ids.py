"""The id of the request that this thread answers, for the log and for the answer's header."""

from __future__ import annotations

import itertools
import os
import re
from contextvars import ContextVar

HEADER = "X-Request-Id"
SANE = re.compile(r"[A-Za-z0-9._-]{1,64}")

current: ContextVar[str] = ContextVar("request_id", default="")

_prefix = os.urandom(6).hex()
_numbers = itertools.count(1)


def of(given: str | None) -> str:
    """The id that a caller or a proxy gave, where it can stand in a log as it is; else one of our own."""
    if given and SANE.fullmatch(given):
        return given
    return f"{_prefix}-{next(_numbers):x}"
