"""The numbers that orders go by, here and at channels; their dates are China's."""

from __future__ import annotations

import secrets
from datetime import datetime

import business_clock
from gateways.base import CHINA
from models.order import Order


def in_china(timestamp: float, shape: str = "%Y%m%d") -> str:
    """The date in China, YYYYMMDD, or the time in another shape."""
    return datetime.fromtimestamp(timestamp, CHINA).strftime(shape)


def new_order_no() -> str:
    """24 digits: the date, then 16 at random, for the number stands in a public address."""
    return f"{in_china(business_clock.now())}{secrets.randbelow(10**16):016d}"


def payout_number(order: Order) -> str:
    """A withdrawal's other name: 19 digits, date and time and five of its id, of which no second has as many."""
    return f"{in_china(order.createtime, '%Y%m%d%H%M%S')}{order.id % 100_000:05d}"
