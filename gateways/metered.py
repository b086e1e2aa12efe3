"""Answers from outside of which only so much is read, whatever else comes."""

from __future__ import annotations

import io
import socket
from http.client import HTTPResponse
from typing import Any

MOST = 32 * 1024  # bytes of one answer: its head, what stands before it, and the start of its body


class _Meter(io.RawIOBase):
    """What comes from a socket, until it is more than MOST."""

    def __init__(self, carrier: io.RawIOBase):
        self._carrier, self._left = carrier, MOST

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Raises OSError."""
        if self._left <= 0:
            raise OSError(f"the answer goes on after {MOST} bytes")
        got: int | None = self._carrier.readinto(buffer)
        self._left -= got or 0
        return got

    def close(self) -> None:
        """Let go of the socket."""
        self._carrier.close()
        super().close()


class _Metered:
    """Stands in for the socket where the answer's reader is made."""

    def __init__(self, carrier: socket.socket):
        self._carrier = carrier

    def makefile(self, _: str) -> io.BufferedReader:
        return io.BufferedReader(_Meter(self._carrier.makefile("rb", buffering=0)))


class MeteredResponse(HTTPResponse):
    """Python's own reads interim answers and trailers for as long as they come, which keeps the processor busy."""

    def __init__(self, sock: socket.socket, *arguments: Any, **named: Any):
        super().__init__(_Metered(sock), *arguments, **named)  # type: ignore[arg-type]
