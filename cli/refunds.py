"""`tillbook refund`: refunds of deposits, and the decisions of operators about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from cli.output import (
    Commands,
    facts,
    given_of,
    heading,
    json_option,
    limit_option,
    picked,
    reason_text,
    said,
    show,
    table,
    tell_exception,
    transfer_options,
    yuan,
)
from models.tables.refund import REFUND_STATUSES, Refund, RefundHistory
from runtime.money import grouped, hundredths
from runtime.texts import N_
from services.console import lists, refund_list, timeline
from services.errors import refuse
from services.merchants import merchant_setup
from services.operations import refunds
from services.orders.reasons import Reason, Why, because, reason_of
from services.orders.returned import returned
from services.refunds import approve as approval
from services.refunds import send, settle
from services.sandbox import removal
from services.security import audit, second_operator


def _refuse_sandbox_money() -> None:
    """Refuse every command that could move money that sandbox channels left; rejecting returns some of it."""
    if click.get_current_context().invoked_subcommand not in ("list", "show", "reject"):
        removal.refuse_leftovers()


refund = Commands(
    "refund", callback=_refuse_sandbox_money, help="Refunds of deposits: find, create, approve, mark as refunded."
)


def view(row: Refund) -> dict[str, Any]:
    """Return a refund as a row of a list."""
    return {
        "refund_no": row.refund_no,
        "order_no": row.order.order_no,
        "merchant": row.merchant.key,
        "channel": row.channel_id,
        "status": row.status,
        "cny_amount": hundredths(row.amount),
        "fee_returned": hundredths(row.service_amount),
        "deducted": hundredths(row.merchant_actual_amount),
        "paid_from": row.paid_from,
        "requested_by": row.who,
        "approved_by": row.approved_by,
        "merchant_refund_no": row.merchant_refund_no or "",
        "createtime": row.createtime,
    }


@refund.command("list")
@click.option("--merchant", "key", help="Only refunds of this merchant.")
@click.option("--order", "order_no", help="Only refunds of this order.")
@click.option("--status", type=click.Choice(REFUND_STATUSES), help="Only refunds with this status.")
@click.option(
    "--state",
    type=click.Choice(refund_list.STATES),
    help="Only refunds that an operator must review or send, that are in progress, or that have ended.",
)
@limit_option
@json_option
def every(
    key: str | None, order_no: str | None, status: str | None, state: str | None, limit: int, as_json: bool
) -> None:
    """List refunds, newest first."""
    merchant = merchant_setup.find_merchant(key).id if key else None
    filters = {"merchant": merchant, "order": order_no, "status": status, "state": state}
    rows = lists.find(refund_list.Refunds(given_of(filters)), limit=limit).rows
    show([view(row) for row in rows], as_json, table)


@refund.command("show")
@click.argument("refund_no")
@json_option
def one(refund_no: str, as_json: bool) -> None:
    """Show refund REFUND_NO with its history and exceptions."""
    row = refunds.find(refund_no)
    of_reason = Reason.text if as_json else reason_text
    steps = RefundHistory.select().where(RefundHistory.refund == row).order_by(RefundHistory.id)
    told = view(row) | {
        **picked(row, "reason", "channel_reference", "returned_on", "updatetime", "due_at"),
        "payment": row.reference,
        "history": [
            {
                "at": step.at,
                "from": step.before,
                "to": step.after,
                "who": step.who,
                "why": of_reason(reason_of(step)),
                "code": step.code,
            }
            for step in steps
        ],
        "exceptions": [
            {**picked(each, "id", "kind"), "detail": of_reason(reason_of(each)), "resolution": each.resolution}
            for each in settle.exceptions_about(row)
        ],
    }
    show(told, as_json, _tell)


def _tell(told: dict[str, Any]) -> None:
    facts({name: value for name, value in told.items() if not isinstance(value, list)})
    for part in ("history", "exceptions"):
        if told[part]:
            click.echo("\n" + heading(part))
            table(told[part])


def _say(refund_no: str) -> None:
    row = refunds.find(refund_no)
    text = N_("refund %(refund_no)s: %(status)s")
    if not row.approved_by and row.is_open:
        text = N_("refund %(refund_no)s: %(status)s (needs approval)")
    click.echo(said(text, refund_no=refund_no, status=row.status))
    for each in settle.exceptions_about(row):
        if each.is_open:
            tell_exception(each)


def _alone(about: str, key: str, verb: str, is_needed: bool, act: Callable[[], Refund]) -> Refund:
    """Perform an action of the command line, which needs no second operator, and record that."""
    if is_needed:
        audit.record(audit.HERE, verb, about, key, second_operator.ALONE)
    return act()


@refund.command("create")
@click.argument("order_no")
@click.argument("amount", type=yuan(), required=False)
@click.option("--reason", default="", help="Reason. The channel may show it to the payer.")
@click.option("--platform", is_flag=True, help="You pay, from your fees. The merchant's balance stays as it is.")
@click.option("--again", is_flag=True, help="Confirm another refund of the same amount within ten minutes.")
@click.option("--yes", is_flag=True, help="Refund all that is left without confirmation.")
@json_option
def create(
    order_no: str, amount: int | None, reason: str, platform: bool, again: bool, yes: bool, as_json: bool
) -> None:
    """Refund AMOUNT yuan of deposit ORDER_NO. The service then sends it to its channel.

    Without AMOUNT, the command shows all that is left and asks for confirmation.
    """
    order, who = timeline.find(order_no), "operator"
    terms = refunds.terms(order, amount, who, by_platform=platform)
    if amount is None and not yes:
        quote = terms.quote
        text = N_("refund %(amount)s: you pay it")
        if not platform:
            text = N_("refund %(amount)s: the merchant pays %(deducted)s and gets a fee of %(fee)s back")
        sums = {name: grouped(getattr(quote, name)) for name in ("amount", "deducted", "fee")}
        click.echo(said(text, **sums), err=True)
        click.confirm(said(N_("Refund all of it?")), abort=True, err=True)
    state = refunds.state_of(order)

    def place() -> Refund:
        return refunds.request(
            order,
            terms.quote.amount,
            who,
            reason=reason.strip(),
            by_platform=platform,
            again=again,
            alone=True,
            state=state,
        )

    made = _alone("order", order_no, "refund", terms.is_reviewed, place)
    if as_json:
        show(view(refunds.find(made.refund_no)), True, facts)
    else:
        _say(made.refund_no)


@refund.command("approve")
@click.argument("refund_no")
def approve(refund_no: str) -> None:
    """Approve refund REFUND_NO. The service then sends it to its channel."""
    row = refunds.find(refund_no)
    needed = row.who.startswith("operator") and approval.waits_for_another(row, row.who)
    _alone("refund", refund_no, "approve refund", needed, lambda: approval.approve(row, alone=True))
    _say(refund_no)


@refund.command("reject")
@click.argument("refund_no")
@click.option("--reason", required=True, help="Reason. It is recorded in the refund's history.")
def reject(refund_no: str, reason: str) -> None:
    """Reject refund REFUND_NO, of which no money was sent. What it reserved returns to the merchant."""
    approval.reject(refunds.find(refund_no), reason)
    _say(refund_no)


@refund.command("paid")
@click.argument("refund_no")
@transfer_options("Transaction ID of the bank or wallet.")
def paid(refund_no: str, reference: str, date: str, shared: bool) -> None:
    """Record that you sent the money of refund REFUND_NO. Only for manual channels."""
    row = refunds.find(refund_no)
    refuse(approval.why_not_mark_refunded(row))
    transfer = returned(row.order, reference, date, shared=shared, is_needed=True)
    approval.mark_refunded(row, transfer)
    _say(refund_no)


@refund.command("check")
@click.argument("refund_no")
def check(refund_no: str) -> None:
    """Check the status of refund REFUND_NO at its channel. The result is applied."""
    report = send.ask_now(refunds.find(refund_no), because(Why.CHANNEL_ASKED_BY, who="an operator"))
    amount = f" {grouped(report.amount)}" if report.amount else ""
    click.echo(said(N_("status at the channel: %(status)s"), status=report.state.value + amount))
    _say(refund_no)
