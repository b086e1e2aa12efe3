"""Can the service serve? `/healthz`, for a supervisor."""

from __future__ import annotations

from flask import Blueprint, Response

import settings
from blueprints.envelope import ok
from models.base import database

health = Blueprint("health", __name__)


@health.get("/healthz")
def healthz() -> Response:
    """200 once requests can be answered; 50300 while the database can't be read."""
    database.execute_sql("SELECT 1 FROM merchant LIMIT 1")
    return ok({"version": settings.VERSION})
