"""Payout accounts of merchants. A correction is a new row."""

from typing import Any

from peewee import BooleanField, ForeignKeyField, TextField

from models.db.base import Table, Timestamp
from models.db.compiled import compiled, compiled_rows
from models.tables.merchant import Merchant


class PayoutAccount(Table):
    """One payout account. `details` is an encrypted JSON object:

    bank, sub_bank, card_number, real_name, and for gateway_a the personal and card data as sent.
    Empty once it was erased (services/console/privacy.py); otherwise a row never changes.
    """

    merchant = ForeignKeyField(Merchant, index=False)
    on_file = BooleanField()
    details = TextField()
    createtime = Timestamp()

    class Meta:
        table_name = "receiving_account"

    @classmethod
    def of(cls, merchant: Merchant) -> Any:
        """Return the newest account on file, to which gateway_b and gateway_c withdrawals are paid, or None."""
        return _on_file.first(merchant.id)

    @classmethod
    def details_of(cls, account_id: int) -> str:
        """Return the encrypted details of an account."""
        return str(_details.first(account_id).details)


# Only accounts on file are searched by merchant; each gateway_a withdrawal has an account of its own.
PayoutAccount.add_index(
    PayoutAccount.index(
        PayoutAccount.merchant, PayoutAccount.id, where=PayoutAccount.on_file, name="receiving_account_on_file"
    )
)


@compiled
def _details(account_id: int) -> Any:
    return PayoutAccount.select(PayoutAccount.details).where(PayoutAccount.id == account_id)


@compiled_rows(PayoutAccount)
def _on_file(merchant_id: int) -> Any:
    mine = PayoutAccount.select().where(PayoutAccount.merchant == merchant_id, PayoutAccount.on_file)
    return mine.order_by(PayoutAccount.id.desc()).limit(1)
