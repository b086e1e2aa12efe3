"""Values that do not belong on a command line, where the shell's history and the list of processes keep them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click


def read(text: str, what: str) -> str:
    """The text itself, the contents of FILE for @FILE, or a line of standard input for `-`.

    Raises:
        ValueError: the file cannot be read. Its name is not repeated: it may be a password that begins with @.
    """
    if text == "-":
        return sys.stdin.readline().strip()
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).expanduser().read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise ValueError(f"the file for {what} can't be read: {reason}") from None


class Sensitive(click.ParamType[Any]):
    """A text that may also be @FILE, or - for standard input."""

    name = "text|@file|-"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Read it, once."""
        try:
            return read(str(value), param.opts[0] if param else self.name)
        except ValueError as error:
            self.fail(str(error), param, ctx)


SENSITIVE = Sensitive()
