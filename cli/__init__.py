"""The operator's commands: thin, each over one service."""

from flask import Flask

from cli.callbacks import callback
from cli.channels import channel
from cli.database import db, demo_curl, seed
from cli.ledger import ledger
from cli.merchants import account, merchant
from cli.operators import operator
from cli.orders import order
from cli.reconcile import reconcile
from cli.scenario import scenario
from cli.sign import sign
from cli.vault import vault


def register(app: Flask) -> None:
    """Hang the commands into Flask's own command line."""
    for command in (
        merchant,
        account,
        channel,
        order,
        callback,
        ledger,
        operator,
        db,
        vault,
        reconcile,
        scenario,
        sign,
        seed,
        demo_curl,
    ):
        app.cli.add_command(command)
