"""Takes requests in: heads and bodies, within limits of size, time and number, and without holding a thread."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from server.exchange import Application, Exchange

log = logging.getLogger(__name__)

MOST_READ = 8 * 1024 * 1024  # bytes of a body that is too large; beyond, its sender finds the connection closed
BODY_SECONDS = 10.0  # for a whole body
MOST_BODIES = 1024  # on their way at once; of 64 KiB each
GIVES_WAY = 1.0  # seconds after which the oldest of so many gives way to a new one


class Intake:
    """Hands each request on to `deliver` once its body is there.

    Granian's threads call it with each head, and again with each piece of a body; none of them waits here.
    """

    def __init__(self, deliver: Callable[[Exchange], None], plain: Application, body_limit: int):
        self._deliver, self._plain, self._limit = deliver, plain, body_limit
        self._bodies: dict[Exchange, None] = {}  # on their way, in the order in which they came
        self.under_way: set[Exchange] = set()  # not yet answered

    def __call__(self, watcher: Any) -> None:
        """A request's head is there; `watcher` is granian's own name for what carries it."""
        exchange = Exchange(watcher.scope, watcher.proto, self.under_way, self._plain)
        try:
            self._begin(exchange)
        except Exception:
            self._failed(exchange)

    def _begin(self, exchange: Exchange) -> None:
        chunked = exchange.header("transfer-encoding")
        length = exchange.declared()
        if not chunked and not length:
            self._deliver(exchange)
        elif len(self._bodies) >= MOST_BODIES and not self._made_room():
            exchange.refuse(50300, close=True)
        elif chunked or length > self._limit:
            self._bodies[exchange] = None
            exchange.proto.__aiter__()
            self._next_piece(exchange)
        else:
            self._bodies[exchange] = None
            self._wait_for(exchange, exchange.proto(), self._whole)

    def _wait_for(self, exchange: Exchange, future: Any, then: Callable[[Exchange, Any], None]) -> None:
        def arrived(there: Any) -> None:
            exchange.future = None  # they would hold each other for good: Python's collector can't look into a future
            try:
                then(exchange, there)
            except Exception:
                self._failed(exchange)

        exchange.future = future
        future.add_done_callback(arrived)

    def _failed(self, exchange: Exchange) -> None:
        """An error of ours: whatever it is, it must not get back into native code."""
        self._bodies.pop(exchange, None)
        exchange.fail()

    def _made_room(self) -> bool:
        """Has the body that is on its way longest given way? It has not where it came just now, too."""
        oldest = next(iter(list(self._bodies)), None)
        if oldest is None:
            return True
        if time.monotonic() - oldest.since < GIVES_WAY:
            return False
        self._give_up(oldest)
        return True

    def _give_up(self, exchange: Exchange) -> None:
        exchange.late = True
        if future := exchange.future:
            future.cancel()  # calls what waits for it

    def expire(self) -> None:
        """Give up bodies that take too long; to be called now and then."""
        now = time.monotonic()
        for exchange in list(self._bodies):
            if now - exchange.since < BODY_SECONDS:
                break
            self._give_up(exchange)

    def _ended(self, exchange: Exchange, code: int) -> None:
        """The body will not come to an end: answer with the code, and close the connection."""
        self._bodies.pop(exchange, None)
        exchange.refuse(code, close=True)

    def _arrived(self, exchange: Exchange, body: bytes) -> None:
        self._bodies.pop(exchange, None)
        exchange.body = body
        self._deliver(exchange)

    def _whole(self, exchange: Exchange, future: Any) -> None:
        """A body of known size is there, or broke off."""
        if exchange.late:
            return self._ended(exchange, 40800)
        if future.exception() is not None:  # its sender went away; raised, it and this frame would hold each other
            return self._ended(exchange, 40000)
        return self._arrived(exchange, future.result())

    def _next_piece(self, exchange: Exchange) -> None:
        try:
            future = exchange.proto.__anext__()
        except StopAsyncIteration:
            self._last_piece(exchange)
        else:
            self._wait_for(exchange, future, self._piece)

    def _piece(self, exchange: Exchange, future: Any) -> None:
        """A piece of a body of unknown size, or of one that is too large. An empty one comes at its end."""
        if exchange.late:
            too_large = max(exchange.length, exchange.declared()) > self._limit
            return self._ended(exchange, 41300 if too_large else 40800)
        piece = future.result()
        exchange.length += len(piece)
        if exchange.length > MOST_READ:
            return self._ended(exchange, 41300)
        if exchange.length <= self._limit:
            exchange.pieces += piece
        elif exchange.pieces:
            exchange.pieces = bytearray()
        return self._next_piece(exchange) if piece else self._at_end(exchange)

    def _at_end(self, exchange: Exchange) -> None:
        """After the empty piece granian says that there are no more; where it has more, the body broke off."""
        try:
            exchange.proto.__anext__()
        except StopAsyncIteration:
            self._last_piece(exchange)
        else:
            self._ended(exchange, 40000)

    def _last_piece(self, exchange: Exchange) -> None:
        if exchange.length > self._limit:
            self._bodies.pop(exchange, None)
            exchange.refuse(41300)
        else:
            self._arrived(exchange, bytes(exchange.pieces))
