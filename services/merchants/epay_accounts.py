"""Merchants' accounts at the epay gateway: keys, channels by `type`, allowed hosts (docs/epay-inbound.md)."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

import requests
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from peewee import fn

from gateways.config import private_key
from models.db.base import database
from models.db.writer import after_commit, transaction
from models.tables.channel import Channel
from models.tables.epay import EpayAccount
from models.tables.merchant import Merchant
from runtime import clock
from runtime.state import current
from services.errors import N_, OperatorError
from services.merchants import cache, edit_conflicts
from services.security import vault

FIRST_PID, LAST_PID = 1001, 999_999_999
KEY_KINDS = ("md5", "rsa")
MOST_HOSTS = 20
Types = dict[str, list[tuple[int, str]]]  # epay's type -> (channel id, payment method)
_TYPE = re.compile(r"[A-Za-z0-9_-]{1,32}")
_HOST = re.compile(r"(\*\.)?([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_NOT_IN_NAMES = re.compile(r"[\x00-\x7f](?<![A-Za-z0-9.-])")
_BITS = 2048


def of_merchant(merchant: Merchant) -> EpayAccount | None:
    """Return the merchant's account, or None."""
    return EpayAccount.get_or_none(EpayAccount.merchant == merchant)


def find(merchant: Merchant) -> EpayAccount:
    """Return the merchant's account. Raises OperatorError if the gateway was never enabled for it."""
    account = of_merchant(merchant)
    if account is None:
        raise OperatorError(N_("The epay gateway is not enabled for %(key)s."), key=merchant.key)
    return account


def _hosts(given: Iterable[str]) -> str:
    """Validate host names, and return them separated by commas. Addresses are accepted for their host."""
    hosts = [_host(each.strip()) for each in given if each.strip()]
    if not hosts:
        raise OperatorError(N_("Enter the host name of the shop, such as shop.example."), "hosts")
    if len(hosts) > MOST_HOSTS:
        raise OperatorError(N_("At most %(most)s hosts are possible."), "hosts", most=str(MOST_HOSTS))
    return ",".join(dict.fromkeys(hosts))


def _host(text: str) -> str:
    try:
        host = (urlsplit(text).hostname if "://" in text else text) or ""
        below = "*." if host.startswith("*.") else ""
        host = below + _called(host.removeprefix("*."))
    except ValueError:
        host = ""
    if len(host) > 253 or not _HOST.fullmatch(host):
        raise OperatorError(
            N_("%(given)s is not a host name such as shop.example or *.shop.example."), "hosts", given=text[:100]
        )
    return host


def _called(host: str) -> str:
    """Return the one form of a host name: as notices are sent to it, in ASCII, lower case, without a dot at its end.

    `requests` maps international names as browsers do. Python's own codec has older rules, by which `straße.example`
    would be compared as another server than the one that is called.

    Raises:
        ValueError: it is not a host name.
    """
    if not host.isascii():
        if _NOT_IN_NAMES.search(host):
            raise ValueError("not a host name")
        host = urlsplit(str(requests.Request("GET", f"http://{host}/").prepare().url)).hostname or ""
    return host.lower().removesuffix(".")


def settings_of(account: EpayAccount) -> dict[str, str]:
    """Return what the merchant pastes into its shop, except the secret keys; the platform key is empty without RSA."""
    return {
        "api_url": f"{current().settings.public_url}/",
        "pid": str(account.pid),
        "platform_public_key": platform_public_key(account),
    }


def allows(account: EpayAccount, address: str) -> bool:
    """Return whether the account allows the host of this address.

    A name with any other character is refused: browsers read `evil.example\\.shop.example` as `evil.example`.
    """
    try:
        host = _called(urlsplit(address).hostname or "")
    except ValueError:
        return False
    return bool(_HOST.fullmatch(host)) and any(
        host.endswith(allowed[1:]) if allowed.startswith("*.") else host == allowed
        for allowed in account.hosts.split(",")
    )


def types_of(account: EpayAccount) -> Types:
    """Return the channels by epay's type; empty if they follow from the payment methods."""
    stored = json.loads(account.types) if account.types else {}
    return {name: [(channel, method) for channel, method in pairs] for name, pairs in stored.items()}


def types_text(types: Types) -> str:
    """Return channels by type as one line, such as `alipay=3:alipay,wxpay=2:wxpay`."""
    pairs = [f"{name}={channel}:{method}" for name, each in types.items() for channel, method in each]
    return ",".join(pairs) or N_("by payment method")


def _types(merchant: Merchant, types: Mapping[str, Iterable[tuple[int, str]]]) -> str:
    """Validate channels by type, and return them as JSON. An empty method means the type, or the channel's only one."""
    own = {channel.id: channel for channel in Channel.linked_to(merchant)}
    checked: dict[str, list[tuple[int, str]]] = {}
    for name, pairs in types.items():
        if not _TYPE.fullmatch(name):
            message = N_("%(given)s is not a type. A type has up to 32 letters, digits, _ or -, such as alipay.")
            raise OperatorError(message, "types", given=name[:40])
        for channel, wanted in dict.fromkeys(pairs):
            if channel not in own:
                raise OperatorError(
                    N_("Channel %(channel)s is not available to this merchant."), "types", channel=str(channel)
                )
            methods = own[channel].pay_methods
            method = wanted or (methods[0] if len(methods) == 1 else name)
            if method not in methods:
                message = N_("Channel %(channel)s does not support the payment method %(method)s.")
                raise OperatorError(message, "types", channel=str(channel), method=method)
            checked.setdefault(name, []).append((channel, method))
    return json.dumps(checked, separators=(",", ":")) if checked else ""


def type_of(account: EpayAccount, channel: int, method: str) -> str:
    """Return epay's type for a channel that the payer chose."""
    return next((name for name, pairs in types_of(account).items() if (channel, method) in pairs), method)


@transaction
def enable(
    merchant: Merchant, *, pid: int | None = None, mark: str | None = None, **facts: Any
) -> tuple[EpayAccount, str]:
    """Open an account at the gateway for a merchant, or enable its account again.

    Args:
        pid: the merchant number; the next free one by default. An existing account keeps its own.
        mark: as for `change`; empty if the merchant had no account.
        facts: as for `change`; `hosts` is required for a new account.

    Returns: the account, and its new MD5 key, empty if it has one already.

    Raises:
        OperatorError: invalid value, the number is taken, or the account was changed since `mark`.
    """
    database.advisory_lock("epay")
    account = of_merchant(merchant)
    if account is not None:
        if pid not in (None, account.pid):
            raise OperatorError(
                N_("This merchant's number is %(pid)s and cannot be changed."), "pid", pid=str(account.pid)
            )
        change(account, mark=mark, enabled=True, **facts)
        return find(merchant), ""
    if pid is None:
        pid = max(FIRST_PID, (EpayAccount.select(fn.MAX(EpayAccount.pid)).scalar() or 0) + 1)
    elif not 1 <= pid <= LAST_PID:
        raise OperatorError(N_("A merchant number is from 1 to %(most)s."), "pid", most=str(LAST_PID))
    elif EpayAccount.select().where(EpayAccount.pid == pid).exists():
        raise OperatorError(N_("Merchant number %(pid)s is taken."), "pid", pid=str(pid))
    key, now = _new_key(), clock.now()
    after_commit(cache.forget)
    account = EpayAccount.create(
        merchant=merchant,
        pid=pid,
        key=vault.encrypt(key),
        createtime=now,
        updatetime=now,
        **checked(merchant, {"hosts": ()} | facts),
    )
    return account, key


def checked(merchant: Merchant, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Validate the facts of an account, and return them as they are stored. Raises OperatorError."""
    columns = dict(facts)
    if "hosts" in facts:
        columns["hosts"] = _hosts(facts["hosts"])
    if "types" in facts:
        columns["types"] = _types(merchant, facts["types"])
    return columns


@transaction
def change(account: EpayAccount, *, mark: str | None = None, **facts: Any) -> None:
    """Change an account.

    Args:
        mark: `edit_conflicts.version_of` the account when its form was shown; None to skip the check.
        facts: `hosts` (host names), `types` (`Types`, empty for all channels by their payment methods), `webhooks`,
            `enabled`.

    Raises:
        OperatorError: invalid value, or the account was changed since.
    """
    account = edit_conflicts.check_version(account, mark)
    after_commit(cache.forget)
    columns = checked(account.merchant, facts) | {"updatetime": clock.now()}
    EpayAccount.update(columns).where(EpayAccount.id == account.id).execute()


def version_of(account: EpayAccount, kind: str) -> str:
    """Return a hash that changes with the MD5 key (kind `md5`) or the RSA keys (`rsa`)."""
    return sha256((account.key if kind == "md5" else account.public_key).encode()).hexdigest()[:16]


@transaction
def rotate(account: EpayAccount, kind: str, *, keep_hours: int, mark: str | None = None) -> str:
    """Give an account a new MD5 key or a new pair of RSA keys; the old one stays valid for `keep_hours`.

    Args:
        kind: `md5` or `rsa`. The first RSA pair also creates the platform's keys, which stay.
        mark: `version_of` the key to replace, so that a form that is sent twice replaces it once.

    Returns: the MD5 key, or the shop's private RSA key as base64 of PKCS #8, as plug-ins expect it. It is not stored.

    Raises:
        OperatorError: that key was replaced already.
    """
    account = database.for_update(EpayAccount.select().where(EpayAccount.id == account.id)).get()
    if mark is not None and mark != version_of(account, kind):
        raise OperatorError(N_("This secret was replaced in the meantime. Reload the merchant's page."))
    facts: dict[str, Any] = {}
    if kind == "md5":
        new = _new_key()
        column, stored = "key", vault.encrypt(new)
    else:
        pair = rsa.generate_private_key(public_exponent=65537, key_size=_BITS)
        new, column, stored = _base64(_private_pem(pair)), "public_key", _public_pem(pair)
        if not account.platform_key:
            platform = rsa.generate_private_key(public_exponent=65537, key_size=_BITS)
            facts["platform_key"] = vault.encrypt(_private_pem(platform))
    change(account, **facts | vault.rotated(account, column, stored, keep_hours))
    return new


def _new_key() -> str:
    """Return 32 letters and digits, as on other platforms; some plug-ins accept nothing else."""
    return secrets.token_hex(16)


def _private_pem(key: rsa.RSAPrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _public_pem(key: rsa.RSAPrivateKey) -> str:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def _base64(pem: str) -> str:
    return "".join(pem.splitlines()[1:-1])


def keys(account: EpayAccount) -> list[str]:
    """Return the valid MD5 keys, newest first: two during a rotation."""
    return vault.valid_secrets(account, "key")


def public_keys(account: EpayAccount) -> list[str]:
    """Return the shop's valid public RSA keys as PEM, newest first."""
    return vault.valid(account, "public_key")


def old_until(account: EpayAccount) -> dict[str, int]:
    """Return the times at which the replaced keys expire that are still valid, by kind (`md5`, `rsa`)."""
    times = {"md5": account.previous_key_until, "rsa": account.previous_public_key_until}
    return {kind: until for kind, until in times.items() if until and until > clock.now()}


def platform_public_key(account: EpayAccount) -> str:
    """Return the platform's public RSA key as base64, which shops verify our signatures with; empty without one."""
    if not account.platform_key:
        return ""
    return _base64(_public_pem(private_key(vault.decrypt(account.platform_key))))
