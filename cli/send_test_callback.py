"""`tillbook merchant test-callback`, which imports the HTTP client and so is separate from the other commands."""

from __future__ import annotations

import sys

import click

from cli.output import facts, json_option, picked, said, show
from services.callbacks import test_callback as sending
from services.merchants import merchant_setup


@click.command("test-callback")
@click.argument("key")
@json_option
def test_callback(key: str, as_json: bool) -> None:
    """Send a signed callback of type `test` to merchant KEY. Exits with status 1 if it is not delivered."""
    outcome = sending.callback(merchant_setup.find_merchant(key))
    view = picked(outcome, "delivered", "status", "milliseconds", "answer", "problem")
    show({"id": outcome.webhook_id} | view, as_json, lambda view: facts(view | {"problem": said(view["problem"])}))
    sys.exit(0 if outcome.delivered else 1)
