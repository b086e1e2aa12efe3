"""The offset of the demo's clock, stored in the simulator's file so that it survives a restart."""

from __future__ import annotations

import logging
import sqlite3

from gateways.sandbox.records import books
from models.tables.merchant import Merchant
from runtime import clock
from runtime.state import current

log = logging.getLogger(__name__)


def recall(knows_demo: bool = True) -> None:
    """Set the business clock to the stored offset in a demo, otherwise to the machine's time.

    Args:
        knows_demo: the database has all columns, so it can be checked for demo merchants.
    """
    try:
        ahead = books().ahead
    except sqlite3.Error as error:  # a service outside demo mode must start in any case
        log.warning("sandbox.sqlite cannot be read, so the clock is the machine's: %s", error)
        ahead = 0
    is_demos = False
    if ahead and knows_demo:  # a database with only real merchants never is a demo's
        is_demos = Merchant.any_demo() or (current().settings.demo and not Merchant.select().exists())
    clock.put_ahead(ahead if is_demos else 0)


def keep(seconds: int) -> None:
    """Set and store the offset."""
    books().store_ahead(seconds)
    clock.put_ahead(seconds)
