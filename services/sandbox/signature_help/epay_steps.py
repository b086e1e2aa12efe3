"""The steps of signing an epay request, MD5 and RSA, and known deviations from them (docs/epay-inbound.md)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from binascii import Error
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from html import escape
from itertools import combinations
from typing import Any
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15

from gateways.config import public_key
from services.sandbox.signature_help.received import QUERY, Leaf, Received
from services.sandbox.signature_help.recipe import Keys, Pairs, Recipe, counted
from services.sandbox.signature_help.wrong_values import Write


@dataclass(frozen=True)
class Field(Leaf):
    """A field of a form or a query. `own`: it is in the shop's own address, to which a notice was appended."""

    own: bool = False

    @property
    def left_out(self) -> str:
        """The reason why the signature does not cover it, one of WHY_LEFT_OUT; empty if it does."""
        if self.path in ("sign", "sign_type"):
            return self.path
        return "own" if self.own else "" if self.text.strip() else "empty"


def md5(key: bytes, text: str) -> str:
    return hashlib.md5(text.encode() + key, usedforsecurity=False).hexdigest()


@dataclass(frozen=True)
class Md5Recipe(Recipe):
    """The steps of version 1."""

    first: Callable[[Received], list[str]] = lambda received: []
    join: Callable[[Received, list[str]], str] = lambda received, lines: "&".join(lines)
    digest: Callable[..., Any] = md5

    def makes(self, given: str, text: str, received: Received, keys: Keys) -> bool:
        """Return whether these steps make this signature. Its case does not matter."""
        return super().makes(given.lower(), text, received, keys)


@lru_cache(maxsize=256)
def opened(key: bytes, signature: bytes) -> bytes:
    """Return what was signed, a hash with its name in DER; empty if another key than this public one's made it."""
    try:
        return public_key(key.decode()).recover_data_from_signature(signature, PKCS1v15(), None)
    except (InvalidSignature, ValueError):
        return b""


# RFC 8017, section 9.2, note 1: what precedes the hash in a signature.
_PREFIXES = {
    "md5": bytes.fromhex("3020300c06082a864886f70d020505000410"),
    "sha1": bytes.fromhex("3021300906052b0e03021a05000414"),
    "sha256": bytes.fromhex("3031300d060960864801650304020105000420"),
    "sha512": bytes.fromhex("3051300d060960864801650304020305000440"),
}


Content = Callable[[str], bytes]


def _hashed(name: str = "sha256", charset: str = "utf-8", first: Callable[[bytes], bytes] = bytes) -> Content:
    """Return what a signature contains for a text: a hash, and before it which one it is."""
    return lambda text: (
        _PREFIXES[name] + hashlib.new(name, first(text.encode(charset, "replace")), usedforsecurity=False).digest()
    )


def from_base64(given: str) -> bytes:
    return base64.b64decode(given, validate=True)


_RULE = _hashed()


def rsa(decode: Callable[[str], bytes] = from_base64, content: Content = _RULE) -> Callable[[bytes, str, str], bool]:
    """Return a check of a signature: `decode` reads it, and `content` is what it must contain for a text."""

    def check(key: bytes, text: str, given: str) -> bool:
        try:
            found = opened(key, decode(given))
            return found != b"" and found == content(text)
        except (Error, ValueError):  # not in this encoding
            return False

    return check


@dataclass(frozen=True)
class RsaRecipe(Md5Recipe):
    """The steps of version 2. `digest` checks a signature by a public key, since only the shop has the private one."""

    digest: Callable[..., Any] = rsa()

    def makes(self, given: str, text: str, received: Received, keys: Keys) -> bool:
        """Return whether these steps make this signature."""
        return any(self.digest(key, text, given) for key in self.key(keys, received))


def split(text: str, received: Received) -> list[str]:
    """Split a text into its fields. A value may have an & itself: a field begins with a known name."""
    names = {leaf.path for leaf in received.leaves} | {*(name for each in DOCUMENTED_SETS for name in each), "key"}
    lines: list[str] = []
    for part in text.split("&"):
        if lines and part.partition("=")[0] not in names:
            lines[-1] += f"&{part}"
        else:
            lines.append(part)
    return lines


# --- the selection of fields

_REQUIRED = ("pid", "type", "out_trade_no", "notify_url", "return_url", "name", "money")
_V2 = ("method", "timestamp")
DOCUMENTED_SETS = (
    _REQUIRED,
    (*_REQUIRED, "sitename"),
    (*_REQUIRED, "param"),
    (*_REQUIRED, "clientip", "device", "param"),
    (*_REQUIRED, *_V2, "clientip", "device", "param"),
    ("pid", "trade_no", "out_trade_no", "type", "name", "money", "trade_status"),
)
Fields = Callable[[Received], list[Leaf]]


def with_left_out(*reasons: str) -> Fields:
    """Sign fields that are left out for these reasons, too."""
    return lambda received: [leaf for leaf in received.leaves if leaf.left_out in ("", *reasons)]


def added(name: str, value: str) -> Fields:
    """Sign a field that was not sent."""
    return lambda received: [
        *counted(received),
        *(() if received.auth(name) else (Field(name, value, QUERY),)),
    ]


def _only(names: tuple[str, ...]) -> Fields:
    return lambda received: [leaf for leaf in counted(received) if leaf.path in names]


def _without(*numbers: int) -> Fields:
    """Leave out the fields at these positions, if there are so many."""

    def step(received: Received) -> list[Leaf]:
        fields = counted(received)
        kept = [leaf for number, leaf in enumerate(fields) if number not in numbers]
        return kept if len(kept) == len(fields) - len(numbers) else fields

    return step


def without_zeros(received: Received) -> list[Leaf]:
    return [leaf for leaf in counted(received) if leaf.text != "0"]


DOCUMENTED = [*map(_only, DOCUMENTED_SETS)]
LEFT_OUT = [*map(_without, range(24)), *(_without(*pair) for pair in combinations(range(12), 2))]
SIGN_TYPE = [
    *(with_left_out(*reasons) for reasons in (("sign_type",), ("sign_type", "empty"))),
    *(added("sign_type", name) for name in ("MD5", "RSA")),
]
SIGN = [
    *(with_left_out(*reasons) for reasons in (("sign",), ("sign", "sign_type"), ("sign", "sign_type", "empty"))),
    lambda received: [*counted(received), Field("sign", "", QUERY)],
]
NOT_SENT = [
    added(name, value)
    for name, values in {
        "device": ("pc", "mobile", "jump", "wechat", "alipay", "qq"),
        "type": ("alipay", "wxpay", "qqpay", "bank"),
        "clientip": ("127.0.0.1", "::1"),
        "method": ("web", "jump"),
    }.items()
    for value in values
]

# --- the order


def by_documentation(pairs: Pairs) -> Pairs:
    order = (*_REQUIRED, "clientip", "device", "param")
    return sorted(pairs, key=lambda pair: order.index(pair[0]) if pair[0] in order else len(order))


# --- values


def _for(names: Iterable[str], write: Write) -> Write:
    """Write the fields with these names this way, and the others by the rule."""
    return lambda leaf: write(leaf) if leaf.path in names else leaf.text


def _money(write: Callable[[Decimal], str]) -> Write:
    def way(leaf: Leaf) -> str:
        try:
            return write(Decimal(leaf.text)) if len(leaf.text) < 20 else leaf.text
        except (InvalidOperation, ValueError):
            return leaf.text

    return _for(("money",), way)


def _cut(size: int) -> Write:
    return _for(("name",), lambda leaf: leaf.text.encode()[:size].decode(errors="ignore"))


URLS = ("notify_url", "return_url")
MONEY = (
    _money(lambda yuan: f"{yuan:.2f}"),
    _money(lambda yuan: f"{yuan.normalize():f}"),
    _money(lambda yuan: f"{yuan:.1f}"),
    _money(lambda yuan: f"{yuan * 100:.0f}"),  # in fen
    _money(lambda yuan: f"{yuan:.0f}"),
)
PERCENT = (
    *(
        _for(names, lambda leaf, encode=encode: encode(leaf.text, safe=""))  # type: ignore[misc]
        for names in (URLS, ("name",), (*URLS, "name"))
        for encode in (quote, quote_plus)
    ),
    *(
        lambda leaf, encode=encode: re.sub("%..", lambda found: found[0].lower(), encode(leaf.text, safe=""))
        for encode in (quote, quote_plus)  # in lowercase hex, as .NET does
    ),
)
TWICE = (lambda leaf: unquote(leaf.text), lambda leaf: unquote_plus(leaf.text))
CHANGED = (
    _for(URLS, lambda leaf: leaf.text.replace("https://", "http://", 1)),
    _for(URLS, lambda leaf: leaf.text.replace("http://", "https://", 1)),
    _for(URLS, lambda leaf: leaf.text.removesuffix("/")),
    _for(URLS, lambda leaf: f"{leaf.text}/"),
    *map(_cut, (127, 128, 64, 32)),
)
HTML = (lambda leaf: escape(leaf.text), lambda leaf: leaf.text.replace("&", "&amp;"))
PLUS = (lambda leaf: leaf.text.replace(" ", "+"),)

# --- the whole text


def ending(end: str) -> Callable[[Received, list[str]], str]:
    return lambda received, lines: "&".join(lines) + end


KEY_JOINED = [*map(ending, ("&key=", "&", "key=", "&key", "\n", "|"))]
JOINED = [
    *(lambda received, lines, by=by: by.join(lines) for by in ("\n", "", ",", "|", "&amp;", ";", " ")),
    *(
        lambda received, lines, by=by: by.join(line.partition("=")[2] for line in lines)  # values without names
        for by in ("", "&")
    ),
    lambda received, lines: "".join(line.replace("=", "", 1) for line in lines),
]

# --- the key


def pid(keys: Keys, received: Received) -> list[bytes]:
    return [received.auth("pid").encode(), b""]


def upper_key(keys: Keys, received: Received) -> list[bytes]:
    return [secret.upper().encode() for secret in keys.api]


def other(keys: Keys, received: Received) -> list[bytes]:
    return [secret.encode() for secret in keys.other]


# --- the signature of the text


def _md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _plain(name: str) -> Any:
    return lambda key, text: hashlib.new(name, text.encode() + key, usedforsecurity=False).hexdigest()


def _hmac(name: str, swapped: bool = False) -> Any:
    return lambda key, text: hmac.digest(*((text.encode(), key) if swapped else (key, text.encode())), name).hex()


def _to_base64(key: bytes, text: str) -> str:
    return base64.b64encode(bytes.fromhex(md5(key, text))).decode().lower()


CHARSETS = ("gbk", "gb18030", "big5", "latin-1", "utf-16-le", "utf-8-sig", "ascii")
CHARSET = [lambda key, text, name=name: _md5(text.encode(name, "replace") + key) for name in CHARSETS]
KEY_FIRST = [lambda key, text, by=by: _md5(key + by + text.encode()) for by in (b"", b"&", b"\n")] + [
    lambda key, text: _md5(b"key=" + key + b"&" + text.encode()),
    lambda key, text: _md5(key + text.encode() + key),
]
CASE = (
    lambda key, text: _md5((text.encode() + key).decode(errors="replace").upper().encode()),
    lambda key, text: _md5((text.encode() + key).decode(errors="replace").lower().encode()),
    lambda key, text: _md5(text.upper().encode() + key),
    lambda key, text: _md5(text.lower().encode() + key),
)
HMACS = (_hmac("md5"), _hmac("sha256"), _hmac("sha1"), _hmac("md5", swapped=True))
HASHES = (
    *map(_plain, ("sha1", "sha256", "sha512")),
    lambda key, text: _md5(md5(key, text).encode()),
    lambda key, text: _md5(_md5(text.encode()).encode() + key),
    lambda key, text: md5(key, text)[8:24],
    _to_base64,
)


def _sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


RSA_HASHES = (
    *(rsa(content=_hashed(name)) for name in ("sha1", "md5", "sha512")),
    rsa(content=_hashed(first=_sha256)),
    rsa(content=_hashed(first=lambda data: _sha256(data).hex().encode())),
    rsa(content=lambda text: text.encode()),
    rsa(content=lambda text: _sha256(text.encode())),
    rsa(content=lambda text: _sha256(text.encode()).hex().encode()),
)
RSA_CHARSET = [rsa(content=_hashed(charset=name)) for name in CHARSETS]


def _padded(given: str) -> bytes:
    return from_base64(given.rstrip("=") + "=" * (-len(given.rstrip("=")) % 4))


OTHER_BASE64 = (
    rsa(lambda given: _padded(given.translate(str.maketrans("-_", "+/")))),
    rsa(_padded),
    rsa(bytes.fromhex),
    rsa(lambda given: from_base64(base64.b64decode(given, validate=True).decode("ascii"))),
)
DAMAGED = (
    rsa(lambda given: from_base64(given.replace(" ", "+"))),
    rsa(lambda given: from_base64("".join(given.split()))),
    rsa(lambda given: from_base64(unquote(given))),
)
