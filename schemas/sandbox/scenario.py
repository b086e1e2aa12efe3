"""Scenarios: files of steps that `orders scenario run` performs (docs/sandbox.md)."""

from __future__ import annotations

import json
import re
from typing import Any

from marshmallow import Schema, ValidationError, fields, validate, validates_schema

from gateways.sandbox.driver import PAYOUT_OUTCOMES
from gateways.sandbox.simulator import OUTCOMES
from models.tables.order import STATUSES
from models.tables.outbox import CALLBACK_STATES
from schemas.sandbox.forms import ANSWERS, MOVES, OPEN, YEAR
from schemas.signature_fields import AUTH
from schemas.strict_json import Malformed, parse

NAME = r"[A-Za-z][A-Za-z0-9_]*"
MOST_STEPS = 2_000


class WrongScenario(Exception):
    """An invalid scenario; `lines` are the errors, each with the step's number."""

    def __init__(self, lines: list[str]):
        super().__init__("\n".join(lines))
        self.lines = lines


def _whole(low: int, high: int, **more: Any) -> fields.Integer:
    return fields.Integer(strict=True, validate=validate.Range(low, high), **more)


class Step(Schema):
    """The common fields of all steps: `do` is the kind; `note` is for people."""

    do = fields.String(required=True)
    note = fields.String()


class OfOrder(Step):
    """A step about an order that an earlier step created `as` this name."""

    order = fields.String(required=True)


def _can_be_signed(given: dict[str, Any]) -> None:
    if put_in := sorted({*AUTH} & {*given}):
        raise ValidationError(f"{', '.join(put_in)}: the run puts this in; whose order it is says merchant.")
    try:
        parse(json.dumps(given).encode())
    except Malformed as error:
        raise ValidationError(str(error)) from None


class Create(Step):
    """createOrder with these fields, signed as the merchant; `code` is the expected code of the response.

    An order that should be refused has no name that a later step could use.
    """

    as_ = fields.String(data_key="as", validate=validate.Regexp(f"^{NAME}$"))
    merchant = fields.String(load_default="demo")
    fields_ = fields.Dict(keys=fields.String(), data_key="fields", required=True, validate=_can_be_signed)
    code = _whole(1, 99_999, load_default=1)


class Pay(OfOrder):
    """The simulator's outcome for the order; `after` so many seconds."""

    outcome = fields.String(required=True, validate=validate.OneOf(OUTCOMES))
    after = _whole(0, YEAR)


class Accept(OfOrder):
    """The operator approves a withdrawal."""


class InboxStep(Step):
    """The inbox's response from now on, or to the next `times` callbacks."""

    answer = fields.String(required=True, validate=validate.OneOf(ANSWERS))
    times = _whole(1, 10_000)
    seconds = _whole(1, 60)


class ChannelStep(Step):
    """The behaviour of a sandbox channel from now on."""

    channel = _whole(1, 2**63 - 1, required=True)
    open = fields.String(validate=validate.OneOf(OPEN))
    payout = fields.String(validate=validate.OneOf(PAYOUT_OUTCOMES))


class ClockStep(Step):
    """Move the clock ahead by `seconds`, or `to` the next due work or callback."""

    seconds = _whole(0, YEAR)
    to = fields.String(validate=validate.OneOf(MOVES))

    @validates_schema
    def one_of_both(self, data: dict[str, Any], **kwargs: Any) -> None:
        """Require exactly one of the two."""
        if ("seconds" in data) == ("to" in data):
            raise ValidationError("One of seconds, to is required.")


class CallbackSeen(Schema):
    """The expected state of a callback."""

    state = fields.String(validate=validate.OneOf(CALLBACK_STATES))
    attempts = _whole(0, 1_000)


class Balance(Schema):
    """Changes since the start of the scenario, in yuan with two decimals."""

    available = fields.String(validate=validate.Regexp(r"^-?[0-9]+\.[0-9]{2}$"))
    held = fields.String(validate=validate.Regexp(r"^-?[0-9]+\.[0-9]{2}$"))


class Expect(Step):
    """The expected facts within `within` seconds: of an order, of a merchant's balance, or of both."""

    order = fields.String()
    status = fields.String(validate=validate.OneOf(STATUSES))
    exceptions = fields.List(fields.String())
    callbacks = fields.Dict(keys=fields.String(), values=fields.Nested(CallbackSeen))
    merchant = fields.String(load_default="demo")
    balance = fields.Nested(Balance)
    within = _whole(0, 600, load_default=10)

    @validates_schema
    def says_something(self, data: dict[str, Any], **kwargs: Any) -> None:
        """Require an order for an order's facts, and at least one expectation."""
        of_order = {"status", "exceptions", "callbacks"} & set(data)
        if of_order and "order" not in data:
            raise ValidationError({"order": ["Missing data for required field."]})
        if not of_order and "balance" not in data:
            raise ValidationError("One of status, exceptions, callbacks, balance is required.")


class Get(Step):
    """GET an address of the merchant's own until the response is as expected, for at most `within` seconds."""

    url = fields.String(required=True, validate=validate.Regexp("^https?://"))
    status = _whole(100, 599, load_default=200)
    contains = fields.String(load_default="")
    within = _whole(0, 600, load_default=10)


STEPS: dict[str, type[Step]] = {
    "create": Create,
    "pay": Pay,
    "accept": Accept,
    "inbox": InboxStep,
    "channel": ChannelStep,
    "clock": ClockStep,
    "expect": Expect,
    "get": Get,
}


class Scenario(Schema):
    """The file: a name, a description, and the steps."""

    name = fields.String(required=True)
    about = fields.String()
    steps = fields.List(fields.Dict(), required=True, validate=validate.Length(1, MOST_STEPS))


def _lines(messages: Any, path: str) -> list[str]:
    """Return marshmallow's messages, one for each line."""
    if isinstance(messages, dict):
        return [
            line
            for name, item in messages.items()
            for line in _lines(item, path if name in ("_schema", "value") else f"{path}{name}: ")
        ]
    return [f"{path}{' '.join(map(str, messages))}"]


def load(text: str) -> dict[str, Any]:
    """Parse a scenario: `name` and `steps`, each validated. Raises WrongScenario."""
    try:
        whole = Scenario().load(json.loads(text))
    except ValidationError as error:
        raise WrongScenario(_lines(error.messages, "")) from None
    except (ValueError, RecursionError) as error:
        raise WrongScenario([f"it is not JSON: {error}"]) from None
    steps, wrong, known = [], [], set[str]()
    for number, given in enumerate(whole["steps"], 1):
        try:
            steps.append(_step(given, known))
        except ValidationError as error:
            wrong += _lines(error.messages, f"step {number}: ")
    if wrong:
        raise WrongScenario(wrong)
    return {**whole, "steps": steps}


def _step(given: dict[str, Any], known: set[str]) -> dict[str, Any]:
    """Return one loaded step; `known` are the names of orders so far."""
    kind = given.get("do")
    if not isinstance(kind, str) or kind not in STEPS:
        raise ValidationError({"do": [f"Must be one of: {', '.join(STEPS)}."]})
    step: dict[str, Any] = STEPS[kind]().load(given)
    used = {step["order"]} if "order" in step else set[str]()
    used |= set(re.findall(rf"\{{({NAME})\.{NAME}\}}", json.dumps(given)))
    if unknown := sorted(used - known):
        raise ValidationError({"order": [f"No step before this one creates {', '.join(unknown)}."]})
    if "as_" in step and step["code"] == 1:
        known.add(step["as_"])
    return step
