"""Authentication of merchants: `@signed` for queries, `@signed_order` for createOrder (docs/signing.md)."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from typing import Any

from flask import Response, current_app, request
from flask_babel import gettext
from marshmallow import Schema, ValidationError
from peewee import DatabaseError

from blueprints.api import rate_limits
from blueprints.api.environ_keys import MERCHANT
from blueprints.api.rate_limits import caller
from models.tables.merchant import Merchant
from runtime.state import current
from schemas.messages import N_, Message
from schemas.signature_fields import AUTH, NONCE
from schemas.strict_json import Literal, Malformed, parse, parse_query
from services.errors import ApiError, Code
from services.merchants import cache
from services.security import replay, signing, vault
from services.security.replay import Call

_NONCE = re.compile(NONCE)
_IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_TIMESTAMP = re.compile(r"[0-9]{1,12}")
_MISSING = N_("missing")
_NO_NONCE = N_("must be 8 to 64 letters, digits, _ . or -")
_NO_KEY = N_("Must be 1 to 255 printable ASCII characters, without spaces.")
_IN_BODY, _IN_QUERY = N_("Belongs in the JSON body."), N_("Belongs in the query string.")
EXPLAINS_SIGNATURES = "orders.explains_signatures"  # in app.extensions: merchant, string to sign -> detail


def authenticate(*, in_query: bool = False) -> Call:
    """Authenticate the current request, spend its nonce, and return it as a call whose payload has no auth fields.

    Args:
        in_query: the endpoint's own parameters are in the query string, not in the body.

    Raises:
        ApiError, ValidationError: as documented per code. Refused authentications are counted by address.
    """
    address = caller(request.remote_addr or "")
    rate_limits.check_refusals(address)
    try:
        return _authenticated(in_query)
    except ApiError as refusal:
        if refusal.code == Code.MALFORMED_REQUEST or refusal.code // 100 == 401:
            rate_limits.count_refusal(address)
        raise


def _authenticated(in_query: bool) -> Call:
    raw = request.get_data(cache=current().settings.demo)  # demo mode reads it again to explain a bad signature
    if raw and request.mimetype != "application/json":
        raise ApiError(Code.UNSUPPORTED_MEDIA_TYPE)
    try:
        body = parse(raw) if raw or not in_query else {}
        query = parse_query(list(request.args.items(multi=True))) if request.query_string else {}
    except Malformed as error:
        raise ApiError(Code.MALFORMED_REQUEST, detail=error.message) from None
    sent = query | body if in_query else body
    key, timestamp, nonce, signature = (sent[name] if isinstance(sent.get(name), str) else "" for name in AUTH)

    known = cache.by_key(key)
    if known is None:
        raise ApiError(Code.UNKNOWN_API_KEY, detail="" if key else _MISSING)
    merchant = known.merchant
    text = signing.string_to_sign(request.path.rsplit("/", 1)[-1], body, query)
    if not signing.is_valid(signature, vault.valid_secrets(merchant, "secret"), text):
        explain = current_app.extensions.get(EXPLAINS_SIGNATURES)  # in demo mode, with the expected string to sign
        details = ["" if signature else gettext(_MISSING), explain(merchant, text) if explain else ""]
        raise ApiError(Code.BAD_SIGNATURE, detail="; ".join(filter(None, details)))
    if not _TIMESTAMP.fullmatch(timestamp) or not replay.is_fresh(int(timestamp)):
        raise ApiError(Code.TIMESTAMP_OUTSIDE_WINDOW, detail=_why_not_fresh(sent.get("timestamp")))
    if not known.allows(request.remote_addr):
        raise ApiError(Code.ADDRESS_NOT_ALLOWED)
    rate_limits.count_request(merchant)
    if isinstance(nonce, Literal) or not _NONCE.fullmatch(nonce):
        raise ApiError(Code.INVALID_NONCE, detail=_MISSING if sent.get("nonce") in (None, "") else _NO_NONCE)
    replay.spend(merchant, nonce)

    request.environ[MERCHANT] = merchant.key
    payload, elsewhere = (query, body) if in_query else (body, query)
    if misplaced := [name for name in elsewhere if name not in AUTH]:
        raise ValidationError({name: [_IN_QUERY if in_query else _IN_BODY] for name in misplaced})
    return Call(merchant, nonce, {name: value for name, value in payload.items() if name not in AUTH})


def _why_not_fresh(sent: Any) -> str:
    """Explain why a timestamp is refused, with the server's time."""
    now = int(time.time())
    if sent in (None, ""):
        return Message(N_("missing; the server's time is %(now)s"), now=now)
    if not isinstance(sent, str) or not _TIMESTAMP.fullmatch(sent):
        return Message(N_("must be Unix time in seconds; the server's time is %(now)s"), now=now)
    ahead = int(sent) - now
    if ahead > replay.WINDOW:
        return Message(N_("%(seconds)s s ahead of the server, whose time is %(now)s"), seconds=ahead, now=now)
    if ahead < -replay.WINDOW:
        return Message(N_("%(seconds)s s behind the server, whose time is %(now)s"), seconds=-ahead, now=now)
    return Message(N_("the server's clock was set back; its time is %(now)s"), now=now)


def signed(schema: Schema, *, in_query: bool = False) -> Callable[..., Any]:
    """Decorate the handler of a query: it receives the merchant and the loaded fields of a signed request."""

    def decorate(handler: Callable[[Merchant, dict[str, Any]], Response]) -> Callable[[], Response]:
        @wraps(handler)
        def checked() -> Response:
            call = authenticate(in_query=in_query)
            replay.keep(call)
            return handler(call.merchant, schema.load(call.payload))

        return checked

    return decorate


def signed_order(handler: Callable[[Call], Response]) -> Callable[[], Response]:
    """Decorate a handler that creates an order: it receives a signed request, and stores the nonce with the order."""

    @wraps(handler)
    def checked() -> Response:
        call = authenticate()
        try:
            key = request.environ.get("HTTP_IDEMPOTENCY_KEY")
            if key is None:
                return handler(call)
            if not _IDEMPOTENCY_KEY.fullmatch(key):  # empty ones too: their sender expects a safe retry
                raise ValidationError({"Idempotency-Key": [_NO_KEY]})
            return handler(replace(call, idempotency_key=key))
        except (ApiError, ValidationError):
            replay.keep(call)
            raise
        except Exception:
            with suppress(ApiError, DatabaseError):  # report the first error
                replay.keep(call)
            raise

    return checked
