"""Which columns are sealed, and a walk through what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cryptography.fernet import InvalidToken

from models.tables.account import ReceivingAccount
from models.tables.channel import Channel
from models.tables.merchant import Merchant
from models.tables.order import Order
from models.tables.second_factor import SecondFactor
from services.security.vault import Ring, VaultLocked

# Where the service can't answer anybody without it comes first.
COLUMNS = (
    Merchant.secret,
    Merchant.previous_secret,
    Merchant.callback_secret,
    Merchant.previous_callback_secret,
    Channel.config,
    ReceivingAccount.details,
    Order.customer_name,
    SecondFactor.secret,
)
STEP = 200


def name_of(column: Any) -> str:
    """`merchant.secret`."""
    return f"{column.model._meta.table_name}.{column.column_name}"


def batches(column: Any) -> Iterator[list[tuple[int, str]]]:
    """All that is sealed in a column, as (row's id, sealed text), in steps by the rows' ids."""
    row, last = column.model.id, 0
    while step := list(
        column.model.select(row, column).where(row > last, column != "").order_by(row).limit(STEP).tuples()
    ):
        yield step
        last = step[-1][0]


def check(ring: Ring) -> Iterator[str]:
    """Open all that is sealed; the name of each column before it is gone through.

    Raises:
        VaultLocked: something does not open with the keys of this ring.
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
                        f"{name} was sealed with another key: append it to vault.key (or vault_key)"
                    ) from None
