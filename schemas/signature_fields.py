"""The four parameters that sign a request (docs/signing.md)."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, validate

from schemas.fields import Request, Text, Whole

AUTH = ("api_key", "timestamp", "nonce", "signature")
NONCE = r"[A-Za-z0-9_.-]{8,64}"
LATEST = 10**12 - 1  # twelve digits


def auth_fields(required: bool) -> dict[str, Any]:
    """The fields of the four parameters."""
    return {
        "api_key": Text(required=required),
        "timestamp": Whole(0, LATEST, required=required),
        "nonce": Text(required=required, validate=validate.Regexp(NONCE + r"\Z")),
        "signature": Text(required=required, validate=validate.Regexp(r"[0-9a-f]{64}\Z")),
    }


OptionalAuth = Request.from_dict(auth_fields(required=False), name="OptionalAuth")
OptionalAuth.__doc__ = "The four signing parameters, here or in the query string."


def signed(schema: type[Schema]) -> type[Schema]:
    """Return the schema with the four parameters in addition to its own fields."""
    return schema.from_dict(auth_fields(required=True), name=f"Signed{schema.__name__}")
