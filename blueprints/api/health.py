"""Health checks: `/healthz` for a supervisor, `/readyz` for a load balancer."""

from __future__ import annotations

from flask import Blueprint, Response

from blueprints.api.envelope import ok
from runtime import settings
from services import readiness
from services.errors import ApiError, Code
from services.platform import storage_health

health = Blueprint("health", __name__)


@health.get("/healthz")
def healthz() -> Response:
    """Return 200 while the service is healthy; 50300 with the cause if the database cannot be read or written."""
    fault = storage_health.write_fault()
    if fault is not None:
        raise ApiError(Code.SERVICE_UNAVAILABLE, detail=fault.word, retry_after=fault.retry_after)
    return ok({"version": settings.VERSION})


@health.get("/readyz")
def readyz() -> Response:
    """Return 200 while this process should receive requests, otherwise 50300. `data` has the result of each check."""
    found = readiness.check()
    checks = {name: wrong or "ok" for name, wrong in (found | readiness.warnings()).items()}
    if any(found.values()):
        raise ApiError(Code.SERVICE_UNAVAILABLE, checks)
    return ok(checks)
