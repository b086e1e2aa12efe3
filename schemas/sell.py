"""A sell order as it comes in, and the schema for it by the channel's category (docs/orders.md)."""

from __future__ import annotations

from models.tables.order import SELL
from schemas.buy import NewOrder
from schemas.fields import Whole
from schemas.gateway_a import GatewayAFields


class SellOrder(NewOrder):
    """A withdrawal through gateway_b or gateway_c: the base parameters only."""

    order_type = Whole(SELL, SELL, required=True)


class GatewayASellOrder(SellOrder, GatewayAFields):
    """A withdrawal through gateway_a."""


SELL_SCHEMAS = {"gateway_a": GatewayASellOrder(), "gateway_b": SellOrder(), "gateway_c": SellOrder()}
