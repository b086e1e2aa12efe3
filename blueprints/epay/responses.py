"""Responses of the epay gateway: JSON with an integer `code`, and the page that a payer sees after a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Response, render_template, request
from flask_babel import gettext
from marshmallow import ValidationError
from werkzeug.exceptions import HTTPException

from blueprints.api import envelope
from blueprints.api.environ_keys import CODE
from models.tables.epay import RSA
from schemas.messages import flat
from services.channels.calls import pay_url
from services.epay.refusals import Refusal, Refused
from services.errors import ApiError, Code
from services.merchants import epay_signing
from services.merchants.cache import Known

PAYERS = ("epay.submit", "epay.submit_v2")  # endpoints that payers' browsers call
STATUS = {Code.TOO_MANY_REQUESTS: Refusal.TOO_MANY_REQUESTS, Code.SERVICE_UNAVAILABLE: Refusal.BUSY}


def ok(facts: Mapping[str, Any]) -> Response:
    """Return a success of version 1."""
    return envelope.as_json({"code": 1, "msg": "success", **facts})


def ok_signed(known: Known, facts: Mapping[str, Any]) -> Response:
    """Return a success of version 2, signed by the platform's key. Empty values are left out."""
    filled = {"code": 0, "msg": "success"} | {name: value for name, value in facts.items() if value != ""}
    texts = {name: str(value) for name, value in filled.items() if not isinstance(value, list)}
    signed = epay_signing.signed(known.account, RSA, texts)
    return envelope.as_json(filled | {name: signed[name] for name in ("timestamp", "sign", "sign_type")})


def refused(refusal: Refused) -> Response:
    """Return a refusal: JSON with status 200, or a page for a payer."""
    texts = (gettext(refusal.reason.text, **refusal.values), refusal.detail)
    return _refusal(refusal.reason, "; ".join(filter(None, texts)), page=refusal.page)


def invalid(error: ValidationError) -> Response:
    """Return the refusal of an invalid field, the first one."""
    name, messages = next(iter(flat(error.messages).items()))
    why = gettext(Refusal.INVALID_FIELD.text, name=name, why=envelope.translated(messages[0]))
    return _refusal(Refusal.INVALID_FIELD, why)


def failed(error: ApiError) -> Response:
    """Return a refusal that has an HTTP status of its own."""
    reason = STATUS.get(error.code, Refusal.BUSY)
    response = _refusal(reason, gettext(reason.text), status=error.code // 100)
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(error.retry_after)
    return response


def unexpected(error: Exception) -> Response:
    """Return the refusal after an error that is not the shop's."""
    return failed(envelope.unexpected(error))


def too_large(error: HTTPException) -> Response:
    """Return the refusal of a form that is too large or malformed."""
    return _refusal(Refusal.NO_FIELDS, error.name, status=error.code or 400)


def _refusal(reason: Refusal, msg: str, *, status: int = 200, page: str = "") -> Response:
    if request.endpoint not in PAYERS:
        return envelope.as_json({"code": reason.code, "msg": msg}, status)
    request.environ[CODE] = reason.code
    shown = render_template("epay/refused.html", reason=reason, msg=msg, page=pay_url(page) if page else "")
    return Response(shown, 400 if status == 200 else status)
