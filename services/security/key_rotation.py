"""Key rotation: encrypt everything with a new key while the service runs."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet, InvalidToken

from models.db.base import database
from models.db.compiled import Compiled
from models.db.writer import transaction
from models.tables.channel import Channel
from models.tables.epay import EpayAccount
from models.tables.merchant import Merchant
from models.tables.notification import Destination
from models.tables.operator import SecondFactor
from models.tables.order import Order
from models.tables.payout_account import PayoutAccount
from services.errors import OperatorError
from services.platform import files
from services.security import sessions, vault
from services.security.vault import Ring, VaultLocked

# Columns that requests need come first.
COLUMNS = (
    Merchant.secret,
    Merchant.previous_secret,
    Merchant.callback_secret,
    Merchant.previous_callback_secret,
    Channel.config,
    PayoutAccount.details,
    Order.customer_name,
    SecondFactor.secret,
    Destination.config,
    EpayAccount.key,
    EpayAccount.previous_key,
    EpayAccount.platform_key,
)
STEP = 200


def name_of(column: Any) -> str:
    """Return the column's name, such as `merchant.secret`."""
    return f"{column.model._meta.table_name}.{column.column_name}"


def batches(column: Any) -> Iterator[list[tuple[int, str]]]:
    """Yield all encrypted values of a column, as (row's id, token), in batches by the rows' ids."""
    row, last = column.model.id, 0
    while step := list(
        column.model.select(row, column).where(row > last, column != "").order_by(row).limit(STEP).tuples()
    ):
        yield step
        last = step[-1][0]


def check(ring: Ring) -> Iterator[str]:
    """Decrypt everything; yield the name of each column first.

    Raises:
        VaultLocked: a value can't be decrypted with the keys of this ring.
    """
    for column in COLUMNS:
        if not column.model.table_exists():  # a backup of an older release
            continue
        yield name_of(column)
        for step in batches(column):
            for row, token in step:
                try:
                    ring.open(token)
                except InvalidToken:
                    name = f"{name_of(column)} of row {row}"
                    raise VaultLocked(
                        f"{name} was encrypted with another key: append that key to vault.key (or vault_key)"
                    ) from None


SESSIONS_ENDED = "all sessions of the console ended; operators have to sign in again"
IN_FLIGHT = 60  # seconds after which values in memory, encrypted with an old key, have been stored or decrypted


def rotate(folder: Path, *, keep_old: bool = False, wait: float = IN_FLIGHT, only_host: bool = False) -> Iterator[str]:
    """Add a new key to the key file, encrypt everything with it, then remove the old keys; yield each step in words.

    All sessions of the console end, because someone with the old key may have forged or copied their cookies.
    It may be interrupted at any point: the keys in the file can then decrypt everything, and the next call continues.
    Keys from a setting are not changed; the first of them is the new one.

    Args:
        folder: the instance folder.
        wait: seconds until work in progress in the service is done; 0 if no service is running.
        only_host: no service of another host uses the database.

    Raises:
        OperatorError: another rotation is running, or other hosts could not decrypt values encrypted with a new key in
            this file.
        VaultLocked: a value in the database can't be decrypted with any key; no key was removed.
    """
    with _alone(folder):
        ring = vault.key_ring()
        if database.is_shared and ring.file is not None and not only_host:
            raise OperatorError(
                f"other hosts do not see a new key in {ring.file}: set vault_key on all of them "
                "(docs/guides/key.md). If no other host uses this database, add --only-host"
            )
        if ring.file is None:
            sessions.forget()
            yield SESSIONS_ENDED
            yield from _encrypt_all(ring)
            if others := len(ring.keys) - 1:
                yield f"everything is encrypted with the first key of vault_key; remove the other {others}"
            else:
                yield (
                    "everything is encrypted with the only key of vault_key: put a new one before it, restart, "
                    "repeat this"
                )
            return
        file = ring.file
        if not _begun(ring):
            _write(file, [Fernet.generate_key().decode(), *ring.keys])
            ring = vault.key_ring()
            yield f"new key added to {file}: copy the file to a safe place"
        sessions.forget()  # after the new key is in use, which signs the cookies
        yield SESSIONS_ENDED
        yield from _encrypt_all(ring)
        if keep_old:
            yield f"everything is encrypted with the new key; {file} also keeps the old ones"
            return
        if wait:
            yield f"waiting {wait:.0f} seconds for work in progress"
            time.sleep(wait)
            yield from _encrypt_all(ring)
        new, *old = ring.keys
        if old:
            aside = file.with_name(f"{file.name}.before-{files.moment()}")
            files.write(aside, "\n".join(old) + "\n", files.finish)
            yield f"old keys moved to {aside}. Store the file elsewhere, for as long as you keep backups from before"
            _write(file, [new])
            yield f"{file} now has only the new key"


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OperatorError("another `tillbook vault rotate` is running") from None
        yield
    finally:
        os.close(handle)


def _write(file: Path, keys: list[str]) -> None:
    files.write(file.resolve(), "\n".join(keys) + "\n", files.replace)  # the target of a link


def _begun(ring: Ring) -> bool:
    """Return whether an earlier rotation added the first key but did not finish."""
    first = Ring(ring.keys[0])
    return len(ring.keys) > 1 and any(
        not _opens(first, token) for column in COLUMNS for step in batches(column) for _, token in step
    )


def _opens(ring: Ring, token: str) -> bool:
    try:
        ring.open(token)
    except InvalidToken:
        return False
    return True


def _encrypt_all(ring: Ring) -> Iterator[str]:
    """Rotate all columns until a pass finds nothing that another key than the first has encrypted."""
    first = Ring(ring.keys[0])
    found = -1
    while found:
        found = 0
        for column in COLUMNS:
            changed = 0
            for step in batches(column):
                old = [(row, token) for row, token in step if not _opens(first, token)]
                if old:
                    _store(column, [(row, token, _encrypted_again(ring, column, row, token)) for row, token in old])
                changed += len(old)
            if changed:
                yield f"{name_of(column)}: {changed} encrypted with the new key"
            found += changed


def _encrypted_again(ring: Ring, column: Any, row: int, token: str) -> str:
    try:
        return ring.rotate(token)
    except InvalidToken:
        raise VaultLocked(f"{name_of(column)} of row {row} was encrypted with a missing key") from None


@cache
def _update(column: Any) -> Compiled:
    table = column.model
    return Compiled(lambda row, old, new: table.update({column: new}).where(table.id == row, column == old))


@transaction
def _store(column: Any, changes: list[tuple[int, str, str]]) -> None:
    """Store a small batch, because the service writes meanwhile; values that changed are left for the next pass."""
    for row, old, new in changes:
        _update(column)(row, old, new)
