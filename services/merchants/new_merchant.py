"""A new merchant with what it needs to begin: its secrets, its account at the epay gateway, its payment page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from models.db.writer import transaction
from models.tables.epay import EpayAccount
from models.tables.merchant import Merchant
from services.merchants import epay_accounts, merchant_setup, payment_page

LONGEST_SUGGESTION = 40  # characters of a key


@dataclass(frozen=True)
class Added:
    """The merchant and the secrets that are shown once; `epay` is None without an account at the epay gateway."""

    merchant: Merchant
    secret: str = field(repr=False)
    epay: EpayAccount | None = None
    epay_key: str = field(default="", repr=False)


def newest() -> Merchant | None:
    """Return the merchant that was added last, whose fees are a suggestion for the next one."""
    found: Merchant | None = Merchant.select().order_by(Merchant.id.desc()).first()
    return found


def present(key: str) -> Merchant | None:
    """Return the merchant with this key, or None; a text that is no key is not searched, as it may be a secret."""
    found: Merchant | None = None
    if merchant_setup.MERCHANT_KEY.fullmatch(key):
        found = Merchant.get_or_none(Merchant.key == key)
    return found


def key_of(name: str) -> str:
    """Return the key that follows from a name: its letters and digits, and part of its hash if that is not enough.

    It is the same if the form is sent again, so that no second merchant is added by mistake.
    """
    key, digest = "-".join(re.findall("[a-z0-9]+", name.lower()))[:LONGEST_SUGGESTION].strip("-"), sha256(name.encode())
    if not re.search("[a-z]", key):
        return f"m{digest.hexdigest()[:8]}"
    others = Merchant.select().where(Merchant.key == key, Merchant.name != name)
    return f"{key}-{digest.hexdigest()[:4]}" if key in merchant_setup.NO_KEYS or others.exists() else key


@transaction
def add(
    key: str,
    name: str,
    *,
    hosts: Iterable[str] = (),
    page: Mapping[str, str] | None = None,
    logo: bytes = b"",
    **facts: Any,
) -> Added:
    """Add a merchant.

    Args:
        hosts: the host names of its shop at the epay gateway; empty for no account there.
        page: texts of its payment page (`payment_page.TEXTS`); `logo` is an image, empty for none.
        facts: as for `merchant_setup.add_merchant`.

    Raises:
        OperatorError: invalid value, or the key is taken; then nothing is added.
    """
    merchant, secret = merchant_setup.add_merchant(key, name, **facts)
    if logo or page:
        payment_page.change(merchant, logo=logo or None, **page or {})
    if not hosts:
        return Added(merchant, secret)
    account, epay_key = epay_accounts.enable(merchant, hosts=hosts)
    return Added(merchant, secret, account, epay_key)
