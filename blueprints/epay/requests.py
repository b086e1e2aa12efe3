"""Requests of shops: their fields, and the merchant that they prove to come from."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qsl

from flask import current_app, request

from blueprints.api import rate_limits
from blueprints.api.environ_keys import MERCHANT
from blueprints.api.rate_limits import caller
from gateways.base import BadNotice
from gateways.epay_protocol import ambiguous, signed_text
from gateways.upstream import read_form
from models.tables.epay import MD5, RSA
from runtime.state import Part, current
from schemas.epay import EpayPayment, EpayRefund, cut
from schemas.strict_json import is_half
from services.epay.payments import Wanted
from services.epay.refusals import Refusal, Refused
from services.merchants import cache, epay_accounts, epay_signing
from services.merchants.cache import Known
from services.platform.rate_limits import Rate
from services.security.replay import WINDOW

MOST_BYTES = 8 * 1024  # of a form
SIGN_TYPES = {"MD5": MD5, "RSA": RSA}
ACCEPTED = {MD5: ("MD5", "RSA"), RSA: ("RSA",)}  # by the version of the address
EXPLAINS_EPAY = "orders.explains_epay"  # in app.extensions: merchant, fields -> detail
_payment, _refund = EpayPayment(), EpayRefund()
_payments = Part(lambda: Rate(current().settings.requests_per_second, seconds=1))


def _fields() -> dict[str, str]:
    """Return the fields of the form or, if it has no pid, of the query. Raises Refused."""
    request.max_content_length = MOST_BYTES
    fields = _form() if request.method == "POST" else {}
    fields = fields if "pid" in fields else _read(request.query_string)
    if not fields:
        raise Refused(Refusal.NOT_JSON if request.is_json else Refusal.NO_FIELDS)
    if any("\0" in value for value in fields.values()):  # Postgres cannot store it
        raise Refused(Refusal.NOT_A_FORM)
    return fields


def _form() -> dict[str, str]:
    """Return the fields of the form. Flask reads one with parts, as PHP sends an array, but takes twice as long."""
    if not request.environ.get("CONTENT_TYPE", "").lower().startswith("multipart/form-data"):
        return _read(request.get_data(cache=False))
    if any(len(values) > 1 for _, values in request.form.lists()):
        raise Refused(Refusal.NOT_A_FORM)
    return request.form.to_dict()


def _read(raw: bytes) -> dict[str, str]:
    """Return the fields of a form or a query string. Raises Refused, which names a field with half a character."""
    try:
        return read_form(raw)
    except BadNotice:
        name = _half(raw)
        raise (Refused(Refusal.HALF_CHARACTER, name=name) if name else Refused(Refusal.NOT_A_FORM)) from None


def _half(raw: bytes) -> str:
    """Return the name of the first field whose text is cut within a character, or ""."""
    for name, text in parse_qsl(raw.decode("latin-1"), keep_blank_values=True, encoding="latin-1"):
        try:
            text.encode("latin-1").decode()
        except UnicodeDecodeError as error:
            return ascii(name)[1:-1] if is_half(error) else ""
    return ""


def _check_signature(known: Known, version: int, fields: dict[str, str]) -> None:
    """Check a signature by its sign_type, at an address of this version.

    Version 1 has no time, also if it is signed by RSA. A request of version 2 must not outlive its own at these
    addresses, so a timestamp counts wherever it is sent.
    """
    if not fields.get("sign"):
        raise Refused(Refusal.NOT_SIGNED)
    sign_type = (fields.get("sign_type") or "MD5").upper()
    if sign_type not in ACCEPTED[version]:
        raise Refused(Refusal.WRONG_SIGN_TYPE, wanted="/".join(ACCEPTED[version]))
    if sign_type == "RSA" and not known.account.public_key:
        raise Refused(Refusal.NO_RSA_KEYS)
    if not epay_signing.is_genuine(known.account, SIGN_TYPES[sign_type], fields):
        explain = current_app.extensions.get(EXPLAINS_EPAY)  # in demo mode, with the address of the explanation
        raise Refused(Refusal.BAD_SIGNATURE, detail=explain(known.merchant, fields) if explain else "")
    if names := ambiguous(fields):
        raise Refused(Refusal.AMBIGUOUS, name=names[0])
    is_timed = version == RSA or (sign_type == "RSA" and "timestamp" in fields)
    if is_timed and not _is_fresh(fields.get("timestamp", "")):
        raise Refused(Refusal.STALE)


def _is_fresh(timestamp: str) -> bool:
    """Return whether a timestamp is near the server's. It is not stored: a repeated request means the same payment."""
    known = timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 12
    return known and abs(time.time() - int(timestamp)) <= WINDOW


def signed(version: int, *, from_payer: bool = False) -> tuple[Known, dict[str, str]]:
    """Return the merchant and the fields of a signed request.

    Args:
        from_payer: a payer's browser sends it, so the merchant's list of addresses does not apply.

    Raises:
        Refused: the request is not genuine; these are counted per address.
        ApiError: Code.TOO_MANY_REQUESTS.
    """
    with _counting_refusals():
        known, fields = _received()
        _check_signature(known, version, fields)
        _accept(known, from_payer=from_payer)
    if not from_payer:
        # By merchant and address: anybody can repeat a signed payment that a payer has seen, and must not use up what
        # the shop and the merchant's API need.
        _payments().count(f"{known.merchant.key} {caller(request.remote_addr or '')}")
    return known, fields


def query() -> tuple[Known, dict[str, str]]:
    """Return the merchant and the fields of a signed request of version 2 that is no payment. Raises as `signed`."""
    with _counting_refusals():
        known, fields = _received()
        _check_query(known, RSA, fields)
        _accept(known)
    rate_limits.count_request(known.merchant)
    return known, fields


def with_key() -> tuple[Known, dict[str, str]]:
    """Return the merchant and the fields of a request to api.php, with the key itself or signed. Raises as `signed`."""
    with _counting_refusals():
        known, fields = _received()
        if fields.get("act", "").strip() and "sign" in fields and "key" not in fields:
            _check_query(known, MD5, fields)
        elif not epay_signing.is_key(known.account, fields.get("key", "")):
            raise Refused(Refusal.WRONG_KEY)
        _accept(known)
    rate_limits.count_request(known.merchant)
    return known, fields


@contextmanager
def _counting_refusals() -> Iterator[None]:
    """Count a refusal by the caller's address. Raises ApiError TOO_MANY_REQUESTS after too many."""
    address = caller(request.remote_addr or "")
    rate_limits.check_refusals(address)
    try:
        yield
    except Refused:
        rate_limits.count_refusal(address)
        raise


def _received() -> tuple[Known, dict[str, str]]:
    """Return the fields and the merchant that they name. Raises Refused."""
    fields = _fields()
    pid = fields.get("pid", "")
    known = cache.by_pid(int(pid)) if pid.isascii() and pid.isdigit() and len(pid) <= 9 else None
    if known is None:
        raise Refused(Refusal.UNKNOWN_PID)
    return known, fields


def _accept(known: Known, *, from_payer: bool = False) -> None:
    """Check the address of a genuine request, and leave the merchant for the log. Raises Refused."""
    if not (from_payer or known.allows(request.remote_addr)):
        raise Refused(Refusal.ADDRESS_NOT_ALLOWED)
    request.environ[MERCHANT] = known.merchant.key


def _check_query(known: Known, version: int, fields: dict[str, str]) -> None:
    """Check a signature, and that it was not made for a payment or a notice: payers see those."""
    _check_signature(known, version, fields)
    text = signed_text(fields)
    if "notify_url=" in text or "trade_status=" in text:
        raise Refused(Refusal.BAD_SIGNATURE)


def payment_in(known: Known, version: int, fields: dict[str, str]) -> Wanted:
    """Return the payment that these fields ask for.

    Raises:
        ValidationError: invalid fields.
        Refused: an address whose host the merchant did not allow.
    """
    loaded = _payment.load(fields)
    for name in ("notify_url", "return_url"):
        if loaded[name] and not epay_accounts.allows(known.account, loaded[name]):
            raise Refused(Refusal.HOST_NOT_ALLOWED, name=name)
    return Wanted(known=known, version=version, **loaded | {"name": cut(loaded["name"])})


def refund_in(fields: dict[str, str]) -> tuple[int, str]:
    """Return the amount in fen of the refund that these fields ask for, and the shop's number; empty without one.

    A signature without a time stays valid, so its repetition must mean the same refund.

    Raises:
        ValidationError: invalid fields.
        Refused: by GET, which caches and browsers repeat, or by such a signature without a number.
    """
    if request.method != "POST":
        raise Refused(Refusal.NOT_BY_POST)
    loaded = _refund.load(fields | {"out_refund_no": fields.get("out_refund_no") or fields.get("refund_no", "")})
    is_timed = fields.get("sign_type", "").upper() == "RSA" and "timestamp" in fields
    if not (loaded["out_refund_no"] or "key" in fields or is_timed):
        raise Refused(Refusal.UNNUMBERED)
    return loaded["amount"], loaded["out_refund_no"]
