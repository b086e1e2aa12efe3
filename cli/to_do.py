"""`tillbook to-do`: what needs an operator's attention, and the command that lists it."""

from __future__ import annotations

from typing import Any

import click

from cli.output import Command, json_option, said, show, table
from models.tables.maintenance import paused_since
from runtime.money import hundredths
from runtime.texts import N_
from services.channels import unknown_notices
from services.operations import to_do as queues
from services.operations.to_do import Queue

SILENT = N_("exceptions about the silence of channel %(channel)s")


def _total(queue: Queue) -> str:
    """Return the total in yuan; ">" precedes one that not all orders are part of."""
    return f"{'>' if queue.more else ''}{hundredths(queue.amount)}" if queue.amount else ""


@click.command("to-do", cls=Command)
@json_option
def to_do(as_json: bool) -> None:
    """Show what needs attention."""
    found = queues.waiting_counts()
    paused = paused_since()
    first = next(iter(found.stuck_orders), "ORDER_NO")
    first_refund = next(iter(found.stuck_refund_numbers), "REFUND_NO")
    every = [
        (N_("open orders without a next step"), found.stuck, f"tillbook order show {first}"),
        (N_("payouts paused since a restore"), Queue(int(paused is not None), paused), "tillbook db resume"),
        (N_("exceptions to resolve"), found.decisions, "tillbook order list --exceptions"),
        *(
            (SILENT % {"channel": channel}, queue, "tillbook order list --exceptions")
            for channel, queue in sorted(found.silent.items())
        ),
        (N_("withdrawals to approve"), found.approve, "tillbook order list --type sell --status pending"),
        (N_("payouts to send manually"), found.send, "tillbook order list --type sell --status confirmed"),
        (N_("payouts that need a second operator"), found.requests, N_("console: Payouts")),
        (N_("payouts in bank files without a result"), found.in_files, N_("console: Bank files")),
        (N_("open refunds without a next step"), found.stuck_refunds, f"tillbook refund show {first_refund}"),
        (N_("refunds to approve"), found.refund_approve, "tillbook refund list --state review"),
        (N_("refunds to send manually"), found.refund_send, "tillbook refund list --state send"),
        (N_("refunds without a result for an hour"), found.refund_late, "tillbook refund list --state under_way"),
        (N_("claimed deposits to confirm"), found.claims, "tillbook order list --type buy --status paid"),
        (N_("differences to statements"), found.differences, "tillbook difference list"),
        (N_("callbacks that failed"), found.failed, "tillbook callback list --state dead"),
        (N_("notices for unknown orders"), Queue(unknown_notices.recent()), "tillbook order unknown"),
    ]
    rows: list[dict[str, Any]] = [
        {"to do": what, "count": queue.count, "at": queue.oldest, "amount": _total(queue), "see": command}
        for what, queue, command in every
    ]

    silent = {SILENT % {"channel": channel}: said(SILENT, channel=channel) for channel in found.silent}

    def tell(rows: list[dict[str, Any]]) -> None:
        shown = [
            row | {"to do": silent.get(row["to do"]) or said(row["to do"]), "see": said(row["see"])} for row in rows
        ]
        table(shown, N_("nothing needs attention"))

    show([row for row in rows if row["count"]], as_json, tell)
