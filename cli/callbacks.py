"""`tillbook callback`: callbacks to merchants, every attempt, and redelivery."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from cli.output import Commands, facts, given_of, heading, json_option, limit_option, picked, said, show, table
from models.tables.outbox import CALLBACK_STATES, Callback
from runtime.texts import N_
from services.callbacks import delivery
from services.console import lists, record_lists, timeline
from services.merchants import merchant_setup
from services.operations import redelivery
from services.security import audit
from services.security.audit import HERE

callback = Commands("callback", help="Callbacks to merchants: list, show, redeliver.")
QUEUED = N_("%(count)s callbacks queued for redelivery")
WHEN = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S"])


def _view(row: Callback) -> dict[str, Any]:
    return {
        "id": row.webhook_id,
        "merchant": row.merchant.key,
        "order_no": row.order.order_no,
        **picked(row, "type", "state", "attempts", "due_at", "createtime"),
    }


@callback.command("list")
@click.option("--merchant", "key", help="Only callbacks to this merchant.")
@click.option("--state", type=click.Choice(CALLBACK_STATES), help="Only callbacks in this state.")
@limit_option
@json_option
def every(key: str | None, state: str | None, limit: int, as_json: bool) -> None:
    """List callbacks, newest first."""
    filters = {"merchant": merchant_setup.find_merchant(key).id if key else None, "state": state}
    rows = lists.find(record_lists.Callbacks(given_of(filters)), limit=limit).rows
    show([_view(row) for row in rows], as_json, table)


@callback.command("show")
@click.argument("webhook_id")
@json_option
def one(webhook_id: str, as_json: bool) -> None:
    """Show callback WEBHOOK_ID with its body and every attempt."""
    whole = timeline.callback_timeline(webhook_id)
    row = whole.callback
    view = _view(row) | {
        "body": row.body,
        "tries": [
            picked(attempt, "at", "status", "milliseconds", "answer")
            | {"problem": delivery.redirect_problem(attempt.status, attempt.answer)}
            for attempt in whole.attempts
        ],
    }

    def tell(view: dict[str, Any]) -> None:
        facts({name: value for name, value in view.items() if name != "tries"})
        click.echo("\n" + heading("attempts"))
        tries = [row | {"answer": said(row["problem"]) or row["answer"][:60]} for row in view["tries"]]
        table([{name: row[name] for name in row if name != "problem"} for row in tries], N_("no attempts yet"))

    show(view, as_json, tell)


@callback.command("redeliver")
@click.argument("webhook_id", required=False)
@click.option("--merchant", "key", help="Only callbacks to this merchant.")
@click.option(
    "--state", type=click.Choice(CALLBACK_STATES), help="Only callbacks in this state. Default: pending and dead."
)
@click.option(
    "--event",
    type=click.Choice(redelivery.EVENTS),
    metavar="EVENT",
    help="Only callbacks of this event, such as order.completed.",
)
@click.option("--order", "order_no", help="Only callbacks of this order.")
@click.option("--since", type=WHEN, help="Only callbacks created at or after this time.")
@click.option("--until", type=WHEN, help="Only callbacks created at or before this time.")
def redeliver(
    webhook_id: str | None,
    key: str | None,
    state: str | None,
    event: str | None,
    order_no: str | None,
    since: datetime | None,
    until: datetime | None,
) -> None:
    """Redeliver callback WEBHOOK_ID, or all that the options select.

    It is the same as Resend all in the console's list of callbacks. The service sends them within seconds.
    """
    times = {name: int(at.timestamp()) for name, at in (("since", since), ("until", until)) if at}
    merchant = merchant_setup.find_merchant(key).id if key else None
    filters = given_of({"merchant": merchant, "state": state, "event": event, "order": order_no}) | times
    if bool(webhook_id) is bool(filters):
        raise click.UsageError(said(N_("Specify either WEBHOOK_ID or at least one of the options.")))
    if webhook_id:
        count = audit.act(
            HERE, "redeliver callback", "callback", webhook_id, lambda: delivery.redeliver(str(webhook_id))
        )
        click.echo(said(QUEUED, count=f"{count:,}"))
        return
    found = redelivery.of_filter(filters)
    for why, left_out in found.refused:
        click.echo(said(N_("%(count)s callbacks left out: %(why)s"), count=f"{left_out:,}", why=said(why)))
    click.echo(said(QUEUED, count=f"{redelivery.resend(found.ids, HERE):,}"))
    if found.more:
        click.echo(said(N_("More callbacks match. Repeat the command to redeliver them, too.")))
