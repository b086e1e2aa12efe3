"""Explains the signature of an epay request, or of a notice that the service sent to a shop (docs/epay-inbound.md)."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from urllib.parse import parse_qsl

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gateways.config import private_key, public_key
from gateways.epay_protocol import NAMES, ambiguous
from gateways.signatures import is_signature, sign
from models.tables.epay import EpayAccount
from schemas.messages import Message
from schemas.strict_json import Malformed, is_half
from services.errors import N_
from services.merchants import epay_accounts
from services.sandbox.signature_help import wrong_steps as wrong
from services.sandbox.signature_help.explanation import (
    BODY,
    QUERY,
    Explanation,
    Fields,
    Keys,
    Leaf,
    Mistake,
    Proof,
    Protocol,
    Received,
    Sentence,
    explained,
    signed,
    time_check,
)
from services.security import vault

NAME = "epay"
_OF_NOTICES = ("pid", "trade_no", "out_trade_no", "type", "name", "money", "trade_status", "param", "timestamp")
_V1, _V2 = re.compile(r"(.*/)?(submit|mapi|api)\.php"), re.compile(r"(.*/)?api/(pay|merchant|transfer)/\w+")
_ADDRESS = re.compile(r"(?:(?:GET|POST) )?(?:\w+://[^/?#]*)?(/?[^?=&]*)\?(.*?)(?: HTTP/[0-9.]+)?", re.DOTALL)
_KEY = re.compile(r"(^|[?&])key=[^&\s]+")


def without_key(pasted: str) -> str:
    """Return a pasted address or body without the merchant's key, which api.php has in its address."""
    return _KEY.sub(r"\1key=", pasted)


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
        return Explanation(endpoint=NAME, refused=error.message)
    is_notice = "trade_status" in received.values
    is_rsa = received.text_of("sign_type").upper() == "RSA" or (not is_notice and bool(_V2.fullmatch(received.path)))
    account = find(received.text_of("pid")) if find else None
    keys, private, checks = _keys(account, typed, is_rsa, is_notice)
    if account is None and find and not typed:
        unknown = N_("No demo merchant has the pid %(pid)s. Enter the key to verify the signature.")
        checks.append(Sentence(Message(unknown, pid=received.text_of("pid")), False))
    checks += _checks(received, account, time.time() if now is None else now, is_rsa, is_notice)
    protocol = _RSA if is_rsa else _MD5
    text, right = protocol.text(received), ""
    if private:
        right = sign(private, text.encode())
    elif not is_rsa and keys.valid and (typed or (account is not None and account.merchant.demo)):
        right = _md5(text.encode() + keys.valid[0].encode())
    for key in () if is_rsa else (*keys.valid, *keys.replaced):  # neither compare it nor show it
        theirs = theirs and theirs.replace(key, "")
    told = explained(
        protocol,
        received,
        keys,
        received.text_of("sign") if signature is None else signature,
        theirs,
        checks,
        signature=right,
        ending=N_("sign is the signature of this text by SHA256withRSA (PKCS #1 v1.5), in base64.")
        if is_rsa
        else N_("Append the key directly to this text. sign is the MD5 of it, in lowercase hex."),
    )
    is_unknown = is_rsa and told.holds is False and not told.mistakes
    return replace(told, checks=(*told.checks, _who_signed(told.given, keys))) if is_unknown else told


def _read(sent: str) -> Received:
    """Parse an address or a form body as the gateway does. Raises Malformed."""
    found = _ADDRESS.fullmatch(sent.strip())
    path, fields = (found[1], found[2]) if found else ("", sent.strip())
    try:
        pairs = parse_qsl(fields, keep_blank_values=True, errors="strict")
    except UnicodeDecodeError as error:
        half = N_(
            "A parameter has half a character, such as an emoji cut in two. Cut texts by characters, not by bytes."
        )
        other = N_("The parameters are not in UTF-8. Send and sign them in UTF-8, not in GBK.")
        raise Malformed(half if is_half(error) else other) from None
    values = dict(pairs)
    if not values:
        raise Malformed(N_("No parameters received"))
    if values.get("key"):
        raise Malformed(
            N_("The request has the field key. Only requests to api.php have it, and they need no signature.")
        )
    name, times = Counter(name for name, _ in pairs).most_common(1)[0]
    if times > 1:
        raise Malformed(N_("%(path)s: the name appears twice"), path=name)
    leaves = []
    for name, value in pairs:
        if name in ("sign", "sign_type"):
            left_out = name
        elif "trade_status" in values and name not in _OF_NOTICES:  # appended to the shop's address, which has a query
            left_out = "own"
        else:
            left_out = "" if value.strip() else "empty"
        leaves.append(Leaf(name, value, QUERY if found else BODY, left_out))
    return Received(path.strip("/") or NAME, path, values, tuple(leaves))


def _keys(
    account: EpayAccount | None, typed: str, is_rsa: bool, is_notice: bool
) -> tuple[Keys, RSAPrivateKey | None, list[Sentence]]:
    """Return the keys to try, the private key if one was typed, and what is wrong with the keys."""
    valid: list[str] = []
    other: list[str] = []
    replaced, private, shown, checks = "", None, typed, []
    if account is not None and is_rsa:
        platform = epay_accounts.platform_public_key(account)
        valid, other = epay_accounts.public_keys(account), [_pem(public_key(platform))] if platform else []
        if not valid and not typed:
            checks.append(Sentence(N_("The merchant has no RSA keys"), False))
        valid, other = (other, valid) if is_notice else (valid, other)
        replaced = account.previous_public_key or ""
    elif account is not None:
        valid = epay_accounts.keys(account)
        names = ("secret", "callback_secret")
        other = [secret for name in names for secret in vault.valid_secrets(account.merchant, name)]
        replaced = vault.decrypt(account.previous_key) if account.previous_key else ""
    if typed and is_rsa:
        shown = ""
        for read in (private_key, public_key):
            with suppress(ValueError, TypeError, UnsupportedAlgorithm):
                key: RSAPrivateKey | RSAPublicKey = read(typed)
                private = key if isinstance(key, RSAPrivateKey) else None
                shown = _pem(key.public_key() if isinstance(key, RSAPrivateKey) else key)
                break
        else:
            checks.append(Sentence(N_("The key that you entered is not an RSA key."), False))
    if shown:
        if account is not None and shown not in (valid + other if is_rsa else valid):
            another = N_("The key that you entered is not the one of pid %(pid)s.")
            checks.append(Sentence(Message(another, pid=account.pid), False))
        valid, other = [shown], valid + other
    owner = str(account.pid) if account is not None else ""
    return Keys(owner, tuple(valid), tuple(other), (replaced,) if replaced else ()), private, checks


def _pem(key: RSAPublicKey) -> str:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def _checks(
    received: Received, account: EpayAccount | None, now: float, is_rsa: bool, is_notice: bool
) -> Iterator[Sentence]:
    """Yield why the service may refuse the request for another reason than its signature."""
    if account is not None and received.text_of("pid") != str(account.pid):
        text = N_("the key belongs to the pid %(key)s, not to this one")
        yield Sentence(Message(text, key=account.pid), False)
    wanted = "RSA" if is_rsa else "MD5/RSA"
    if (received.text_of("sign_type") or "MD5").upper() not in wanted.split("/"):
        yield Sentence(Message(N_("sign_type must be %(wanted)s at this address"), wanted=wanted), False)
    if not is_notice and ambiguous(received.values):
        yield Sentence(
            N_("a value contains another field, such as &money=: the service refuses it, signed or not"), False
        )
    if is_rsa and not is_notice:
        if stamp := received.text_of("timestamp"):
            yield time_check(stamp, now)
        elif not _V1.fullmatch(received.path):
            yield Sentence(N_("timestamp is missing"), False)


def _who_signed(given: str, keys: Keys) -> Sentence:
    """Tell a wrong text from a wrong key: an RSA signature shows with which key it was made."""
    try:
        signature = b64decode(given, validate=True)
    except ValueError:
        return Sentence(N_("The signature is not in base64."), False)
    for key in keys.valid:
        with suppress(InvalidSignature, ValueError):
            _load(key).recover_data_from_signature(signature, PKCS1v15(), None)
            return Sentence(
                N_("The signature was made with this merchant's key, but of another text or with another hash.")
            )
    return Sentence(N_("The signature was made with another key, or changed on its way."), False)


# The ten commonest mistakes

_REQUIRED = ("pid", "type", "out_trade_no", "notify_url", "return_url", "name", "money")
_DOCUMENTED = (*_REQUIRED, "method", "timestamp", "clientip", "device", "param")


def _md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _by_md5(make: Callable[[bytes, bytes], bytes] = lambda key, text: text + key) -> Proof:
    """Return the proof of an MD5 of what the function makes of key and text. Its case does not matter."""
    same = wrong.equals(lambda key, text: _md5(make(key, text.encode())))
    return lambda key, text, given: same(key, text, given.lower())


_load = lru_cache(maxsize=256)(public_key)


def _by_rsa(key: bytes, text: str, given: str) -> bool:
    try:
        return is_signature(_load(key.decode()), text.encode(), given)
    except (ValueError, UnsupportedAlgorithm):  # not the text of a key
        return False


def _with(name: str, value: str) -> Fields:
    return lambda leaves: [*signed(leaves), Leaf(name, value, QUERY)]


MISTAKES = (
    Mistake(
        "sign_signed",
        N_("sign or sign_type is signed"),
        N_("Leave out sign and sign_type. Add them to the request after you compute the signature."),
        "fields",
        [
            wrong.also_signed("sign_type"),
            wrong.also_signed("sign_type", "empty"),
            *(_with(name, value) for name, value in (("sign_type", "MD5"), ("sign_type", "RSA"), ("sign", ""))),
        ],
    ),
    Mistake(
        "blank_signed",
        N_("empty values are signed"),
        N_("Leave them out of the text. They may stay in the request."),
        "fields",
        [wrong.also_signed("empty")],
    ),
    Mistake(
        "own_query_signed",
        N_("fields of the shop's own address are part of the text"),
        N_("Verify only the fields of the notice, or use a notify_url without a query."),
        "fields",
        [wrong.also_signed("own"), wrong.also_signed("own", "empty")],
    ),
    Mistake(
        "unsorted",
        N_("the fields are not sorted by name, byte by byte"),
        N_("Sort the fields by name, byte by byte."),
        "order",
        wrong.ORDERS,
    ),
    Mistake(
        "left_out",
        N_("a field is sent that is not signed: it is added after signing"),
        N_("Sign every field that you send, such as sitename, device or cid, or do not send it."),
        "fields",
        [
            lambda leaves: [leaf for leaf in signed(leaves) if leaf.path in _REQUIRED],
            lambda leaves: [leaf for leaf in signed(leaves) if leaf.path in (*_REQUIRED, "sitename")],
            lambda leaves: [leaf for leaf in signed(leaves) if leaf.path in _DOCUMENTED],
            *wrong.WITHOUT_ONE,
        ],
    ),
    Mistake(
        "money",
        N_("money is signed with other digits than it is sent with"),
        N_("Write money once, such as 12.50, and sign and send the same text."),
        "value",
        wrong.AMOUNTS,
    ),
    Mistake(
        "percent",
        N_("values are signed URL-encoded (percent-encoded)"),
        N_("Sign the characters themselves, in UTF-8."),
        "value",
        wrong.PERCENT,
    ),
    Mistake(
        "key_joined",
        N_("something is between the text and the key, such as &key= or &"),
        N_("Append the key directly to the last value."),
        "join",
        [wrong.joined("&", end) for end in ("&key=", "&", "key=", "\n")],
    ),
    Mistake(
        "wrong_key",
        N_("the key is expired, the API secret or the platform's, or has an extra space, newline or quotation mark"),
        N_(
            "Use the latest key of the epay gateway: add nothing, decode nothing. RSA: sign with the merchant's "
            "private key, and verify notices with the platform's public key."
        ),
        "keys",
        [wrong.other_keys, wrong.misread_keys],
    ),
    Mistake(
        "hash",
        N_("HMAC, another hash or MD5 twice is used, or the key is in front of the text"),
        N_("Use the MD5 of the text followed by the key."),
        "proof",
        [
            wrong.equals(lambda key, text: hmac.digest(key, text.encode(), "md5").hex()),
            wrong.equals(lambda key, text: hmac.digest(key, text.encode(), "sha256").hex()),
            wrong.equals(lambda key, text: hashlib.sha256(text.encode() + key).hexdigest()),
            _by_md5(lambda key, text: _md5(text + key).encode()),
            _by_md5(lambda key, text: key + text),
        ],
    ),
)


def _lines(text: str, received: Received) -> list[str]:
    """Split a text into its fields. A value may have an & itself: a field begins with a known name."""
    known = {*(leaf.path for leaf in received.leaves), *NAMES, "sign_type", "sign", "key"}
    names = "|".join(map(re.escape, known))
    return re.split(f"&(?=(?:{names})=)", text)


_MD5 = Protocol(MISTAKES, _by_md5(), first=lambda received: [], join="&".join, split=_lines)
_RSA = replace(_MD5, proof=_by_rsa)
