"""Notices from channels: `{site_url}/addons/paychannel/notify/<order_no>`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import cast

from flask import Blueprint, Response, request

from blueprints.api import rate_limits
from gateways.base import BadNotice, Incoming
from models.tables.order import Order
from services import kinds
from services.channels import unknown_notices
from services.channels.calls import driver_for
from services.errors import ApiError, Code
from services.orders import lifecycle

log = logging.getLogger(__name__)

notices = Blueprint("notices", __name__, url_prefix="/addons/paychannel/notify")


@notices.route("/<order_no>", methods=["GET", "POST"])
def notify(order_no: str) -> Response:
    """Verify a channel's notice about an order and settle the order. Acknowledge the notice only after that."""
    order = Order.find(order_no)
    incoming = Incoming(
        request.method, request.query_string, cast("Mapping[str, str]", request.headers), request.get_data(cache=False)
    )
    if order is None:
        unknown_notices.take(order_no, incoming, rate_limits.caller(request.remote_addr or ""))
        raise ApiError(Code.ORDER_NOT_FOUND)
    driver = driver_for(order)
    try:
        driver = kinds.take_notice(order, incoming)
        accepted = True
    except BadNotice as error:
        log.warning("Refused a notice for order %s from %s: %s", order_no, request.remote_addr, error)
        lifecycle.note_refused_notice(order, str(error)[:200])
        accepted = False
    said = driver.acknowledge(accepted)
    return Response(said.body, said.status, content_type=said.content_type)
