"""The TCP connection beneath a request: what has gone out over it, when it takes more, and how to break it."""

from __future__ import annotations

import fcntl
import os
import select
import socket
import struct
import termios
from contextlib import suppress
from ipaddress import ip_address

FILES = "/proc/self/fd"
WATCHABLE = hasattr(socket, "TCP_INFO") and os.path.isdir(FILES)  # does the system show what is needed here?
_ACKNOWLEDGED = struct.Struct("=120xQ")  # tcpi_bytes_acked in Linux's tcp_info
_QUEUED = struct.Struct("=i")
_AT_ONCE = struct.pack("=ii", 1, 0)  # SO_LINGER: what is unsent when the connection is closed is thrown away
_LOST = select.POLLERR | select.POLLHUP | getattr(select, "POLLRDHUP", 0)


class Lost(Exception):
    """Nobody reads the answer any more: the connection is gone, or was cut."""


def _comes_from(file: int, host: str, port: int) -> bool:
    """Is this open file a TCP connection from there?"""
    try:
        # It is looked at itself: closing a duplicate of a database's file would let go of SQLite's locks.
        probe = socket.socket(fileno=file)
    except OSError:  # it is no socket
        return False
    try:
        peer = probe.getpeername()
        return peer[1:2] == (port,) and ip_address(peer[0].partition("%")[0]) == ip_address(host)
    except (OSError, TypeError):  # it is not connected, or of another kind
        return False
    finally:
        probe.detach()


class Connection:
    """A connection that granian has open and hands out to nobody, found among the files of this process."""

    def __init__(self, host: str, port: int):
        """The one that comes from there. Raises Lost."""
        found = next((file for file in map(int, os.listdir(FILES)) if _comes_from(file, host, port)), None)
        if found is None:
            raise Lost
        self._socket = socket.socket(fileno=os.dup(found))
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLOUT | _LOST)

    def handed_over(self) -> int:
        """How many bytes granian has handed over to the system for sending so far. Raises Lost."""
        try:
            info = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ACKNOWLEDGED.size)
            queued = fcntl.ioctl(self._socket, termios.TIOCOUTQ, bytes(_QUEUED.size))
        except OSError:
            raise Lost from None
        return int(_ACKNOWLEDGED.unpack(info)[0] + _QUEUED.unpack(queued)[0])

    def wait_for_room(self) -> None:
        """Return once the system would take more. Raises Lost."""
        if any(events & _LOST for _, events in self._poll.poll()):
            raise Lost

    def cut(self) -> None:
        """Have granian drop it at once, unsent bytes and all; after `close` its reader gets a reset. Any thread may."""
        with suppress(OSError):  # it is gone
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            self._socket.shutdown(socket.SHUT_RD)  # to granian, the client has gone away

    def mute(self) -> None:
        """Have nothing more go out."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of it; granian does when it likes."""
        self._socket.close()
