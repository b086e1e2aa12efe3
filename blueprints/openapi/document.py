"""The interface as an OpenAPI document, put together from the schemas that requests are held to."""

from __future__ import annotations

import re
from typing import Any

from apispec import APISpec
from flask import Flask
from marshmallow import Schema
from werkzeug.routing import Rule

import settings
from blueprints.openapi.examples import example_of
from blueprints.openapi.operations import FORM, JSON, OPERATIONS, TAGS, Operation
from blueprints.openapi.responses import ELSEWHERE, FAILURE, HEADERS, failure, refusals, responses
from blueprints.openapi.webhooks import webhooks
from schemas.field_descriptions import meaning_of
from schemas.openapi_converter import OpenApiPlugin
from services.errors import ERRORS

ABOUT = """\
Create and track CNY deposits and withdrawals. Every answer but a page is JSON in one envelope: `code` (1 is success,
else the HTTP status followed by two digits), `msg` for people, `data`, and `time` where an order was created. `msg` and
display texts are English or Chinese, by `Accept-Language`.

Every `/merchant/...` request is signed. The string to sign is UTF-8 lines joined by a line feed: first the endpoint's
name (`createOrder`), then `path=value` for every field that is sent but `signature`, sorted by path bytewise. Names
in objects join by a dot (`gatewaya_card_info.card_no`), items of lists by their number. null and empty texts are left
out; a number is signed as the text that the JSON has. `docs/signing.md` has examples in several languages,
`docs/errors.md` what to do about each code.

A decimal text is in whole units, yuan or percent: "100.00" is 100 yuan. An int is in hundredths of that, fen or basis
points: 10000 is 100 yuan.

An int may be sent as a text of ASCII digits, within the same bounds. A null optional field counts as absent, and so
does an empty text. A field that is not named here is refused with 42200, and a control character anywhere with 40000.

Beside its type a field has `x-unit`, the `x-range` of a decimal text, and in a request `x-error-codes`: what a bad
value of it is refused with.

Each code has an `x-action` in `components/examples`, for createOrder: `same-key` (retry with the same Idempotency-Key),
`new-key` (retry with a new one) or `no-retry`.

An unknown path answers 404 with code 40404, another method 405 with 40500, in the same envelope (`x-elsewhere`).
"""
# The texts in the headers that a request may have; what no schema says of them.
TAKEN = {
    "Idempotency-Key": {"type": "string", "pattern": "^[!-~]{1,255}$"},
    "If-None-Match": {"type": "string"},
}


def _texts(names: tuple[str, ...], place: str, owner: str) -> list[dict[str, Any]]:
    """Parameters that are any text."""
    return [_parameter(name, place, {"type": "string"} | TAKEN.get(name, {}), False, owner) for name in names]


def _parameter(name: str, place: str, shape: dict[str, Any], required: bool, *owners: str) -> dict[str, Any]:
    words = meaning_of(name, *owners).words()
    about = words.pop("description")
    return {"name": name, "in": place, "required": required, "description": about, "schema": shape | words}


class _Document:
    """One app's document while it is put together."""

    def __init__(self, site_url: str) -> None:
        self.plugin = OpenApiPlugin()
        self.spec = APISpec(
            "Merchant order service",
            settings.VERSION,
            "3.1.0",
            [self.plugin],
            info={"description": ABOUT, "license": {"name": "MIT", "identifier": "MIT"}},
            servers=[{"url": site_url}],
            tags=[{"name": name, "description": about} for name, about in TAGS.items()],
            security=[],  # OpenAPI has no scheme for a signature in the body
        )
        self.spec.components.schema("Failure", FAILURE)
        for name, header in HEADERS.items():
            self.spec.components.header(name, header)
        for code in ERRORS:
            self.spec.components.example(str(code), failure(code))
        assert self.plugin.converter is not None
        self.converter = self.plugin.converter

    def _query(self, schema: type[Schema], in_body_too: bool) -> list[dict[str, Any]]:
        owners = [owner.__name__ for owner in schema.__mro__]
        return [
            _parameter(name, "query", self.converter.field2property(field), field.required and not in_body_too, *owners)
            for name, field in schema().fields.items()
        ]

    def _parameters(self, operation: Operation, rule: Rule) -> list[dict[str, Any]]:
        named = _texts(tuple(sorted(rule.arguments)), "path", operation.name)
        for each in named:
            each["required"] = True
        for schema in operation.query:
            named += self._query(schema, bool(operation.body))
        named += _texts(operation.query_texts, "query", operation.name)
        return named + _texts(operation.takes, "header", operation.name)

    def _body(self, operation: Operation) -> dict[str, Any]:
        if operation.form:
            fields = {name: {"type": "string"} | meaning_of(name, operation.name).words() for name in operation.form}
            shape = {"type": "object", "required": [*operation.form], "properties": fields}
            return {"content": {FORM: {"schema": shape}}, "required": True}
        shapes = {schema: self.converter.resolve_nested_schema(schema) for schema in operation.body}
        schemas = self.spec.components.schemas
        examples = {
            schema.__name__: {"value": value}
            for schema, shown in operation.body.items()
            if (value := example_of(shapes[schema], schemas, shown))
        }
        alternatives = [*shapes.values()]
        content = {"schema": alternatives[0] if len(shapes) == 1 else {"oneOf": alternatives}, "examples": examples}
        return {"content": {JSON: content}, "required": operation.body_required}

    def _examples(self, answers: dict[str, Any]) -> None:
        """Give a success its example, or one for each kind of data."""
        content = answers.get("200", {}).get("content", {}).get(JSON, {})
        envelope = content.get("schema", {}).get("properties")
        if envelope:
            schemas = self.spec.components.schemas
            kinds = envelope["data"].get("oneOf", [envelope["data"]])
            content["examples"] = {
                each.get("$ref", "success").rsplit("/", 1)[-1]: {
                    "value": example_of({"properties": envelope | {"data": each}}, schemas)
                }
                for each in kinds
            }

    def add(self, operation: Operation, app: Flask) -> None:
        """Put one operation in, under the path that the app has it at."""
        (rule,) = app.url_map.iter_rules(operation.route)
        about = (app.view_functions[operation.route].__doc__ or "").split("\n")[0]
        content: dict[str, Any] = {"operationId": operation.name, "summary": about, "tags": [operation.tag]}
        content["parameters"] = self._parameters(operation, rule)
        if operation.body or operation.form:
            content["requestBody"] = self._body(operation)
        content["responses"] = responses(operation, self.converter)
        self._examples(content["responses"])
        self.spec.path(re.sub(r"<(?:[^>:]+:)?([^>]+)>", r"{\1}", rule.rule), operations={operation.method: content})

    def whole(self) -> dict[str, Any]:
        """All of it."""
        self.spec.options["webhooks"] = webhooks(self.converter, self.spec.components.schemas)
        self.spec.options["x-elsewhere"] = refusals({*ELSEWHERE})
        return self.spec.to_dict()


def document(app: Flask, site_url: str) -> dict[str, Any]:
    """The OpenAPI 3.1 document of an app whose blueprints are all registered."""
    made = _Document(site_url)
    for operation in OPERATIONS:
        made.add(operation, app)
    return made.whole()
