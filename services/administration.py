"""Setting up: merchants with their secrets, channels with their drivers' config, links, receiving accounts."""

from __future__ import annotations

import base64
import ipaddress
import json
import re
import secrets
import time
from typing import Any
from urllib.parse import urlsplit

from marshmallow import ValidationError
from peewee import IntegrityError

import gateways
from models.account import ReceivingAccount
from models.base import database
from models.channel import CATEGORIES, LARGEST_AMOUNT, PAY_METHODS, Channel, ChannelLink
from models.ledger import AVAILABLE, CLEARING, COMMISSION, FEES, HELD
from models.merchant import Merchant
from services import ledger, vault
from services.errors import NotPossible
from services.ledger import OPERATOR
from services.signing import WEBHOOK_PREFIX

RESULTS = ("completed", "cancelled")
EVENTS = ("paid", "confirmed", *RESULTS)
CARD_NUMBER = re.compile(r"[A-Za-z0-9@._-]{6,40}")
MERCHANT_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def new_callback_secret() -> str:
    """`whsec_` and 32 random bytes in base64."""
    return WEBHOOK_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def find_merchant(key: str) -> Merchant:
    """The merchant with this API key. Raises NotPossible."""
    merchant = Merchant.get_or_none(Merchant.key == key)
    if merchant is None:
        raise NotPossible(f"no merchant {key}")
    return merchant


def find_channel(channel_id: int) -> Channel:
    """The channel with this id. Raises NotPossible."""
    channel = Channel.get_or_none(Channel.id == channel_id)
    if channel is None:
        raise NotPossible(f"no channel {channel_id}")
    return channel


def _callback_url(url: str) -> str:
    """Empty, an http(s) address, or a path on this service."""
    if not url or re.fullmatch(r"/[^/\s]\S*", url):
        return url
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and not re.search(r"\s", url)
    except ValueError:
        usable = False
    if not usable:
        raise NotPossible(f"a callback URL is an address like https://shop.example/paid, not {url!r}")
    return url


def _events(text: str) -> str:
    wanted = {event.strip() for event in text.split(",") if event.strip()}
    if not wanted <= set(EVENTS):
        raise NotPossible(f"events are {', '.join(EVENTS)}")
    return ",".join(event for event in EVENTS if event in wanted | set(RESULTS))


def _addresses(text: str) -> str:
    try:
        return ",".join(str(ipaddress.ip_network(part.strip())) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise NotPossible(f"allowed addresses: {error}") from None


# How an operator's text becomes a column's value.
MERCHANT_FIELDS = {"callback_url": _callback_url, "events": _events, "allowed_addresses": _addresses}


def _merchant_facts(given: dict[str, Any]) -> dict[str, Any]:
    return {name: MERCHANT_FIELDS[name](value) if name in MERCHANT_FIELDS else value for name, value in given.items()}


def add_merchant(
    key: str, name: str, *, secret: str = "", callback_secret: str = "", **facts: Any
) -> tuple[Merchant, str]:
    """Add a merchant with its two ledger accounts.

    Args:
        key: the API key: 1 to 64 letters, digits, `_`, `.`, `-`.
        secret: the API secret; made where empty.
        facts: columns of Merchant; rates in basis points.

    Returns: the merchant and its API secret.

    Raises:
        NotPossible: the key is taken, or a value can't be used.
    """
    if not MERCHANT_KEY.fullmatch(key):
        raise NotPossible("a merchant's key has 1 to 64 letters, digits, _ . or -")
    secret = secret or secrets.token_urlsafe(32)
    now = int(time.time())
    facts = {"createtime": now, "updatetime": now} | _merchant_facts(facts)
    try:
        with database.atomic():
            merchant = Merchant.create(
                key=key,
                name=name,
                secret=vault.seal(secret),
                callback_secret=vault.seal(callback_secret or new_callback_secret()),
                **facts,
            )
            own = [(AVAILABLE, merchant.id), (HELD, merchant.id), (FEES, OPERATOR), (COMMISSION, OPERATOR)]
            ledger.open_accounts(*own)
    except IntegrityError as error:
        if Merchant.select().where(Merchant.key == key).exists():
            raise NotPossible(f"there is a merchant {key} already") from None
        raise NotPossible(f"a value is out of range: {error}") from None
    return merchant, secret


def set_merchant(merchant: Merchant, **facts: Any) -> None:
    """Change columns of a merchant. Raises NotPossible."""
    Merchant.update(_merchant_facts(facts) | {"updatetime": int(time.time())}).where(
        Merchant.id == merchant.id
    ).execute()


def rotate(merchant: Merchant, *, callback: bool, keep_hours: int) -> str:
    """Give a merchant a new API secret (or callback secret); the old one stays valid for `keep_hours`.

    Returns: the new secret.
    """
    column = "callback_secret" if callback else "secret"
    new = new_callback_secret() if callback else secrets.token_urlsafe(32)
    set_merchant(
        merchant,
        **{
            column: vault.seal(new),
            f"previous_{column}": getattr(merchant, column) if keep_hours else None,
            f"previous_{column}_until": int(time.time()) + keep_hours * 3600 if keep_hours else None,
        },
    )
    return new


def _sealed_config(driver: str, config: dict[str, Any]) -> str:
    """A driver's config, checked by its schema and sealed. Raises NotPossible, naming the fields."""
    if driver not in gateways.DRIVERS:
        raise NotPossible(f"no driver {driver!r}: there are {', '.join(gateways.DRIVERS)}")
    try:
        loaded = gateways.DRIVERS[driver].config_schema().load(config)
    except ValidationError as error:
        raise NotPossible(f"config: {json.dumps(error.messages, ensure_ascii=False)}") from None
    return vault.seal(json.dumps(loaded, ensure_ascii=False))


def _pay_method(text: str) -> str:
    wanted = {part.strip() for part in text.split(",")}
    if not wanted or not wanted <= set(PAY_METHODS):
        raise NotPossible(f"payment methods are {', '.join(PAY_METHODS)}")
    return ",".join(method for method in PAY_METHODS if method in wanted)


def add_channel(
    category: str, driver: str, name: str, pay_method: str, config: dict[str, Any], **facts: Any
) -> Channel:
    """Add a channel with its clearing account.

    Args:
        pay_method: some of wxpay, alipay, bank, joined by commas.
        config: what the driver needs; checked by its schema.
        facts: columns of Channel; amounts in fen, rates in basis points.

    Raises:
        NotPossible: a value can't be used; it names the field.
    """
    if category not in CATEGORIES:
        raise NotPossible(f"categories are {', '.join(CATEGORIES)}")
    if facts.get("min_amount", 1) > facts.get("max_amount", LARGEST_AMOUNT):
        raise NotPossible("the least amount is above the largest")
    now = int(time.time())
    with database.atomic():
        channel = _checked(
            lambda: Channel.create(
                category=category,
                driver=driver,
                name=name,
                pay_method=_pay_method(pay_method),
                config=_sealed_config(driver, config),
                **{"createtime": now, "updatetime": now} | facts,
            )
        )
        ledger.open_accounts((CLEARING, channel.id))
    return channel


def set_channel(channel: Channel, config: dict[str, Any] | None = None, **facts: Any) -> None:
    """Change columns of a channel; `config` is laid over what is there. Raises NotPossible."""
    if config:
        present = json.loads(vault.unseal(channel.config))
        facts["config"] = _sealed_config(channel.driver, present | config)
    if "pay_method" in facts:
        facts["pay_method"] = _pay_method(facts["pay_method"])
    if facts.get("min_amount", channel.min_amount) > facts.get("max_amount", channel.max_amount):
        raise NotPossible("the least amount is above the largest")
    facts["updatetime"] = int(time.time())
    _checked(lambda: Channel.update(facts).where(Channel.id == channel.id).execute())


def _checked(write: Any) -> Any:
    try:
        return write()
    except IntegrityError as error:
        raise NotPossible(f"a value is out of range: {error}") from None


def link(channel: Channel, merchant: Merchant) -> None:
    """Let a merchant use a channel."""
    ChannelLink.insert(channel=channel, merchant=merchant).on_conflict_ignore().execute()


def unlink(channel: Channel, merchant: Merchant) -> None:
    """Take a channel from a merchant; orders that are on their way go on. Raises NotPossible."""
    own = (ChannelLink.channel == channel) & (ChannelLink.merchant == merchant)
    if not ChannelLink.delete().where(own).execute():
        raise NotPossible(f"{merchant.key} is not linked to channel {channel.id}")


def add_account(
    merchant: Merchant, *, bank: str, sub_bank: str, card_number: str, real_name: str, createtime: int | None = None
) -> ReceivingAccount:
    """Put a receiving account on file; withdrawals go to the newest one. Raises NotPossible."""
    if not CARD_NUMBER.fullmatch(card_number) or not real_name.strip():
        raise NotPossible("a receiving account needs a real name and a card number of 6 to 40 letters, digits, @ . _ -")
    details = {"bank": bank, "sub_bank": sub_bank, "card_number": card_number, "real_name": real_name}
    return ReceivingAccount.create(
        merchant=merchant,
        on_file=True,
        details=vault.seal(json.dumps(details, ensure_ascii=False)),
        createtime=createtime or int(time.time()),
    )
