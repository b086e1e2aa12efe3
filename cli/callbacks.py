"""`orders callback`: what merchants were told, every attempt, and telling them again."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from cli.output import Commands, facts, given_of, json_option, picked, show, table
from models.tables.outbox import CALLBACK_STATES, Callback
from services.callbacks import manual_redelivery
from services.console import lists, record_lists, timeline
from services.merchants import merchant_setup

callback = Commands("callback", help="Callbacks to merchants and every attempt to deliver them.")
WHEN = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S"])


def _view(row: Callback, merchant: str) -> dict[str, Any]:
    return {
        "id": row.webhook_id,
        "merchant": merchant,
        "order_no": row.order.order_no,
        **picked(row, "type", "state", "attempts", "due_at", "createtime"),
    }


@callback.command("list")
@click.option("--merchant", "key", help="To this merchant.")
@click.option("--state", type=click.Choice(CALLBACK_STATES), help="In this state.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 10_000), help="At most this many.")
@json_option
def every(key: str | None, state: str | None, limit: int, as_json: bool) -> None:
    """List callbacks, newest first."""
    filters = {"merchant": merchant_setup.find_merchant(key).id if key else None, "state": state}
    rows = lists.find(record_lists.Callbacks(given_of(filters)), limit=limit).rows
    show([_view(row, row.merchant.key) for row in rows], as_json, table)


@callback.command("show")
@click.argument("webhook_id")
@json_option
def one(webhook_id: str, as_json: bool) -> None:
    """Show the callback WEBHOOK_ID, its body and every attempt."""
    whole = timeline.callback_timeline(webhook_id)
    row = whole.callback
    view = _view(row, row.merchant.key) | {
        "body": row.body,
        "tries": [picked(attempt, "at", "status", "milliseconds", "answer") for attempt in whole.attempts],
    }

    def tell(view: dict[str, Any]) -> None:
        facts({name: value for name, value in view.items() if name != "tries"})
        click.echo("\nattempts")
        table([row | {"answer": row["answer"][:60]} for row in view["tries"]], "none yet")

    show(view, as_json, tell)


@callback.command("redeliver")
@click.argument("webhook_id", required=False)
@click.option("--merchant", "key", help="All of this merchant's instead of one.")
@click.option("--state", type=click.Choice(CALLBACK_STATES), help="With --merchant: only these.")
@click.option("--since", type=WHEN, help="With --merchant: made at or after.")
@click.option("--until", type=WHEN, help="With --merchant: made at or before.")
def redeliver(
    webhook_id: str | None, key: str | None, state: str | None, since: datetime | None, until: datetime | None
) -> None:
    """Deliver the callback WEBHOOK_ID again. Or all of a merchant's, in a range of time."""
    if key and not webhook_id:
        merchant = merchant_setup.find_merchant(key)
        first, last = (int(moment.timestamp()) if moment else None for moment in (since, until))
        count = manual_redelivery.redeliver_all(merchant, state, first, last)
    elif webhook_id and not key:
        count = manual_redelivery.redeliver(webhook_id)
    else:
        raise click.UsageError("name one callback, or --merchant")
    click.echo(f"{count} due again")
