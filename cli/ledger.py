"""`tillbook ledger`: balances, the integrity check, and manual corrections."""

from __future__ import annotations

import sys
import time
from typing import IO, Any

import click
from peewee import DatabaseError

from cli.output import ROW_ID, Commands, json_option, said, show, table, yuan
from models.tables.account_balance import BILL, BY_OPERATOR
from models.tables.ledger import AVAILABLE, HELD
from models.tables.merchant import Merchant
from runtime.money import grouped, hundredths
from runtime.texts import N_
from services.channels import channel_setup
from services.console import timeline
from services.ledger import accounts as books
from services.ledger import integrity, scheduled_checks
from services.merchants import merchant_setup
from services.sandbox import removal
from services.security import audit
from services.statements import account_balances
from services.statements.account_balances import Account

SOURCES = {BILL: N_("statement of the channel"), BY_OPERATOR: N_("operator")}

ledger = Commands("ledger", help="See balances, check the ledger, correct a balance.", aliases={"heads": "checkpoints"})


@ledger.command("balances")
@json_option
def balances(as_json: bool) -> None:
    """Show each merchant's balances and the operator's own. --json shows amounts in fen."""

    def tell(merchants: dict[str, dict[str, int]]) -> None:
        table(
            [{"merchant": key} | {kind: hundredths(fen) for kind, fen in row.items()} for key, row in merchants.items()]
        )
        sheet = books.sheet()
        own = {said(N_("fee income")): sheet.fees, said(N_("channel cost")): -sheet.commission}
        for channel, fen in sheet.channels:
            text = N_("payable to channel %(id)s") if fen > 0 else N_("receivable from channel %(id)s")
            own[said(text, id=channel.id)] = abs(fen)
        click.echo()
        table([{"operator": name, "yuan": hundredths(fen)} for name, fen in own.items()])

    show(books.balances(), as_json, tell)


def _account(row: Account) -> dict[str, Any]:
    by_books, last = row.expected, row.last
    return {
        "channel": row.channel.id,
        "name": row.channel.name,
        "booked": by_books.booked,
        "uncredited": by_books.uncredited,
        "questioned": by_books.questioned,
        "under_way": by_books.under_way,
        "expected": by_books.total,
        "uncounted": by_books.unknown,
        "day": last and last.day,
        "source": last and last.source,
        "balance": last and last.amount,
        "difference": last and last.difference,
        "unexplained": last and row.unexplained(last),
        "since": row.since,
    }


@ledger.command("account-balances")
@json_option
def show_accounts(as_json: bool) -> None:
    """Show what each channel's account should hold, and what the channel says. --json shows amounts in fen.

    `expected` is the sum of `booked`, `uncredited` (received, not credited yet), `questioned` (in open exceptions) and
    `under_way` (payouts and refunds without a result). `uncounted` open exceptions have no known amount. `balance` is
    the channel's latest figure. `unexplained` is the part of its `difference` to the books of that day that is not
    explained, and `since` the day of the first such figure.
    """
    amounts = ("booked", "uncredited", "questioned", "under_way", "expected", "balance", "difference", "unexplained")

    def tell(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            row |= {name: hundredths(row[name]) for name in amounts if row[name] is not None}
            row["source"] = row["source"] and said(SOURCES[row["source"]])
        table(rows)

    show([_account(row) for row in account_balances.accounts()], as_json, tell)


@ledger.command("record-balance", context_settings={"ignore_unknown_options": True})
@click.argument("channel_id", metavar="CHANNEL", type=ROW_ID)
@click.argument("amount", type=yuan(zero=True, negative=True, plain=True))
@click.option("--day", default="", help="Day in China at whose end the account held it. Default: today, until now.")
@click.option("--note", default="", help="Explanation of the difference to the books.")
def record_balance(channel_id: int, amount: int, day: str, note: str) -> None:
    """Record that the account of channel CHANNEL holds AMOUNT yuan by the channel's own figures.

    With --note, the difference to the books is explained, and later comparisons start from it. To explain a figure of
    the channel's flow of funds, repeat its day and amount with --note.
    """
    channel, on = channel_setup.find_with_account(channel_id), account_balances.day_of(day)
    audit.act(
        audit.HERE,
        "record account balance",
        "channel",
        str(channel_id),
        lambda: account_balances.record(channel, on, amount, BY_OPERATOR, "operator", note),
        f"day: {on}; amount: {grouped(amount)}; note: {note.strip() or '-'}",
    )
    account = account_balances.account(channel)
    figure = next(each for each in account.figures if each.day == str(on))
    text = N_("difference: %(difference)s, unexplained: %(unexplained)s")
    open_part = grouped(account.unexplained(figure))
    click.echo(said(text, difference=grouped(figure.difference), unexplained=open_part))


@ledger.command("checkpoints")
@json_option
def checkpoints(as_json: bool) -> None:
    """Show the ledger checkpoints.

    They are the last entry and hash of each account.

    Store the JSON on another machine. `verify --against` then detects a rewritten ledger.
    """

    def tell(rows: list[dict[str, Any]]) -> None:
        keys = dict(Merchant.select(Merchant.id, Merchant.key).tuples())
        merchants = [keys.get(row["owner"]) if row["kind"] in (AVAILABLE, HELD) else None for row in rows]
        table([row | {"merchant": key} for row, key in zip(rows, merchants, strict=True)])

    show(integrity.head_rows(), as_json, tell)


@ledger.command("verify")
@click.option(
    "--against",
    type=click.File(encoding="utf-8"),
    help="Also compare with checkpoints: a file from `tillbook ledger checkpoints --json`.",
)
@json_option
def verify(against: IO[str] | None, as_json: bool) -> None:
    """Check the ledger: recompute every balance and hash. Exits with status 1 if a check fails.

    The result is recorded and shown in the console.
    """
    kept = integrity.read_heads(against) if against else None
    began = time.monotonic()
    with click.progressbar(
        integrity.verify(kept), length=len(integrity.checks(kept)), label=said(N_("Checking")), file=sys.stderr
    ) as checks:
        found = dict(checks)

    def tell(found: dict[str, list[str]]) -> None:
        for name, off in found.items():
            result = said(N_("FAILED")) if off else said(N_("ok    "))
            click.echo(f"{result}  {said(name)}")
            for line in off:
                click.echo(f"        {line}")

    show(found, as_json, tell)
    try:
        scheduled_checks.record("command", found, time.monotonic() - began)
    except DatabaseError as error:  # such as a read-only database; the result is shown in any case
        click.echo(said(N_("the result could not be recorded: %(error)s"), error=error), err=True)
    sys.exit(1 if any(found.values()) else 0)


@ledger.command("adjust", context_settings={"ignore_unknown_options": True})
@click.argument("key")
@click.argument("amount", type=yuan(negative=True))
@click.option("--reason", required=True, help="Reason. It is recorded in the ledger.")
@click.option(
    "--channel", "channel_id", type=ROW_ID, help="Channel that the money went through. Default: your own money."
)
@click.option("--order", "order_no", metavar="ORDER_NO", help="Order that the adjustment is about.")
@click.option("--again", is_flag=True, help="Repeat an adjustment of the last 10 minutes.")
def adjust(key: str, amount: int, reason: str, channel_id: int | None, order_no: str | None, again: bool) -> None:
    """Add AMOUNT yuan to merchant KEY's available balance. A negative AMOUNT is subtracted.

    The same amount with the same reason is refused for 10 minutes, so that a repeated command does not count twice.
    """
    through: Any = channel_setup.find_usable(channel_id) if channel_id is not None else None
    about = timeline.find(order_no) if order_no is not None else None
    merchant = merchant_setup.find_merchant(key)
    books.adjust(merchant, amount, reason, channel=through, order=about, once=not again)
    available = grouped(books.balances()[key]["available"])
    click.echo(said(N_("available balance of %(key)s: %(amount)s"), key=key, amount=available))


@ledger.command("remove-sandbox")
@click.argument("key", required=False)
@click.option("--apply", is_flag=True, help="Post the reversals. Default: show them only.")
@click.option("--book-loss", is_flag=True, help="Charge the part that the balance does not cover to your fees.")
@json_option
def remove_sandbox(key: str | None, apply: bool, book_loss: bool, as_json: bool) -> None:
    """Reverse the postings of sandbox channels.

    It applies to merchant KEY, or to all merchants. With --apply, open sandbox orders are cancelled and the reversals
    posted, in one transaction for each merchant. Repeating the command posts nothing. --json shows amounts in fen.
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
        posted = N_("posted") if apply else N_("nothing posted: repeat with --apply to post this")
        click.echo(said(posted if rows else N_("nothing to remove")))

    show(rows, as_json, tell)
