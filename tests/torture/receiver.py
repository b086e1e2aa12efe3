"""The merchants' server: verifies callbacks by a public library, stores them, and is slightly unreliable."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks import Webhook, WebhookVerificationError

from services.sandbox.seeding import CALLBACK_SECRETS

# The response to the first attempt of a callback; later attempts are accepted, because a second failure is
# tried again minutes later.
MOODS = {"takes": 84, "refuses": 6, "hangs up": 6, "is slow": 4}


@dataclass(frozen=True)
class Receipt:
    """One received callback: its id, its content, and whether the response was 200.

    `refund_no` is empty if it is about an order.
    """

    webhook_id: str
    merchant: str
    order_no: str
    event: str
    status: str
    body: bytes
    taken: bool
    refund_no: str = ""

    @property
    def about(self) -> str:
        """The number of the order or of the refund that it is about."""
        return self.refund_no or self.order_no


class Receiver(ThreadingHTTPServer):
    """An HTTP server on a port of its own; `got` are the callbacks, `unsigned` counts invalid signatures."""

    daemon_threads = True
    request_queue_size = 128  # a restarted service sends many callbacks at once; the default, 5, resets connections

    def __init__(self, rng: random.Random):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.got: list[Receipt] = []
        self.unsigned: list[str] = []
        self._met: set[str] = set()
        self._rng, self._lock = rng, threading.Lock()
        threading.Thread(target=self.serve_forever, name="receiver", daemon=True).start()

    def url(self, merchant: str) -> str:
        """The callback address of a merchant."""
        return f"http://127.0.0.1:{self.server_address[1]}/{merchant}"

    def mood(self, webhook_id: str) -> str:
        """Return how to respond to this callback."""
        with self._lock:
            if webhook_id in self._met:
                return "takes"
            self._met.add(webhook_id)
            return self._rng.choices(list(MOODS), list(MOODS.values()))[0]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a sender that was killed in the middle."""


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        merchant, length = self.path.strip("/"), int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:
            return None  # its sender was killed in the middle
        try:
            event = Webhook(CALLBACK_SECRETS[merchant]).verify(body, dict(self.headers))
        except WebhookVerificationError as error:
            self.server.unsigned.append(f"{self.headers.get('webhook-id')}: {error}")
            return self._answer(400)
        webhook_id = self.headers["webhook-id"]
        mood, data = self.server.mood(webhook_id), event["data"]
        taken = mood in ("takes", "is slow")
        self.server.got.append(
            Receipt(
                webhook_id=webhook_id,
                merchant=merchant,
                order_no=data["order_no"],
                event=event["type"],
                status=data["status"],
                body=body,
                taken=taken,
                refund_no=data.get("refund_no", ""),
            )
        )
        if mood == "hangs up":
            self.close_connection = True
            return None
        if mood == "is slow":
            time.sleep(0.5)
        return self._answer(200 if taken else 500)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Log nothing."""
