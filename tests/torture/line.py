"""A client's connection to the service: the result of each request, although the other end may die at any moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import requests

from tests.support import Answer, DemoApi
from tests.torture.seen import Seen
from tests.torture.target import Target

PATIENCE = 60  # seconds for which a client repeats its request
PAUSE = 0.05
RUNNING = 40902  # another request with the same Idempotency-Key is in progress, or has failed


def _is_busy(answer: Answer) -> bool:
    return answer.status == 503 or (answer.status == 409 and answer.code == RUNNING)


class Line:
    """One connection of a merchant, to any process; `api` signs for it."""

    def __init__(self, merchant: str, target: Target, seen: Seen):
        self._target, self._seen = target, seen
        self._http = requests.Session()
        self._http.trust_env = False
        self.api = DemoApi(self._send, merchant)

    def _send(self, method: str, path: str, body: bytes = b"", headers: Any = None) -> Answer:
        self._seen.count("requests")
        answer = self._http.request(
            method, self._target.url() + path, data=body, headers=headers, timeout=20, allow_redirects=False
        )
        return Answer(answer.status_code, answer.headers, answer.text)

    def once(self, call: Callable[[], Answer]) -> Answer | None:
        """Return the response, or None if the connection died: then the result is unknown."""
        try:
            answer = call()
        except requests.RequestException:
            self._seen.count("unanswered")
            time.sleep(PAUSE)
            return None
        if answer.status >= 500 and answer.status != 503:
            self._seen.wrong.append(f"{threading.current_thread().name} got {answer}")
        return answer

    def until_answered(self, call: Callable[[], Answer]) -> Answer | None:
        """Repeat the request until there is a response; return None after PATIENCE, which is recorded."""
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            answer = self.once(call)
            if answer is not None and not _is_busy(answer):
                return answer
            time.sleep(PAUSE)
        self._seen.wrong.append(f"{threading.current_thread().name} got no response for {PATIENCE} s")
        return None
