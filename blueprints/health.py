"""Can the service serve? `/healthz`, for a supervisor."""

from __future__ import annotations

from flask import Blueprint, Response
from peewee import DatabaseError

import settings
from blueprints.envelope import ok
from models.base import database
from services import storage
from services.errors import Refused

health = Blueprint("health", __name__)


@health.get("/healthz")
def healthz() -> Response:
    """200 once requests can be answered; 50300 and a word while the database can't be read or written."""
    try:
        database.execute_sql("SELECT 1 FROM merchant LIMIT 1")
        fault = storage.trial()
    except DatabaseError as error:
        fault = storage.report(error)
        if fault is None:
            raise
    if fault is not None:
        raise Refused(50300, detail=fault.word, retry_after=fault.retry_after)
    return ok({"version": settings.VERSION})
