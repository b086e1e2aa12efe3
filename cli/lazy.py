"""Commands that are imported when they are called, so that one command does not wait for what only others need."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click
from flask.cli import AppGroup


class LazyGroup(AppGroup):
    """A group that also has the commands of `lazy`: by name, each as `module:attribute`."""

    def __init__(self, *arguments: Any, lazy: Mapping[str, str] | None = None, **named: Any):
        super().__init__(*arguments, **named)
        self.lazy = dict(lazy or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, sorted; nothing is imported."""
        return sorted({*super().list_commands(ctx), *self.lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported if it has not been."""
        if cmd_name in self.lazy and cmd_name not in self.commands:
            module, _, attribute = self.lazy[cmd_name].partition(":")
            self.add_command(getattr(import_module(module), attribute), cmd_name)
        return super().get_command(ctx, cmd_name)
