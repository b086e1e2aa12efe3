"""What an operation can answer with, for the OpenAPI document: envelopes, and refusals from the table of errors."""

from __future__ import annotations

from collections import defaultdict
from http import HTTPStatus
from typing import Any

from apispec.ext.marshmallow import OpenAPIConverter

from blueprints.operations import HTML, JSON, Operation
from services.errors import ERRORS, RETRY_AFTER

# Statuses that any request can meet, before a handler is reached or while it works.
ANYWHERE = {400, 408, 413, 429, 500, 503}
CAN_WAIT = {*(code // 100 for code in RETRY_AFTER), 409, 429}

FAILURE = {
    "type": "object",
    "required": ["code", "msg", "data"],
    "properties": {
        "code": {"type": "integer", "description": "the HTTP status followed by two digits"},
        "msg": {"type": "string", "description": "for people"},
        "data": {"type": ["object", "array", "null"], "description": "null, or {field: [messages]} nested as sent"},
    },
}
HEADERS = {
    "Version": {"description": "The service's version.", "schema": {"type": "string"}},
    "Retry-After": {
        "description": "Seconds to wait; with 40902, 42900, 50000, 50201 and 50300.",
        "schema": {"type": "integer", "minimum": 0},
    },
    "Idempotency-Replayed": {
        "description": "The first answer, given again.",
        "schema": {"type": "string", "enum": ["true"]},
    },
}


def _headers(*names: str) -> dict[str, Any]:
    shown = {name: {"$ref": f"#/components/headers/{name}"} for name in names}
    return {"X-Service-Version": {"$ref": "#/components/headers/Version"}} | shown


def _success(operation: Operation, converter: OpenAPIConverter) -> dict[str, Any]:
    data = [converter.field2property(each) for each in operation.data]
    properties: dict[str, Any] = {
        "code": {"type": "integer", "const": 1},
        "msg": {"type": "string"},
        "data": data[0] if len(data) == 1 else {"oneOf": data},
    }
    if operation.time:
        properties["time"] = {"type": "string", "pattern": "^[0-9]+$", "description": "Unix seconds"}
    schema = {"type": "object", "required": list(properties), "properties": properties}
    headers = _headers("Idempotency-Replayed") if "Idempotency-Key" in operation.headers else _headers()
    return {"description": "Success.", "headers": headers, "content": {JSON: {"schema": schema}}}


def _refusals(codes: set[int], replayed: bool) -> dict[str, dict[str, Any]]:
    """A response for each HTTP status, with the codes that it can carry."""
    by_status: dict[int, list[int]] = defaultdict(list)
    for code in sorted(codes):
        by_status[code // 100].append(code)
    return {
        str(status): {
            "description": "; ".join(f"{code} {ERRORS[code]}" for code in those) + ".",
            "headers": _headers(*["Retry-After"] * (status in CAN_WAIT), *["Idempotency-Replayed"] * replayed),
            "content": {
                JSON: {
                    "schema": {
                        "allOf": [
                            {"$ref": "#/components/schemas/Failure"},
                            {"type": "object", "properties": {"code": {"enum": those}}},
                        ]
                    }
                }
            },
        }
        for status, those in by_status.items()
    }


def responses(operation: Operation, converter: OpenAPIConverter) -> dict[str, Any]:
    """All that an operation can answer with, by HTTP status."""
    anywhere = {code for code in ERRORS if code // 100 in ANYWHERE}
    found = _refusals(anywhere | set(operation.codes), "Idempotency-Key" in operation.headers)
    if operation.data:
        found["200"] = _success(operation, converter)
    for status, media in operation.others:
        phrase = HTTPStatus(status).phrase
        answer = found.setdefault(str(status), {"description": f"{phrase}.", "headers": _headers()})
        if media:
            shape = {"type": "object"} if media == JSON else {"type": "string"}
            answer["content"] = answer.get("content", {}) | {media: {"schema": shape}}
        if media == HTML and status == HTTPStatus.SEE_OTHER:
            answer["headers"]["Location"] = {"schema": {"type": "string"}}
    return dict(sorted(found.items()))
