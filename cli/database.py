"""`orders db` and `orders seed`: the database's schema, a copy of it, and demo content."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path

import click

from cli.output import AnySchema, refusal, when
from cli.sensitive import SENSITIVE
from models import schema
from models.db.base import database
from runtime import current
from services.backups import after_restore
from services.backups.backup import backup as copy_database
from services.backups.copy_to_postgres import copy as copy_to_postgres
from services.backups.restore import restore as put_back
from services.errors import OperatorError
from services.platform import instance_lock
from services.sandbox import demo, seeded_orders, seeding

db = AnySchema("db", help="The database: upgrade, backup, restore, move to Postgres.")


@db.command("migrate")
def migrate() -> None:
    """Bring the database up to this version; make a backup first."""
    with instance_lock.locked(current().settings.database.resolve().parent):
        if lacking := schema.missing():
            click.echo(f"applying {', '.join(lacking)}", err=True)
        applied = schema.migrate()
    schema.check()
    click.echo("\n".join(f"applied: {name}" for name in applied) or "the database is up to date")


@db.command("backup")
@click.argument("target", type=click.Path(path_type=Path))
def backup(target: Path) -> None:
    """Copy the database into the new file TARGET. The service may run. Keep the key file apart from the copy."""
    if target.exists():
        raise OperatorError(f"{target} is there already")
    with click.progressbar(length=100, label="Copying", file=sys.stderr) as bar:
        copy_database(target, lambda done, total: bar.update(max(0, done * 100 // max(total, 1) - bar.pos)))
    click.echo(f"{target} is a checked copy")


@db.command("restore")
@click.argument("backup", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--unverified", is_flag=True, help="Even though its books don't verify.")
def restore(backup: Path, yes: bool, unverified: bool) -> None:
    """Put BACKUP in the place of the database, once it is checked. The service must be stopped; nothing is deleted."""
    chosen = current().settings
    if not yes:
        click.confirm(f"Put {backup} in the place of {chosen.database}?", abort=True)
    done = put_back(backup, chosen, verified=not unverified, step=lambda doing: click.echo(doing, err=True))
    if done.kept:
        click.echo(f"the database that was there is now {done.kept}")
    newest = f", the newest of {when(done.newest)}" if done.newest else ""
    click.echo(f"{chosen.database} has {done.orders} orders{newest}")
    if done.missing:
        click.echo("it is of an older version: run `orders db migrate`, then `orders ledger verify`")
    _say_next_steps()


def _say_next_steps() -> None:
    click.echo(after_restore.PAUSED)
    click.echo(after_restore.NEXT_STEPS)


@db.command("mark-restored")
def mark_restored() -> None:
    """Do what follows a restore by other means, as by pg_restore. Stop the service before.

    Row ids then continue 1,000,003 above the highest, and payouts and the expiry of manual deposits are paused.
    """
    schema.check()
    folder = current().settings.database.resolve().parent
    with nullcontext() if database.is_shared else instance_lock.locked(folder):
        after_restore.mark()
    _say_next_steps()


@db.command("resume")
def resume() -> None:
    """Resume payouts and the expiry of manual deposits."""
    schema.check()
    after_restore.resume()
    click.echo("payouts and the expiry of manual deposits go on, within five minutes")


@db.command("copy")
@click.argument("url", type=SENSITIVE)
def copy(url: str) -> None:
    """Copy the SQLite database into Postgres, and compare. Stop the service before.

    URL names an empty database; if it has a password, use @FILE, or - for standard input.
    """
    schema.check()
    copy_to_postgres(url, 2, lambda name, rows: click.echo(f"{name:20} {rows:>12} rows, sums compared"))
    click.echo("the copy is complete and its books verify; now set, on each host:")
    click.echo("  ORDERS_DATABASE_URL to the address that you gave")
    click.echo("  ORDERS_VAULT_KEY to what is in vault.key, or copy that file into each instance folder")


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
        click.echo("demo content added" if made else "demo content was added before")
        if orders:
            with click.progressbar(length=orders, label="Seeding orders", show_pos=True, file=sys.stderr) as bar:
                count = seeded_orders.seed_orders(orders, bar.update)
            click.echo(f"{count} orders added")
    except (OperatorError, schema.WrongSchema) as error:
        raise refusal(error) from None


@click.command("demo-curl")
def demo_curl() -> None:
    """Print a signed curl that creates an order in the demo."""
    chosen = current().settings
    click.echo(demo.signed_curl(chosen.public_url, chosen.api_prefix))
