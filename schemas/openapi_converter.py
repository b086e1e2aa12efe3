"""Converts marshmallow schemas to OpenAPI: field types, optional fields, dependencies between fields."""

from __future__ import annotations

from typing import Any

from apispec.ext.marshmallow import MarshmallowPlugin
from apispec.ext.marshmallow.openapi import OpenAPIConverter
from marshmallow import Schema, fields, validate

from runtime.money import hundredths
from schemas.field_descriptions import SCHEMAS, meaning_of
from schemas.fields import MOST_FEN, NOT_BLANK, Text, Whole, Yuan
from schemas.gateway_a import DATED, PersonalData, date
from schemas.messages import N_
from schemas.queries import OrderDetailQuery, OrderListQuery, RefundDetailQuery, RefundListQuery
from schemas.signature_fields import AUTH
from schemas.views import DecimalText, View

CONTROL = r"\x00-\x1f\x7f-\x9f"
PATTERNS = {
    Text: f"^[^{CONTROL}]*$",
    Yuan: r"^([1-9][0-9]{0,12}(\.[0-9]{1,2})?|0\.(0[1-9]|[1-9][0-9]?))$",
    DecimalText: r"^-?[0-9]+\.[0-9]{2}$",
}
FILLED = rf"^[^{CONTROL}]*[^\s{CONTROL}][^{CONTROL}]*$"
DATE = "^[0-9]{4}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])$"
TYPES = {Text: "string", Whole: "integer", Yuan: "string", DecimalText: "string", fields.Function: "string"}

# What a field of a request accepts in addition to its type. A union of types would be exact, but generators make
# classes of it that do not compile, or cannot be used, so the schema has the recommended form only.
ALSO = {
    Whole: N_("A text of ASCII digits is accepted too."),
    Yuan: N_("A number is accepted too."),
}
ABSENT = N_("null or an empty text counts as absent.")

ONE_PAGE: dict[str, Any] = {"dependentSchemas": {"before": {"properties": {"page": {"maximum": 1}}}}}
# Rules between the fields of a schema, in keywords that code generators ignore: with `not` they fail, and from `oneOf`
# or `anyOf` they make a union of types, and lose the object's own fields.
RULES: dict[type[Schema], dict[str, Any]] = {
    PersonalData: {
        "if": {"properties": {"cert_validity_type": {"const": DATED}}},
        "then": {"dependentRequired": {"cert_validity_type": ["cert_end_date"]}},  # `required` alone fails a linter
    },
    OrderDetailQuery: {"minProperties": len(AUTH) + 1},  # at least one of the three
    OrderListQuery: ONE_PAGE,
    RefundDetailQuery: {"minProperties": len(AUTH) + 1},  # at least one of the two
    RefundListQuery: ONE_PAGE,
}
INT32 = 2**31 - 1
LEFT_OUT = ("readOnly", "default")


def _text_pattern(field: Text) -> str:
    checks = field.validators
    if date in checks:
        return DATE
    if NOT_BLANK in checks:
        return FILLED
    patterns = [str(check.regex.pattern) for check in checks if isinstance(check, validate.Regexp)]
    return f"^{patterns[0].removesuffix(chr(92) + 'Z')}$" if patterns else PATTERNS[Text]


def _kind(self: OpenAPIConverter, field: fields.Field[Any], *, ret: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
    """Return a field's constraints in addition to its type: plain bounds, texts of numbers, no control characters."""
    if isinstance(field, Whole):
        if field.low == field.high:  # distinguishes the alternatives of one body
            return {"enum": [field.low]}
        return {"minimum": field.low, "maximum": field.high}
    if isinstance(field, Yuan):
        return {"pattern": PATTERNS[Yuan], "x-range": ["0.01", hundredths(MOST_FEN - 1)]}
    if isinstance(field, Text):
        if any(isinstance(check, validate.Email) for check in field.validators):
            # Not a plain `format`: pydantic would need another package for it.
            return {"if": {"type": "string"}, "then": {"format": "email"}}
        if "enum" in ret:
            return {}
        return {"pattern": _text_pattern(field)} | ({"minLength": 1} if field.required else {})
    if isinstance(field, DecimalText):
        return {"pattern": PATTERNS[DecimalText]}
    return {"type": "string", "const": field.constant} if isinstance(field, fields.Constant) else {}


def _in_words(schema: Schema, name: str, shape: dict[str, Any]) -> dict[str, Any]:
    """Add a field's meaning; a field of a response also gets the bounds of its meaning."""
    meaning = meaning_of(name, *(owner.__name__ for owner in type(schema).__mro__))
    if isinstance(schema, View):
        return meaning.words() | shape | meaning.bounds
    field = schema.fields[name]
    also = [text for kind, text in ALSO.items() if isinstance(field, kind)]
    words = "\n\n".join([meaning.text, *also, *([] if field.required else [ABSENT])])
    return meaning.words() | shape | {"description": words}


def sized(part: Any) -> Any:
    """Return a part of the document in which each integer that can exceed 32 bits has the format int64.

    Without a format, generators make an int of 32 bits, which overflows at 21,474,836.47 yuan.
    """
    if isinstance(part, list):
        return [sized(each) for each in part]
    if not isinstance(part, dict):
        return part
    whole = {name: sized(each) for name, each in part.items()}
    types = part.get("type")
    if types == "integer" or (isinstance(types, list) and "integer" in types):
        largest = max(part.get("enum", [part.get("maximum", INT32 + 1)]))
        whole |= {"format": "int64"} if largest > INT32 else {}
    return whole


class Converter(OpenAPIConverter):
    """Schemas as objects: responses are complete, requests have the recommended type of each field."""

    def schema2jsonschema(self, schema: Any) -> dict[str, Any]:
        """Return one schema's object, with the rules between its fields."""
        shape = super().schema2jsonschema(schema)  # type: ignore[no-untyped-call]
        shape["description"] = SCHEMAS[type(schema).__name__]
        if isinstance(schema, View):
            del shape["additionalProperties"]  # a later version may add fields
            shape["required"] = list(shape["properties"])
        for checked_by, rule in RULES.items():
            if isinstance(schema, checked_by):
                shape.update(rule)
        # `readOnly` is no news in a response, and generators make a field with `default` a required one.
        shape["properties"] = {
            name: {key: value for key, value in _in_words(schema, name, each).items() if key not in LEFT_OUT}
            for name, each in shape["properties"].items()
        }
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
