"""The share of views and status checks of payment pages in the request threads, so that they do not delay orders.

They call no channel but compute in Python, which runs one thread at a time. Several at once would therefore be no
faster, and each of them would delay every step of an order. Before a view begins, merchants' requests that began a
moment ago may end.
"""

from __future__ import annotations

import threading
import time

from flask import request

from models.db.base import database
from runtime.state import Part, current

AT_ONCE, AT_ONCE_ON_POSTGRES = 1, 4  # threads also wait for Postgres
SHARE = 4  # views occupy a quarter of the threads, most of which wait for their turn
LONGEST_WAIT = 2.0  # seconds for a turn
YIELD = 0.01  # seconds that most orders take; one that takes longer waits for its channel
_VIEW, _ORDER = "orders.view", "orders.order"  # in the environ of a request that is counted


class _Share:
    def __init__(self) -> None:
        self.places = threading.BoundedSemaphore(max(1, current().settings.threads // SHARE))
        self.turns = threading.BoundedSemaphore(AT_ONCE_ON_POSTGRES if database.is_shared else AT_ONCE)
        self.orders = 0  # merchants' requests in progress
        self.newest = 0.0  # monotonic time at which the last of them began
        self.no_orders = threading.Condition()


_share = Part(_Share)


def begin_view() -> bool:
    """Wait for the turn of this view; return False if too many wait, or it waited too long."""
    share = _share()
    if not share.places.acquire(blocking=False):
        return False
    if not share.turns.acquire(timeout=LONGEST_WAIT):
        share.places.release()
        return False
    request.environ[_VIEW] = True
    with share.no_orders:
        share.no_orders.wait_for(lambda: share.orders == 0, share.newest + YIELD - time.monotonic())
    return True


def end_view(error: BaseException | None = None) -> None:
    """Give the turn of this view, if it has one, to the next."""
    if request.environ.pop(_VIEW, False):
        _share().turns.release()
        _share().places.release()


def begin_order() -> None:
    """Count a merchant's request as in progress."""
    share = _share()
    with share.no_orders:
        share.orders += 1
        share.newest = time.monotonic()
    request.environ[_ORDER] = True


def end_order(error: BaseException | None = None) -> None:
    """Count a merchant's request as done."""
    share = _share()
    if request.environ.pop(_ORDER, False):
        with share.no_orders:
            share.orders -= 1
            share.no_orders.notify_all()
