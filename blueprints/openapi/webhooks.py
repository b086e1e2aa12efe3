"""The callbacks to merchants in the OpenAPI document: one row for each type (docs/callbacks.md)."""

from __future__ import annotations

from typing import Any

from apispec.ext.marshmallow.openapi import OpenAPIConverter

from blueprints.openapi.operations import CALLBACKS, JSON
from blueprints.openapi.responses import example_of
from models.tables.order import CANCELLED, COMPLETED, CONFIRMED, PAID, STATUSES
from schemas.field_descriptions import meaning_of
from schemas.openapi_responses import Event, RefundEvent
from schemas.views import OrderView, RefundView
from services.errors import N_

# Type, the possible statuses of its order or refund (the first is in the example), when it is sent.
TYPES = (
    (
        "order.completed",
        (COMPLETED,),
        N_("A deposit was credited, or a withdrawal was paid out. Sent to every merchant."),
    ),
    (
        "order.cancelled",
        (CANCELLED,),
        N_("The order expired, or it was closed, refused or rejected. Sent to every merchant."),
    ),
    ("order.paid", (PAID,), N_("The order reached the status `paid`. Sent to subscribed merchants.")),
    ("order.confirmed", (CONFIRMED,), N_("The order reached the status `confirmed`. Sent to subscribed merchants.")),
    (
        "order.credited",
        (CANCELLED, *STATUSES),
        N_("A payment that did not match the order was credited. The status stays. Sent to subscribed merchants."),
    ),
    (
        "order.refunded",
        (CANCELLED, *STATUSES),
        N_("A payment that did not match the order was returned. The status stays. Sent to subscribed merchants."),
    ),
    (
        "refund.completed",
        (COMPLETED,),
        N_("The payer received a refund. `data` is the refund. Sent to every merchant."),
    ),
    (
        "refund.cancelled",
        (CANCELLED,),
        N_(
            "A refund was rejected or failed, and what it reserved is returned. `data` is the refund. Sent to every "
            "merchant."
        ),
    ),
    (
        "refund.confirmed",
        (CONFIRMED,),
        N_("A refund was handed to the channel. `data` is the refund. Sent to subscribed merchants."),
    ),
    (
        "test",
        (COMPLETED,),
        N_("The operator tests your callback URL. The order does not exist: respond with 2xx and do nothing else."),
    ),
)
HEADERS = {"webhook-id": "string", "webhook-timestamp": "integer", "webhook-signature": "string"}
ABOUT = N_(
    "Verify the signature of the raw body before you parse it. Respond with 2xx within 10 s and process the event "
    "afterwards. A callback is delivered at least once, and callbacks can arrive out of order. After a failure the "
    "service retries after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 10 h, with the same `webhook-id` and the same body."
)
RESPONSES = {
    "2XX": {"description": N_("Delivered. The response body is ignored.")},
    "410": {"description": N_("Failed. The service stops retrying this callback.")},
    "default": {"description": N_("Failed, like a timeout or a redirect. The service retries.")},
}


def webhooks(converter: OpenAPIConverter, schemas: dict[str, Any]) -> dict[str, Any]:
    """The `webhooks` of the document."""
    shapes = {
        "order": [converter.resolve_nested_schema(schema) for schema in (Event, OrderView)],
        "refund": [converter.resolve_nested_schema(schema) for schema in (RefundEvent, RefundView)],
    }
    about_data = {"order": N_("The order at that time."), "refund": N_("The refund at that time.")}
    headers = []
    for name, kind in HEADERS.items():
        meaning = meaning_of(name)
        words = meaning.words()
        about = words.pop("description")
        shape = words | {"type": kind} | meaning.bounds
        headers.append({"name": name, "in": "header", "required": True, "description": about, "schema": shape})
    found = {}
    for name, (status, *others), about in TYPES:
        subject = "refund" if name.startswith("refund.") else "order"
        event, shape = shapes[subject]
        example = example_of(event, schemas)
        status_field = {
            **({"enum": others} if others else {"const": status}),
            "description": N_("The status at that time.") if others else N_("The new status."),
            "examples": [status],
        }
        # What this type adds to the event.
        own = {
            "type": {"const": name, "description": N_("The event."), "examples": [name]},
            "data": {
                "description": about_data[subject],
                "allOf": [shape, {"properties": {"status": status_field}}],
            },
        }
        content = {
            "schema": {"type": "object", "allOf": [event, {"properties": own}]},
            "example": example | {"type": name, "data": example["data"] | {"status": status}},
        }
        found[name] = {
            "post": {
                "operationId": f"callback_{name.replace('.', '_')}",
                # openapi-generator makes functions that send callbacks, which no merchant needs, and those in Python
                # are not valid code. This leaves them out.
                "x-internal": True,
                "summary": about,
                "description": ABOUT,
                "tags": [CALLBACKS],
                "parameters": headers,
                "requestBody": {"required": True, "content": {JSON: content}},
                "responses": RESPONSES,
            }
        }
    return found
