"""Log format: one line for each record, as text or JSON, with the request id."""

from __future__ import annotations

import itertools
import logging
import os
import re
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from pythonjsonlogger.json import JsonFormatter

from runtime.settings import Settings

HEADER = "X-Request-Id"
SANE = re.compile(r"[A-Za-z0-9._-]{1,64}")

current: ContextVar[str] = ContextVar("request_id", default="")

_prefix = os.urandom(6).hex()
_numbers = itertools.count(1)


def of(given: str | None) -> str:
    """Return the id from a caller or a proxy if it is safe in a log; otherwise a new one."""
    if given and SANE.fullmatch(given):
        return given
    return f"{_prefix}-{next(_numbers):x}"


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_QUIET = {
    "apscheduler": logging.ERROR,
    "peewee.migrations": logging.WARNING,  # the command reports it itself
    "urllib3": logging.ERROR,  # up to WARNING it logs addresses with their query
}


def _escaped(text: str) -> str:
    """Return the text in one line, with control characters escaped."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


class _Text(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Format a record as one line, whatever its content."""
        request_id = current.get()
        return _escaped(super().formatMessage(record)) + (f" [{request_id}]" if request_id else "")

    def formatException(self, ei: Any) -> str:  # noqa: N802
        """Format a traceback with each line indented, so that none looks like a record."""
        return "\n".join("  " + _escaped(line) for line in super().formatException(ei).split("\n"))


class _Json(JsonFormatter):
    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        """Format the time as ISO 8601 in UTC, to the millisecond."""
        return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def add_fields(self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]) -> None:
        """Add the record's own fields, and the request's id if it has one."""
        super().add_fields(log_data, record, message_dict)
        if request_id := current.get():
            log_data["request_id"] = request_id


def begin(chosen: Settings) -> None:
    """Start logging to standard error, unless the process has a log already."""
    if chosen.log_format == "json":
        names = {"asctime": "time", "levelname": "level", "name": "logger", "exc_info": "exception"}
        words = "%(asctime)s %(levelname)s %(name)s %(message)s"
        formatter: logging.Formatter = _Json(words, rename_fields=names, json_ensure_ascii=False)
    else:
        formatter = _Text("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler = logging.StreamHandler()
    handler.setFormatter(formatter)
    logging.basicConfig(level=chosen.log_level, handlers=[handler])
    for name, level in _QUIET.items():
        logging.getLogger(name).setLevel(level)
