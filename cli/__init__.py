"""The commands of operators. Each calls one service, and is imported when it is called."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import click

from cli.lazy import LazyGroup

COMMANDS = {
    "to-do": "cli.to_do:to_do",
    "merchant": "cli.merchants:merchant",
    "account": "cli.merchants:account",
    "channel": "cli.channels:channel",
    "epay": "cli.epay:epay",
    "order": "cli.orders:order",
    "callback": "cli.callbacks:callback",
    "notification": "cli.notifications:notification",
    "ledger": "cli.ledger:ledger",
    "operator": "cli.operators:operator",
    "db": "cli.database:db",
    "vault": "cli.vault:vault",
    "privacy": "cli.privacy:privacy_commands",
    "reconcile": "cli.reconcile:reconcile",
    "sign": "cli.sign:sign",
    "seed": "cli.database:seed",
    "demo-curl": "cli.database:demo_curl",
}
SERVING = {"serve": "serving.serve:serve", "demo": "serving.serve:serve_demo"}


def commands() -> LazyGroup:
    """Return all commands: these, and those that serve."""
    return LazyGroup(lazy=COMMANDS | SERVING)


def is_all_that_runs(arguments: Sequence[str]) -> bool:
    """Return whether this process runs one of these commands, which need no blueprints.

    Args:
        arguments: `sys.argv`.
    """
    return click.get_current_context(silent=True) is not None and not COMMANDS.keys().isdisjoint(arguments[1:])


def needs_no_database(arguments: Sequence[str]) -> bool:
    """Return whether this is `tillbook db restore`, which works without a usable database."""
    return ("db", "restore") in pairwise(arguments)


def is_demo(arguments: Sequence[str]) -> bool:
    """Return whether this is `tillbook demo`, which serves in demo mode whatever the setting."""
    return list(arguments[1:2]) == ["demo"]
