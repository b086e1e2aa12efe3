"""Payment channels, groups of them, and which merchants are linked to them."""

from __future__ import annotations

import json
from typing import Any

from peewee import SQL, BooleanField, Check, CompositeKey, ForeignKeyField, IntegerField, TextField

from models.db.base import BasisPoints, Fen, Table, Timestamp
from models.tables.merchant import Merchant

CATEGORIES = ("gateway_a", "gateway_b", "gateway_c")
LARGEST_AMOUNT = 100_000_000  # fen: the default maximum of a channel
GROUP = "group"  # the driver of a channel that passes its deposits on to its members
PRIORITY, WEIGHT = MODES = ("priority", "weight")


class Channel(Table):
    """One payment channel, or a group of channels (its driver is GROUP).

    - `config` is an encrypted JSON object that only its driver reads.
    - `cost_rates` are the costs of deposits in basis points by payment method, a JSON object without zeros.
    - `hours` are those of new orders in China, such as 09:00-21:00; "" for all. `takes_orders` is False while it
    accepts no new orders; the present ones go on.
    - A group's members decide its payment methods and amounts, so its own columns of these are not used.
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
    hours = TextField(default="", constraints=[SQL("DEFAULT ''")])
    takes_orders = BooleanField(default=True, constraints=[SQL("DEFAULT TRUE")])

    class Meta:
        constraints = [Check("max_amount >= min_amount")]

    @property
    def is_group(self) -> bool:
        """True for a group of channels."""
        return bool(self.driver == GROUP)

    @property
    def pay_methods(self) -> list[str]:
        """The payment methods of this channel, in the contract's order."""
        return self.pay_method.split(",") if self.pay_method else []

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


class ChannelMember(Table):
    """A channel's place in a group, with the limits of what the group passes on to it.

    `min_amount`, `max_amount` and `daily_amount` in fen; null for no limit but the channel's own. The lowest `position`
    is tried first; equal ones by id. `hours` as those of a channel.
    """

    group = ForeignKeyField(Channel, index=False)
    channel = ForeignKeyField(Channel)
    position = IntegerField(default=1)
    weight = IntegerField(default=1, constraints=[Check("weight > 0")])
    min_amount = Fen(null=True)
    max_amount = Fen(null=True)
    daily_amount = Fen(null=True)
    daily_count = IntegerField(null=True)
    hours = TextField(default="")

    @property
    def has_daily_limit(self) -> bool:
        """True if the group passes on a limited amount or number of deposits a day."""
        return self.daily_amount is not None or self.daily_count is not None


ChannelMember.add_index(ChannelMember.group, ChannelMember.channel, name="channel_member_pair", unique=True)


class MemberDay(Table):
    """What a group has passed on to a member on one day in China, without cancelled orders; `amount` in fen.

    Only members with a daily limit have such rows. Each is changed in the transaction of its order.
    """

    member = ForeignKeyField(ChannelMember, index=False, on_delete="CASCADE")
    day = TextField()
    amount = Fen()
    count = IntegerField()


MemberDay.add_index(MemberDay.member, MemberDay.day, name="member_day_key", unique=True)


class ChannelHealth(Table):
    """How the last payments of one payment method were opened at a channel; no row means without a failure.

    `results` are the last ones, oldest first, as JSON: the Unix time, and why it failed ("" if it was opened). After
    too many failures, groups leave the channel out until `off_until`; `level` counts how often in a row. Then one order
    tries it: `trial_until` is set meanwhile. `since` is when the first of these failures was.
    """

    channel = ForeignKeyField(Channel, index=False)
    method = TextField()
    results = TextField(default="[]")
    level = IntegerField(default=0)
    off_until = Timestamp(null=True)
    trial_until = Timestamp(null=True)
    since = Timestamp(null=True)
    updatetime = Timestamp()


ChannelHealth.add_index(ChannelHealth.channel, ChannelHealth.method, name="channel_health_pair", unique=True)


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
