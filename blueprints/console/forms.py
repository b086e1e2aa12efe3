"""Building blocks of forms: fields validated by a schema, and a service's refusals at their fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from flask import abort, flash, render_template
from flask_babel import gettext
from flask_wtf import FlaskForm
from marshmallow import ValidationError, fields
from wtforms import BooleanField, Field, SelectMultipleField, StringField
from wtforms.validators import StopValidation

from blueprints.api.envelope import translated
from blueprints.console import labels
from models.db.base import LARGEST_ID
from services.errors import OperatorError

K = TypeVar("K")
T = TypeVar("T")


def translate(text: str, /, **values: Any) -> str:
    """Translate a service's text to the reader's language; empty for an empty text."""
    if not text:
        return ""
    return gettext(text, **values) if values else translated(text)


def message_of(refusal: OperatorError) -> str:
    """Return the reason of a refusal in the reader's language."""
    return translate(refusal.text, **_values(refusal))


def _values(refusal: OperatorError) -> dict[str, str]:
    return {name: labels.name_inside(name, value) for name, value in refusal.values.items()}


def row_id(text: Any) -> int:
    """Return the id in a hidden field; -1, which no row has, if it is not valid."""
    typed = str(text)
    return int(typed) if typed.isdecimal() and len(typed) < 20 and int(typed) <= LARGEST_ID else -1


class SchemaField(StringField):
    """A text field validated by a marshmallow field: `data` is the text, `value` the converted value."""

    def __init__(self, label: Any, spec: fields.Field[Any], **options: Any):
        super().__init__(label, **options)
        self.spec = spec
        self.value: Any = None

    def pre_validate(self, form: Any) -> None:
        """Convert the text. Raises StopValidation with the schema's message."""
        try:
            self.value = self.spec.deserialize((self.data or "").strip())
        except ValidationError as error:
            raise StopValidation(" ".join(map(translated, error.messages))) from None


class Checkboxes(SelectMultipleField):
    """One checkbox for each choice."""


def text_of(field: Field) -> str:
    """Return a field's value as text, for the audit log."""
    if isinstance(field, BooleanField):
        return "yes" if field.data else "no"
    if isinstance(field, SelectMultipleField):
        return ",".join(str(each) for each in field.data or ())
    return (field.data or "").strip()


def texts(form: FlaskForm, names: tuple[str, ...]) -> dict[str, str]:
    """Return the values of these fields as texts, for the audit log."""
    return {name: text_of(form[name]) for name in names}


def show_errors(form: FlaskForm, wrong: dict[str, list[str]], **values: str) -> bool:
    """Add errors by field (`OperatorError.wrong`) to a form. Return whether the form has any of the fields."""
    found = False
    for name, messages in wrong.items():
        field = form._fields.get(name.replace(".", "_"))
        if field is not None:
            field.errors = [*field.errors, *(translate(text, **values) for text in messages)]
            found = True
    return found


def show_refusal(form: FlaskForm, refusal: OperatorError) -> None:
    """Show a refusal at the fields that it names, otherwise above the page."""
    if not show_errors(form, refusal.wrong, **_values(refusal)):
        flash(message_of(refusal), "bad")


def accepted(form: FlaskForm, do: Callable[[], T]) -> T | None:
    """Return the result of `do` if the form was sent and is valid. Otherwise show the errors and return None."""
    if form.validate_on_submit():
        try:
            return do()
        except OperatorError as refusal:
            show_refusal(form, refusal)
    return None


def form_page(template: str, form: FlaskForm, **facts: Any) -> tuple[str, int]:
    """Render a page with a form; the status is 422 if the form has errors, otherwise 200."""
    return render_template(template, form=form, **facts), 422 if form.errors else 200


def find_or_404(find: Callable[[K], T], key: K) -> T:
    """Return the record that `find` returns for the key in the address. Raises NotFound."""
    try:
        return find(key)
    except OperatorError:
        abort(404)
