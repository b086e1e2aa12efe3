"""`/metrics`, for Prometheus."""

from __future__ import annotations

from flask import Blueprint, Response, request

from net.ip_addresses import is_within
from runtime.state import current
from services import metrics
from services.errors import ApiError, Code

blueprint = Blueprint("metrics", __name__)


@blueprint.get("/metrics")
def show() -> Response:
    """Return all metrics. Callers outside `metrics_from` get 404."""
    if not is_within(request.remote_addr, current().settings.metrics_from):
        raise ApiError(Code.PATH_NOT_FOUND)
    return Response(metrics.text(), content_type="text/plain; version=0.0.4; charset=utf-8")
