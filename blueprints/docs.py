"""The interface as an OpenAPI document, made from the schemas that requests are held to: `/openapi.json`."""

from __future__ import annotations

import json
import re
from typing import Any

from apispec import APISpec
from flask import Blueprint, Flask, Response, current_app
from marshmallow import Schema
from werkzeug.routing import Rule

import settings
from blueprints.answers import FAILURE, HEADERS, responses
from blueprints.operations import FORM, JSON, OPERATIONS, Operation
from schemas.contract import ContractPlugin

docs = Blueprint("docs", __name__)

ABOUT = """\
Create and track CNY deposits and withdrawals. Every `/merchant/...` request is signed: the string to sign and the four
parameters are explained in `docs/signing.md`, the codes in `docs/errors.md`.

An int may be sent as a text of ASCII digits, within the same bounds. A null optional field counts as absent, and so
does an empty text. An unknown path answers 404 with code 40404, another method 405 with 40500, in the same envelope.
"""


class _Document:
    """One app's document while it is put together."""

    def __init__(self) -> None:
        self.plugin = ContractPlugin()
        self.spec = APISpec(
            "Merchant order service",
            settings.VERSION,
            "3.1.0",
            [self.plugin],
            info={"description": ABOUT, "license": {"name": "MIT", "identifier": "MIT"}},
            servers=[{"url": settings.active().public_url}],
            tags=[{"name": tag} for tag in dict.fromkeys(operation.tag for operation in OPERATIONS)],
        )
        self.spec.components.schema("Failure", FAILURE)
        for name, header in HEADERS.items():
            self.spec.components.header(name, header)
        assert self.plugin.converter is not None
        self.converter = self.plugin.converter

    def _query(self, schema: type[Schema], in_body_too: bool) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "in": "query",
                "required": field.required and not in_body_too,
                "schema": self.converter.field2property(field),
            }
            for name, field in schema().fields.items()
        ]

    def _parameters(self, operation: Operation, rule: Rule) -> list[dict[str, Any]]:
        text = {"type": "string"}
        named = [{"name": name, "in": "path", "required": True, "schema": text} for name in sorted(rule.arguments)]
        for schema in operation.query:
            named += self._query(schema, bool(operation.body))
        named += [{"name": name, "in": "query", "schema": text} for name in operation.query_texts]
        return named + [{"name": name, "in": "header", "schema": own} for name, own in operation.headers.items()]

    def _body(self, operation: Operation) -> dict[str, Any]:
        if operation.form:
            properties = {name: {"type": "string"} for name in operation.form}
            shape = {"type": "object", "required": [*operation.form], "properties": properties}
            return {"content": {FORM: {"schema": shape}}, "required": True}
        shapes = [self.converter.resolve_nested_schema(schema) for schema in operation.body]
        examples = {schema.__name__: {"value": example} for schema, example in operation.body.items() if example}
        content = {"schema": shapes[0] if len(shapes) == 1 else {"oneOf": shapes}}
        return {
            "content": {JSON: content | ({"examples": examples} if examples else {})},
            "required": operation.body_required,
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
        self.spec.path(re.sub(r"<(?:[^:>]+:)?([^>]+)>", r"{\1}", rule.rule), operations={operation.method: content})


def document(app: Flask) -> dict[str, Any]:
    """The OpenAPI 3.1 document of an app whose blueprints are all registered."""
    made = _Document()
    for operation in OPERATIONS:
        made.add(operation, app)
    return made.spec.to_dict()


@docs.get("/openapi.json")
def openapi() -> Response:
    """This document."""
    known = current_app.extensions
    if "openapi" not in known:
        app = current_app._get_current_object()  # type: ignore[attr-defined]
        known["openapi"] = json.dumps(document(app), ensure_ascii=False)
    return Response(known["openapi"], content_type=JSON, headers={"Access-Control-Allow-Origin": "*"})
