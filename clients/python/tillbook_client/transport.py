"""HTTP: send a call, read the response, and retry if that is safe and useful."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import requests

from tillbook_client.errors import CONCLUSIVE, OrdersError, OutcomeUnknown, TooManyRequests, kind_of
from tillbook_client.retrying import Retry

log = logging.getLogger("tillbook_client")

BROKEN = (
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
    requests.exceptions.ContentDecodingError,
)
LEAST_TIMEOUT = 0.1  # seconds; requests refuses 0


class Transport:
    """Sends calls. Each attempt is built again, because a nonce is valid once."""

    def __init__(self, session: requests.Session, timeout: float, retry: Retry):
        self.session, self.timeout, self.retry = session, timeout, retry

    def call(self, build: Callable[[], requests.Request], idempotency_key: str | None = None) -> Any:
        """Return the `data` of the response.

        Raises:
            Refused: the service refused; nothing happened.
            OutcomeUnknown: no final response within `retry.total` seconds.
        """
        deadline = self.retry.steady() + self.retry.total
        in_doubt = False  # whether an earlier attempt ended without a conclusive response
        failures = 0
        while True:
            try:
                return self._once(build(), deadline)
            except OrdersError as error:
                failures += 1
                error.idempotency_key = idempotency_key
                in_doubt = in_doubt and error.code not in CONCLUSIVE
                in_doubt = in_doubt or (idempotency_key is not None and isinstance(error, OutcomeUnknown))
                pause = self.retry.pause(failures, error.retry_after)
                may_help = isinstance(error, (OutcomeUnknown, TooManyRequests))
                if not may_help or self.retry.steady() + pause >= deadline:
                    raise self._final(error, in_doubt) from error.__cause__
                log.warning("Attempt %d failed, retry in %.1f s (key %s): %s", failures, pause, idempotency_key, error)
            self.retry.sleep(pause)

    @staticmethod
    def _final(error: OrdersError, in_doubt: bool) -> OrdersError:
        """Return OutcomeUnknown instead of a refusal if an earlier attempt may have succeeded."""
        if not in_doubt or isinstance(error, OutcomeUnknown):
            return error
        unknown = OutcomeUnknown(
            f"an earlier attempt got no response, then: {error.msg}",
            error.code,
            error.data,
            error.status,
            error.retry_after,
        )
        unknown.idempotency_key = error.idempotency_key
        return unknown

    def _once(self, request: requests.Request, deadline: float) -> Any:
        left = max(LEAST_TIMEOUT, deadline - self.retry.steady()) if self.retry.total else self.timeout
        try:
            prepared = self.session.prepare_request(request)
            settings = self.session.merge_environment_settings(prepared.url, {}, None, None, None)
            answer = self.session.send(prepared, timeout=min(self.timeout, left), allow_redirects=False, **settings)
        except BROKEN as broken:
            raise OutcomeUnknown(f"{request.url}: {broken}") from broken
        return self._read(answer)

    def _read(self, answer: requests.Response) -> Any:
        try:
            envelope = json.loads(answer.content, parse_float=Decimal)
            code, msg, data = envelope["code"], envelope["msg"], envelope["data"]
        except (ValueError, TypeError, KeyError):
            code, data = None, None
            msg = f"the response is not from the service; check the address {answer.url}"
        if code == 1:
            return data
        kind = kind_of(code, answer.status_code)
        raise kind(msg, code, data, answer.status_code, _seconds(answer.headers.get("Retry-After")))


def _seconds(text: str | None) -> float | None:
    return float(text) if text and text.isascii() and text.isdigit() else None
