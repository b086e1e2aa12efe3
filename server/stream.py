"""An answer that is sent in pieces, no faster than it is read."""

from __future__ import annotations

import time
from typing import Any

from granian._granian import RSGIProtocolClosed

from server.connection import Connection, Lost

MOST_UNSENT = 256 * 1024  # bytes kept for one reader, besides what the system keeps
LOOK_SECONDS = 0.001  # for granian to fill the room that there is
LET_GO_SECONDS = 1.0  # for granian to drop a connection that was cut


class Stream:
    """One answer. Granian takes whatever it is given and keeps it: here is seen to it that this is never much."""

    def __init__(self, proto: Any, scope: Any, status: int, headers: list[tuple[str, str]]):
        """Begin it. Raises Lost."""
        host, _, port = scope.client.rpartition(":")
        self._connection = Connection(host.strip("[]"), int(port))
        self._due = self._connection.handed_over()  # what that will be once all that was given is sent
        self._room = MOST_UNSENT  # that many bytes may be given before it is time to look again
        self._chunked = scope.http_version == "1.1"
        self._transport = proto.response_stream(status, headers)

    def send(self, part: bytes) -> None:
        """Return once most of what was given is on its way. Raises Lost."""
        self._give(part)
        size = len(part) + (len(f"{len(part):x}\r\n\r\n") if self._chunked else 0)
        self._due += size
        self._room -= size
        while self._room < 0:
            self._room = MOST_UNSENT - (self._due - self._connection.handed_over())
            if self._room < 0:
                self._connection.wait_for_room()
                time.sleep(LOOK_SECONDS)

    def _give(self, part: bytes) -> None:
        try:
            next(self._transport.send_bytes(part))
        except StopIteration:  # it was taken
            pass
        except RSGIProtocolClosed:
            raise Lost from None

    def end(self) -> None:
        """That was all of it."""
        self._transport = None  # granian sends the end
        self._connection.close()

    def cut(self) -> None:
        """Break the connection: `send` raises Lost. Any thread may, and nothing is waited for."""
        self._connection.cut()

    def abandon(self) -> None:
        """Leave it as it is, with a broken connection, so that nobody takes it for the whole."""
        self._connection.cut()
        give_up = time.monotonic() + LET_GO_SECONDS
        while self._is_kept():
            if time.monotonic() > give_up:  # granian does not look: it has the client's next request already
                self._connection.mute()
                break
            time.sleep(LOOK_SECONDS)
        self.end()

    def _is_kept(self) -> bool:
        """Would granian still send more?"""
        try:
            self._give(b"")
        except Lost:
            return False
        return True
