"""`orders privacy`: export or erase what is stored about one person."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any

import click

from cli.orders import everything
from cli.output import Commands, options, table
from cli.sensitive import SENSITIVE
from services.console import privacy, timeline
from services.errors import OperatorError
from services.orders import attempts

privacy_commands = Commands("privacy", help="Personal data of one person: export it, erase it.")


_of_a_person = options(
    click.argument("numbers", metavar="[ORDER_NOS]", nargs=-1),
    click.option("--name", default="", type=SENSITIVE, help="Exact name, @FILE, or - for standard input."),
    click.option("--card", default="", type=SENSITIVE, help="Exact card number, @FILE, or - for standard input."),
)


@privacy_commands.command("export")
@_of_a_person
def export(numbers: tuple[str, ...], name: str, card: str) -> None:
    """Print what is stored about one person as JSON.

    That is about the orders ORDER_NOS, and about orders and accounts on file with this name or card number.
    """
    found = map(_whole, privacy.find(numbers, name, card))
    between = "["
    for each in chain(found, map(privacy.export_account, privacy.accounts(name, card))):
        click.echo(f"{between}\n{json.dumps(each, ensure_ascii=False, indent=2)}", nl=False)
        between = ","
    click.echo("[]" if between == "[" else "\n]")


def _whole(order_no: str) -> dict[str, Any]:
    order = privacy.export(order_no)
    tried = [{"browser": each.browser, "at": each.triedtime} for each in attempts.all_of(order)]
    return everything(order) | {"attempts": tried, "personal_data": timeline.personal_values(order)}


@privacy_commands.command("erase")
@_of_a_person
@click.option("--yes", is_flag=True, help="Erase. Without it, only show what would be erased.")
def erase(numbers: tuple[str, ...], name: str, card: str, yes: bool) -> None:
    """Erase names, certificates and cards of one person.

    That is of the orders ORDER_NOS, and of orders and accounts on file with this name or card number. Orders that have
    not ended are refused, and then nothing is erased. The account that a merchant's withdrawals go to now is kept.
    """
    found, on_file = privacy.find(numbers, name, card), privacy.accounts(name, card)
    if yes:
        click.echo(f"personal data erased: {privacy.erase(found, on_file)} of {len(found)} orders")
    for account in on_file:
        key, state = account.merchant.key, "erased" if yes else "is erased"
        if privacy.is_current(account):
            state = "is kept: withdrawals go to it until `orders account add` puts another one on file"
        click.echo(f"account {account.id} on file of {key}: {state}")
    if yes:
        return
    rows = privacy.survey(found)
    table(rows, nothing="no orders found")
    if any(row["refused"] for row in rows):
        raise OperatorError("orders that have not ended cannot be erased")
    if rows or on_file:
        click.echo("nothing was erased yet: repeat the command with --yes")
