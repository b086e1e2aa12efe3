"""Explains the signature of an epay request, or of a notice that the service sent to a shop (docs/epay-inbound.md)."""

from __future__ import annotations

import hmac
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
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
from services.sandbox.signature_help import mistakes
from services.sandbox.signature_help.explanation import (
    BODY,
    QUERY,
    Explanation,
    Keys,
    Leaf,
    Received,
    Sentence,
    bad,
    explained,
    in_order,
    time_checks,
)
from services.security import vault

MISTAKES = mistakes.EPAY
NAME = "epay"
_OF_NOTICES = ("pid", "trade_no", "out_trade_no", "type", "name", "money", "trade_status", "param", "timestamp")
_REQUIRED = ("pid", "type", "out_trade_no", "notify_url", "return_url", "name", "money")
_DOCUMENTED = (*_REQUIRED, "method", "timestamp", "clientip", "device", "param")
_V2 = re.compile(r"(.*/)?api/(pay|merchant|transfer)/\w+")
_ADDRESS = re.compile(r"(?:(?:GET|POST) )?(?:\w+://[^/?#]*)?(/?[^?=&]*)\?(.*?)(?: HTTP/[0-9.]+)?", re.DOTALL)
_KEY = re.compile(r"(^|[?&])key=[^&\s]+")


class _Request(Received):
    """A shop's request, or a notice to it."""

    known_mistakes = MISTAKES

    @property
    def is_notice(self) -> bool:
        return "trade_status" in self.values

    @property
    def is_rsa(self) -> bool:
        is_v2 = not self.is_notice and bool(_V2.fullmatch(self.path))
        return is_v2 or self.text_of("sign_type").upper() == "RSA"

    @property
    def ending(self) -> str:
        if self.is_rsa:
            return N_("sign is the signature of this text by SHA256withRSA (PKCS #1 v1.5), in base64.")
        return N_("Append the key directly to this text. sign is the MD5 of it, in lowercase hex.")

    def text(self, leaves: Iterable[Leaf]) -> str:
        return "&".join(leaf.line for leaf in leaves)

    def split(self, text: str) -> list[str]:
        """Split a text into its fields. A value may have an & itself: a field begins with a known name."""
        known = {*(leaf.path for leaf in self.leaves), *NAMES, "sign_type", "sign", "key"}
        names = "|".join(map(re.escape, known))
        return re.split(f"&(?=(?:{names})=)", text)

    def is_signed(self, text: str, key: bytes, given: str) -> bool:
        if not self.is_rsa:
            return mistakes.same(mistakes.md5_of(text.encode() + key), given.lower())
        with suppress(ValueError, UnsupportedAlgorithm):  # not the text of a key
            return is_signature(public_key(key.decode()), text.encode(), given)
        return False

    def wrong_texts(self) -> Iterator[tuple[str, str]]:
        signed = self.signed()
        yield "sign_signed", self.text(self.signed("sign_type"))
        yield "sign_signed", self.text(self.signed("sign_type", "empty"))
        for added in (Leaf("sign_type", "RSA" if self.is_rsa else "MD5", QUERY), Leaf("sign", "", QUERY)):
            yield "sign_signed", self.text(in_order([*signed, added]))
        yield "own_query_signed", self.text(self.signed("own"))
        for names in (_REQUIRED, (*_REQUIRED, "sitename"), _DOCUMENTED):
            yield "left_out", self.text(leaf for leaf in signed if leaf.path in names)
        for name, leaves in mistakes.wrong_values(self, numbers="money"):
            yield name, self.text(leaves)
        for end in ("&key=", "&", "key=", "\n"):
            yield "key_joined", self.text(signed) + end

    def wrong_signing(self, text: str, keys: Keys, given: str) -> str:
        other = (*mistakes.other_keys(keys, self), *mistakes.misread_keys(keys))
        if any(self.is_signed(text, key, given) for key in other):
            return "wrong_key"
        made = (digest for key in keys.valid for digest in _wrong_hashes(text.encode(), key.encode()))
        return "hash" if any(mistakes.same(digest, given.lower()) for digest in made) else ""


def _wrong_hashes(text: bytes, key: bytes) -> Iterator[str]:
    yield hmac.digest(key, text, "md5").hex()
    yield hmac.digest(key, text, "sha256").hex()
    yield sha256(text + key).hexdigest()
    yield mistakes.md5_of(mistakes.md5_of(text + key).encode())
    yield mistakes.md5_of(key + text)


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

    text, right = received.text(received.signed()).encode(), ""
    if private:
        right = sign(private, text)
    if not received.is_rsa:
        if keys.valid and (typed or (account and account.merchant.demo)):
            right = mistakes.md5_of(text + keys.valid[0].encode())
        for key in (*keys.valid, *keys.replaced):  # neither compare it nor show it
            theirs = theirs and theirs.replace(key, "")
    given = received.text_of("sign") if signature is None else signature
    told = explained(received, keys, given, theirs, checks, right)
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
