"""The responses of an operation in the OpenAPI document: envelopes, headers, refusals from the table of errors."""

from __future__ import annotations

from collections import defaultdict
from http import HTTPStatus
from typing import Any

from apispec.ext.marshmallow.openapi import OpenAPIConverter

from blueprints.openapi.operations import HTML, JSON, PAGE, Operation
from schemas.field_descriptions import meaning_of
from schemas.openapi_responses import NoticeRefused
from services.errors import ACTIONS, ERRORS, N_, RETRY_AFTER, Action, Code
from services.refunds.place import Refusal

# Statuses that every request can return, before or in its handler.
ANYWHERE = {400, 408, 413, 429, 500, 503}
CAN_WAIT = {*(code // 100 for code in RETRY_AFTER), 409, 429}
ELSEWHERE = (Code.PATH_NOT_FOUND, Code.METHOD_NOT_ALLOWED)  # of paths and methods outside the document
ELSEWHERE_ONLY = ("Allow", str(Code.METHOD_NOT_ALLOWED))  # the header and the example that no operation has

CODE = {"description": N_("The HTTP status followed by two digits."), "type": "integer"}
MSG = {"description": N_("Text for people. Do not compare it in code."), "type": "string"}
FAILURE = {
    "type": "object",
    "description": N_("An error."),
    "required": ["code", "msg", "data"],
    "properties": {
        "code": {**CODE, "examples": [42200], "enum": [*ERRORS]},
        "msg": {**MSG, "examples": ["invalid fields"]},
        "data": {
            "description": N_("null unless the code has data: see its response."),
            "examples": [{"cny_amount": ["Must be greater than 0."]}],
        },
    },
}

WRONG_FIELDS: dict[str, Any] = {
    "description": N_(
        "Messages by field. The path is dotted as in signing, and empty for the whole body. null for 42201."
    ),
    "type": ["object", "null"],
    "additionalProperties": {"type": "array", "items": {"type": "string"}},
    "examples": [{"gatewaya_card_info.card_no": ["Must be 8 to 32 digits."]}],
}
CANCELLED_ORDER: dict[str, Any] = {
    "description": N_("The order that is cancelled."),
    "type": "object",
    "required": ["order_no"],
    "properties": {"order_no": meaning_of("order_no", "View").words() | {"type": "string", "pattern": "^[0-9]{24}$"}},
    "examples": [{"order_no": "202601018899480685472049"}],
}
CHECKS: dict[str, Any] = {
    "description": N_("Only from readyz: each check and its result. Otherwise null."),
    "type": ["object", "null"],
    "additionalProperties": {"type": "string"},
    "examples": [None],
}
CANCELLED_REFUND: dict[str, Any] = {
    "description": N_("The refund that is cancelled."),
    "type": "object",
    "required": ["refund_no"],
    "properties": {"refund_no": meaning_of("refund_no", "View").words() | {"type": "string", "pattern": "^[0-9]{24}$"}},
    "examples": [{"refund_no": "202601024410932758106347"}],
}
NOT_REFUNDABLE: dict[str, Any] = {
    "description": N_("For 40904: why, and what can still be refunded. null for 40901."),
    "type": ["object", "null"],
    "required": ["reason", "left"],
    "properties": {
        "reason": meaning_of("reason", "NotRefundable").words() | {"type": "string", "enum": [*map(str, Refusal)]},
        "left": meaning_of("left", "NotRefundable").words()
        | {"type": "string", "pattern": r"^[0-9]+\.[0-9]{2}$"}
        | meaning_of("left", "NotRefundable").bounds,
    },
    "examples": [{"reason": "amount", "left": "30.00"}],
}
DATA = {422: WRONG_FIELDS, 502: CANCELLED_ORDER, 503: CHECKS}  # by HTTP status
WITH_DATA = (Code.INVALID_FIELDS, Code.CHANNEL_FAILED, Code.NOT_REFUNDABLE)
# What is different at createRefund: the data by HTTP status, and the action. It stores nothing with 40901, so the
# number is not used.
REFUND = "createRefund"
DATA_OF_REFUND = DATA | {409: NOT_REFUNDABLE, 502: CANCELLED_REFUND}
ACTIONS_OF_REFUND = ACTIONS | {Code.INSUFFICIENT_BALANCE: Action.SAME_KEY}
OWN_EXAMPLES = (Code.INSUFFICIENT_BALANCE, Code.CHANNEL_FAILED)
# As exact as `type: null`, at which openapi-generator and others fail. They read this as any value.
NO_DATA = {"description": N_("Always null."), "const": None}


# Responses without an envelope.
OTHERS = {
    200: N_("The content itself, without an envelope."),
    204: N_("Received. The response has no body."),
    303: N_("Continue at the address in `Location`."),
    304: N_("Not changed since the response with this `ETag`."),
    404: N_("Not found, as a page."),
    502: N_("The channel's sign-in failed, as a page."),
}
FROM_A_PROXY = {"description": N_("Any other status is from a proxy in front of the service.")}


def _header(text: str, example: Any, **schema: Any) -> dict[str, Any]:
    return {"description": text, "schema": {"type": "string"} | schema, "example": example}


HEADERS = {
    "X-Service-Version": _header(N_("The service's version."), "0.4.0"),
    "X-Request-Id": _header(
        N_("The id of this request in the service's log: the one that you sent, if it is valid, otherwise a new one."),
        "b6a7f3c1d2e4-1f",
        pattern="^[A-Za-z0-9._-]{1,64}$",
    ),
    "X-Content-Type-Options": _header(N_("Browsers must use the given content type."), "nosniff", const="nosniff"),
    "Cache-Control": _header(N_("Whether and for how long the response may be cached."), "no-store"),
    "Retry-After": _header(
        N_("Seconds to wait. Sent with 40902, 42900, 50000 and 50300."), 1, type="integer", minimum=0, maximum=86_400
    )
    | {"x-unit": "seconds"},
    "Idempotency-Replayed": _header(
        N_(
            "The request was made before. createOrder returns its first response again, createRefund the refund as it "
            "is now."
        ),
        "true",
        enum=["true"],
    ),
    "Allow": _header(N_("The methods that this path supports."), "POST"),
    "Location": _header(
        N_("The address to continue at."), "/addons/paychannel/pay/index?order_no=202601018899480685472049"
    ),
    "Access-Control-Allow-Origin": _header(N_("Pages of all origins may read the response."), "*", const="*"),
    "ETag": _header(N_("The id of this response, for `If-None-Match`."), '"0a1b2c3d"'),
    "Vary": _header(N_("The request headers that the response depends on."), "Accept-Encoding, Accept-Language"),
    "Content-Encoding": _header(N_("The compression, if the caller accepts it."), "gzip", const="gzip"),
    "Content-Security-Policy": _header(N_("What the page may load: its own files only."), "default-src 'none'"),
    "Set-Cookie": _header(N_("The browser of a payer who signs in at the channel."), "sign_in=x; HttpOnly"),
    "Referrer-Policy": _header(N_("What the page tells the targets of its links."), "strict-origin"),
}
ON_ALL = ("X-Service-Version", "X-Request-Id", "X-Content-Type-Options", "Cache-Control")  # of every response
for _name in ON_ALL:
    HEADERS[_name]["required"] = True


def headers(*names: str) -> dict[str, Any]:
    """The headers of a response: those of all responses, and these."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in (*ON_ALL, *names)}


def failure(code: int, operation: str = "") -> dict[str, Any]:
    """The example of an error, with the action to take, for the callers of an operation."""
    is_refund = operation == REFUND or code == Code.NOT_REFUNDABLE
    shapes, actions = (DATA_OF_REFUND, ACTIONS_OF_REFUND) if is_refund else (DATA, ACTIONS)
    data = shapes[code // 100]["examples"][0] if code in WITH_DATA else None
    text = ERRORS[Code(code)]
    return {"summary": text, "value": {"code": code, "msg": text, "data": data}, "x-action": actions[Code(code)].value}


def example_of(shape: dict[str, Any], schemas: dict[str, Any], shown: tuple[str, ...] | None = None) -> Any:
    """Build an example of a schema from those of its fields: all, or the required ones and those in `shown`."""
    if "$ref" in shape:
        return example_of(schemas[shape["$ref"].rsplit("/", 1)[-1]], schemas, shown)
    if "const" in shape or "examples" in shape:
        return shape.get("const") if "const" in shape else shape["examples"][0]
    if "properties" in shape:
        wanted = shape["properties"] if shown is None else {*shape.get("required", ()), *shown}
        return {name: example_of(each, schemas) for name, each in shape["properties"].items() if name in wanted}
    return [example_of(shape["items"], schemas)]


def _success(operation: Operation, converter: OpenAPIConverter, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the envelope of a success, with an example for each kind of data."""
    kinds: list[dict[str, Any]] = [converter.field2property(each) for each in operation.data]
    data: dict[str, Any] = {"description": N_("The result.")} | (kinds[0] if len(kinds) == 1 else {"oneOf": kinds})
    properties: dict[str, Any] = {
        "code": {**CODE, "description": N_("1 is success."), "enum": [1], "examples": [1]},
        "msg": {**MSG, "examples": ["order created" if operation.time else "success"]},
        "data": data,
    }
    if operation.time:
        when = {"description": N_("The creation time as a text."), "x-unit": "Unix seconds"}
        properties["time"] = {**when, "type": "string", "pattern": "^[0-9]{1,12}$", "examples": ["1767225600"]}
    examples = {}
    for kind in [data] if len(kinds) == 1 else kinds:
        example = example_of({"properties": properties | {"data": kind}}, schemas)
        examples[kind.get("$ref", "success").rsplit("/", 1)[-1]] = {"value": example}
    schema = {"type": "object", "required": list(properties), "properties": properties}
    content = {JSON: {"schema": schema, "examples": examples}}
    return {"description": N_("Success."), "headers": headers(*operation.sends), "content": content}


def refusals(codes: set[int], sends: tuple[str, ...] = (), operation: str = "") -> dict[str, dict[str, Any]]:
    """A response for each HTTP status, with the codes that it can carry."""
    shapes = DATA_OF_REFUND if operation == REFUND else DATA
    by_status: dict[int, list[int]] = defaultdict(list)
    for code in sorted(codes):
        by_status[code // 100].append(code)
    found = {}
    for status, those in by_status.items():
        own = {"code": {**CODE, "enum": those, "examples": those[:1]}, "data": shapes.get(status, NO_DATA)}
        only = {"type": "object", "properties": own}
        found[str(status)] = {
            "description": "\n".join(f"- {code} {ERRORS[Code(code)]}" for code in those),
            "headers": headers(*["Retry-After"] * (status in CAN_WAIT), *["Allow"] * (status == 405), *sends),
            "content": {
                JSON: {
                    "schema": {"allOf": [{"$ref": "#/components/schemas/Failure"}, only]},
                    "examples": {str(code): _example(code, operation) for code in those},
                }
            },
        }
    return found


def _example(code: int, operation: str) -> dict[str, Any]:
    """The example that all operations share, or an operation's own."""
    is_own = operation == REFUND and code in OWN_EXAMPLES
    return failure(code, operation) if is_own else {"$ref": f"#/components/examples/{code}"}


def elsewhere() -> dict[str, dict[str, Any]]:
    """The responses of paths and methods outside the document, complete: browsers get a page.

    Linters report a component as unused if only an extension refers to it.
    """
    found = refusals({*ELSEWHERE}, PAGE)
    for response in found.values():
        response["headers"] = {name: HEADERS[name] for name in response["headers"]}
        content = response["content"][JSON]
        content["examples"] = {code: failure(int(code)) for code in content["examples"]}
        response["content"][HTML] = {"schema": {"type": "string"}}
    return found


def responses(operation: Operation, converter: OpenAPIConverter, schemas: dict[str, Any]) -> dict[str, Any]:
    """All responses of an operation by HTTP status."""
    anywhere = {code for code in ERRORS if code // 100 in ANYWHERE}
    found = refusals(anywhere | set(operation.codes), operation.sends, operation.name)
    if operation.data:
        found["200"] = _success(operation, converter, schemas)
    for status, media in operation.others:
        if str(status) not in found:
            found[str(status)] = {"description": OTHERS[status], "headers": headers(*operation.sends)}
        response = found[str(status)]
        if media == JSON and media in response.get("content", {}):
            both = [response["content"][media]["schema"], converter.resolve_nested_schema(NoticeRefused)]
            response["content"][media]["schema"] = {"anyOf": both}
        elif media:
            schema = {"type": "object" if media == JSON else "string"}
            response.setdefault("content", {})[media] = {"schema": schema}
        if status == HTTPStatus.SEE_OTHER:
            response["headers"] |= headers("Location")
    if not any(status.startswith("2") for status in found):  # a form: linters want a 2xx or a default
        found["default"] = FROM_A_PROXY
    return dict(sorted(found.items()))
