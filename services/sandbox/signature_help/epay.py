"""Explains the signature of an epay request, or of a notice that the service sent to a shop (docs/epay-inbound.md)."""

from __future__ import annotations

import hmac
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from urllib.parse import parse_qsl

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gateways.config import private_key, public_key
from gateways.epay_protocol import NAMES, ambiguous
from gateways.signatures import is_signature, sign
from models.tables.epay import EpayAccount
from schemas.strict_json import Malformed
from services.errors import N_
from services.merchants import epay_accounts
from services.sandbox.signature_help import ways
from services.sandbox.signature_help.explanation import (
    BODY,
    QUERY,
    Explanation,
    Keys,
    Leaf,
    Mistake,
    Proof,
    Protocol,
    Received,
    Sentence,
    bad,
    explained,
    signed,
    time_checks,
)
from services.security import vault

NAME = "epay"
_OF_NOTICES = ("pid", "trade_no", "out_trade_no", "type", "name", "money", "trade_status", "param", "timestamp")
_REQUIRED = ("pid", "type", "out_trade_no", "notify_url", "return_url", "name", "money")
_DOCUMENTED = (*_REQUIRED, "method", "timestamp", "clientip", "device", "param")
_V2 = re.compile(r"(.*/)?api/(pay|merchant|transfer)/\w+")
_ADDRESS = re.compile(r"(?:(?:GET|POST) )?(?:\w+://[^/?#]*)?(/?[^?=&]*)\?(.*?)(?: HTTP/[0-9.]+)?", re.DOTALL)
_KEY = re.compile(r"(^|[?&])key=[^&\s]+")


def _in_hex(sign: Callable[[bytes, bytes], str]) -> Proof:
    """Return the proof that a signature is what this function makes, in either case. It takes constant time."""
    return lambda key, text, given: hmac.compare_digest(sign(key, text).encode(), given.lower().encode())


MISTAKES = (
    Mistake(
        "sign_signed",
        N_("sign or sign_type is signed"),
        N_("Leave out sign and sign_type. Add them to the request after you compute the signature."),
        {
            "fields": [
                ways.also_signed("sign_type"),
                lambda leaves: [*signed(leaves), Leaf("sign_type", "MD5", QUERY)],
                lambda leaves: [*signed(leaves), Leaf("sign", "", QUERY)],
            ]
        },
    ),
    Mistake(
        "blank_signed",
        N_("empty values are signed"),
        N_("Leave them out of the text. They may stay in the request."),
        {"fields": [ways.also_signed("empty")]},
    ),
    Mistake(
        "own_query_signed",
        N_("fields of the shop's own address are part of the text"),
        N_("Verify only the fields of the notice, or use a notify_url without a query."),
        {"fields": [ways.also_signed("own")]},
    ),
    Mistake(
        "unsorted",
        N_("the fields are not sorted by name, byte by byte"),
        N_("Sort the fields by name, byte by byte."),
        {"order": ways.ORDERS},
    ),
    Mistake(
        "left_out",
        N_("a field is sent that is not signed: it is added after signing"),
        N_("Sign every field that you send, such as sitename, device or cid, or do not send it."),
        {
            "fields": [
                lambda leaves: [leaf for leaf in signed(leaves) if leaf.path in _REQUIRED],
                lambda leaves: [leaf for leaf in signed(leaves) if leaf.path in (*_REQUIRED, "sitename")],
                lambda leaves: [leaf for leaf in signed(leaves) if leaf.path in _DOCUMENTED],
                *ways.WITHOUT_ONE,
            ]
        },
    ),
    Mistake(
        "money",
        N_("money is signed with other digits than it is sent with"),
        N_("Write money once, such as 12.50, and sign and send the same text."),
        {"value": ways.AMOUNTS},
    ),
    Mistake(
        "percent",
        N_("values are signed URL-encoded (percent-encoded)"),
        N_("Sign the characters themselves, in UTF-8."),
        {"value": ways.PERCENT},
    ),
    Mistake(
        "key_joined",
        N_("something is between the text and the key, such as &key= or &"),
        N_("Append the key directly to the last value."),
        {"join": [ways.joined("&", end) for end in ("&key=", "&", "key=", "\n")]},
    ),
    Mistake(
        "wrong_key",
        N_("the key is expired, the API secret or the platform's, or has an extra space, newline or quotation mark"),
        N_(
            "Use the latest key of the epay gateway: add nothing, decode nothing. RSA: sign with the merchant's "
            "private key, and verify notices with the platform's public key."
        ),
        {"keys": [ways.other_keys, ways.misread_keys]},
    ),
    Mistake(
        "hash",
        N_("HMAC, another hash or MD5 twice is used, or the key is in front of the text"),
        N_("Use the MD5 of the text followed by the key."),
        {
            "proof": [
                _in_hex(lambda key, text: hmac.digest(key, text, "md5").hex()),
                _in_hex(lambda key, text: hmac.digest(key, text, "sha256").hex()),
                _in_hex(lambda key, text: sha256(text + key).hexdigest()),
                _in_hex(lambda key, text: ways.md5_of(ways.md5_of(text + key).encode())),
                _in_hex(lambda key, text: ways.md5_of(key + text)),
            ]
        },
    ),
)


class _Request(Received):
    """A shop's request, or a notice to it."""

    @property
    def is_notice(self) -> bool:
        return "trade_status" in self.values

    @property
    def is_rsa(self) -> bool:
        is_v2 = not self.is_notice and bool(_V2.fullmatch(self.path))
        return is_v2 or self.text_of("sign_type").upper() == "RSA"


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
        now: the Unix time when it arrived; None for the present.
    """
    try:
        received = _read(sent)
    except Malformed as error:
        return Explanation(endpoint=NAME, refused=error.message)
    account = find(received.text_of("pid")) if find else None
    keys = _stored_keys(account, received) if account else Keys()
    private, own = _entered_rsa_key(typed) if typed and received.is_rsa else (None, typed)
    checks = []
    if account and received.is_rsa and not (typed or keys.valid):
        checks.append(bad(N_("The merchant has no RSA keys")))
    if typed and not own:
        checks.append(bad(N_("The key that you entered is not an RSA key.")))
    if own and account and own not in (*keys.valid, *(keys.other if received.is_rsa else ())):
        checks.append(bad(N_("The key that you entered is not the one of pid %(pid)s."), pid=account.pid))
    if own:
        keys = replace(keys, valid=[own], other=[*keys.valid, *keys.other])
    if find and not account and not typed:
        unknown = N_("No demo merchant has the pid %(pid)s. Enter the key to verify the signature.")
        checks.append(bad(unknown, pid=received.text_of("pid")))
    checks += _checks(received, account, now)

    protocol = _RSA if received.is_rsa else _MD5
    text, right = protocol.text(received).encode(), ""
    if private:
        right = sign(private, text)
    if not received.is_rsa:
        if keys.valid and (typed or (account and account.merchant.demo)):
            right = ways.md5_of(text + keys.valid[0].encode())
        for key in (*keys.valid, *keys.replaced):  # neither compare it nor show it
            theirs = theirs and theirs.replace(key, "")
    given = received.text_of("sign") if signature is None else signature
    told = explained(protocol, received, keys, given, theirs, checks, right)
    is_unknown = received.is_rsa and told.holds is False and not told.mistakes
    return replace(told, checks=(*told.checks, _who_signed(given, keys))) if is_unknown else told


def _read(sent: str) -> _Request:
    """Parse an address or a form body as the gateway does. Raises Malformed."""
    found = _ADDRESS.fullmatch(sent.strip())
    path, fields = (found[1], found[2]) if found else ("", sent.strip())
    try:
        pairs = parse_qsl(fields, keep_blank_values=True, errors="strict")
    except UnicodeDecodeError:
        raise Malformed(N_("The parameters are not in UTF-8. Send and sign them in UTF-8, not in GBK.")) from None
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
    return _Request(path.strip("/") or NAME, path, values, tuple(leaves))


def _stored_keys(account: EpayAccount, received: _Request) -> Keys:
    """Return the keys of the merchant and, for RSA, of the platform, which signs notices."""
    if not received.is_rsa:
        own, callback = (vault.valid_secrets(account.merchant, name) for name in ("secret", "callback_secret"))
        replaced = [vault.decrypt(account.previous_key)] if account.previous_key else []
        return Keys(valid=epay_accounts.keys(account), other=[*own, *callback], replaced=replaced)
    merchants = epay_accounts.public_keys(account)
    platform = epay_accounts.platform_public_key(account)
    platforms = [_pem(public_key(platform))] if platform else []
    valid, other = (platforms, merchants) if received.is_notice else (merchants, platforms)
    replaced = [account.previous_public_key] if account.previous_public_key else []
    return Keys(valid=valid, other=other, replaced=replaced)


def _entered_rsa_key(typed: str) -> tuple[RSAPrivateKey | None, str]:
    """Return an entered key: the private one, if it is one, and the public one in PEM; "" if it is not an RSA key."""
    with suppress(ValueError, TypeError, UnsupportedAlgorithm):
        private = private_key(typed)
        return private, _pem(private.public_key())
    with suppress(ValueError, TypeError, UnsupportedAlgorithm):
        return None, _pem(public_key(typed))
    return None, ""


def _pem(key: RSAPublicKey) -> str:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def _checks(received: _Request, account: EpayAccount | None, now: float | None) -> Iterator[Sentence]:
    """Yield why the service may refuse the request for another reason than its signature."""
    if account and received.text_of("pid") != str(account.pid):
        yield bad(N_("the key belongs to the pid %(key)s, not to this one"), key=account.pid)
    wanted = "RSA" if received.is_rsa else "MD5/RSA"
    if (received.text_of("sign_type") or "MD5").upper() not in wanted.split("/"):
        yield bad(N_("sign_type must be %(wanted)s at this address"), wanted=wanted)
    if not received.is_notice and ambiguous(received.values):
        yield bad(N_("a value contains another field, such as &money=: the service refuses it, signed or not"))
    if received.is_rsa and not received.is_notice:
        if stamp := received.text_of("timestamp"):
            yield from time_checks(stamp, now)
        elif _V2.fullmatch(received.path):
            yield bad(N_("timestamp is missing"))


def _who_signed(given: str, keys: Keys) -> Sentence:
    """Tell a wrong text from a wrong key: an RSA signature shows with which key it was made."""
    try:
        signature = b64decode(given, validate=True)
    except ValueError:
        return bad(N_("The signature is not in base64."))
    for key in keys.valid:
        with suppress(InvalidSignature, ValueError):
            public_key(key).recover_data_from_signature(signature, PKCS1v15(), None)
            return Sentence(
                N_("The signature was made with this merchant's key, but of another text or with another hash.")
            )
    return bad(N_("The signature was made with another key, or changed on its way."))


def _is_of_key(key: bytes, text: bytes, given: str) -> bool:
    with suppress(ValueError, UnsupportedAlgorithm):  # not the text of a key
        return is_signature(public_key(key.decode()), text, given)
    return False


def _lines(text: str, received: Received) -> list[str]:
    """Split a text into its fields. A value may have an & itself: a field begins with a known name."""
    known = {*(leaf.path for leaf in received.leaves), *NAMES, "sign_type", "sign", "key"}
    names = "|".join(map(re.escape, known))
    return re.split(f"&(?=(?:{names})=)", text)


_MD5 = Protocol(
    MISTAKES,
    proof=_in_hex(lambda key, text: ways.md5_of(text + key)),
    first=lambda received: [],
    join="&".join,
    split=_lines,
    ending=N_("Append the key directly to this text. sign is the MD5 of it, in lowercase hex."),
)
_RSA = replace(
    _MD5,
    proof=_is_of_key,
    ending=N_("sign is the signature of this text by SHA256withRSA (PKCS #1 v1.5), in base64."),
)
