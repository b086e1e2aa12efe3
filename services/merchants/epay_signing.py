"""Signatures of the epay gateway: those of shops are verified, and ours made (docs/epay-inbound.md)."""

from __future__ import annotations

import hmac
import time
from collections.abc import Mapping
from functools import lru_cache

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from gateways.config import private_key, public_key
from gateways.epay_protocol import md5_signature, signed_text
from gateways.signatures import is_signature, sign
from models.tables.epay import MD5, EpayAccount
from runtime.state import Part
from services.merchants import epay_accounts
from services.security import vault

_public_key = lru_cache(maxsize=256)(public_key)
_platform_key = Part(lambda: lru_cache(maxsize=256)(_read_platform_key))


def _read_platform_key(sealed: str) -> RSAPrivateKey:
    return private_key(vault.decrypt(sealed))


def is_genuine(account: EpayAccount, version: int, fields: Mapping[str, str]) -> bool:
    """Return whether the shop signed these fields, all that it sent; compares in constant time."""
    given = fields.get("sign", "")
    if version == MD5:
        return any(_is_same(md5_signature(fields, key), given.lower()) for key in epay_accounts.keys(account))
    text = signed_text(fields).encode()
    return any(is_signature(_public_key(key), text, given) for key in epay_accounts.public_keys(account))


def is_key(account: EpayAccount, given: str) -> bool:
    """Return whether this is the account's MD5 key; compares in constant time."""
    return any(_is_same(key, given) for key in epay_accounts.keys(account))


def _is_same(ours: str, given: str) -> bool:
    return hmac.compare_digest(ours.encode(), given.encode(errors="replace"))


def signed(account: EpayAccount, version: int, fields: Mapping[str, str], attempt: int = 0) -> dict[str, str]:
    """Return the fields with our signature; version 2 also has the time.

    Args:
        attempt: the number of earlier attempts. While two MD5 keys are valid, attempts use them in turn, because it is
            not known which one the shop has.
    """
    if version == MD5:
        keys = epay_accounts.keys(account)
        return {**fields, "sign": md5_signature(fields, keys[attempt % len(keys)]), "sign_type": "MD5"}
    stamped = {**fields, "timestamp": str(int(time.time()))}
    signature = sign(_platform_key()(account.platform_key), signed_text(stamped).encode())
    return {**stamped, "sign": signature, "sign_type": "RSA"}
