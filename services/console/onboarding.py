"""The first steps of a shop: which are done."""

from __future__ import annotations

from models.tables.channel import Channel, ChannelLink
from models.tables.merchant import Merchant
from models.tables.order import Order

STEPS = {"channel": Channel, "merchant": Merchant, "link": ChannelLink, "order": Order}


def steps() -> dict[str, bool]:
    """Each step in turn, and whether it is done: channel, merchant, link, order."""
    return {name: table.select().exists() for name, table in STEPS.items()}


def is_over(done: dict[str, bool]) -> bool:
    """Have orders come?"""
    return done["order"]
