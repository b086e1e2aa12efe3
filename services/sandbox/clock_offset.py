"""How far the demo's clock is ahead of the machine's, kept in the simulator's file so that it survives a restart."""

from __future__ import annotations

import logging
import sqlite3

import business_clock
from gateways.sandbox.simulator import books
from models.tables.merchant import Merchant
from runtime import current

log = logging.getLogger(__name__)


def recall(knows_demo: bool = True) -> None:
    """Set the business clock to the kept offset if this is a demo, otherwise to the machine's time.

    Args:
        knows_demo: the database has all columns, so it can be asked whether it is a demo's.
    """
    try:
        ahead = books().ahead
    except sqlite3.Error as error:  # a service that is not a demo must start in any case
        log.warning("the sandbox's books can't be read, so its clock is the machine's: %s", error)
        ahead = 0
    business_clock.put_ahead(ahead if ahead and knows_demo and _is_demos() else 0)


def _is_demos() -> bool:
    """Is the database a demo's, or about to be one? Never one with real merchants only, whatever the settings say."""
    return Merchant.any_demo() or (current().settings.demo and not Merchant.select().exists())


def keep(seconds: int) -> None:
    """Set the offset, and keep it."""
    books().store_ahead(seconds)
    business_clock.put_ahead(seconds)
