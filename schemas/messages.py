"""Messages about a request's fields: English texts, translated when the response is made."""

from __future__ import annotations

from typing import Any

from marshmallow.exceptions import SCHEMA

from runtime.texts import N_ as N_

# marshmallow's own texts.
MISSING, UNKNOWN = N_("Missing data for required field."), N_("Unknown field.")
MARSHMALLOW = (MISSING, UNKNOWN, N_("Invalid input type."), N_("Not a valid email address."))


def flat(messages: Any, path: str = "") -> dict[str, list[str]]:
    """Return marshmallow's nested messages by dotted path, as in signing; those about a whole body have the path ""."""
    if not isinstance(messages, dict):
        return {path: messages}
    found: dict[str, list[str]] = {}
    for name, inner in messages.items():
        own = path if name == SCHEMA else f"{path}.{name}" if path else str(name)
        found.update(flat(inner, own))
    return found


class Message(str):
    """An English message with values; `text % values` in another language is the same message."""

    text: str
    values: dict[str, Any]

    def __new__(cls, text: str, /, **values: Any) -> Message:
        """Insert the values into the text."""
        made = super().__new__(cls, text % values)
        made.text, made.values = text, values
        return made
