"""Sensitive values, which must not appear in the shell's history or the list of processes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click


def read(text: str, what: str) -> str:
    """Return the text itself, the contents of FILE for @FILE, or a line of standard input for `-`.

    Raises:
        ValueError: the file cannot be read. The message omits its name, which may be a password that begins with @.
    """
    if text == "-":
        return sys.stdin.readline().strip()
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).expanduser().read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise ValueError(f"the file for {what} cannot be read: {reason}") from None


class Sensitive(click.ParamType[Any]):
    """A text, @FILE, or - for standard input."""

    name = "text|@file|-"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Read the value once."""
        try:
            return read(str(value), param.opts[0] if param else self.name)
        except ValueError as error:
            self.fail(str(error), param, ctx)


SENSITIVE = Sensitive()
