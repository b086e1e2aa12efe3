"""Config fields that drivers share: addresses, proxies, keys. Each loads as a text that it accepts again.

The texts of a field's form are part of the field: `metadata=texts(...)`.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
    load_der_public_key,
)
from marshmallow import Schema, ValidationError, fields, validate

from net.urls import http_parts
from runtime.texts import N_

LEAST_BITS = 1024  # the key size that the oldest platforms still issue
_PEM = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def texts(
    label: str, hint: str = "", *, secret: bool = False, when: tuple[str, str] | None = None, more: bool = False
) -> dict[str, Any]:
    """Return a field's texts as its metadata: its name and how to fill it in, in English for translation.

    Args:
        secret: the value is never shown. A field without metadata is never shown either.
        when: `(name, value)` of the choice to which the field belongs; it has no effect with other choices.
        more: rarely changed, so the form folds the field.
    """
    return {"label": label, "hint": hint, "secret": secret, "when": when, "more": more}


def is_secret(field: fields.Field[Any]) -> bool:
    """Return whether the value of this config field must never be shown."""
    is_choice = isinstance(field, fields.Boolean) or choices(field)
    return bool(field.metadata.get("secret", not is_choice))


def choices(field: fields.Field[Any]) -> dict[str, str]:
    """Return the values that a choice field accepts, each with its label in English; empty for other fields."""
    found = [check for check in field.validators if isinstance(check, validate.OneOf)]
    return {str(value): str(label or value) for check in found for value, label in check.options()}


def is_private(address: str) -> bool:
    """Return whether requests to this address are protected against eavesdropping and tampering."""
    parts = urlsplit(address)
    return parts.scheme == "https" or parts.hostname in _LOOPBACK


class Address(fields.String):
    """The base address of an upstream; `plain` also allows http to other machines."""

    def __init__(self, *, plain: bool = False, **named: Any):
        super().__init__(**named)
        self.plain = plain

    def _deserialize(self, value: Any, attr: str | None, data: Any, **named: Any) -> str:
        text = super()._deserialize(value, attr, data, **named).strip()
        if text == self.load_default:
            return text  # an optional address may be empty
        parts = http_parts(text)
        if parts is None or set(text) & set("?# ") or "@" in parts.netloc:
            raise ValidationError(N_("Must look like https://pay.example.com/."))
        if not self.plain and not is_private(text):
            raise ValidationError(N_("Must begin with https://."))
        return text.rstrip("/")


class Proxy(fields.String):
    """An HTTP proxy that is reached without TLS, or an empty text for none."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **named: Any) -> str:
        text = super()._deserialize(value, attr, data, **named).strip()
        if text and not re.fullmatch(r"http://([^\s/@]+@)?([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}/?", text):
            raise ValidationError(N_("Must look like http://127.0.0.1:3128 or http://user:password@host:port."))
        try:
            _ = urlsplit(text).port
        except ValueError:
            raise ValidationError(N_("The port must be below 65536.")) from None
        return text


class Pasted(fields.String):
    """A key or certificate, as PEM or as the bare base64 that consoles show; loads as PEM."""

    refusal = N_("Must be a key.")

    def _deserialize(self, value: Any, attr: str | None, data: Any, **named: Any) -> str:
        text = super()._deserialize(value, attr, data, **named).strip()
        if not text:
            return ""
        try:
            return self._pem(text)
        except (ValueError, TypeError, binascii.Error, UnsupportedAlgorithm):
            raise ValidationError(self.refusal) from None

    def _pem(self, text: str) -> str:
        raise NotImplementedError


def _der(text: str) -> bytes:
    found = _PEM.search(text)
    return base64.b64decode("".join((found[2] if found else text).split()), validate=True)


def _rsa(key: Any, kind: type) -> Any:
    if not isinstance(key, kind) or key.key_size < LEAST_BITS:  # type: ignore[attr-defined]
        raise ValueError
    return key


def private_key(text: str) -> RSAPrivateKey:
    """Return the key in a text that `PrivateKey` loaded. Raises ValueError, TypeError, UnsupportedAlgorithm."""
    return _rsa(load_der_private_key(_der(text), None), RSAPrivateKey)


def public_key(text: str) -> RSAPublicKey:
    """Return the key in a text that `PublicKey` loaded. Raises ValueError, UnsupportedAlgorithm."""
    return _rsa(load_der_public_key(_der(text)), RSAPublicKey)


class PrivateKey(Pasted):
    """An RSA private key without a password, PKCS#1 or PKCS#8."""

    refusal = N_("Must be an RSA private key of 1024 bits or more, without a password.")

    def _pem(self, text: str) -> str:
        return private_key(text).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


class PublicKey(Pasted):
    """An RSA public key."""

    refusal = N_("Must be an RSA public key of 1024 bits or more.")

    def _pem(self, text: str) -> str:
        return public_key(text).public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


class Certificates(Pasted):
    """One or more X.509 certificates as PEM."""

    refusal = N_("Must be an X.509 certificate in PEM format.")

    def __init__(self, *, several: bool = False, **named: Any):
        super().__init__(**named)
        self.several = several

    def _pem(self, text: str) -> str:
        found = certificates(text)
        if not found or (len(found) > 1 and not self.several):
            raise ValueError
        return "".join(each.public_bytes(Encoding.PEM).decode() for each in found)


def certificates(text: str) -> list[x509.Certificate]:
    """Return the certificates in a text. Raises ValueError."""
    return [x509.load_pem_x509_certificate(match[0].encode()) for match in _PEM.finditer(text)]


def number(least: int, most: int) -> Callable[[str], Any]:
    """Return a validator for a merchant's or an application's number."""
    return validate.Regexp(
        rf"[0-9A-Za-z_-]{{{least},{most}}}\Z", error=N_("Must be the number from the provider's console.")
    )


def ip_address(text: str) -> None:
    """Validate an IP address. Raises ValidationError."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        raise ValidationError(N_("Must be an IP address.")) from None


class UpstreamConfig(Schema):
    """Config fields of a real upstream other than its keys.

    `proxy`: used for calls to the upstream; `ask_again`: a notice counts only once a status check confirms it;
    `open_on_view`: a payment is opened when the payer views the page.
    """

    proxy = Proxy(
        load_default="",
        metadata=texts(
            N_("Proxy"),
            N_(
                "http://host:port or http://user:password@host:port. Requests to the channel go through it. "
                "Usually empty."
            ),
            secret=True,
            more=True,
        ),
    )
    ask_again = fields.Boolean(
        load_default=False,
        metadata=texts(
            N_("Check status after notices"),
            N_("A notice alone credits nothing. The service checks the status at the channel and applies that result."),
            more=True,
        ),
    )
    open_on_view = fields.Boolean(
        load_default=False,
        metadata=texts(
            N_("Create payment on page view"),
            N_(
                "The payment is created at the channel when the payer opens the page, with the payer's IP "
                "address, and not when the order is created. If the channel rejects it, the page shows the "
                "reason."
            ),
            more=True,
        ),
    )


class WithBills(UpstreamConfig):
    """The config of an upstream that offers bills. `fetch_bills`: they are fetched every morning."""

    fetch_bills = fields.Boolean(
        load_default=True,
        metadata=texts(
            N_("Fetch bills"),
            N_(
                "The service fetches the bill and the balance of each day in the morning, and compares them with the "
                "orders."
            ),
            more=True,
        ),
    )
