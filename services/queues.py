"""How many requests may wait for one channel's upstream, so that a slow one does not hold all threads."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import settings
from gateways.base import ChannelUnknown

SHARE = 4  # of all threads that answer requests, a channel may have one in so many

_lock = threading.Lock()
_waiting: Counter[int] = Counter()


@contextmanager
def waiting_for(channel: int) -> Iterator[None]:
    """This request waits for the channel meanwhile. Raises ChannelUnknown: too many do already."""
    most = max(1, settings.active().threads // SHARE)
    with _lock:
        if _waiting[channel] >= most:
            raise ChannelUnknown(f"{most} requests wait for this channel already")
        _waiting[channel] += 1
    try:
        yield
    finally:
        with _lock:
            _waiting[channel] -= 1
