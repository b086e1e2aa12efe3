"""What the sandbox's forms take (docs/sandbox.md)."""

from __future__ import annotations

from typing import Any

from marshmallow import EXCLUDE, Schema, ValidationError, pre_load, validates_schema

from gateways.sandbox.driver import PAYOUT_OUTCOMES
from gateways.sandbox.simulator import OUTCOMES
from schemas.fields import OneOf, Text, Whole
from schemas.messages import N_

YEAR = 366 * 86_400
ANSWERS = ("200", "400", "410", "429", "500", "503", "redirect", "slow", "long_head", "hang_up")
MOVES = ("next", "callback")
OPEN = ("accept", "refuse", "timeout")


class Form(Schema):
    """A form's fields; one that is left empty counts as missing."""

    class Meta:
        unknown = EXCLUDE

    @pre_load
    def without_empty(self, data: Any, **kwargs: Any) -> Any:
        """Browsers send what was not filled in as an empty text."""
        return {name: value for name, value in data.items() if value != ""}


class FailureForm(Form):
    """What the inbox answers from now on, or the next `times`; `seconds` for `slow` and Retry-After."""

    answer = Text(required=True, validate=OneOf(ANSWERS))
    times = Whole(1, 10_000)
    seconds = Whole(1, 60)


class ClockForm(Form):
    """Seconds to move by, or what to move to: the next due work, or the next due callback."""

    seconds = Whole(0, YEAR)
    to = Text(validate=OneOf(MOVES))

    @validates_schema
    def one_of_both(self, data: dict[str, Any], **kwargs: Any) -> None:
        """Never both, never none."""
        if len(data) != 1:
            raise ValidationError({"seconds": [N_("One of seconds, to is required.")]})


class PlayForm(Form):
    """An outcome for an order, at once or after so many seconds."""

    order_no = Text(load_default="")
    outcome = Text(required=True, validate=OneOf(OUTCOMES))
    after = Whole(0, YEAR, load_default=0)


class ChannelForm(Form):
    """How a sandbox channel behaves."""

    channel = Whole(1, 2**63 - 1, required=True)
    open = Text(validate=OneOf(OPEN))
    payout = Text(validate=OneOf(PAYOUT_OUTCOMES))


class MerchantForm(Form):
    """A merchant's callback address; the inbox if it is left empty."""

    key = Text(load_default="demo")
    callback_url = Text(load_default="/sandbox/inbox")


class OrderForm(Form):
    """An order."""

    order_no = Text(required=True)


class CallbackForm(Form):
    """A callback."""

    webhook_id = Text(required=True)
