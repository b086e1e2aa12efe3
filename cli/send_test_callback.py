"""`orders merchant test-callback`: the one merchant command that sends something."""

from __future__ import annotations

import sys

import click

from cli.output import facts, json_option, picked, show
from services.callbacks import test_callback as trial
from services.merchants import merchant_setup


@click.command("test-callback")
@click.argument("key")
@json_option
def test_callback(key: str, as_json: bool) -> None:
    """Send merchant KEY a callback of type `test` now. It is signed as all are, and not stored."""
    outcome = trial.callback(merchant_setup.find_merchant(key))
    view = picked(outcome, "delivered", "status", "milliseconds", "answer", "problem")
    show({"id": outcome.webhook_id} | view, as_json, facts)
    sys.exit(0 if outcome.delivered else 1)
