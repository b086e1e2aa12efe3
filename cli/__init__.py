"""The commands of operators. Each calls one service, and is imported when it is called."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from itertools import pairwise
from typing import Any

import click
from flask.cli import AppGroup

from cli.help import translated

COMMANDS = {
    "to-do": "cli.to_do:to_do",
    "merchant": "cli.merchants:merchant",
    "account": "cli.merchants:account",
    "channel": "cli.channels:channel",
    "group": "cli.groups:group",
    "epay": "cli.epay:epay",
    "order": "cli.orders:order",
    "refund": "cli.refunds:refund",
    "callback": "cli.callbacks:callback",
    "notification": "cli.notifications:notification",
    "ledger": "cli.ledger:ledger",
    "earnings": "cli.earnings:earnings",
    "operator": "cli.operators:operator",
    "db": "cli.database:db",
    "vault": "cli.vault:vault",
    "privacy": "cli.privacy:privacy_commands",
    "reconcile": "cli.reconcile:reconcile",
    "bill": "cli.bills:bill",
    "difference": "cli.bills:difference",
    "sign": "cli.sign:sign",
    "seed": "cli.database:seed",
    "demo-curl": "cli.database:demo_curl",
}
SERVING = {"serve": "serving.serve:serve", "demo": "serving.serve:serve_demo"}


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
        self.lazy, self.aliases = lazy or {}, aliases or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, sorted, and import nothing."""
        return sorted({*super().list_commands(ctx), *self.lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with its help in the chosen language, and import it at first use."""
        cmd_name = self.aliases.get(cmd_name, cmd_name)
        if cmd_name in self.lazy and cmd_name not in self.commands:
            module, _, attribute = self.lazy[cmd_name].partition(":")
            self.add_command(getattr(import_module(module), attribute), cmd_name)
        command = super().get_command(ctx, cmd_name)
        return command and translated(command)


def commands() -> LazyGroup:
    """Return all commands: these, and those that serve."""
    return LazyGroup(lazy=COMMANDS | SERVING)


def needs_no_blueprints() -> bool:
    """Return whether this process runs one of these commands, which serve nothing."""
    return click.get_current_context(silent=True) is not None and not COMMANDS.keys().isdisjoint(sys.argv[1:])


def needs_no_database() -> bool:
    """Return whether this is `tillbook db restore`, which works without a usable database."""
    return ("db", "restore") in pairwise(sys.argv)


def is_demo() -> bool:
    """Return whether this is `tillbook demo`, which serves in demo mode whatever the setting."""
    return sys.argv[1:2] == ["demo"]
