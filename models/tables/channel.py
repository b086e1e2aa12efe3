"""Payment channels and which merchants are linked to them."""

from __future__ import annotations

import json
from typing import Any

from peewee import SQL, BooleanField, Check, CompositeKey, ForeignKeyField, IntegerField, TextField

from models.db.base import BasisPoints, Fen, Table, Timestamp
from models.tables.merchant import Merchant

CATEGORIES = ("gateway_a", "gateway_b", "gateway_c")
LARGEST_AMOUNT = 100_000_000  # fen: the default maximum of a channel


class Channel(Table):
    """One payment channel.

    - `config` is an encrypted JSON object that only its driver reads.
    - `cost_rates` are the costs of deposits in basis points by payment method, a JSON object without zeros.
    """

    category = TextField(constraints=[Check("category IN ('gateway_a', 'gateway_b', 'gateway_c')")])
    driver = TextField()
    name = TextField()
    pay_method = TextField()
    min_amount = Fen(default=1, constraints=[Check("min_amount > 0")])
    max_amount = Fen(default=LARGEST_AMOUNT)
    passage_rate = BasisPoints(default=0, constraints=[Check("passage_rate BETWEEN -10000 AND 10000")])
    commission_rate = BasisPoints(default=0, constraints=[Check("commission_rate BETWEEN 0 AND 10000")])
    deposit_rate = BasisPoints(default=0, constraints=[Check("deposit_rate BETWEEN 0 AND 10000")])
    settlement_days = IntegerField(default=0, constraints=[Check("settlement_days >= 0")])
    auto_accept_max = Fen(default=0, constraints=[Check("auto_accept_max >= 0")])
    config = TextField()
    enabled = BooleanField(default=True)
    createtime = Timestamp()
    updatetime = Timestamp()
    cost_rates = TextField(default="{}", constraints=[SQL("DEFAULT '{}'")])

    class Meta:
        constraints = [Check("max_amount >= min_amount")]

    @property
    def pay_methods(self) -> list[str]:
        """The payment methods of this channel, in the contract's order."""
        return self.pay_method.split(",")

    @property
    def costs(self) -> dict[str, int]:
        """What the channel keeps of deposits, in basis points by payment method; nothing is known of others."""
        return dict(json.loads(self.cost_rates))

    def cost_rate(self, method: str) -> int:
        """Return what the channel keeps of deposits by this payment method, in basis points; 0 if nothing is known."""
        return self.costs.get(method, 0)

    @classmethod
    def linked_to(cls, merchant: Merchant | int) -> Any:
        """Return the channels that this merchant may use, by id, including disabled ones."""
        return cls.select().join(ChannelLink).where(ChannelLink.merchant == merchant).order_by(cls.id)


class ChannelLink(Table):
    """A merchant's permission to use a channel."""

    merchant = ForeignKeyField(Merchant)
    channel = ForeignKeyField(Channel)

    class Meta:
        primary_key = CompositeKey("merchant", "channel")


class ChannelPicture(Table):
    """The image of the payee's QR code for one payment method of a manual channel.

    `content` is base64, so that both databases and the copy between them store it as text; `digest` changes with it.
    """

    channel = ForeignKeyField(Channel, index=False)
    method = TextField(constraints=[Check("method IN ('wxpay', 'alipay', 'bank')")])
    content_type = TextField(constraints=[Check("content_type IN ('image/png', 'image/jpeg')")])
    content = TextField()
    digest = TextField()


ChannelPicture.add_index(ChannelPicture.channel, ChannelPicture.method, name="channel_picture_method", unique=True)
