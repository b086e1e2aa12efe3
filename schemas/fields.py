"""Field types of the API, read from the literal text of the request (docs/orders.md)."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from marshmallow import RAISE, Schema, ValidationError, fields, pre_load, validate

from schemas.messages import N_, Message
from schemas.strict_json import Literal

LARGEST_TIME = 253_402_300_799  # the last second of the year 9999
MOST_FEN = 10**15
_DIGITS = re.compile(r"[0-9]{1,19}")
_PERCENT = re.compile(r"-?[0-9]{1,3}(\.[0-9]{1,2})?", re.ASCII)
_GROUPED = re.compile(r"-?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")


class Text(fields.Field[Any]):
    """A JSON string; other types are refused."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        if not isinstance(value, str) or isinstance(value, Literal):
            raise ValidationError(N_("Must be a string."))
        return value


def _integer(value: Any) -> Decimal | None:
    """Return the integer in a JSON number or a text of digits, or None. As in JSON Schema, 68.0 is an integer."""
    if isinstance(value, Literal):
        number = Decimal(value) if len(value) <= 40 and _NUMBER.fullmatch(value) else None
        return number if number is not None and number == number.to_integral_value() else None
    return Decimal(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else None


class Whole(fields.Field[Any]):
    """A JSON integer, which may be written as 68.0 or 6.8e1, or a text of ASCII digits, from `low` to `high`."""

    def __init__(self, low: int, high: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.low, self.high = low, high

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        number = _integer(value)
        if number is None:
            raise ValidationError(N_("Must be an integer."))
        if not self.low <= number <= self.high:
            raise ValidationError(Message(N_("Must be from %(low)s to %(high)s."), low=self.low, high=self.high))
        return int(number)


class Yuan(fields.Field[Any]):
    """A JSON number, or a text with the same format: yuan with at most two decimals. Loads as integer fen."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        if not isinstance(value, str) or len(value) > 40 or not _NUMBER.fullmatch(value):
            raise ValidationError(N_("Must be a decimal number."))
        amount = Decimal(value)
        if amount <= 0:
            raise ValidationError(N_("Must be greater than 0."))
        if int(amount.as_tuple().exponent) < -2:
            raise ValidationError(N_("Must have at most two decimals."))
        if amount * 100 > MOST_FEN:
            raise ValidationError(N_("Is too large."))
        return int(amount * 100)


class Sum(Yuan):
    """An amount typed by an operator, also as 1,234.50; `zero` and `negative` allow these values, `plain` no 1e5."""

    def __init__(self, *, zero: bool = False, negative: bool = False, plain: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        self.zero, self.negative, self.plain = zero, negative, plain

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        if self.zero and value in ("0", "0.0", "0.00"):
            return 0
        if isinstance(value, str) and _GROUPED.fullmatch(value):
            value = value.replace(",", "")
        if self.plain and isinstance(value, str) and "e" in value.lower():
            raise ValidationError(N_("Must be a decimal number."))
        minus = self.negative and isinstance(value, str) and value.startswith("-")
        fen = super()._deserialize(value[1:] if minus else value, attr, data, **kwargs)
        return -fen if minus else fen


class Percent(fields.Field[Any]):
    """A rate as a text in percent with at most two decimals, from `low` to 100. Loads as integer basis points."""

    def __init__(self, low: int = 0, **kwargs: Any):
        super().__init__(**kwargs)
        self.low = low

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        if not isinstance(value, str) or not _PERCENT.fullmatch(value):
            raise ValidationError(N_("Must be a percentage with at most two decimals."))
        points = int(Decimal(value) * 100)
        if not self.low * 100 <= points <= 10_000:
            raise ValidationError(Message(N_("Must be a percentage from %(low)s to 100."), low=self.low))
        return points


class Request(Schema):
    """Base of all requests: unknown fields are refused; null and "" in optional fields count as absent."""

    class Meta:
        unknown = RAISE

    @pre_load
    def drop_empty(self, data: Any, **kwargs: Any) -> Any:
        """Remove null values, and empty values of known fields, which count as not sent."""
        if not isinstance(data, dict):
            return data
        return {
            name: value
            for name, value in data.items()
            if value is not None and not (value == "" and name in self.fields)
        }


class MaxLength(validate.Length):
    """A limit on the number of characters."""

    def __init__(self, most: int):
        super().__init__(max=most)

    def _format_error(self, value: Any, message: str) -> str:
        return Message(N_("Must have at most %(max)s characters."), max=self.max)


class MaxBytes(validate.Length):
    """A limit on the number of bytes in UTF-8."""

    def __init__(self, most: int):
        super().__init__(max=most)

    def __call__(self, value: Any) -> Any:
        """Validate a text."""
        super().__call__(value.encode())
        return value

    def _format_error(self, value: Any, message: str) -> str:
        return Message(N_("Must have at most %(max)s bytes in UTF-8."), max=self.max)


class OneOf(validate.OneOf):
    """One of these values."""

    def _format_error(self, value: Any) -> str:
        return Message(N_("Must be one of: %(choices)s."), choices=self.choices_text)


NOT_BLANK = validate.Regexp(r".*\S", error=N_("Must not be blank."))


def filled(most: int) -> list[validate.Validator]:
    """Validators of a required text: not blank, at most `most` characters."""
    return [MaxLength(most), NOT_BLANK]
