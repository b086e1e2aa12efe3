"""Secrets and personal data at rest: sealed with Fernet keys from the environment or the key file."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from functools import lru_cache
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from models.merchant import Merchant

_ring: list[MultiFernet] = []


class VaultLocked(Exception):
    """The key file can't be used, or is not the one that the data was sealed with."""


def _key_file(path: Path) -> str:
    """The key file's text; a new key, readable by its owner only, where there is none."""
    if not path.exists():
        # Whole or not at all, whoever is quicker and whatever happens meanwhile. mkstemp's mode is 600.
        handle, unfinished = tempfile.mkstemp(dir=path.parent, prefix="vault.")
        with os.fdopen(handle, "wb") as file:
            file.write(Fernet.generate_key() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):  # another process was quicker
            os.link(unfinished, path)
        os.unlink(unfinished)
    return path.read_text("ascii")


def open_vault(keys: str, path: Path, *, create: bool) -> None:
    """Use `keys` (newest first, joined by commas or lines), or the key file `path` where empty.

    Args:
        create: nothing was sealed yet, so the file may be made where it is missing.

    Raises:
        VaultLocked: the keys are no Fernet keys, or the file can't be read.
    """
    try:
        texts = (keys or (_key_file(path) if create else path.read_text("ascii"))).replace(",", "\n").split()
        _ring[:] = [MultiFernet([Fernet(text) for text in texts])]
    except (OSError, ValueError) as error:
        raise VaultLocked(f"no usable key in {'ORDERS_VAULT_KEY' if keys else path}: {error}") from None
    unseal.cache_clear()


def seal(text: str) -> str:
    """The sealed form of a text."""
    return _ring[0].encrypt(text.encode()).decode()


@lru_cache(maxsize=4096)
def unseal(token: str) -> str:
    """The text of a sealed form.

    Raises:
        VaultLocked: it was sealed with a key that is not here.
    """
    try:
        return _ring[0].decrypt(token.encode()).decode()
    except InvalidToken:
        raise VaultLocked("a value in the database was sealed with another key: restore instance/vault.key") from None


def valid_secrets(merchant: Merchant, column: str) -> list[str]:
    """The secrets in `column` that are valid now, newest first: two while the merchant rotates."""
    sealed = [getattr(merchant, column)]
    previous, until = getattr(merchant, f"previous_{column}"), getattr(merchant, f"previous_{column}_until")
    if previous and until > time.time():
        sealed.append(previous)
    return [unseal(token) for token in sealed]
