"""A merchant's settings of the payment page: addresses of the shop with placeholders, contact, color."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from marshmallow import Schema, ValidationError, fields

from net.ip_addresses import address_of, is_public
from schemas.epay import WebAddress
from schemas.fields import MaxLength
from schemas.messages import N_

PLACEHOLDERS = ("order_no", "merchant_order_no")
PLACEHOLDER = re.compile(rf"\{{({'|'.join(PLACEHOLDERS)})\}}")
_PATH = re.compile(r"/(?![/\\{])")  # an empty number would leave two slashes: another host
_HOST = re.compile(r"([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?")


def _is_private(host: str) -> bool:
    """Return whether a host cannot have a public certificate."""
    return host == "localhost" or (address_of(host) is not None and not is_public(host))


class AddressTemplate(WebAddress):
    """An address with placeholders such as `{order_no}` in its path, query or fragment; empty for none.

    It begins with https://, or http:// for a private host. A path is an address of this service.
    """

    malformed = N_("Must be an address such as https://shop.example/orders/{merchant_order_no}.")

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = str(value).strip()
        if not text:
            return ""
        example = PLACEHOLDER.sub("1", text)
        if set(example) & set("{}"):
            raise ValidationError(N_("Only {order_no} and {merchant_order_no} are filled in."))
        base = "https://localhost" if _PATH.match(text) else ""
        parts = urlsplit(super()._deserialize(base + example, attr, data, **kwargs))
        host, is_fixed = parts.hostname or "", (base + text).partition("://")[2].startswith(parts.netloc)
        if "\\" in text or not _HOST.fullmatch(parts.netloc) or not is_fixed:
            raise ValidationError(self.malformed)
        if parts.scheme == "http" and not _is_private(host):
            raise ValidationError(N_("Must begin with https://."))
        return text


class Line(fields.String):
    """A line of text, without the spaces around it."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs).strip()
        if not text.isprintable():
            raise ValidationError(N_("Must be one line of text."))
        return text


class Color(Line):
    """A color as `#rrggbb`, in lower case; empty for none."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs).lower()
        if not re.fullmatch("(#[0-9a-f]{6})?", text):
            raise ValidationError(N_("Must be a color such as #1677ff."))
        return text


def _template() -> AddressTemplate:
    return AddressTemplate(fragment=True, validate=MaxLength(1000))


class PaymentPageSettings(Schema):
    """The settings that are text. Each may be empty."""

    return_url = _template()
    new_order_url = _template()
    contact = Line(validate=MaxLength(100))
    color = Color()
