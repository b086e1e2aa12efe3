"""Merchant setup: secrets, callback settings, and payout accounts."""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any

from peewee import IntegrityError

from models.db.base import database
from models.db.errors import first_line
from models.db.writer import after_commit, transaction
from models.tables.ledger import AVAILABLE, COMMISSION, FEES, HELD
from models.tables.merchant import REFUND_FEES, REFUND_MODES, Merchant
from models.tables.payout_account import PayoutAccount
from net.ip_addresses import network_of
from net.urls import http_parts
from runtime import clock
from services.errors import N_, OperatorError
from services.ledger import accounts
from services.ledger.postings import OPERATOR
from services.merchants import cache, edit_conflicts, links
from services.security import masking, vault
from services.security.signing import WEBHOOK_PREFIX

RESULTS = ("completed", "cancelled")
EVENTS = ("paid", "confirmed", "credited", "refunded", "refund.confirmed", *RESULTS)
CARD_NUMBER = re.compile(r"[A-Za-z0-9@._-]{6,40}")
MERCHANT_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
NO_KEYS = {"new", ".", ".."}  # keys that would not work in an address of the console


def event_name(event: str) -> str:
    """Return the full name of one of EVENTS, as callbacks have it."""
    return event if event.startswith("refund.") else f"order.{event}"


def new_callback_secret() -> str:
    """Return `whsec_` and 32 random bytes in base64."""
    return WEBHOOK_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def find_merchant(key: str) -> Merchant:
    """Return the merchant with this API key. Raises OperatorError."""
    merchant = Merchant.get_or_none(Merchant.key == key)
    if merchant is None:
        raise OperatorError(N_("no merchant %(key)s"), key=key)
    return merchant


def merchants(key: str | None = None) -> list[Merchant]:
    """Return the merchant with this API key in a list, or all merchants for None. Raises OperatorError."""
    return [find_merchant(key)] if key else list(Merchant.select().order_by(Merchant.id))


def _callback_url(url: str) -> str:
    """Validate a callback URL: empty, an http(s) address, or a path on this service."""
    if not url or re.fullmatch(r"/[^/\s]\S*", url):
        return url
    if http_parts(url) is None or re.search(r"\s", url):
        message = N_("Enter a URL, such as https://shop.example/paid.")
        raise OperatorError(message, "callback_url")  # without the value, which may contain a password
    return url


def _events(text: str) -> str:
    wanted = {event.strip() for event in text.split(",") if event.strip()}
    if not wanted <= set(EVENTS):
        raise OperatorError(N_("events must be some of %(names)s"), names=", ".join(EVENTS))
    return ",".join(event for event in EVENTS if event in wanted | set(RESULTS))


def _one_of(names: tuple[str, ...], field: str) -> Callable[[str], str]:
    def known(name: str) -> str:
        if name not in names:
            raise OperatorError(f"{field} must be one of {', '.join(names)}", field)
        return name

    return known


def _addresses(text: str) -> str:
    found = []
    for part in (each.strip() for each in text.split(",") if each.strip()):
        try:
            found.append(str(network_of(part)))
        except ValueError:
            message = N_("%(given)s is not an IP address or a network such as 10.0.0.0/8.")
            raise OperatorError(message, "allowed_addresses", given=masking.networks(part)) from None
    return ",".join(found)


# Conversions of an operator's text to a column's value.
MERCHANT_FIELDS = {
    "callback_url": _callback_url,
    "events": _events,
    "allowed_addresses": _addresses,
    "refund_mode": _one_of(REFUND_MODES, "refund_mode"),
    "refund_fees": _one_of(REFUND_FEES, "refund_fees"),
}


def _merchant_facts(given: dict[str, Any]) -> dict[str, Any]:
    return {name: MERCHANT_FIELDS[name](value) if name in MERCHANT_FIELDS else value for name, value in given.items()}


def check_new_key(key: str) -> None:
    """Raise OperatorError if a new merchant cannot have this key."""
    if not MERCHANT_KEY.fullmatch(key) or key in NO_KEYS:
        message = N_("A merchant key has 1 to 64 letters, digits, _ . or -, and is not new, . or ..")
        raise OperatorError(message, "key")
    if Merchant.select().where(Merchant.key == key).exists():
        raise OperatorError(N_("Merchant %(key)s already exists. Choose another key."), "key", key=key)


@transaction
def add_merchant(
    key: str, name: str, *, secret: str = "", callback_secret: str = "", channels: Iterable[int] = (), **facts: Any
) -> tuple[Merchant, str]:
    """Add a merchant with its two ledger accounts.

    Args:
        key: the API key: 1 to 64 letters, digits, `_`, `.`, `-`.
        secret: the API secret; generated if empty.
        channels: the ids of the channels that it may use.
        facts: columns of Merchant; rates in basis points.

    Returns: the merchant and its API secret.

    Raises:
        OperatorError: the key is taken, or invalid value.
    """
    check_new_key(key)
    secret = secret or secrets.token_urlsafe(32)
    now = clock.now()
    facts = {"createtime": now, "updatetime": now} | _merchant_facts(facts)
    try:
        with database.atomic():  # on Postgres, a failed statement ends the whole transaction
            merchant = Merchant.create(
                key=key,
                name=name,
                secret=vault.encrypt(secret),
                callback_secret=vault.encrypt(callback_secret or new_callback_secret()),
                **facts,
            )
    except IntegrityError as error:
        check_new_key(key)  # it was added in the meantime
        raise OperatorError(f"a value is out of range: {first_line(error)}") from None
    accounts.open_accounts((AVAILABLE, merchant.id), (HELD, merchant.id), (FEES, OPERATOR), (COMMISSION, OPERATOR))
    links.set_channels(merchant, channels)
    return merchant, secret


@transaction
def set_merchant(
    merchant: Merchant, *, channels: Iterable[int] | None = None, mark: str | None = None, **facts: Any
) -> None:
    """Change columns of a merchant.

    Args:
        channels: the ids of all channels that it may use; None for no change.
        mark: `edit_conflicts.version_of` the merchant when it was shown; a later change is not overwritten.

    Raises:
        OperatorError: invalid value, or someone changed the merchant meanwhile.
    """
    edit_conflicts.check_version(merchant, mark)
    after_commit(cache.forget)
    Merchant.update(_merchant_facts(facts) | {"updatetime": clock.now()}).where(Merchant.id == merchant.id).execute()
    if channels is not None:
        links.set_channels(merchant, channels)


def version_of(merchant: Merchant, *, callback: bool) -> str:
    """Return a hash that changes with the API secret (or callback secret)."""
    return sha256((merchant.callback_secret if callback else merchant.secret).encode()).hexdigest()[:16]


@transaction
def rotate(merchant: Merchant, *, callback: bool, keep_hours: int, mark: str | None = None) -> str:
    """Give a merchant a new API secret (or callback secret); the old one stays valid for `keep_hours`.

    Args:
        mark: `version_of` the secret to replace, so that a form that is sent twice replaces it once.

    Returns: the new secret.

    Raises:
        OperatorError: that secret was replaced already.
    """
    merchant = database.for_update(Merchant.select().where(Merchant.id == merchant.id)).get()
    if mark is not None and mark != version_of(merchant, callback=callback):
        raise OperatorError(N_("This secret was replaced in the meantime. Reload the merchant's page."))
    column = "callback_secret" if callback else "secret"
    new = new_callback_secret() if callback else secrets.token_urlsafe(32)
    set_merchant(merchant, **vault.rotated(merchant, column, vault.encrypt(new), keep_hours))
    return new


@transaction
def add_account(
    merchant: Merchant,
    *,
    bank: str,
    sub_bank: str,
    card_number: str,
    real_name: str,
    createtime: int | None = None,
    after: int | None = None,
) -> PayoutAccount:
    """Add a payout account; withdrawals are paid to the newest one.

    Args:
        after: the id of the newest account that was shown, 0 for none. A repeated form and a form older than the newest
            account are refused, so that a replaced account does not return.

    Raises:
        OperatorError: invalid value, or a repeated or outdated form.
    """
    wrong = {} if real_name.strip() else {"real_name": [N_("Enter the account holder's name.")]}
    if not CARD_NUMBER.fullmatch(card_number):
        wrong["card_number"] = [N_("A card or account number has 6 to 40 letters, digits, @ . _ or -.")]
    if wrong:
        raise OperatorError("; ".join(text for texts in wrong.values() for text in texts), wrong)
    details = {"bank": bank, "sub_bank": sub_bank, "card_number": card_number, "real_name": real_name}
    if after is not None:
        database.advisory_lock("accounts", merchant.id)
        newest = PayoutAccount.of(merchant)
        if newest and json.loads(vault.decrypt(newest.details)) == details:
            raise OperatorError(N_("This account is already the current payout account."), "card_number")
        if after != (newest.id if newest else 0):
            raise OperatorError(N_("Another payout account was added in the meantime. Check which one is in use."))
    return PayoutAccount.create(
        merchant=merchant,
        on_file=True,
        details=vault.encrypt(json.dumps(details, ensure_ascii=False)),
        createtime=createtime or clock.now(),
    )


def accounts_on_file(merchants: list[Merchant]) -> list[PayoutAccount]:
    """Return the payout accounts on file of these merchants."""
    on_file = PayoutAccount.select().where(PayoutAccount.on_file)
    return [
        row for each in merchants for row in on_file.where(PayoutAccount.merchant == each).order_by(PayoutAccount.id)
    ]
