"""Compares each response and callback of the test suite with the OpenAPI document."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import jsonschema_rs
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.routing import Map

from blueprints.console import PREFIX
from blueprints.openapi.document import document
from blueprints.openapi.operations import JSON, LEFT_OUT, OPERATIONS
from blueprints.openapi.responses import HEADERS
from serving.application import register

OPERATION = {(each.route, each.method): each.name for each in OPERATIONS}
# The headers of HTTP itself.
FRAMING = {"content-type", "content-length", "date", "server", "connection", "transfer-encoding"}

drift: list[str] = []  # the differences since the test began


def closed(part: Any) -> Any:
    """A copy of the document in which responses can have no fields other than the named ones."""
    if isinstance(part, list):
        return [closed(each) for each in part]
    if not isinstance(part, dict):
        return part
    whole = {name: closed(each) for name, each in part.items()}
    if isinstance(part.get("properties"), dict) and set(part.get("required", ())) == set(part["properties"]):
        return {"additionalProperties": False} | whole
    return whole


@cache
def _application() -> Flask:
    """The application with everything that is served, without a database."""
    app = Flask("contract", static_folder=None)
    app.url_map.merge_slashes = False
    register(app, "")
    return app


@cache
def _whole() -> dict[str, Any]:
    return closed(document(_application(), "http://localhost"))


@cache
def _answers() -> dict[str, dict[str, Any]]:
    """The responses of each operation, by its name; "" for responses outside any operation."""
    whole = _whole()
    found = {each["operationId"]: each["responses"] for path in whole["paths"].values() for each in path.values()}
    anywhere = {status: found["health"][status] for status in ("400", "408", "413", "429", "500", "503")}
    return found | {"": anywhere | whole["x-elsewhere"]}


def _validator(schema: dict[str, Any]) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(schema | {"components": _whole()["components"]}, validate_formats=True)


@cache
def _body_of(name: str, status: str, media: str) -> jsonschema_rs.Draft202012Validator:
    return _validator(_answers()[name][status]["content"][media]["schema"])


@cache
def _header_of(name: str) -> jsonschema_rs.Draft202012Validator:
    return _validator(HEADERS[name]["schema"])


def _faults(validator: jsonschema_rs.Draft202012Validator, value: Any, where: str) -> list[str]:
    if validator.is_valid(value):
        return []
    found = validator.iter_errors(value)  # an object that is described twice reports each error twice
    return [*dict.fromkeys(f"{where}{'.'.join(map(str, each.instance_path))}: {each.message}" for each in found)]


def _number(text: str) -> Any:
    return int(text) if text.isascii() and text.isdigit() else text


def _operation(method: str, path: str, routes: Map) -> str | None:
    """The operation's name; "" if there is none; None if the document leaves it out."""
    adapter = routes.bind("localhost")
    try:
        route, _ = adapter.match(path, method)
    except MethodNotAllowed as error:
        route = adapter.match(path, error.valid_methods[0])[0] if error.valid_methods else ""
        return None if route.startswith(LEFT_OUT) else ""
    except HTTPException:
        return ""
    return None if route.startswith(LEFT_OUT) else OPERATION[route, "get" if method == "HEAD" else method.lower()]


def faults_of_answer(
    method: str, path: str, status: int, headers: Mapping[str, str], body: bytes, routes: Map | None = None
) -> list[str]:
    """Return the differences between a response and the document."""
    name = _operation(method, path.partition("?")[0], routes or _application().url_map)
    if name is None:
        return []
    known = _answers()[name].get(str(status))
    if known is None:
        return [f"the document has no {status} for it, but {', '.join(_answers()[name])}"]
    given = {header.lower(): value for header, value in headers.items()}
    named = {header.lower(): header for header in known["headers"]}
    faults = [f"the header {low} is not in the document" for low in given if low not in named.keys() | FRAMING]
    faults += [f"no {header}" for low, header in named.items() if HEADERS[header].get("required") and low not in given]
    for low in named.keys() & given.keys():
        is_number = HEADERS[named[low]]["schema"]["type"] == "integer"
        faults += _faults(_header_of(named[low]), _number(given[low]) if is_number else given[low], f"{low} ")
    media, content = given.get("content-type", "").partition(";")[0], known.get("content", {})
    if method == "HEAD" or not body:
        return faults
    if not content:
        return [*faults, f"a body of {media}, without one in the document"]
    if media not in content:
        return [*faults, f"{media} is not in the document, but {', '.join(content)}"]
    value = json.loads(body) if media == JSON else body.decode()
    return faults + _faults(_body_of(name, str(status), media), value, "")


@cache
def _event(kind: str) -> jsonschema_rs.Draft202012Validator:
    return _validator(_whole()["webhooks"][kind]["post"]["requestBody"]["content"][JSON]["schema"])


@cache
def _event_headers(kind: str) -> dict[str, jsonschema_rs.Draft202012Validator]:
    named = _whole()["webhooks"][kind]["post"]["parameters"]
    return {each["name"]: _validator(each["schema"]) for each in named}


def faults_of_callback(headers: Mapping[str, str], body: bytes) -> list[str]:
    """Return the differences between a callback and the document."""
    event = json.loads(body)
    kind = event.get("type")
    if kind not in _whole()["webhooks"]:
        return [f"the document has no callback {kind!r}"]
    lower = {name.lower(): value for name, value in headers.items()}
    faults = _faults(_event(kind), event, "")
    for name, validator in _event_headers(kind).items():
        faults += _faults(validator, _number(lower.get(name, "")), f"{name} ")
    return faults


def hold_answer(
    method: str, path: str, status: int, headers: Mapping[str, str], body: bytes, routes: Map | None = None
) -> None:
    """Compare a response with the document; a difference fails the test at its end, in any thread."""
    if path == PREFIX or path.startswith(f"{PREFIX}/"):
        return  # the console is not part of the API
    for fault in faults_of_answer(method, path, status, headers, body, routes):
        drift.append(f"{method} {path} answered {status} {body[:300]!r}: {fault}")


def hold_callback(headers: Mapping[str, str], body: bytes) -> None:
    """Compare a callback with the document; a difference fails the test at its end."""
    drift.extend(f"callback {body[:300]!r}: {fault}" for fault in faults_of_callback(headers, body))


class CheckedClient(FlaskClient):
    """Flask's test client; all its responses are compared with the document."""

    def open(self, *args: Any, **kwargs: Any) -> Any:
        answer = super().open(*args, **kwargs)
        environ = answer.request.environ
        path = environ["SCRIPT_NAME"] + environ["PATH_INFO"]
        if not path.startswith(f"{PREFIX}/"):  # the others may be sent in pieces
            body = gzip.decompress(answer.data) if "gzip" in answer.headers.get("Content-Encoding", "") else answer.data
            routes = self.application.url_map
            hold_answer(answer.request.method, path, answer.status_code, answer.headers, body, routes)
        return answer
