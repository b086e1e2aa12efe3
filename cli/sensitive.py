"""Sensitive values, which must not appear in the shell's history or the list of processes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from cli.output import said
from services.errors import N_, OperatorError


def read(text: str, what: str) -> str:
    """Return the text itself, the contents of FILE for @FILE, or a line of standard input for `-`.

    Raises:
        OperatorError: the file cannot be read. The message omits its name, which may be a password that begins with @.
    """
    if text == "-":
        return sys.stdin.readline().strip()
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).expanduser().read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or said(N_("is not UTF-8 text"))
        raise OperatorError(N_("the file for %(what)s cannot be read: %(reason)s"), what=what, reason=reason) from None


class Sensitive(click.ParamType[Any]):
    """A text, @FILE, or - for standard input."""

    name = "text|@file|-"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Read the value once."""
        try:
            return read(str(value), param.opts[0] if param else self.name)
        except OperatorError as error:
            self.fail(said(error.text, **error.values), param, ctx)


SENSITIVE = Sensitive()
