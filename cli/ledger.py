"""`orders ledger`: balances, the proof that they are right, and corrections by hand."""

from __future__ import annotations

import sys
import time
from typing import IO, Any

import click
from peewee import DatabaseError

from cli.output import ROW_ID, Commands, YuanType, json_option, show, table
from models.tables.ledger import AVAILABLE, HELD
from models.tables.merchant import Merchant
from schemas.views import hundredths
from services.channels import channel_setup
from services.ledger import accounts as books
from services.ledger import integrity, scheduled_checks
from services.merchants import merchant_setup
from services.sandbox import removal

ledger = Commands("ledger", help="See balances, check the ledger, correct a balance.", aliases={"heads": "checkpoints"})


@ledger.command("balances")
@json_option
def balances(as_json: bool) -> None:
    """Show each merchant's balances and the operator's own. JSON: in fen."""

    def tell(merchants: dict[str, dict[str, int]]) -> None:
        table(
            [{"merchant": key} | {kind: hundredths(fen) for kind, fen in row.items()} for key, row in merchants.items()]
        )
        click.echo()
        table([{"operator": name, "yuan": hundredths(fen)} for name, fen in books.operator_balances().items()])

    show(books.balances(), as_json, tell)


@ledger.command("checkpoints")
@json_option
def checkpoints(as_json: bool) -> None:
    """Show how far each account's chain of entries goes. Keep the JSON elsewhere, for `verify --against`."""

    def tell(rows: list[dict[str, Any]]) -> None:
        keys = dict(Merchant.select(Merchant.id, Merchant.key).tuples())
        merchants = [keys.get(row["owner"]) if row["kind"] in (AVAILABLE, HELD) else None for row in rows]
        table([row | {"merchant": key} for row, key in zip(rows, merchants, strict=True)])

    show(integrity.head_rows(), as_json, tell)


@ledger.command("verify")
@click.option("--against", type=click.File(encoding="utf-8"), help="Heads that were kept: JSON of `ledger heads`.")
@json_option
def verify(against: IO[str] | None, as_json: bool) -> None:
    """Recompute every balance and every entry's hash. Status 1 where anything is off. It is kept on record."""
    kept = integrity.read_heads(against) if against else None
    began = time.monotonic()
    with click.progressbar(
        integrity.verify(kept), length=len(integrity.checks(kept)), label="Checking", file=sys.stderr
    ) as checks:
        found = dict(checks)

    def tell(found: dict[str, list[str]]) -> None:
        for name, off in found.items():
            click.echo(f"{'OFF' if off else 'ok '}  {name}")
            for line in off:
                click.echo(f"       {line}")

    show(found, as_json, tell)
    try:
        scheduled_checks.record("command", found, time.monotonic() - began)
    except DatabaseError as error:  # of a database that can't be written to, say: what was found is said all the same
        click.echo(f"not put on record: {error}", err=True)
    sys.exit(1 if any(found.values()) else 0)


@ledger.command("adjust", context_settings={"ignore_unknown_options": True})
@click.argument("key")
@click.argument("amount", type=YuanType(negative=True))
@click.option("--reason", required=True, help="Stands in the ledger.")
@click.option(
    "--channel", "channel_id", type=ROW_ID, help="The money came or went through this channel; else it is yours."
)
@click.option("--again", is_flag=True, help="Adjust although the same was done in the last 10 minutes.")
def adjust(key: str, amount: int, reason: str, channel_id: int | None, again: bool) -> None:
    """Add AMOUNT yuan to merchant KEY's available balance. A negative AMOUNT takes it.

    The same amount for the same reason is refused for 10 minutes, so that a repeated command does not count twice.
    """
    through: Any = channel_setup.find_channel(channel_id) if channel_id is not None else None
    books.adjust(merchant_setup.find_merchant(key), amount, reason, channel=through, once=not again)
    click.echo(f"{key} has {hundredths(books.balances()[key]['available'])} available")


@ledger.command("remove-sandbox")
@click.argument("key", required=False)
@click.option("--apply", is_flag=True, help="Post the reversals. Without it nothing is changed.")
@click.option("--book-loss", is_flag=True, help="Take what the balance does not cover from your own fees.")
@json_option
def remove_sandbox(key: str | None, apply: bool, book_loss: bool, as_json: bool) -> None:
    """Reverse what sandbox channels posted. For merchant KEY, or for all merchants. JSON: in fen.

    Their open sandbox orders are cancelled. Without --apply it shows what would be posted. Each merchant is one
    transaction; running it again posts nothing.
    """
    merchants = removal.affected(merchant_setup.find_merchant(key) if key else None)
    if apply:
        removals = [removal.remove(merchant, book_loss=book_loss) for merchant in merchants]
    else:
        removals = [removal.preview(merchant) for merchant in merchants]
    rows = [
        {"merchant": each.key, "account": kind, "owner": owner, "fen": fen, "orders": each.orders, "loss": each.loss}
        for each in removals
        for (kind, owner), fen in (each.lines or {("available", 0): 0}).items()
    ]

    def tell(rows: list[dict[str, Any]]) -> None:
        table([row | {"fen": hundredths(row["fen"]), "loss": hundredths(row["loss"])} for row in rows])
        posted = "posted" if apply else "not posted yet: --apply posts it"
        click.echo(posted if rows else "nothing to remove")

    show(rows, as_json, tell)
