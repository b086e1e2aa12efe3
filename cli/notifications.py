"""`tillbook notification`: the destinations of notifications, and test messages to them."""

from __future__ import annotations

import sys
from typing import Any

import click

from cli.output import Commands, facts, json_option, picked, said, show, table
from models.tables.notification import Destination, Notification
from runtime.texts import N_
from services.notifications import destinations

notification = Commands("notification", help="Notifications: list their destinations, send a test message.")


def _view(row: Destination, last: Notification | None) -> dict[str, Any]:
    return {
        **picked(row, "name", "kind"),
        "to": destinations.target(row),
        **picked(row, "severity", "language", "digest_hour"),
        "enabled": bool(row.enabled),
        "failures": row.failures,
        "at": last and last.createtime,
        "last": last and last.state,
        "problem": f"{last.problem} {last.detail}".strip() if last else "",
    }


@notification.command("list")
@json_option
def every(as_json: bool) -> None:
    """List the destinations, with the state of the last message to each. Secrets are never shown."""
    newest = destinations.newest()
    rows = [_view(row, newest.get(row.id)) for row in destinations.every()]
    show(rows, as_json, lambda rows: table(rows, N_("no destinations: add them in the console, page Notifications")))


@notification.command("test")
@click.argument("name")
@json_option
def test(name: str, as_json: bool) -> None:
    """Send a test message to destination NAME. Exits with status 1 if it is not accepted."""
    outcome = destinations.test(destinations.named(name))
    view = {"accepted": not outcome.problem, **picked(outcome, "problem", "detail")}
    show(view, as_json, lambda view: facts(view | {"problem": said(view["problem"])}))
    sys.exit(1 if outcome.problem else 0)
