"""The callbacks that merchants get, for the OpenAPI document: one row a type (docs/callbacks.md)."""

from __future__ import annotations

from typing import Any

from apispec.ext.marshmallow.openapi import OpenAPIConverter

from blueprints.openapi.examples import example_of
from blueprints.openapi.operations import CALLBACKS, JSON
from models.tables.order import CANCELLED, COMPLETED, CONFIRMED, PAID, STATUSES
from schemas.field_descriptions import meaning_of
from schemas.openapi_responses import Event
from schemas.views import OrderView
from services.callbacks.delivery import RETRY_SECONDS, TIMEOUT

# Type, the statuses that its order can have (the first is the example's), when it is sent.
TYPES = (
    ("order.completed", (COMPLETED,), "A deposit was credited, or a withdrawal paid out. Every merchant gets it."),
    ("order.cancelled", (CANCELLED,), "An order expired, or was closed, refused or rejected. Every merchant gets it."),
    ("order.paid", (PAID,), "Somebody says that the money was sent. Only for merchants that asked for it."),
    ("order.confirmed", (CONFIRMED,), "Proven, or accepted for payout. Only for merchants that asked for it."),
    (
        "order.credited",
        (CANCELLED, *STATUSES),
        "Money that did not fit the order was credited; the status stays. Only for merchants that asked for it.",
    ),
    (
        "order.refunded",
        (CANCELLED, *STATUSES),
        "Money that did not fit the order was sent back; the status stays. Only for merchants that asked for it.",
    ),
    ("test", (COMPLETED,), "The operator tries your address. The order in it never was; do nothing but answer 2xx."),
)
HEADERS = {"webhook-id": "string", "webhook-timestamp": "integer", "webhook-signature": "string"}
UNITS = ((3600, "h"), (60, "min"), (1, "s"))


def _span(seconds: int) -> str:
    size, name = next((size, name) for size, name in UNITS if seconds % size == 0)
    return f"{seconds // size} {name}"


_AGAIN = ", ".join(map(_span, RETRY_SECONDS))
ABOUT = f"""\
Verify the signature over the raw body before you parse it, answer with any 2xx within {TIMEOUT:.0f} s, then work:
delivery is at least once, and callbacks may overtake one another. What failed is tried again {_AGAIN}
after the try before, with the same `webhook-id` and the same body.
"""
ANSWERS = {
    "2XX": {"description": "Delivered; the body of the answer does not matter."},
    "410": {"description": "Nothing more of this callback comes: it is dead at once."},
    "default": {"description": "Failed, as no answer in time and a redirect are: it is tried again."},
}


def _header(name: str, kind: str) -> dict[str, Any]:
    meaning = meaning_of(name)
    words = meaning.words()
    about = words.pop("description")
    shape = words | {"type": kind} | meaning.bounds
    return {"name": name, "in": "header", "required": True, "description": about, "schema": shape}


def _of_type(name: str, status: str, others: list[str], order: dict[str, Any]) -> dict[str, Any]:
    """What one type of callback adds to the event: its `type`, and the statuses that its order can have."""
    which = {
        **({"enum": others} if others else {"const": status}),
        "description": "The status that it had." if others else "The status that it reached.",
        "examples": [status],
    }
    return {
        "properties": {
            "type": {"const": name, "description": "What happened.", "examples": [name]},
            "data": {"description": "The order as it was then.", "allOf": [order, {"properties": {"status": which}}]},
        }
    }


def webhooks(converter: OpenAPIConverter, schemas: dict[str, Any]) -> dict[str, Any]:
    """The `webhooks` of the document."""
    event, order = (converter.resolve_nested_schema(schema) for schema in (Event, OrderView))
    example = example_of(event, schemas)
    found = {}
    for name, (status, *others), about in TYPES:
        found[name] = {
            "post": {
                "operationId": f"callback_{name.replace('.', '_')}",
                "summary": about,
                "description": ABOUT,
                "tags": [CALLBACKS],
                "parameters": [_header(*each) for each in HEADERS.items()],
                "requestBody": {
                    "required": True,
                    "content": {
                        JSON: {
                            "schema": {"type": "object", "allOf": [event, _of_type(name, status, others, order)]},
                            "example": example | {"type": name, "data": example["data"] | {"status": status}},
                        }
                    },
                },
                "responses": ANSWERS,
            }
        }
    return found
