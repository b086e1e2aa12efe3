"""How many requests may wait for channels' upstreams, so that slow ones do not hold all threads."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from gateways.base import ChannelUnknown
from runtime import Part, current

SHARE, SHARE_OF_ALL = 4, 2  # of the threads that answer requests, a channel may have one in four, all of them half

_lock = threading.Lock()
_waiting: Part[Counter[int]] = Part(Counter)


@contextmanager
def channel_slot(channel: int) -> Iterator[None]:
    """This request waits for the channel meanwhile. Raises ChannelUnknown: too many do already."""
    threads = current().settings.threads
    most, most_of_all = max(1, threads // SHARE), max(1, threads // SHARE_OF_ALL)
    with _lock:
        if _waiting()[channel] >= most:
            raise ChannelUnknown(f"{most} requests wait for this channel already")
        if _waiting().total() >= most_of_all:
            raise ChannelUnknown(f"{most_of_all} requests wait for channels already")
        _waiting()[channel] += 1
    try:
        yield
    finally:
        with _lock:
            _waiting()[channel] -= 1
