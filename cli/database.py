"""`tillbook db`, `tillbook seed` and `tillbook demo-curl`: upgrade, backup, restore, and demo content."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path

import click

from cli.output import AnySchema, refusal, said, when
from cli.sensitive import SENSITIVE
from models import schema
from models.db.base import database
from runtime.state import current
from services.backups import after_restore
from services.backups.backup import backup as copy_database
from services.backups.copy_to_postgres import copy as copy_to_postgres
from services.backups.restore import restore as put_back
from services.errors import N_, OperatorError
from services.platform import instance_lock
from services.sandbox import demo, seeded_orders, seeding

db = AnySchema("db", help="The database: upgrade, back up, restore, copy to Postgres.")


@db.command("migrate")
def migrate() -> None:
    """Upgrade the database to this version. Stop the service and make a backup first."""
    with instance_lock.locked(current().settings.database.resolve().parent):
        if missing := schema.missing():
            click.echo(said(N_("applying %(names)s"), names=", ".join(missing)), err=True)
        applied = schema.migrate()
    schema.check()
    done = [said(N_("applied: %(name)s"), name=name) for name in applied]
    click.echo("\n".join(done) or said(N_("the database is up to date")))


@db.command("backup")
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--empty", is_flag=True, help="Back up a database without merchants too.")
def backup(target: Path, empty: bool) -> None:
    """Back up the database to the new file TARGET. The service may be running.

    Store the key file in another place: together they reveal all secrets.
    """
    if target.exists():
        raise OperatorError(N_("%(file)s already exists: specify a new file"), file=str(target))
    with click.progressbar(length=100, label=said(N_("Copying")), file=sys.stderr) as bar:
        copy_database(
            target, lambda done, total: bar.update(max(0, done * 100 // max(total, 1) - bar.pos)), empty=empty
        )
    click.echo(said(N_("backup complete and checked: %(file)s"), file=target))


@db.command("restore")
@click.argument("backup", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--unverified", is_flag=True, help="Restore a backup whose ledger check fails.")
def restore(backup: Path, yes: bool, unverified: bool) -> None:
    """Check BACKUP and replace the database with it. Stop the service first.

    The present database is kept in another file.
    """
    chosen = current().settings
    if not yes:
        text = N_("Replace %(database)s with %(backup)s?")
        click.confirm(said(text, database=chosen.database, backup=backup), abort=True)
    done = put_back(backup, chosen, verified=not unverified, step=lambda doing: click.echo(doing, err=True))
    if done.kept:
        click.echo(said(N_("previous database kept as %(file)s"), file=done.kept))
    newest = said(N_(", the newest from %(time)s"), time=when(done.newest)) if done.newest else ""
    click.echo(said(N_("restored %(file)s: %(count)s orders"), file=chosen.database, count=done.orders) + newest)
    if done.missing:
        text = N_("the backup is from an older version: run `tillbook db migrate`, then `tillbook ledger verify`")
        click.echo(said(text))
    click.echo(said(after_restore.PAUSED))
    click.echo(said(after_restore.NEXT_STEPS))


@db.command("mark-restored")
def mark_restored() -> None:
    """Prepare a database that another tool restored. Stop the service first.

    Such a tool is pg_restore. Row ids then continue 1,000,003 above the highest. Payouts and the expiry of manual
    deposits are paused.
    """
    schema.check()
    folder = current().settings.database.resolve().parent
    with nullcontext() if database.is_shared else instance_lock.locked(folder):
        after_restore.mark()
    click.echo(said(after_restore.PAUSED))
    click.echo(said(after_restore.NEXT_STEPS))


@db.command("resume")
def resume() -> None:
    """Resume what a restore paused.

    These are payouts, refunds and the expiry of manual deposits.
    """
    schema.check()
    after_restore.resume()
    click.echo(said(N_("payouts, refunds and the expiry of manual deposits resume within five minutes")))


@db.command("copy")
@click.argument("url", type=SENSITIVE)
def copy(url: str) -> None:
    """Copy the SQLite database to Postgres and compare both. Stop the service first.

    URL is the address of an empty database. If it has a password, use @FILE, or - for standard input.
    """
    schema.check()
    compared = said(N_("rows, sums compared"))
    copy_to_postgres(url, 2, lambda name, rows: click.echo(f"{name:20} {rows:>12} {compared}"))
    click.echo(said(N_("copy complete, ledger check passed. Now set on each host:")))
    click.echo("  ORDERS_DATABASE_URL: " + said(N_("the address of the new database")))
    click.echo(
        "  ORDERS_VAULT_KEY: " + said(N_("the content of vault.key. Or copy that file into each instance folder."))
    )


@click.command("seed")
@click.option(
    "--orders", default=0, show_default=True, type=click.IntRange(0, 10_000_000), help="Add this many sample orders."
)
def seed(orders: int) -> None:
    """Fill an empty database with demo content.

    The sample orders are spread over the ten months up to now. Apart from their times they are the same every time.
    """
    try:
        schema.check()
        made = seeding.seed_base()
        seeding.seed_operators()
        click.echo(said(N_("demo content added") if made else N_("demo content was added before")))
        if orders:
            with click.progressbar(
                length=orders, label=said(N_("Seeding orders")), show_pos=True, file=sys.stderr
            ) as bar:
                count = seeded_orders.seed_orders(orders, bar.update)
            click.echo(said(N_("%(count)s orders added"), count=count))
    except (OperatorError, schema.WrongSchema) as error:
        raise refusal(error) from None


@click.command("demo-curl")
def demo_curl() -> None:
    """Print a signed curl command that creates an order in the demo."""
    chosen = current().settings
    if not chosen.demo:
        text = N_("there is no demo in %(folder)s. Start it with `tillbook demo` first")
        raise click.ClickException(said(text, folder=chosen.instance))
    click.echo(demo.signed_curl(chosen.public_url, chosen.api_prefix))
