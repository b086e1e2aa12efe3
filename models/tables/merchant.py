"""Merchants: their API keys and secrets, rates, and callback addresses, and their settings of the payment page."""

from peewee import SQL, BooleanField, Check, ForeignKeyField, TextField

from models.db.base import BasisPoints, Fen, Table, Timestamp

OFF, APPROVAL, AUTOMATIC = REFUND_MODES = ("off", "approval", "automatic")
KEEP, PROPORTIONAL, FULL_ONLY = REFUND_FEES = ("keep", "proportional", "full_only")


class Merchant(Table):
    """One merchant. `secret` and `callback_secret` (and the previous ones) are encrypted.

    `refund_mode`: whether it may request refunds, and whether an operator approves each; automatic ones have at most
    `refund_auto_max` fen. `refund_fees`: which fees it gets back.
    """

    key = TextField(unique=True)
    name = TextField()
    secret = TextField()
    previous_secret = TextField(null=True)
    previous_secret_until = Timestamp(null=True)
    callback_url = TextField(default="")
    callback_secret = TextField()
    previous_callback_secret = TextField(null=True)
    previous_callback_secret_until = Timestamp(null=True)
    events = TextField(default="completed,cancelled")
    buy_rate = BasisPoints(default=0, constraints=[Check("buy_rate BETWEEN 0 AND 10000")])
    sell_rate = BasisPoints(default=0, constraints=[Check("sell_rate BETWEEN 0 AND 10000")])
    allowed_addresses = TextField(default="")
    enabled = BooleanField(default=True)
    demo = BooleanField(default=False)
    createtime = Timestamp()
    updatetime = Timestamp()
    refund_mode = TextField(
        default=OFF, constraints=[SQL("DEFAULT 'off'"), Check("refund_mode IN ('off', 'approval', 'automatic')")]
    )
    refund_auto_max = Fen(default=0, constraints=[SQL("DEFAULT 0"), Check("refund_auto_max >= 0")])
    refund_fees = TextField(
        default=KEEP,
        constraints=[SQL("DEFAULT 'keep'"), Check("refund_fees IN ('keep', 'proportional', 'full_only')")],
    )

    @classmethod
    def any_demo(cls) -> bool:
        """Return whether the database has the demo merchants."""
        return bool(cls.select().where(cls.demo).exists())


class PaymentPage(Table):
    """A merchant's settings of the payment page, all optional. A merchant without changes has no row.

    `return_url` and `new_order_url` are addresses with placeholders (`services/merchants/payment_page.py`). `contact`
    is a line for payers, `color` is `#rrggbb`. `logo` is an image in base64, `logo_digest` the start of its SHA-256.
    """

    merchant = ForeignKeyField(Merchant, unique=True)
    return_url = TextField(default="")
    new_order_url = TextField(default="")
    contact = TextField(default="")
    color = TextField(default="")
    logo_type = TextField(default="", constraints=[Check("logo_type IN ('', 'image/png', 'image/jpeg', 'image/webp')")])
    logo = TextField(default="")
    logo_digest = TextField(default="", index=True)
    updatetime = Timestamp()
