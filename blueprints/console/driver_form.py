"""Form fields for the config of a driver or a destination, generated from its schema: a new one needs no code here.

Secrets are never sent to the browser. The page shows whether one is set, and an empty field keeps it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flask_babel import gettext
from flask_wtf import FlaskForm
from flask_wtf.file import FileField
from marshmallow import Schema, fields, missing
from wtforms import BooleanField, Field, PasswordField, SelectChoice, SelectField, StringField, TextAreaField, URLField
from wtforms.validators import StopValidation

from blueprints.console.forms import show_errors, translate
from gateways import registry
from gateways.config import Address, Pasted, UpstreamConfig, choices, is_secret

PREFIX = "config_"
NAMED = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}


class SecretArea(TextAreaField):
    """A secret of several lines, which the page never contains."""

    def _value(self) -> str:
        return ""


class Upload(FileField):
    """A file with a key or certificate; `text` is its content."""

    text = ""

    def pre_validate(self, form: Any) -> None:
        """Read the file. Raises StopValidation if it is not text."""
        try:
            self.text = self.data.read().decode() if self.data else ""
        except UnicodeDecodeError:
            raise StopValidation(gettext("The file must be text in PEM or base64 format.")) from None


# Form fields by schema field: the first whose condition is true.
KINDS: tuple[tuple[Callable[[fields.Field[Any]], Any], type[Field]], ...] = (
    (lambda spec: isinstance(spec, fields.Boolean), BooleanField),
    (choices, SelectField),
    (lambda spec: isinstance(spec, Pasted) and is_secret(spec), SecretArea),
    (lambda spec: isinstance(spec, Pasted), TextAreaField),
    (is_secret, PasswordField),
    (lambda spec: isinstance(spec, Address), URLField),
    (lambda spec: True, StringField),
)


@dataclass(frozen=True)
class Row:
    """One config field on the page, with its hint and its controls for a file and for removal.

    `is_set`: a secret is stored. `when`: show the field only if the choice with this id has this value. `more`: rarely
    changed, so the field is folded, unless its value `is_changed` or invalid.
    """

    entry: Field
    hint: str
    file: Field | None
    remove: Field | None
    is_set: bool
    when: tuple[str, str] | None
    more: bool
    is_changed: bool


Source = str | type[Schema]  # a driver's name, or the schema of another config


def _schema_fields(driver: Source) -> dict[str, fields.Field[Any]]:
    """Return the config fields in the driver's order; those shared by all upstreams come last."""
    schema = registry.DRIVERS[driver].config_schema if isinstance(driver, str) else driver
    found = dict(schema().fields)
    return {name: field for name, field in found.items() if name not in UpstreamConfig._declared_fields} | found


def _default(spec: fields.Field[Any]) -> Any:
    return "" if spec.load_default is missing or callable(spec.load_default) else spec.load_default


def _parts(name: str, spec: fields.Field[Any], present: dict[str, Any]) -> dict[str, Any]:
    """Return the form fields for one schema field."""
    kind = next(kind for fits, kind in KINDS if fits(spec))
    options: dict[str, Any] = {"label": translate(spec.metadata.get("label", name)), "render_kw": dict(NAMED)}
    secret = is_secret(spec)
    if kind is SelectField:
        options |= {"choices": [SelectChoice(each, translate(label)) for each, label in choices(spec).items()]}
    if kind is PasswordField:
        options["render_kw"]["autocomplete"] = "new-password"
    if not secret:
        options["default"] = present.get(name, _default(spec))
    if spec.required and not issubclass(kind, TextAreaField) and not (secret and present.get(name)):
        options["render_kw"]["required"] = True
    parts: dict[str, Any] = {name: kind(**options)}
    if isinstance(spec, Pasted):
        parts[f"{name}_file"] = Upload(gettext("or upload a file"))
    if secret and not spec.required and present.get(name) and _default(spec) == spec.load_default:
        parts[f"{name}_remove"] = BooleanField(gettext("Remove current value"))
    return parts


def form_class(base: type[FlaskForm], driver: Source, present: dict[str, Any]) -> type[FlaskForm]:
    """Return `base` with the driver's fields. `present` is the channel's config, {} for a new channel."""
    parts = {
        f"{PREFIX}{name}": field
        for spec_name, spec in _schema_fields(driver).items()
        for name, field in _parts(spec_name, spec, present).items()
    }
    return type(base.__name__, (base,), parts)


def rows(form: FlaskForm, driver: Source, present: dict[str, Any]) -> list[Row]:
    """Return a row for each field of the config."""
    found = []
    for name, spec in _schema_fields(driver).items():
        entry, when = form[PREFIX + name], spec.metadata.get("when")
        is_set = is_secret(spec) and bool(present.get(name))
        row = Row(
            entry=entry,
            hint=translate(spec.metadata.get("hint", "")),
            file=form._fields.get(f"{PREFIX}{name}_file"),
            remove=form._fields.get(f"{PREFIX}{name}_remove"),
            is_set=is_set,
            when=(PREFIX + when[0], when[1]) if when else None,
            more=bool(spec.metadata.get("more")),
            is_changed=is_set or bool(entry.errors) or (entry.data or "") != (_default(spec) or ""),
        )
        found.append(row)
    return found


def changed(form: FlaskForm, driver: Source, present: dict[str, Any]) -> dict[str, Any]:
    """Return the config values that the form changes."""
    specs = _schema_fields(driver)
    given = {name: _typed(form, name, spec) for name, spec in specs.items()}
    return {
        name: value
        for name, value in given.items()
        if value is not None and value != _plain(present.get(name, _default(specs[name])))
    }


def _plain(value: Any) -> Any:
    return value.replace("\r\n", "\n").strip() if isinstance(value, str) else value


def _typed(form: FlaskForm, name: str, spec: fields.Field[Any]) -> Any:
    """Return the entered value; None keeps the stored one."""
    entry = form[PREFIX + name]
    if isinstance(spec, fields.Boolean):
        return bool(entry.data)
    file, remove = (form._fields.get(f"{PREFIX}{name}_{part}") for part in ("file", "remove"))
    if typed := _plain((file.text if file else "") or entry.data or ""):
        return typed
    if remove is not None and remove.data:
        return ""
    if is_secret(spec) or callable(spec.load_default):
        return None
    return None if spec.load_default is missing else spec.load_default


def is_valid(
    form: FlaskForm, driver: Source, present: dict[str, Any], check: Callable[[dict[str, Any]], dict[str, list[str]]]
) -> bool:
    """Return whether all fields are valid, including those of the config; show errors at their fields.

    Args:
        check: returns the errors of a whole config by field.
    """
    is_form_valid = form.validate()
    cleared = {
        f"config.{name}": ["Missing data for required field."]
        for name, spec in _schema_fields(driver).items()
        if spec.required and present.get(name) and not is_secret(spec) and not _typed(form, name, spec)
    }
    has_errors = show_errors(form, cleared | check(present | changed(form, driver, present)))
    return is_form_valid and not has_errors


def changes(given: dict[str, Any], present: dict[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the old and new values of `changed` for the audit log, redacted: a config must not be in a log."""
    before = {name: "(set)" if present.get(name) not in ("", None) else "" for name in given}
    new = {name: "(another)" if before[name] else "(set)" for name in given}
    return before, {name: "" if value == "" else new[name] for name, value in given.items()}
