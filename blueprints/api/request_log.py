"""Request ids, metrics and the access log, for the whole application including the console."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any

from blueprints.api.environ_keys import CODE, ENDPOINT, MERCHANT, SINCE
from blueprints.openapi.operations import OPERATIONS
from services.platform import logs
from services.platform.counted_metrics import counters

log = logging.getLogger("access")

NAMES = {(each.route, each.method.upper()): each.name for each in OPERATIONS}
NAMES |= {(route, "HEAD"): name for (route, method), name in NAMES.items() if method == "GET"}


def _endpoint(environ: dict[str, Any]) -> str:
    route = environ.get(ENDPOINT)
    if route is None:
        return "console" if environ.get("SCRIPT_NAME") else "other"
    return NAMES.get((route, environ["REQUEST_METHOD"]), route)


class Logged:
    """Gives each request of an application an id, counts it and logs it.

    The id stays in the context, so that later log lines, of a streamed body or an error in it, also have it. A refusal
    of the HTTP server itself keeps the id if the application failed on the request, and took its time since SINCE.
    """

    def __init__(self, application: Callable[..., Iterable[bytes]], access_log: bool):
        self._application, self._access_log = application, access_log

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        since = environ.get(SINCE)
        known = logs.current.get() if since is not None else ""
        request_id, began = known or logs.of(environ.get("HTTP_X_REQUEST_ID")), since or time.monotonic()
        logs.current.set(request_id)

        def start(status: str, headers: list[tuple[str, str]], *error: Any) -> Any:
            seconds, number = time.monotonic() - began, int(status[:3])
            endpoint, code = _endpoint(environ), environ.get(CODE, 0)
            counters().answered(endpoint, number, code, seconds)
            if self._access_log:
                _say(environ, endpoint, number, code, seconds)
            headers.append((logs.HEADER, request_id))
            return start_response(status, headers, *error)

        return self._application(environ, start)


def _say(environ: dict[str, Any], endpoint: str, status: int, code: int, seconds: float) -> None:
    """Log a request. The line never has its query string, body or headers."""
    facts = {
        "method": environ["REQUEST_METHOD"],
        "endpoint": endpoint,
        "status": status,
        "code": code or None,
        "duration_ms": round(seconds * 1000, 1),
        "merchant": environ.get(MERCHANT),
        "address": environ.get("REMOTE_ADDR"),
    }
    log.info(" ".join(f"{name}={value}" for name, value in facts.items() if value is not None), extra=facts)
