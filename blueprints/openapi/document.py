"""The API as an OpenAPI document, built from the schemas that validate requests."""

from __future__ import annotations

import re
from typing import Any

from apispec import APISpec
from apispec.ext.marshmallow.openapi import OpenAPIConverter
from flask import Flask
from flask_babel import gettext
from werkzeug.routing import Rule

from blueprints.openapi.operations import FORM, JSON, OPERATIONS, TAGS, Operation
from blueprints.openapi.responses import (
    ELSEWHERE_ONLY,
    FAILURE,
    HEADERS,
    elsewhere,
    example_of,
    failure,
    responses,
)
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
    N_(
        "An unknown path returns 40404, and an unsupported method 40500, in the same envelope. A browser gets a page "
        "instead: if the request is a GET and its `Accept` prefers `text/html` to JSON."
    ),
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
        "Idempotency-Key), `new-key` (retry with a new one) or `no-retry`. For createRefund the key is "
        "`merchant_refund_no`; its own examples replace the shared ones. `x-elsewhere` has the responses of unknown "
        "paths and methods."
    ),
)
# The shapes of request headers, which have no schema.
TAKEN = {
    "Idempotency-Key": {"type": "string", "pattern": "^[!-~]{1,255}$"},
    "If-None-Match": {"type": "string"},
}


def _parameter(name: str, place: str, shape: dict[str, Any], required: bool, *owners: str) -> dict[str, Any]:
    words = meaning_of(name, *owners).words()
    about = words.pop("description")
    return {"name": name, "in": place, "required": required, "description": about, "schema": shape | words}


def _parameters(operation: Operation, rule: Rule, converter: OpenAPIConverter) -> list[dict[str, Any]]:
    found = [_parameter(name, "path", {"type": "string"}, True, operation.name) for name in sorted(rule.arguments)]
    for schema in operation.query:
        owners = [owner.__name__ for owner in schema.__mro__]
        for name, field in schema().fields.items():
            required = field.required and not operation.body  # a field that may be in the body instead
            found.append(_parameter(name, "query", converter.field2property(field), required, *owners))
    for name in operation.query_texts:
        found.append(_parameter(name, "query", {"type": "string"}, False, operation.name))
    for name in operation.takes:
        found.append(_parameter(name, "header", TAKEN[name], False, operation.name))
    return found


def _body(operation: Operation, spec: APISpec, converter: OpenAPIConverter) -> dict[str, Any]:
    if operation.form:
        fields = {name: {"type": "string"} | meaning_of(name, operation.name).words() for name in operation.form}
        shape = {"type": "object", "required": [*operation.form], "properties": fields}
        return {"content": {FORM: {"schema": shape}}, "required": True}
    shapes, examples = [], {}
    for schema, shown in operation.body.items():
        shape = converter.resolve_nested_schema(schema)
        shapes.append(shape)
        if example := example_of(shape, spec.components.schemas, shown):
            examples[schema.__name__] = {"value": example}
    content = {"schema": shapes[0] if len(shapes) == 1 else {"oneOf": shapes}, "examples": examples}
    return {"content": {JSON: content}, "required": operation.body_required}


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
    """Return the OpenAPI 3.1 document of an app whose blueprints are all registered, in the reader's language."""
    plugin = OpenApiPlugin()
    spec = APISpec(
        settings.NAME,
        settings.VERSION,
        "3.1.0",
        [plugin],
        info={
            "description": "\n\n".join((*ABOUT, *FOR_TOOLS)),
            "contact": {"name": settings.NAME, "url": site_url},
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        servers=[{"url": site_url}],
        tags=[{"name": name, "description": about} for name, about in TAGS.items()],
        security=[],  # OpenAPI has no scheme for a signature in the body
    )
    converter = plugin.converter
    assert converter is not None
    spec.components.schema("Failure", FAILURE)
    for name, header in HEADERS.items():
        if name not in ELSEWHERE_ONLY:
            spec.components.header(name, header)
    for code in ERRORS:
        if str(code) not in ELSEWHERE_ONLY:
            spec.components.example(str(code), failure(code))
    for operation in OPERATIONS:
        (rule,) = app.url_map.iter_rules(operation.route)
        content: dict[str, Any] = {
            "operationId": operation.name,
            "summary": operation.about,
            "description": f"{operation.about}\n\n{TAGS[operation.tag]}",
            "tags": [operation.tag],
            "parameters": _parameters(operation, rule, converter),
        }
        if operation.body or operation.form:
            content["requestBody"] = _body(operation, spec, converter)
        content["responses"] = responses(operation, converter, spec.components.schemas)
        path = re.sub(r"<(?:[^>:]+:)?([^>]+)>", r"{\1}", rule.rule)
        spec.path(path, operations={operation.method: content})
    spec.options["webhooks"] = webhooks(converter, spec.components.schemas)
    spec.options["x-elsewhere"] = elsewhere()
    return _translated(sized(spec.to_dict()))
