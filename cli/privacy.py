"""`tillbook privacy`: export or erase the personal data of one person."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any

import click

from cli.orders import everything
from cli.output import Commands, options, said, table, words
from cli.sensitive import SENSITIVE
from services.console import privacy, timeline
from services.deposits import attempts
from services.errors import N_, OperatorError

privacy_commands = Commands("privacy", help="Personal data of one person: export, erase.")


_of_a_person = options(
    click.argument("numbers", metavar="[ORDER_NOS]", nargs=-1),
    click.option("--name", default="", type=SENSITIVE, help="Exact name. @FILE or - reads a file or standard input."),
    click.option(
        "--card", default="", type=SENSITIVE, help="Exact card number. @FILE or - reads a file or standard input."
    ),
)


@privacy_commands.command("export")
@_of_a_person
def export(numbers: tuple[str, ...], name: str, card: str) -> None:
    """Print the data of one person as JSON.

    It includes the orders ORDER_NOS, and the orders and payout accounts with this name or card number.
    """

    def whole(order_no: str) -> dict[str, Any]:
        order = privacy.export(order_no)
        tried = [{"browser": each.browser, "at": each.triedtime} for each in attempts.all_of(order)]
        return everything(order) | {"attempts": tried, "personal_data": timeline.personal_values(order)}

    orders = map(whole, privacy.find(numbers, name, card))
    between = "["
    for each in chain(orders, map(privacy.export_account, privacy.accounts(name, card))):
        click.echo(f"{between}\n{json.dumps(each, ensure_ascii=False, indent=2)}", nl=False)
        between = ","
    click.echo("[]" if between == "[" else "\n]")


@privacy_commands.command("erase")
@_of_a_person
@click.option("--yes", is_flag=True, help="Erase. Default: only show what would be erased.")
def erase(numbers: tuple[str, ...], name: str, card: str, yes: bool) -> None:
    """Erase the names, certificates and cards of one person.

    It applies to the orders ORDER_NOS, and to the orders and payout accounts with this name or card number. If one of
    the orders is still open, nothing is erased. A merchant's current payout account is kept.
    """
    found, on_file = privacy.find(numbers, name, card), privacy.accounts(name, card)
    if yes:
        text = N_("personal data erased in %(count)s of %(total)s orders")
        click.echo(said(text, count=privacy.erase(found, on_file), total=len(found)))
    for account in on_file:
        state = N_("erased") if yes else N_("would be erased")
        if privacy.is_current(account):
            state = N_("kept, because withdrawals go to it. First add another one with `tillbook account add`")
        text = N_("payout account %(id)s of %(key)s: %(state)s")
        click.echo(said(text, id=account.id, key=account.merchant.key, state=said(state)))
    if yes:
        return
    rows = privacy.survey(found)
    table([row | {"refused": words().known(row["refused"])} for row in rows], nothing=N_("no orders found"))
    if any(row["refused"] for row in rows):
        raise OperatorError(N_("the personal data of open orders cannot be erased"))
    if rows or on_file:
        click.echo(said(N_("nothing erased: repeat with --yes to erase this")))
