"""Secrets and personal data at rest: encrypted with Fernet keys from the environment or the key file."""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from models.tables.epay import EpayAccount
from models.tables.merchant import Merchant
from runtime import clock
from runtime.settings import denied
from runtime.state import Part
from services.platform import files

log = logging.getLogger(__name__)


class VaultLocked(Exception):
    """The key file can't be used, or the data was encrypted with another key."""


class Ring:
    """Keys, newest first, and their file, if any. The first key encrypts, all decrypt."""

    def __init__(self, text: str, file: Path | None = None, stamp: tuple[int, ...] | None = None):
        """`text`: keys separated by commas or lines. Raises ValueError if there is none or an invalid one."""
        self.keys, self.file, self.stamp = text.replace(",", "\n").split(), file, stamp
        self._fernet = MultiFernet([Fernet(key) for key in self.keys])

    @classmethod
    def read(cls, file: Path) -> Ring:
        """Read the keys in a file. Raises OSError, ValueError."""
        stamp = _stamp(file)  # before the file is read, so that a change in between is seen the next time
        return cls(file.read_text("ascii"), file, stamp)

    def encrypt(self, text: str) -> str:
        """Encrypt a text with the first key."""
        return self._fernet.encrypt(text.encode()).decode()

    def open(self, token: str) -> str:
        """Decrypt a token. Raises InvalidToken."""
        return self._fernet.decrypt(token.encode()).decode()

    def rotate(self, token: str) -> str:
        """Encrypt a token's text again, with the first key. Raises InvalidToken."""
        return self._fernet.rotate(token.encode()).decode()


class _Vault:
    """The ring in use; `open_vault` sets the first one."""

    ring: Ring


_vault = Part(_Vault)


def _stamp(file: Path) -> tuple[int, ...] | None:
    """Return a stamp of the file's present content, to detect changes; None if there is no file."""
    try:
        seen = file.stat()
    except OSError:
        return None
    return seen.st_ino, seen.st_mtime_ns, seen.st_size


def key_ring() -> Ring:
    """Return the ring, read again after `tillbook vault rotate` changed its file while the service runs."""
    ring = _vault().ring
    if ring.file is not None and ring.stamp != (stamp := _stamp(ring.file)):
        try:
            ring = Ring.read(ring.file)
        except (OSError, ValueError) as error:
            # The keys in memory still decrypt the whole database, and no copy of them exists elsewhere.
            log.error(
                "Key file %s cannot be used, the previous keys stay in use. Restore the file: %s", ring.file, error
            )
            ring.stamp = stamp
        _vault().ring = ring
    return ring


def open_vault(keys: str, path: Path, *, create: bool) -> None:
    """Use `keys` (newest first, separated by commas or lines), or the key file `path` if they are empty.

    Args:
        create: nothing was encrypted yet, so a missing file may be created.

    Raises:
        VaultLocked: the keys are not Fernet keys, or the file can't be read.
    """
    try:
        if create and not keys and not path.exists():
            with suppress(FileExistsError):  # another process was quicker
                files.write(path, Fernet.generate_key().decode() + "\n", files.finish)
        _vault().ring = Ring(keys) if keys else Ring.read(path)
    except PermissionError:
        raise VaultLocked(denied(path)) from None
    except OSError as error:
        raise VaultLocked(f"{path}: {error.strerror}. Restore the key file") from None
    except ValueError:
        where = "ORDERS_VAULT_KEY" if keys else path
        raise VaultLocked(f"{where} has no valid key: restore the correct one") from None
    _opened().cache_clear()


def encrypt(text: str) -> str:
    """Encrypt a text with the first key."""
    return key_ring().encrypt(text)


def decrypt(token: str) -> str:
    """Decrypt a token.

    Raises:
        VaultLocked: it was encrypted with a key that is not available.
    """
    return _opened()(token)


def _open(token: str) -> str:
    with suppress(InvalidToken):
        return _vault().ring.open(token)
    try:
        return key_ring().open(token)  # the key file may have another key by now
    except InvalidToken:
        text = "the database was encrypted with another key: restore the correct one (vault.key, or vault_key)"
        raise VaultLocked(text) from None


_opened = Part(lambda: lru_cache(maxsize=4096)(_open))


def same(token: str, other: str) -> bool:
    """Return whether two tokens have the same text, also after a key rotation. Raises VaultLocked."""
    return token == other or decrypt(token) == decrypt(other)


def valid(row: Merchant | EpayAccount, column: str) -> list[str]:
    """Return the valid values of `column` as they are stored, newest first: two during a rotation, none if empty."""
    values = [getattr(row, column)]
    previous, until = getattr(row, f"previous_{column}"), getattr(row, f"previous_{column}_until")
    if previous and until > clock.now():
        values.append(previous)
    return [value for value in values if value]


def valid_secrets(row: Merchant | EpayAccount, column: str) -> list[str]:
    """Return the valid secrets in `column`, decrypted, newest first."""
    return [decrypt(token) for token in valid(row, column)]


def rotated(row: Merchant | EpayAccount, column: str, stored: str, keep_hours: int) -> dict[str, Any]:
    """Return the columns of a row whose value in `column` is replaced; the old one stays valid for `keep_hours`.

    Args:
        stored: the new value as it is stored.
    """
    before = getattr(row, column)
    kept = bool(before and keep_hours)
    return {
        column: stored,
        f"previous_{column}": before if kept else None,
        f"previous_{column}_until": clock.now() + keep_hours * 3600 if kept else None,
    }
