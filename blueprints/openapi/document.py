"""The API as an OpenAPI document, built from the schemas that validate requests."""

from __future__ import annotations

import re
from typing import Any

from apispec import APISpec
from flask import Flask
from flask_babel import gettext
from marshmallow import Schema
from werkzeug.routing import Rule

from blueprints.openapi.examples import example_of
from blueprints.openapi.operations import FORM, JSON, OPERATIONS, TAGS, Operation
from blueprints.openapi.responses import ELSEWHERE_ONLY, FAILURE, HEADERS, elsewhere, failure, responses
from blueprints.openapi.webhooks import webhooks
from runtime import settings
from schemas.field_descriptions import meaning_of
from schemas.openapi_converter import OpenApiPlugin, sized
from services.errors import ERRORS, N_

# The introduction, by paragraphs; the second part is for tools only and not on the reference page.
ABOUT = (
    N_(
        "Create and track CNY deposits and withdrawals. Every JSON response has the same envelope: `code`, `msg` and "
        "`data`, and `time` if an order was created. `code` is 1 on success, otherwise the HTTP status followed by two "
        "digits. `msg` is for people, in English or Chinese by `Accept-Language`."
    ),
    N_(
        'A text amount is in yuan and a text rate in percent: "100.00" is 100 yuan. An int amount is in fen and an '
        "int rate in basis points: 10000 is 100 yuan."
    ),
    N_(
        "An int can be sent as a text of ASCII digits. An optional field can be null or empty, which counts as absent. "
        "An unknown field is refused with 42200, a control character with 40000."
    ),
    N_("An unknown path returns 40404, and an unsupported method 40500, in the same envelope."),
)
FOR_TOOLS = (
    N_(
        "Every `/merchant/...` request is signed. The string to sign is UTF-8 lines joined by a line feed. The first "
        "line is the name of the endpoint, such as `createOrder`. Then follows `path=value` for every field except "
        "`signature`, sorted by the bytes of the path. Nested names are joined by a dot "
        "(`gatewaya_card_info.card_no`), list items by their index. null and empty texts are left out. A number is "
        "signed as it is written in the JSON. `/docs/signing.md` has an example, `/docs/errors.md` the action for each "
        "code."
    ),
    N_(
        "A field has `x-unit`, a decimal text also `x-range`. In a request, `x-error-codes` lists the codes of an "
        "invalid value."
    ),
    N_(
        "Each code has an `x-action` in `components/examples`, for createOrder: `same-key` (retry with the same "
        "Idempotency-Key), `new-key` (retry with a new one) or `no-retry`. `x-elsewhere` has the responses of unknown "
        "paths and methods."
    ),
)
# The shapes of request headers, which have no schema.
TAKEN = {
    "Idempotency-Key": {"type": "string", "pattern": "^[!-~]{1,255}$"},
    "If-None-Match": {"type": "string"},
}


def _texts(names: tuple[str, ...], place: str, owner: str) -> list[dict[str, Any]]:
    """Parameters without a schema."""
    return [_parameter(name, place, {"type": "string"} | TAKEN.get(name, {}), False, owner) for name in names]


def _parameter(name: str, place: str, shape: dict[str, Any], required: bool, *owners: str) -> dict[str, Any]:
    words = meaning_of(name, *owners).words()
    about = words.pop("description")
    return {"name": name, "in": place, "required": required, "description": about, "schema": shape | words}


class _Document:
    """The document of one app while it is built."""

    def __init__(self, site_url: str) -> None:
        self.plugin = OpenApiPlugin()
        self.spec = APISpec(
            settings.NAME,
            settings.VERSION,
            "3.1.0",
            [self.plugin],
            info={
                "description": "\n\n".join((*ABOUT, *FOR_TOOLS)),
                "contact": {"name": settings.NAME, "url": site_url},
                "license": {"name": "MIT", "identifier": "MIT"},
            },
            servers=[{"url": site_url}],
            tags=[{"name": name, "description": about} for name, about in TAGS.items()],
            security=[],  # OpenAPI has no scheme for a signature in the body
        )
        self.spec.components.schema("Failure", FAILURE)
        for name in (each for each in HEADERS if each not in ELSEWHERE_ONLY):
            self.spec.components.header(name, HEADERS[name])
        for code in (each for each in ERRORS if str(each) not in ELSEWHERE_ONLY):
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

    def _examples(self, responses: dict[str, Any]) -> None:
        """Add examples to a success, one for each kind of data."""
        content = responses.get("200", {}).get("content", {}).get(JSON, {})
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
        """Add an operation under its path in the app."""
        (rule,) = app.url_map.iter_rules(operation.route)
        content: dict[str, Any] = {
            "operationId": operation.name,
            "summary": operation.about,
            "description": f"{operation.about}\n\n{TAGS[operation.tag]}",
            "tags": [operation.tag],
        }
        content["parameters"] = self._parameters(operation, rule)
        if operation.body or operation.form:
            content["requestBody"] = self._body(operation)
        content["responses"] = responses(operation, self.converter)
        self._examples(content["responses"])
        self.spec.path(re.sub(r"<(?:[^>:]+:)?([^>]+)>", r"{\1}", rule.rule), operations={operation.method: content})

    def whole(self) -> dict[str, Any]:
        """Return the complete document in English."""
        self.spec.options["webhooks"] = webhooks(self.converter, self.spec.components.schemas)
        self.spec.options["x-elsewhere"] = elsewhere()
        return sized(self.spec.to_dict())


# A text of the document has paragraphs, or the lines of a list of codes.
_LINE = re.compile(r"^(- [0-9]+ )?(.+)$", re.MULTILINE)


def _translated(part: Any) -> Any:
    """Return a part of the document with its summaries and descriptions in the reader's language."""
    if isinstance(part, list):
        return [_translated(each) for each in part]
    if not isinstance(part, dict):
        return part
    return {
        name: _LINE.sub(lambda line: (line[1] or "") + gettext(line[2]), each)
        if name in ("summary", "description") and isinstance(each, str)
        else _translated(each)
        for name, each in part.items()
    }


def document(app: Flask, site_url: str) -> dict[str, Any]:
    """The OpenAPI 3.1 document of an app whose blueprints are all registered, in the reader's language."""
    made = _Document(site_url)
    for operation in OPERATIONS:
        made.add(operation, app)
    return _translated(made.whole())
