"""The command `tillbook`: its help lists common tasks first, then all commands."""

from __future__ import annotations

from collections.abc import Callable
from gettext import gettext

import click
from flask import Flask
from flask.cli import FlaskGroup

import cli
from cli.help import Context
from runtime.settings import NAME, VERSION

# By heading: a command without its first word, and what it does.
COMMON_TASKS = {
    "To do": {
        "to-do": "See what needs attention",
        "order list --exceptions": "List payments that need a decision",
        "callback list --state dead": "List callbacks that failed",
    },
    "Orders": {
        "order show ORDER_NO": "See an order's timeline and money",
        "order paid ORDER_NO": "Confirm a payment or a payout",
        "order not-received ORDER_NO": "Cancel a claimed deposit whose money was not received",
        "order approve ORDER_NO": "Approve a withdrawal",
        "order reject ORDER_NO --reason TEXT": "Reject a withdrawal",
        "refund create ORDER_NO AMOUNT": "Refund a deposit",
    },
    "Setup": {
        "merchant add KEY": "Add a merchant",
        "channel add --help": "Add a payment channel",
        "channel link CHANNEL_ID KEY": "Let a merchant use a channel",
        "operator add NAME": "Add a console account",
    },
    "Maintenance": {
        "db backup FILE": "Back up the database",
        "db migrate": "Upgrade the database",
        "ledger verify": "Check the ledger",
        "reconcile CHANNEL_ID FILE": "Compare a channel's statement",
    },
}


class Tillbook(FlaskGroup):
    """The service's commands, without those that `flask` adds. The help opens no database."""

    context_class = Context

    def __init__(self, create_app: Callable[[], Flask]):
        super().__init__(
            name="tillbook",
            help=gettext("Run and operate Tillbook, the merchant order service."),
            epilog=gettext("Run `tillbook COMMAND --help` for a command's arguments and options."),
            subcommand_metavar="COMMAND [ARGUMENTS]",
            create_app=create_app,
            add_default_commands=False,
            add_version_option=False,
            load_dotenv=False,
        )
        self.params = []  # Flask's own, such as --app and --debug
        click.version_option(VERSION, prog_name=NAME, message="%(prog)s %(version)s")(self)
        self.listed = cli.commands()

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, sorted."""
        return self.listed.list_commands(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the common tasks, then all commands."""
        width = max(len(typed) for tasks in COMMON_TASKS.values() for typed in tasks)
        with formatter.section(gettext("Common tasks")):
            for heading, tasks in COMMON_TASKS.items():
                with formatter.section(gettext(heading)):
                    rows = [(f"tillbook {typed:{width}}", gettext(does)) for typed, does in tasks.items()]
                    formatter.write_dl(rows, col_max=80)
        commands = [(name, self.listed.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section(gettext("All commands")):
            formatter.write_dl([(name, command.get_short_help_str(200)) for name, command in commands if command])
