"""Authentication: `@signed` on every /merchant endpoint (docs/signing.md)."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from typing import Any

from flask import current_app, request
from flask_babel import gettext
from marshmallow import Schema, ValidationError
from peewee import DatabaseError

from blueprints.api.rate_limits import caller
from models.tables.merchant import Merchant
from net.ip_addresses import is_within
from runtime.state import Part, current
from schemas.messages import N_, Message
from schemas.signature_fields import AUTH, NONCE
from schemas.strict_json import Literal, Malformed, parse, parse_query
from services.errors import ApiError, Code
from services.merchants import cache
from services.merchants.cache import Known
from services.platform.rate_limits import Rate
from services.security import replay, signing, vault
from services.security.replay import Call

_NONCE = re.compile(NONCE)
_IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_TIMESTAMP = re.compile(r"[0-9]{1,12}")
_MISSING = N_("missing")
_NO_NONCE = N_("must be 8 to 64 letters, digits, _ . or -")
_IN_BODY, _IN_QUERY = N_("Belongs in the JSON body."), N_("Belongs in the query string.")
EXPLAINS_SIGNATURES = "orders.explains_signatures"  # in app.extensions: merchant, string to sign -> detail

_requests = Part(lambda: Rate(current().settings.requests_per_second, seconds=1))
_refused = Part(lambda: Rate(current().settings.refused_per_minute, seconds=60))


def _read(body_required: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read the JSON body and the query parameters.

    Raises:
        ApiError: MALFORMED_REQUEST or UNSUPPORTED_MEDIA_TYPE.
    """
    raw = request.get_data(cache=current().settings.demo)  # demo mode reads it again to explain a bad signature
    if raw and request.mimetype != "application/json":
        raise ApiError(Code.UNSUPPORTED_MEDIA_TYPE)
    try:
        body = parse(raw) if raw or body_required else {}
        return body, parse_query(list(request.args.items(multi=True))) if request.query_string else {}
    except Malformed as error:
        raise ApiError(Code.MALFORMED_REQUEST, detail=error.message) from None


def _authenticate(endpoint: str, body: dict[str, Any], query: dict[str, Any], in_query: bool) -> tuple[Merchant, str]:
    """Return the merchant and the nonce of a signed request. The nonce is spent.

    Raises:
        ApiError: UNKNOWN_API_KEY to INVALID_NONCE, ADDRESS_NOT_ALLOWED or TOO_MANY_REQUESTS.
    """
    sent = query | body if in_query else body
    auth = {name: sent[name] if isinstance(sent.get(name), str) else "" for name in AUTH}
    known = cache.by_key(auth["api_key"])
    if known is None:
        raise ApiError(Code.UNKNOWN_API_KEY, detail="" if auth["api_key"] else _MISSING)
    merchant = known.merchant
    text = signing.string_to_sign(endpoint, body, query)
    if not signing.is_valid(auth["signature"], vault.valid_secrets(merchant, "secret"), text):
        raise _bad_signature(merchant, text, auth["signature"])
    stamp = auth["timestamp"]
    if not _TIMESTAMP.fullmatch(stamp) or not replay.is_fresh(int(stamp)):
        raise ApiError(Code.TIMESTAMP_OUTSIDE_WINDOW, detail=_why_not_fresh(sent.get("timestamp")))
    check_address(known)
    count_request(merchant)
    if isinstance(auth["nonce"], Literal) or not _NONCE.fullmatch(auth["nonce"]):
        raise ApiError(Code.INVALID_NONCE, detail=_MISSING if sent.get("nonce") in (None, "") else _NO_NONCE)
    replay.spend_nonce(merchant, auth["nonce"])
    return merchant, auth["nonce"]


def _bad_signature(merchant: Merchant, text: str, sent: str) -> ApiError:
    """Return the error. In demo mode, `EXPLAINS_SIGNATURES` adds the expected string to sign."""
    explain = current_app.extensions.get(EXPLAINS_SIGNATURES)
    details = ["" if sent else gettext(_MISSING), explain(merchant, text) if explain else ""]
    return ApiError(Code.BAD_SIGNATURE, detail="; ".join(filter(None, details)))


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


def check_address(known: Known) -> None:
    """Check the caller's address against the merchant's allow list, if any. Raises ApiError ADDRESS_NOT_ALLOWED."""
    if known.networks and not is_within(request.remote_addr, known.networks):
        raise ApiError(Code.ADDRESS_NOT_ALLOWED)


def count_request(merchant: Merchant) -> None:
    """Count a genuine request. Raises ApiError TOO_MANY_REQUESTS."""
    _requests().count(merchant.key)


def check_refusals(address: str) -> None:
    """Refuse an address after too many failed authentications. Raises ApiError TOO_MANY_REQUESTS."""
    _refused().check(address)


def count_refusal(address: str) -> None:
    """Count a failed authentication."""
    _refused().hit(address)


def _idempotency_key() -> str:
    key: str | None = request.environ.get("HTTP_IDEMPOTENCY_KEY")
    if key is None:
        return ""
    if not _IDEMPOTENCY_KEY.fullmatch(key):  # empty ones too: their sender expects a safe retry
        raise ValidationError({"Idempotency-Key": [N_("Must be 1 to 255 printable ASCII characters, without spaces.")]})
    return key


def authenticated(endpoint: str, in_query: bool) -> Call:
    """Authenticate the current request and return its call, whose payload has no auth fields.

    Args:
        in_query: the endpoint's own parameters are in the query string, not in the body.

    Raises:
        ApiError, ValidationError: as documented per code; refused authentications are counted.
    """
    address = caller(request.remote_addr or "")
    check_refusals(address)
    try:
        body, query = _read(body_required=not in_query)
        merchant, nonce = _authenticate(endpoint, body, query, in_query)
    except ApiError as refusal:
        if refusal.code == Code.MALFORMED_REQUEST or refusal.code // 100 == 401:
            count_refusal(address)
        raise
    request.environ["orders.merchant"] = merchant.key
    payload, elsewhere = (query, body) if in_query else (body, query)
    misplaced = [name for name in elsewhere if name not in AUTH]
    if misplaced:
        raise ValidationError({name: [_IN_QUERY if in_query else _IN_BODY] for name in misplaced})
    own = {name: value for name, value in payload.items() if name not in AUTH}
    return Call(merchant, nonce, own)


def _answered(handler: Callable[..., Any], call: Call) -> Any:
    """Run a handler that stores the nonce itself; store the nonce if the handler fails before that."""
    try:
        key = _idempotency_key()
        return handler(replace(call, idempotency_key=key) if key else call)
    except (ApiError, ValidationError):
        replay.keep_nonce(call.merchant, call.nonce)
        raise
    except Exception:
        with suppress(ApiError, DatabaseError):  # report the first error
            replay.keep_nonce(call.merchant, call.nonce)
        raise


def signed(schema: Schema | None = None, *, in_query: bool = False) -> Callable[..., Any]:
    """Decorate a handler so that it receives signed requests only.

    With a schema the handler receives `(merchant, loaded fields)`, otherwise the `Call` with its Idempotency-Key.
    """

    def decorate(handler: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(handler)
        def checked() -> Any:
            endpoint = request.path.rsplit("/", 1)[-1]
            if schema is None:
                return _answered(handler, authenticated(endpoint, in_query))
            call = authenticated(endpoint, in_query)
            replay.keep_nonce(call.merchant, call.nonce)
            return handler(call.merchant, schema.load(call.payload))

        return checked

    return decorate
