"""The createOrder request: its fields by order type and channel category, and the channel's limits (docs/orders.md).

services/orders/new.py inserts the order from these fields. Describe a new field in schemas/field_descriptions.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from marshmallow import EXCLUDE, Schema, ValidationError

from gateways.base import METHODS
from models.db.base import LARGEST_ID
from models.tables.channel import Channel
from models.tables.order import BUY, SELL
from runtime.money import hundredths
from schemas.fields import MaxLength, OneOf, Request, Text, Whole, Yuan
from schemas.gateway_a import CardInfo, GatewayAFields, PersonalData
from schemas.messages import N_, UNKNOWN, Message, flat
from schemas.signature_fields import AUTH


class NewOrder(Request):
    """The common fields of buy and sell orders. `cny_amount` loads as integer fen."""

    order_type = Whole(1, 2, required=True)
    cny_amount = Yuan(required=True)
    paychannel_id = Whole(1, LARGEST_ID, required=True)
    paychannel_paymethod = Text(required=True, validate=OneOf(METHODS))
    merchant_order_no = Text(validate=MaxLength(255))


class BuyOrder(NewOrder):
    """A deposit."""

    order_type = Whole(BUY, BUY, required=True)

    customer_name = Text(validate=MaxLength(100))


class SellOrder(NewOrder):
    """A withdrawal through gateway_b or gateway_c."""

    order_type = Whole(SELL, SELL, required=True)


class GatewayASellOrder(SellOrder, GatewayAFields):
    """A withdrawal through gateway_a."""


PERSON, CARD = GatewayAFields().fields
_buy, _shared = BuyOrder(), NewOrder(unknown=EXCLUDE)
_sell = {"gateway_a": GatewayASellOrder(), "gateway_b": SellOrder(), "gateway_c": SellOrder()}  # by category


def _peek(name: str, payload: dict[str, Any]) -> int | None:
    """Read a field before the schema is known; None if it is invalid."""
    try:
        return _shared.fields[name].deserialize(payload[name])
    except (KeyError, ValidationError):
        return None


def channel_id(payload: dict[str, Any]) -> int | None:
    """The id of the channel in the payload, or None."""
    return _peek("paychannel_id", payload)


def _schema(payload: dict[str, Any], channel: Channel | None) -> Schema:
    order_type = _peek("order_type", payload)
    if order_type == BUY:
        return _buy
    if order_type is None or channel is None:
        return _shared  # the other fields cannot be checked
    return _sell[channel.category]


# The place of each field of createOrder: in an object, or at the top level.
_HOMES = {
    **dict.fromkeys((*_buy.fields, *AUTH, PERSON, CARD), ""),
    **dict.fromkeys(PersonalData().fields, PERSON),
    **dict.fromkeys(CardInfo().fields, CARD),
}


def _unknown(path: str, schema: Schema) -> str:
    """Return the message about an unknown field, with its place if it is a field of createOrder."""
    name = path.rpartition(".")[2]
    if name.lower() == "idempotency_key":
        return N_("Belongs in the header Idempotency-Key.")
    if name not in _HOMES:
        return UNKNOWN
    home = _HOMES[name]
    if (home or name) in schema.fields or name in AUTH:
        return Message(N_("Belongs in %(place)s."), place=home) if home else N_("Belongs at the top level of the body.")
    if name == "customer_name":
        return N_("Only for deposits.")
    return N_("Only for withdrawals through a gateway_a channel.")


def _errors(error: ValidationError, schema: Schema) -> dict[str, list[str]]:
    """Return the messages by dotted path."""
    return {
        path: [_unknown(path, schema)] if messages == [UNKNOWN] else messages
        for path, messages in flat(error.messages).items()
    }


def _limits(
    wanted: dict[str, Any],
    channel: Channel,
    accepted: Mapping[str, Sequence[tuple[int, int]]],
    payout_methods: Collection[str],
) -> dict[str, list[str]]:
    """Messages about fields that the channel does not accept."""
    errors: dict[str, list[str]] = {}
    own = [(channel.min_amount, channel.max_amount)]
    text = N_("This channel accepts: %(methods)s.")
    if wanted.get("order_type") == SELL:
        accepted = {method: own for method in channel.pay_methods if method in payout_methods}
        text = N_("This channel pays out by: %(methods)s.")
    method = wanted.get("paychannel_paymethod", "")
    if method and method not in accepted:
        errors["paychannel_paymethod"] = [Message(text, methods=", ".join(accepted) or "-")]
    ranges = accepted.get(method) or own
    if "cny_amount" in wanted and not any(low <= wanted["cny_amount"] <= high for low, high in ranges):
        errors["cny_amount"] = [_range_message(wanted["cny_amount"], ranges)]
    return errors


def _range_message(fen: int, ranges: Sequence[tuple[int, int]]) -> Message:
    """Say between which amounts this one is, or name the whole range."""
    below, above = [high for _, high in ranges if high < fen], [low for low, _ in ranges if low > fen]
    if below and above:
        text = N_("This channel accepts %(low)s yuan or less, and %(high)s yuan or more.")
        return Message(text, low=hundredths(max(below)), high=hundredths(min(above)))
    least, most = min(low for low, _ in ranges), max(high for _, high in ranges)
    return Message(N_("This channel accepts %(low)s to %(high)s yuan."), low=hundredths(least), high=hundredths(most))


def load_new_order(
    payload: dict[str, Any],
    channel: Channel | None,
    accepted: Mapping[str, Sequence[tuple[int, int]]] = MappingProxyType({}),
    payout_methods: Collection[str] = (),
) -> dict[str, Any]:
    """Validate the fields of a new order by the schema of its type and its channel's category.

    Args:
        channel: None if the payload has no valid channel id.
        accepted: the amounts of deposits that it accepts, in fen, by payment method: ranges from the least to the
            largest.
        payout_methods: the payment methods by which its driver can pay out.

    Raises:
        ValidationError: all invalid fields, by dotted path.
    """
    schema = _schema(payload, channel)
    try:
        wanted, errors = schema.load(payload), {}
    except ValidationError as error:
        wanted, errors = error.valid_data or {}, _errors(error, schema)
    if channel is not None:
        errors = _limits(wanted, channel, accepted, payout_methods) | errors
    if errors:
        raise ValidationError(errors)
    return wanted
