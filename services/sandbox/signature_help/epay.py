"""Explains the signature of an epay request, or of a notice that the service sent to a shop."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gateways.config import private_key, public_key
from gateways.epay_protocol import ambiguous
from gateways.signatures import sign
from models.tables.epay import EpayAccount
from schemas.strict_json import Malformed, is_half
from services.errors import N_
from services.merchants import epay_accounts
from services.sandbox.signature_help import (
    REFUSED,
    Explanation,
    Sentence,
    judged,
    left_out_of,
    lines_of,
    time_check,
)
from services.sandbox.signature_help.epay_mistakes import MD5, RSA
from services.sandbox.signature_help.epay_steps import Field, from_base64, md5, opened
from services.sandbox.signature_help.received import BODY, QUERY, Received
from services.sandbox.signature_help.recipe import Keys
from services.security import vault

NAME = "epay"
OF_NOTICES = ("pid", "trade_no", "out_trade_no", "type", "name", "money", "trade_status", "param", "timestamp")
_V1, _V2 = re.compile(r"(.*/)?(submit|mapi|api)\.php"), re.compile(r"(.*/)?api/(pay|merchant|transfer)/\w+")
_ADDRESS = re.compile(r"(?:(?:GET|POST) )?(?:\w+://[^/?#]*)?(/?[^?=&]*)\?(.*?)(?: HTTP/[0-9.]+)?", re.DOTALL)
_KEY = re.compile(r"(^|[?&])key=[^&\s]+")


def without_key(pasted: str) -> str:
    """Return a pasted address or body without the merchant's key, which api.php has in its address."""
    return _KEY.sub(r"\1key=", pasted)


# --- reading


def _fields(text: str, place: str) -> list[Field]:
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict")
    except UnicodeDecodeError as error:
        half = N_(
            "A parameter has half a character, such as an emoji cut in two. Cut texts by characters, not by bytes."
        )
        other = N_("The parameters are not in UTF-8. Send and sign them in UTF-8, not in GBK.")
        raise Malformed(half if is_half(error) else other) from None
    undecoded = [pair.partition("=")[2] for pair in text.split("&") if pair]
    return [Field(name, value, place, raw) for (name, value), raw in zip(pairs, undecoded, strict=True)]


def _read(sent: str) -> Received:
    """Parse an address or a form body as the gateway does. Raises Malformed."""
    found = _ADDRESS.fullmatch(sent.strip())
    fields = _fields(found[2], QUERY) if found else _fields(sent.strip(), BODY)
    values = {each.path: each.value for each in fields}
    if not values:
        raise Malformed(N_("No parameters received"))
    if values.get("key"):
        raise Malformed(
            N_("The request has the field key. Only requests to api.php have it, and they need no signature.")
        )
    if _is_notice(values):  # appended to the shop's own address, which may have a query
        fields = [replace(each, own=each.path not in OF_NOTICES) for each in fields]
    name, times = Counter(each.path for each in fields).most_common(1)[0]
    if times > 1:
        raise Malformed(N_("%(path)s: the name appears twice"), path=name)
    path = found[1] if found else ""
    return Received(path.strip("/") or NAME, path, sent, dict(values), {}, tuple(fields))


def _is_notice(values: dict[str, str]) -> bool:
    return "trade_status" in values


def _is_rsa(received: Received) -> bool:
    """Return whether it is signed by RSA: by its sign_type, except at an address that accepts nothing else."""
    if not _is_notice(received.body) and _V2.fullmatch(received.path):
        return True
    return received.auth("sign_type").upper() == "RSA"


# --- keys


@dataclass(frozen=True)
class _Known:
    """Keys to try, the private key if one was typed, and what is wrong with the typed key."""

    keys: Keys
    private: RSAPrivateKey | None = None
    checks: tuple[Sentence, ...] = ()


_UNREADABLE = Sentence(N_("The key that you entered is not an RSA key."), False)
_ANOTHER = N_("The key that you entered is not the one of pid %(pid)s.")
_NO_RSA = Sentence(N_("The merchant has no RSA keys"), False)


def _md5_keys(account: EpayAccount | None, typed: str) -> _Known:
    if account is None:
        return _Known(Keys(api=(typed,) if typed else ()))
    valid = epay_accounts.keys(account)
    previous = [vault.decrypt(account.previous_key)] if account.previous_key else []
    secrets = [
        secret for name in ("secret", "callback_secret") for secret in vault.valid_secrets(account.merchant, name)
    ]
    keys = Keys(
        str(account.pid),
        (typed,) if typed else tuple(valid),
        tuple(secrets),
        tuple(key for key in previous if key not in valid),
    )
    return _Known(keys, checks=_is_of(account, not typed or typed in valid))


def _rsa_keys(account: EpayAccount | None, typed: str, is_notice: bool) -> _Known:
    shops, platforms, ended = _stored_rsa_keys(account)
    right, counterpart = (platforms, shops) if is_notice else (shops, platforms)
    private, shown = _typed_rsa_key(typed)
    if account is not None and not shops and not typed:
        return _Known(Keys(), checks=(_NO_RSA,))
    pid = str(account.pid) if account is not None else ""
    if not typed or not shown:
        return _Known(Keys(pid, right, counterpart, ended), checks=(_UNREADABLE,) if typed else ())
    other = right if shown in counterpart else counterpart
    is_known = account is None or shown in (*right, *counterpart)
    return _Known(Keys(pid, (shown,), other, ended), private, _is_of(account, is_known))


def _stored_rsa_keys(account: EpayAccount | None) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return public keys: the shop's, the platform's, and the shop's expired one."""
    if account is None:
        return (), (), ()
    shops, platform = tuple(epay_accounts.public_keys(account)), epay_accounts.platform_public_key(account)
    previous = account.previous_public_key or ""
    ended = (previous,) if previous and previous not in shops else ()
    return shops, (_pem(public_key(platform)),) if platform else (), ended


def _typed_rsa_key(typed: str) -> tuple[RSAPrivateKey | None, str]:
    """Return the private key, if it is one, and the public key as PEM; empty if it is neither."""
    for read in (private_key, public_key):
        try:
            key: RSAPrivateKey | RSAPublicKey = read(typed)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            continue
        private = key if isinstance(key, RSAPrivateKey) else None
        return private, _pem(private.public_key() if private else key)
    return None, ""


def _pem(key: RSAPublicKey | RSAPrivateKey) -> str:
    public = key.public_key() if isinstance(key, RSAPrivateKey) else key
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def _is_of(account: EpayAccount | None, is_known: bool) -> tuple[Sentence, ...]:
    return () if account is None or is_known else (Sentence(_ANOTHER, False, {"pid": account.pid}),)


# --- explaining

_THEN_MD5 = Sentence(N_("Append the key directly to this text. sign is the MD5 of it, in lowercase hex."))
_THEN_RSA = Sentence(N_("sign is the signature of this text by SHA256withRSA (PKCS #1 v1.5), in base64."))
_UNKNOWN_PID = N_("No demo merchant has the pid %(pid)s. Enter the key to verify the signature.")
_FITS_ANOTHER = N_("a value contains another field, such as &money=: the service refuses it, signed or not")
_OTHER_PID = N_("the key belongs to the pid %(key)s, not to this one")


def explain(
    sent: str,
    find: Callable[[str], EpayAccount | None] | None = None,
    typed: str = "",
    *,
    theirs: str | None = None,
    signature: str | None = None,
    now: float | None = None,
) -> Explanation:
    """Explain the signature of one request of a shop, or of one notice to it.

    The right signature is returned for demo merchants and for callers who know the key.

    Args:
        sent: the address, the query string or the form body, as sent.
        find: returns the account whose stored keys are tried, by pid.
        typed: a key to try instead: the MD5 key, or an RSA key in PEM or base64.
        theirs: the text that the shop's code signs. A key in it is removed.
        signature: theirs; None for the one in the request.
        now: the Unix time with which the timestamp is compared.
    """
    try:
        received = _read(sent)
    except Malformed as error:
        return Explanation(endpoint=NAME, refused=error.message, verdict=REFUSED)
    is_rsa, is_notice = _is_rsa(received), _is_notice(received.body)
    account = find(received.auth("pid")) if find else None
    known = _rsa_keys(account, typed, is_notice) if is_rsa else _md5_keys(account, typed)
    given = received.auth("sign") if signature is None else signature
    protocol = RSA if is_rsa else MD5
    text = protocol.recipe().text(received)
    plain = Explanation(
        endpoint=received.endpoint,
        text=text,
        ending=_THEN_RSA if is_rsa else _THEN_MD5,
        lines=lines_of(received),
        left_out=left_out_of(received),
        given=given,
        signature=_right_signature(known, account, typed, text, is_rsa),
        checks=(
            *known.checks,
            *_checks(received, account, find is not None and not typed, time.time() if now is None else now, is_rsa),
        ),
    )
    if theirs is not None and not is_rsa:
        theirs = _without_keys(theirs, known.keys)
    told = judged(protocol, plain, received, known.keys, theirs)
    return replace(told, checks=(*told.checks, *_who_signed(told, known.keys))) if is_rsa else told


def _right_signature(known: _Known, account: EpayAccount | None, typed: str, text: str, is_rsa: bool) -> str:
    if is_rsa:
        return sign(known.private, text.encode()) if known.private else ""
    is_shown = bool(typed or (account is not None and account.merchant.demo))
    return md5(known.keys.api[0].encode(), text) if known.keys.api and is_shown else ""


def _without_keys(theirs: str, keys: Keys) -> str:
    """Remove the key from a text that was copied together with it, so that it is neither compared nor shown."""
    for key in (*keys.api, *keys.ended):
        theirs = theirs.replace(key, "")
    return theirs


def _checks(
    received: Received, account: EpayAccount | None, was_sought: bool, now: float, is_rsa: bool
) -> Iterator[Sentence]:
    pid = received.auth("pid")
    if account is None and was_sought:
        yield Sentence(_UNKNOWN_PID, False, {"pid": pid})
    if account is not None and pid != str(account.pid):
        yield Sentence(_OTHER_PID, False, {"key": account.pid})
    wanted = "RSA" if is_rsa else "MD5/RSA"
    if (received.auth("sign_type") or "MD5").upper() not in wanted.split("/"):
        yield Sentence(N_("sign_type must be %(wanted)s at this address"), False, {"wanted": wanted})
    if not _is_notice(received.body) and ambiguous(received.body):
        yield Sentence(_FITS_ANOTHER, False)
    if is_rsa and not _is_notice(received.body):
        stamp = received.auth("timestamp")
        if stamp:
            yield time_check(stamp, now)
        elif not _V1.fullmatch(received.path):
            yield Sentence(N_("timestamp is missing"), False)


def _who_signed(told: Explanation, keys: Keys) -> Iterator[Sentence]:
    """Tell a wrong text from a wrong key: an RSA signature shows with which key it was made."""
    if told.holds is False and not told.mistakes:
        try:
            signature = from_base64(told.given)
        except ValueError:
            yield Sentence(N_("The signature is not in base64."), False)
            return
        if any(opened(key.encode(), signature) for key in keys.api):
            yield Sentence(N_("The signature was made with this merchant's key, but of another text."))
        else:
            yield Sentence(N_("The signature was made with another key, or changed on its way."), False)
