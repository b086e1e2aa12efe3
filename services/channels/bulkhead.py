"""Limits on the requests that wait for channels' upstreams, so that slow ones do not occupy all threads."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from gateways.base import ChannelUnknown
from runtime.state import Part, current

# A channel may occupy a quarter of the threads that serve requests, all channels half of them.
SHARE, SHARE_OF_ALL = 4, 2

_lock = threading.Lock()
_waiting: Part[Counter[int]] = Part(Counter)


class Busy(ChannelUnknown):
    """This host did not call the channel, because too many calls wait already. It says nothing about the channel."""


@contextmanager
def channel_slot(channel: int) -> Iterator[None]:
    """Count this request as waiting for the channel. Raises Busy if too many wait already."""
    threads = current().settings.threads
    most, most_of_all = max(1, threads // SHARE), max(1, threads // SHARE_OF_ALL)
    with _lock:
        if _waiting()[channel] >= most:
            raise Busy(f"{most} requests wait for this channel already", sent=False)
        if _waiting().total() >= most_of_all:
            raise Busy(f"{most_of_all} requests wait for channels already", sent=False)
        _waiting()[channel] += 1
    try:
        yield
    finally:
        with _lock:
            _waiting()[channel] -= 1
