"""The OpenAPI document as rows and sections for the reference page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from flask_babel import gettext

from blueprints.openapi import samples
from blueprints.openapi.operations import JSON
from blueprints.openapi.responses import REFUND
from blueprints.openapi.samples import Sample
from schemas.openapi_converter import FILLED, PATTERNS
from schemas.signature_fields import AUTH
from services.errors import ACTION_LABELS, N_, Action

TYPES = {"integer": "int", "number": "decimal", "string": "text", "array": "list", "boolean": "bool"}
SAYS_NOTHING = {*PATTERNS.values(), FILLED}  # in addition to a field's type


@dataclass(frozen=True)
class Row:
    """One field; `name` is its path: `card.no`, `list[].name`."""

    name: str
    kind: str
    required: bool
    about: str
    unit: str
    range: str
    example: str
    codes: list[int]


@dataclass(frozen=True)
class Part:
    """One form of a body or of the `data` of a response: its rows, an example, and samples of the request."""

    title: str
    rows: list[Row]
    example: str
    samples: list[Sample] = field(default_factory=list)


def said(text: str) -> str:
    """A text in the reader's language: a name or a unit, which the document has in English only."""
    return gettext(text) if text else ""


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _row(name: str, shape: dict[str, Any], required: bool, about: str) -> Row:
    types = shape.get("type", "object")
    first, *others = [types] if isinstance(types, str) else types
    allowed = [_shown(value) for value in ([shape["const"]] if "const" in shape else shape.get("enum", []))]
    if not allowed:
        if "x-range" in shape:
            low, high = shape["x-range"]
            allowed.append(gettext("%(low)s to %(high)s", low=low, high=high))
        if "maximum" in shape:
            allowed.append(gettext("%(low)s to %(high)s", low=shape["minimum"], high=shape["maximum"]))
        elif "maxLength" in shape:
            allowed.append(gettext("at most %(count)s characters", count=shape["maxLength"]))
        if shape.get("pattern", "") not in {"", *SAYS_NOTHING}:
            allowed.append(shape["pattern"])
        if shape.get("format", "int64") != "int64":
            allowed.append(shape["format"])
    return Row(
        name=name,
        kind=", ".join([TYPES.get(first, first), *others]),
        required=required,
        # The introduction of the page says once what all ints and all optional fields accept in addition.
        about=about.partition("\n\n")[0],
        unit=said(shape.get("x-unit", "")),
        range=", ".join(allowed),
        example=_shown(shape["examples"][0]) if shape.get("examples") else "",
        codes=shape.get("x-error-codes", []),
    )


RETRY = N_("Retry")  # if there is no key
# The actions in words for createRefund, whose key is the merchant's number.
REFUND_LABELS = {
    Action.SAME_KEY: N_("Retry with the same merchant_refund_no"),
    Action.NEW_KEY: N_("Retry with a new merchant_refund_no"),
    Action.NO_RETRY: ACTION_LABELS[Action.NO_RETRY],
}


class Reference:
    """One document."""

    def __init__(self, document: dict[str, Any]):
        self.document, self.info = document, document["info"]
        self.server = document["servers"][0]["url"]
        self._schemas = document["components"]["schemas"]
        self._examples = {**document["components"]["examples"]}
        for response in document["x-elsewhere"].values():
            self._examples |= response["content"][JSON]["examples"]
        self.operations = [
            {"path": path, "method": method.upper(), **content}
            for path, methods in document["paths"].items()
            for method, content in methods.items()
        ]

    @property
    def base(self) -> str:
        """What precedes `/merchant/...`."""
        path: str = next(path for path in self.document["paths"] if "/merchant/" in path)
        return self.server + path.partition("/merchant/")[0]

    def groups(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """The operations by their tag."""
        tags = dict.fromkeys(each["tags"][0] for each in self.operations)
        return [(tag, [each for each in self.operations if each["tags"][0] == tag]) for tag in tags]

    def _resolved(self, shape: dict[str, Any]) -> dict[str, Any]:
        if "$ref" not in shape:
            return shape
        own = {name: value for name, value in shape.items() if name != "$ref"}
        return self._schemas[shape["$ref"].rsplit("/", 1)[-1]] | own

    def rows(self, shape: dict[str, Any], before: str = "") -> Iterator[Row]:
        """The fields of an object, of its nested objects and of the items of its lists."""
        shape = self._resolved(shape)
        if "items" in shape and shape.get("type") == "array":
            yield from self.rows(shape["items"], f"{before}[]")
            return
        for name, own in shape.get("properties", {}).items():
            whole = self._resolved(own)
            path = f"{before}.{name}" if before else name
            yield _row(path, whole, name in shape.get("required", ()), whole.get("description", ""))
            yield from self.rows(whole, path)
        inside = shape.get("additionalProperties")
        if isinstance(inside, dict):
            yield from self.rows(inside, f"{before}.*" if before else "*")

    def _part(self, shape: dict[str, Any], example: Any) -> Part:
        # Not the text next to the reference, which is the same in every response.
        title = self._resolved({"$ref": shape["$ref"]})["description"] if "$ref" in shape else ""
        shown = json.dumps(example, ensure_ascii=False, indent=2) if example else ""
        return Part(title, [*self.rows(shape)], shown)

    @staticmethod
    def _values(content: dict[str, Any]) -> list[Any]:
        return [each.get("value") for each in content.get("examples", {}).values()]

    def parameters(self, operation: dict[str, Any], place: str) -> list[Row]:
        """The parameters in the path, the query or the header, without the four that sign."""
        return [
            _row(each["name"], each["schema"], each["required"], each["description"])
            for each in operation.get("parameters", ())
            if each["in"] == place and each["name"] not in AUTH
        ]

    def signing(self) -> list[Row]:
        """The four parameters that sign a request."""
        return [row for row in self.rows({"$ref": "#/components/schemas/OptionalAuth"}) if row.name in AUTH]

    def bodies(self, operation: dict[str, Any]) -> list[Part]:
        """The forms of the request's body, without the four fields that sign, each with its samples."""
        parts = []
        for content in operation.get("requestBody", {}).get("content", {}).values():
            shapes = content["schema"].get("oneOf", [content["schema"]])
            examples = self._values(content) or [None] * len(shapes)
            for shape, example in zip(shapes, examples, strict=True):
                requests = []
                if example and "signature" in example:
                    fields = {name: value for name, value in example.items() if name not in AUTH}
                    key = fields["merchant_order_no"] if self._takes_key(operation) else ""
                    requests = samples.signed(operation["operationId"], fields, key)
                part = self._part(shape, example)
                own = [row for row in part.rows if row.name not in AUTH]
                parts.append(replace(part, rows=own, samples=requests))
        return parts

    @staticmethod
    def _takes_key(operation: dict[str, Any]) -> bool:
        return any(each["name"] == "Idempotency-Key" for each in operation["parameters"])

    def samples(self, operation: dict[str, Any]) -> list[Sample]:
        """The request of an operation without a body whose response is JSON."""
        content = operation["responses"].get("200", {}).get("content", {}).get(JSON)
        if operation["method"] != "GET" or not content:
            return []
        query = {
            each["name"]: each["schema"]["examples"][0] for each in operation["parameters"] if each["in"] == "query"
        }
        return samples.plain(self.server + operation["path"] + (f"?{urlencode(query)}" if query else ""))

    def results(self, operation: dict[str, Any]) -> list[Part]:
        """The forms of the success's `data`."""
        content = operation["responses"].get("200", {}).get("content", {}).get(JSON, {})
        if "properties" not in content.get("schema", {}):
            return []
        data = content["schema"]["properties"]["data"]
        shapes = data.get("oneOf", [data])
        values = self._values(content)
        parts = [self._part(shape, value) for shape, value in zip(shapes, values, strict=True)]
        if not isinstance(values[0]["data"], list):
            return parts
        # All lists of regions have one schema, and each has its own example.
        own = {f"[].{name}": _shown(value) for name, value in values[0]["data"][0].items()}
        rows = [replace(row, example=own.get(row.name, row.example)) for row in parts[0].rows]
        return [replace(parts[0], rows=rows)]

    def refusals(self, operation: dict[str, Any]) -> list[int]:
        """The error codes that an operation can return."""
        responses = operation["responses"].values()
        found = [code for each in responses for code in each.get("content", {}).get(JSON, {}).get("examples", {})]
        return sorted(int(code) for code in found if code.isdigit())

    def errors(self, operation: dict[str, Any]) -> list[tuple[int, str, str, str]]:
        """The errors of an operation: code, text, action, and what to do in words."""
        labels = ACTION_LABELS if self._takes_key(operation) else ACTION_LABELS | {Action.SAME_KEY: RETRY}
        if operation["operationId"] == REFUND:
            labels = REFUND_LABELS
        errors = ((code, *self._error(code, operation)) for code in self.refusals(operation))
        return [(code, text, action, said(labels[Action(action)])) for code, text, action in errors]

    def _error(self, code: int, operation: dict[str, Any] | None = None) -> tuple[str, str]:
        """Return an error's text and action, from the operation's own example if it has one."""
        example, response = self._examples[str(code)], (operation or {}).get("responses", {}).get(str(code // 100), {})
        own = response.get("content", {}).get(JSON, {}).get("examples", {}).get(str(code), {})
        example = own if "value" in own else example
        return example["summary"], example["x-action"]

    def others(self, operation: dict[str, Any]) -> list[tuple[str, str, str]]:
        """The responses without an envelope: status, its name, media type."""
        return [
            (status, HTTPStatus(int(status)).phrase, media)
            for status, answer in operation["responses"].items()
            if status != "default"
            for media, content in (answer.get("content") or {"": {}}).items()
            if media != JSON or ("allOf" not in content["schema"] and "properties" not in content["schema"])
        ]

    def codes(self) -> list[tuple[int, str, str, str, list[str]]]:
        """Each code, its text, action and action in words, and the operations that return it; no names if all do."""
        names = {each["operationId"]: self.refusals(each) for each in self.operations}
        anywhere = self.refusals({"responses": self.document["x-elsewhere"]})
        found = []
        for code in sorted(map(int, self._examples)):
            those = [name for name, codes in names.items() if code in codes]
            is_anywhere = len(those) == len(names) or code in anywhere
            text, action = self._error(code)
            found.append((code, text, action, said(ACTION_LABELS[Action(action)]), [] if is_anywhere else those))
        return found

    def events(self) -> list[dict[str, Any]]:
        """The callbacks, each with its name."""
        return [{"name": name, **methods["post"]} for name, methods in self.document["webhooks"].items()]

    def event(self, name: str) -> Part:
        """The body that the callbacks about orders, or about refunds, share; `name` is one of them."""
        content = self.document["webhooks"][name]["post"]["requestBody"]["content"][JSON]
        return self._part(content["schema"]["allOf"][0], content["example"])
