"""`tillbook vault`: the key that encrypts secrets and personal data."""

from __future__ import annotations

import click

from cli.output import Commands
from runtime.state import current
from services.errors import N_, OperatorError
from services.security import key_rotation

vault = Commands("vault", help="The key that encrypts secrets and personal data: rotate.")


@vault.command("rotate")
@click.option("--keep-old", is_flag=True, help="Keep the old keys in the key file, after the new one.")
@click.option(
    "--wait",
    default=key_rotation.IN_FLIGHT,
    show_default=True,
    type=click.IntRange(0, 3600),
    help="Seconds to wait for work in progress. Use 0 if the service is stopped.",
)
@click.option("--only-host", is_flag=True, help="On Postgres: confirm that no other host uses the database.")
def rotate(keep_old: bool, wait: int, only_host: bool) -> None:
    """Encrypt all secrets and personal data with a new key. The service may be running.

    If the command is interrupted, repeat it: it continues.
    """
    try:
        for done in key_rotation.rotate(current().settings.instance, keep_old=keep_old, wait=wait, only_host=only_host):
            click.echo(done)
    except OSError as error:
        text = N_("%(file)s: %(why)s. Fix this and repeat the command")
        raise OperatorError(text, file=str(error.filename), why=str(error.strerror)) from None
