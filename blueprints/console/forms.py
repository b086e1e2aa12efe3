"""What the console's forms are made of: texts that the contract's fields read, and refusals at the fields they name."""

from __future__ import annotations

from typing import Any

from flask import flash
from flask_babel import gettext
from flask_wtf import FlaskForm
from marshmallow import ValidationError, fields
from wtforms import BooleanField, Field, SelectMultipleField, StringField
from wtforms.validators import StopValidation

from blueprints.console import labels
from services.errors import N_, OperatorError

# What marshmallow itself says.
MESSAGES = (
    N_("Missing data for required field."),
    N_("Must be a decimal number."),
    N_("Must be greater than 0."),
    N_("Must have at most two decimals."),
    N_("Is too large."),
    N_("Must be an integer."),
    N_("Must be a percentage with at most two decimals."),
    N_("Must be a percentage from 0 to 100."),
    N_("Must be a percentage from -100 to 100."),
)


def said(text: str, /, **values: Any) -> str:
    """A service's text in the reader's language."""
    return gettext(text, **values) if text else ""


def told(refusal: OperatorError) -> str:
    """Why something can't be done, in the reader's language."""
    return said(refusal.text, **_values(refusal))


def _values(refusal: OperatorError) -> dict[str, str]:
    return {name: labels.inside(name, value) for name, value in refusal.values.items()}


def number(text: Any) -> int:
    """The number in a hidden field; -1, which no row has, where there is none."""
    typed = str(text)
    return int(typed) if typed.isdecimal() and len(typed) < 20 else -1


class Read(StringField):
    """A text that a field of the contract reads: `data` is what was typed, `value` what it means."""

    def __init__(self, label: Any, reader: fields.Field, **options: Any):
        super().__init__(label, **options)
        self.reader, self.value = reader, None

    def pre_validate(self, form: Any) -> None:
        """Raises StopValidation, with the contract's own words."""
        try:
            self.value = self.reader.deserialize((self.data or "").strip())
        except ValidationError as error:
            raise StopValidation(" ".join(said(text) for text in error.messages)) from None


class Several(SelectMultipleField):
    """Boxes to tick, one for each choice."""


def text_of(field: Field) -> str:
    """What a field says, for the audit log."""
    if isinstance(field, BooleanField):
        return "yes" if field.data else "no"
    if isinstance(field, SelectMultipleField):
        return ",".join(str(each) for each in field.data or ())
    return (field.data or "").strip()


def texts(form: FlaskForm, names: tuple[str, ...]) -> dict[str, str]:
    """What these fields of a form say, for the audit log."""
    return {name: text_of(form[name]) for name in names}


def blame(form: FlaskForm, wrong: dict[str, list[str]], **values: str) -> bool:
    """Put what a service says of fields (`OperatorError.wrong`) where they are in a form; False where none is there."""
    found = False
    for name, messages in wrong.items():
        field = form._fields.get(name.replace(".", "_"))
        if field is not None:
            field.errors = [*field.errors, *(said(text, **values) for text in messages)]
            found = True
    return found


def refuse(form: FlaskForm, refusal: OperatorError) -> None:
    """Show a refusal: at the fields that it names, else above the page."""
    if not blame(form, refusal.wrong, **_values(refusal)):
        flash(told(refusal), "bad")
