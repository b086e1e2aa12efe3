"""Command groups that import a command when it is called, so that no command waits for the imports of others."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click
from flask.cli import AppGroup


class LazyGroup(AppGroup):
    """A group that imports the commands of `lazy`: by name, each as `module:attribute`.

    `aliases` are earlier names, which scripts may still use, and the present ones. The help does not list them.
    """

    def __init__(
        self,
        *arguments: Any,
        lazy: Mapping[str, str] | None = None,
        aliases: Mapping[str, str] | None = None,
        **named: Any,
    ):
        super().__init__(*arguments, **named)
        self.lazy = dict(lazy or {})
        self.aliases = dict(aliases or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, sorted, and import nothing."""
        return sorted({*super().list_commands(ctx), *self.lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command, and import it at first use."""
        cmd_name = self.aliases.get(cmd_name, cmd_name)
        if cmd_name in self.lazy and cmd_name not in self.commands:
            module, _, attribute = self.lazy[cmd_name].partition(":")
            self.add_command(getattr(import_module(module), attribute), cmd_name)
        return super().get_command(ctx, cmd_name)
