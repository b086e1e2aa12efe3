"""The sandbox's forms (docs/sandbox.md)."""

from __future__ import annotations

from typing import Any

from marshmallow import EXCLUDE, Schema, ValidationError, pre_load, validates_schema

from gateways.sandbox.driver import PAYOUT_OUTCOMES
from gateways.sandbox.records import OUTCOMES, REFUND_OUTCOMES
from schemas.fields import OneOf, Text, Whole
from schemas.messages import N_

YEAR = 366 * 86_400
ANSWERS = ("200", "400", "410", "429", "500", "503", "redirect", "slow", "long_head", "hang_up")
MOVES = ("next", "callback")
OPEN = ("accept", "refuse", "timeout")


class Form(Schema):
    """A form's fields; an empty one counts as missing."""

    class Meta:
        unknown = EXCLUDE

    @pre_load
    def without_empty(self, data: Any, **kwargs: Any) -> Any:
        """Remove empty texts, which browsers send for empty fields."""
        return {name: value for name, value in data.items() if value != ""}


class FailureForm(Form):
    """The inbox's response from now on, or to the next `times` callbacks; `seconds` for `slow` and Retry-After."""

    answer = Text(required=True, validate=OneOf(ANSWERS))
    times = Whole(1, 10_000)
    seconds = Whole(1, 60)


class ClockForm(Form):
    """Seconds to move by, or what to move to: the next due work, or the next due callback."""

    seconds = Whole(0, YEAR)
    to = Text(validate=OneOf(MOVES))

    @validates_schema
    def one_of_both(self, data: dict[str, Any], **kwargs: Any) -> None:
        """Require exactly one of the two."""
        if len(data) != 1:
            raise ValidationError({"seconds": [N_("One of seconds, to is required.")]})


class PlayForm(Form):
    """An outcome for an order, immediately or after so many seconds."""

    order_no = Text(load_default="")
    outcome = Text(required=True, validate=OneOf(OUTCOMES))
    after = Whole(0, YEAR, load_default=0)


class RefundForm(Form):
    """An outcome of a deposit's open refund, or of its next one."""

    order_no = Text(load_default="")
    outcome = Text(required=True, validate=OneOf(REFUND_OUTCOMES))


class ChannelForm(Form):
    """The behaviour of a sandbox channel."""

    channel = Whole(1, 2**63 - 1, required=True)
    open = Text(validate=OneOf(OPEN))
    payout = Text(validate=OneOf(PAYOUT_OUTCOMES))
    refund = Text(validate=OneOf(REFUND_OUTCOMES))


class MerchantForm(Form):
    """A merchant's callback address; empty for the inbox."""

    key = Text(load_default="demo")
    callback_url = Text(load_default="/sandbox/inbox")


class OrderForm(Form):
    """An order."""

    order_no = Text(required=True)


class CallbackForm(Form):
    """A callback."""

    webhook_id = Text(required=True)
