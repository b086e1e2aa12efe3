"""Converts marshmallow schemas to OpenAPI: field types, optional fields, dependencies between fields."""

from __future__ import annotations

import inspect
import re
from typing import Any

from apispec.ext.marshmallow import MarshmallowPlugin
from apispec.ext.marshmallow.openapi import OpenAPIConverter
from marshmallow import Schema, fields, validate

from schemas.field_descriptions import meaning_of
from schemas.fields import MOST_FEN, NOT_BLANK, Request, Text, Whole, Yuan
from schemas.gateway_a import DATED, PersonalData, date
from schemas.queries import BY, OrderDetailQuery, OrderListQuery
from schemas.views import DecimalText, View

CONTROL = r"\x00-\x1f\x7f-\x9f"
PATTERNS = {
    Text: f"^[^{CONTROL}]*$",
    Yuan: r"^(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$",
    DecimalText: r"^-?[0-9]+\.[0-9]{2}$",
}
RANGES = {(1, 2): "^0*[12]$", (1, 100): "^0*([1-9][0-9]?|100)$"}
FILLED = rf"^[^{CONTROL}]*[^\s{CONTROL}][^{CONTROL}]*$"
DATE = "^[0-9]{4}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])$"
TYPES = {Text: "string", Whole: "integer", Yuan: "number", DecimalText: "string", fields.Function: "string"}

FIRST_PAGE = {"anyOf": [{"enum": [1, "", None]}, {"type": "string", "pattern": "^0*1$"}]}
EMPTY = ["", None]  # values of an optional field that count as absent

# Rules between the fields of a schema. They use `not`, which code generators ignore: from `oneOf` or `anyOf` a
# generator makes a union of types, and loses the object's own fields.
RULES: dict[type[Schema], dict[str, Any]] = {
    PersonalData: {"not": {"properties": {"cert_validity_type": {"const": DATED}, "cert_end_date": {"enum": EMPTY}}}},
    OrderDetailQuery: {"not": {"properties": {name: {"enum": EMPTY} for name in BY}}},  # at least one has a value
    OrderListQuery: {
        "not": {
            "required": ["page", "before"],
            "properties": {"page": {"not": FIRST_PAGE}, "before": {"not": {"enum": EMPTY}}},
        }
    },
}


def _text_pattern(field: Text) -> str:
    checks = field.validators
    if date in checks:
        return DATE
    if NOT_BLANK in checks:
        return FILLED
    patterns = [str(check.regex.pattern) for check in checks if isinstance(check, validate.Regexp)]
    return f"^{patterns[0].removesuffix(chr(92) + 'Z')}$" if patterns else PATTERNS[Text]


def _digits(low: int, high: int) -> str:
    """Return the pattern of an integer as text: exact for the ranges in `RANGES`, otherwise by the number of digits."""
    return RANGES.get((low, high)) or f"^0*[{low}-9][0-9]{{0,{len(str(high)) - 1}}}$"


def _kind(self: OpenAPIConverter, field: fields.Field[Any], *, ret: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
    """Return a field's constraints in addition to its type: plain bounds, texts of numbers, no control characters."""
    if isinstance(field, Whole):
        if field.low == field.high:  # distinguishes the alternatives of one body
            del ret["type"]
            return {"oneOf": [{"type": "integer", "const": field.low}, {"type": "string", "const": str(field.low)}]}
        text = {"type": ["integer", "string"], "maxLength": 19, "pattern": _digits(field.low, field.high)}
        return {**text, "minimum": field.low, "maximum": field.high}
    if isinstance(field, Yuan):
        text = {"type": ["number", "string"], "pattern": PATTERNS[Yuan]}
        return {**text, "maxLength": 40, "exclusiveMinimum": 0, "maximum": MOST_FEN // 100}
    if isinstance(field, Text):
        if any(isinstance(check, validate.Email) for check in field.validators):
            return {"format": "email"}
        if "enum" in ret:
            return {}
        return {"pattern": _text_pattern(field)} | ({"minLength": 1} if field.required else {})
    if isinstance(field, DecimalText):
        return {"pattern": PATTERNS[DecimalText]}
    return {"type": "string", "const": field.constant} if isinstance(field, fields.Constant) else {}


def _or_absent(shape: dict[str, Any]) -> dict[str, Any]:
    """Allow null and "" in an optional field of a body, which count as absent. Only its description has its default.

    Generators make a field with `default` a required one.
    """
    if "type" not in shape:
        return shape
    types = [shape["type"]] if isinstance(shape["type"], str) else shape["type"]
    more: dict[str, Any] = {"type": [*dict.fromkeys([*types, "string", "null"])]}
    if "enum" in shape:
        more["enum"] = [*shape["enum"], *EMPTY]
    if "pattern" in shape and not re.search(shape["pattern"], ""):
        more["pattern"] = f"^$|{shape['pattern']}"
    if "format" in shape:
        more |= {"if": {"type": "string", "minLength": 1}, "then": {"format": shape["format"]}}
    return {name: value for name, value in shape.items() if name not in ("format", "default")} | more


def _in_words(schema: Schema, name: str, shape: dict[str, Any]) -> dict[str, Any]:
    """Add a field's meaning; a field of a response also gets the bounds of its meaning."""
    meaning = meaning_of(name, *(owner.__name__ for owner in type(schema).__mro__))
    return meaning.words() | shape | (meaning.bounds if isinstance(schema, View) else {})


class Converter(OpenAPIConverter):
    """Schemas as objects: responses are complete, requests may leave optional fields empty."""

    def schema2jsonschema(self, schema: Any) -> dict[str, Any]:
        """Return one schema's object, with the rules between its fields."""
        shape = super().schema2jsonschema(schema)  # type: ignore[no-untyped-call]
        properties = shape["properties"]
        shape["description"] = (inspect.getdoc(type(schema)) or "").split("\n")[0]
        if isinstance(schema, View):
            del shape["additionalProperties"]  # a later version may add fields
            shape["required"] = list(properties)
            shape["properties"] = {
                name: {key: value for key, value in each.items() if key not in ("readOnly", "default")}
                for name, each in properties.items()
            }
        elif isinstance(schema, Request):
            optional = set(properties) - set(shape.get("required", ()))
            properties.update({name: _or_absent(properties[name]) for name in optional})
        for checked_by, rule in RULES.items():
            if isinstance(schema, checked_by):
                shape.update(rule)
        shape["properties"] = {name: _in_words(schema, name, each) for name, each in shape["properties"].items()}
        return shape


class OpenApiPlugin(MarshmallowPlugin):
    """apispec's plugin, for the field types of this project."""

    Converter = Converter

    def init_spec(self, spec: Any) -> None:
        """Use the project's converter for the document."""
        super().init_spec(spec)
        assert self.converter is not None
        for kind, name in TYPES.items():
            self.converter.map_to_openapi_type(kind, name, None)
        self.converter.map_to_openapi_type(fields.Constant, "string", None)
        self.converter.add_attribute_function(_kind)
