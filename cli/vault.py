"""`orders vault`: the key that opens the sealed columns."""

from __future__ import annotations

import click

from cli.output import Commands
from runtime import current
from services.errors import OperatorError
from services.security import key_rotation

vault = Commands("vault", help="The key that opens secrets and personal data.")


@vault.command("rotate")
@click.option("--keep-old", is_flag=True, help="Leave the old keys in the file, behind the new one.")
@click.option(
    "--wait",
    default=key_rotation.IN_FLIGHT,
    show_default=True,
    type=click.IntRange(0, 3600),
    help="Seconds for what the service has under way; 0 where it is stopped.",
)
@click.option("--only-host", is_flag=True, help="On Postgres: no other host works with the database.")
def rotate(keep_old: bool, wait: int, only_host: bool) -> None:
    """Seal everything with a new key. The service may run; what broke off goes on when it is repeated."""
    try:
        for done in key_rotation.rotate(current().settings.instance, keep_old=keep_old, wait=wait, only_host=only_host):
            click.echo(done)
    except OSError as error:
        raise OperatorError(f"{error.filename}: {error.strerror}; repeat it once that is mended") from None
