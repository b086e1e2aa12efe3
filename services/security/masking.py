"""Masking of sensitive values: a table defines the visible part of each field; unknown fields are hidden."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from models.tables.payout_account import PayoutAccount
from services.security import vault

HIDDEN = "***"
_ODD = re.compile(r"[\s@;'\"\\]|//")  # in a path: the address is mistyped
_NAME = re.compile(r"[A-Za-z0-9_.@-]{0,64}")
_NETWORK = re.compile(r"[0-9A-Fa-f.:/\s]{0,64}")
SHOWN_AT_THE_END = 4


def _first(text: str) -> str:
    return text[:1] + "*"


def ending(text: str) -> str:
    """Return the last four characters; at most half of a short text."""
    shown = min(SHOWN_AT_THE_END, len(text) // 2)
    return "*" * (len(text) - shown) + text[len(text) - shown :]


def _email(text: str) -> str:
    return f"{_first(text)}**@{HIDDEN}"


FIELDS: dict[str, Callable[[str], str]] = {
    "customer_name": _first,
    "note": str,  # on the payment page
    "bank": str,
    "sub_bank": str,
    "card_number": ending,
    "real_name": _first,
    "gatewaya_personal_data.name": _first,
    "gatewaya_personal_data.cert_type": str,
    "gatewaya_personal_data.cert_no": ending,
    "gatewaya_personal_data.cert_validity_type": str,
    "gatewaya_personal_data.mobile_no": ending,
    "gatewaya_personal_data.email": _email,
    "gatewaya_personal_data.address": _first,
    "gatewaya_card_info.card_type": str,
    "gatewaya_card_info.card_name": _first,
    "gatewaya_card_info.card_no": ending,
    "gatewaya_card_info.prov_id": str,
    "gatewaya_card_info.area_id": str,
}


def masked(values: dict[str, Any]) -> dict[str, str]:
    """Return the masked values by field; empty ones stay empty."""
    return {
        name: "" if not value else FIELDS[name](str(value)) if name in FIELDS else HIDDEN
        for name, value in values.items()
    }


_QUOTABLE = {name.rpartition(".")[2] for name, mask in FIELDS.items() if mask is not str}


def without(text: str, details: Mapping[str, Any]) -> str:
    """Remove the details of a payout account from a channel's message; `details` as in `ReceivingAccount`."""
    for name, value in details.items():
        if isinstance(value, dict):
            text = without(text, value)
        elif name in _QUOTABLE and len(str(value)) > 1:
            text = text.replace(str(value), HIDDEN)
    return text


def account(row: PayoutAccount) -> dict[str, str]:
    """Return a masked payout account: bank, sub_bank, card_number, real_name; empty once they were erased."""
    details = json.loads(vault.decrypt(row.details)) if row.details else {}
    return masked({name: details.get(name, "") for name in ("bank", "sub_bank", "card_number", "real_name")})


def address(url: str) -> str:
    """Return a web address without the values that may contain a key: in its query, and before its host.

    A text that is not an http(s) address or a path, such as a mistyped one, is hidden, because any part of it may be a
    password.
    """
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        return HIDDEN
    path = not parts.scheme and not parts.netloc and parts.path.startswith("/")
    if url and (not (known or path) or _ODD.search(parts.path) or "@" in (parts.hostname or "")):
        return HIDDEN
    _, at, host = parts.netloc.rpartition("@")
    given = [part.partition("=") for part in parts.query.split("&")] if parts.query else []
    query = "&".join(f"{name}={HIDDEN}" if equals else HIDDEN for name, equals, _ in given)
    return urlunsplit((parts.scheme, f"{HIDDEN}@{host}" if at else host, parts.path, query, ""))


def name(text: str) -> str:
    """Return the name of a merchant or an operator; hide a text that can't be such a name, such as a mistyped one."""
    return text if _NAME.fullmatch(text) else HIDDEN


def networks(text: str) -> str:
    """Return addresses and networks with commas, also mistyped ones; hide parts that contain other letters."""
    return ",".join(part if _NETWORK.fullmatch(part.strip()) else HIDDEN for part in text.split(","))


_VALUE = re.compile(r"(?<=[?&])([^=&\s]+)=[^&\s)'\"]+")


def error(text: str) -> str:
    """Return the message of a failed call without the query values of an address in it."""
    return _VALUE.sub(rf"\1={HIDDEN}", text)
