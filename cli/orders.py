"""`tillbook order`: orders, their exceptions, and the decisions of operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from cli.output import (
    ROW_ID,
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
from gateways.base import State
from models.tables.order import BUY, CANCELLED, SELL, STATUSES, Order
from runtime.money import grouped, hundredths
from runtime.texts import N_
from schemas.views import order_view
from services import kinds
from services.channels import unknown_notices
from services.console import lists, order_list, timeline
from services.deposits import claims
from services.errors import refuse
from services.merchants import merchant_setup
from services.operations import actions, notes
from services.operations import resolve as resolution
from services.orders import lifecycle
from services.orders.reasons import Reason, Why, because, own_words, reason_of
from services.orders.resolution import Case
from services.orders.returned import UNKNOWN, returned
from services.sandbox import removal
from services.security import audit, second_operator
from services.withdrawals import approve as payouts


def _refuse_sandbox_money() -> None:
    """Refuse every command that could move money that sandbox channels left; rejecting returns some of it."""
    if click.get_current_context().invoked_subcommand not in ("list", "show", "unknown", "reject"):
        removal.refuse_leftovers()


order = Commands(
    "order",
    callback=_refuse_sandbox_money,
    help="Orders: find, confirm, approve, resolve exceptions.",
    aliases={"accept": "approve", "ask": "check", "settle": "resolve"},
)
TYPES = {"buy": BUY, "sell": SELL}
WITHOUT_ID = N_(
    "recorded without a transaction ID: later statements cannot recognize this payment, and other payments of this "
    "amount are not matched by their amount"
)


@order.command("list")
@click.option("--merchant", "key", help="Only orders of this merchant.")
@click.option("--status", type=click.Choice(STATUSES), help="Only orders with this status.")
@click.option("--type", "kind", type=click.Choice(list(TYPES)), help="Only deposits (buy) or withdrawals (sell).")
@click.option("--exceptions", is_flag=True, help="Only orders with an open exception.")
@limit_option
@json_option
def every(key: str | None, status: str | None, kind: str | None, exceptions: bool, limit: int, as_json: bool) -> None:
    """List orders, newest first."""
    merchants = merchant_setup.merchants(key)
    filters = {"merchant": merchants[0].id if key else None, "status": status, "type": TYPES.get(kind or "")}
    opened = order_list.open_exceptions()
    listed = order_list.WithExceptions if exceptions else order_list.Orders
    rows = lists.find(listed(given_of(filters)), limit=limit).rows
    views = [
        {
            "order_no": row.order_no,
            "merchant": row.merchant.key,
            "channel": row.channel_id,
            "type": "buy" if row.is_buy else "sell",
            "status": row.status,
            "cny_amount": hundredths(row.amount),
            **picked(row, "merchant_order_no", "createtime"),
            "exceptions": ",".join(opened.get(row.id, [])),
        }
        for row in rows
    ]
    show(views, as_json, table)


def everything(found: Order, of_reason: Callable[[Reason], str] = Reason.text) -> dict[str, Any]:
    """Return everything about one order except secrets.

    Args:
        of_reason: returns the text of a reason; in English by default.
    """
    whole = timeline.order_timeline(found)
    history = []
    for step in whole.history:
        why, opened = of_reason(reason_of(step)), whole.opened.get(step.id)
        why = f"Exception {opened.kind}: {why}" if opened else why
        told = {"at": step.at, "from": step.before, "to": step.after, "who": step.who, "why": why, "code": step.code}
        history.append(told)
    return order_view.dump(found) | {
        "id": found.id,
        "merchant": found.merchant.key,
        "channel": found.channel_id,
        "group": found.group_id,
        "tried": [{"channel": name, "detail": of_reason(own_words(why))} for name, why in whole.tried],
        **picked(
            found, "payment_method", "channel_reference", "expires_at", "shown_from", "due_at", "left_alone_until"
        ),
        "history": history,
        "ledger": [
            {
                "purpose": e.posting.purpose,
                "account": e.account.kind,
                "owner": e.account.owner,
                "yuan": hundredths(e.amount),
                **picked(e.posting, "who", "memo"),
            }
            for e in whole.entries
        ],
        "exceptions": [
            {
                **picked(e, "id", "kind"),
                "channel": e.channel_id,
                "amount": hundredths(e.amount),
                "reference": e.reference,
                "at": e.createtime,
                "detail": of_reason(reason_of(e)),
                **picked(e, "code", "resolution", "return_reference", "returned_on"),
            }
            for e in whole.exceptions
        ],
        "refunds": [
            {
                **picked(each, "refund_no", "status"),
                "cny_amount": hundredths(each.amount),
                "fee_returned": hundredths(each.service_amount),
                **picked(each, "paid_from", "channel_reference", "returned_on"),
                "requested_by": each.who,
                "at": each.createtime,
            }
            for each in whole.refunds
        ],
        "callbacks": [{"id": each.webhook_id, **picked(each, "type", "state", "attempts")} for each in whole.callbacks],
        "notes": [{"at": each.createtime, **picked(each, "who", "text")} for each in whole.notes],
        "audit": [picked(entry, "at", "who", "action", "detail") for entry in whole.audit],
    }


def _tell(told: dict[str, Any]) -> None:
    for_people: dict[str, Any] = {
        "order_type": said(N_("buy (deposit)") if told["order_type"] == BUY else N_("sell (withdrawal)")),
        "service_rate": f"{told['service_rate']} %",
        "merchant_actual_amount": hundredths(told["merchant_actual_amount"]),
        "service_amount": hundredths(told["service_amount"]),
    }
    if told["status"] == CANCELLED:  # it has no fees, apart from those in its ledger entries
        for_people |= dict.fromkeys(("merchant_actual_amount", "service_amount"))
    facts({name: value for name, value in (told | for_people).items() if not isinstance(value, (list, dict))})
    for part, rows in told.items():
        if isinstance(rows, (list, dict)) and rows:
            click.echo("\n" + heading(part))
        if isinstance(rows, dict):
            facts(rows)
        elif isinstance(rows, list) and rows:
            table(rows)


@order.command("unknown")
@limit_option
@json_option
def unknown(limit: int, as_json: bool) -> None:
    """List verified notices for unknown orders. After a restore, these are payments missing in the backup."""
    views = [
        {
            "at": row.at,
            "channel": row.channel_id,
            **picked(row, "order_no", "state"),
            "amount": hundredths(row.amount),
            "reference": row.reference,
        }
        for row in unknown_notices.listed(limit)
    ]
    show(views, as_json, table)


@order.command("show")
@click.argument("order_no")
@click.option("--reveal", is_flag=True, help="Show the customer's name and the payout account in full.")
@json_option
def one(order_no: str, reveal: bool, as_json: bool) -> None:
    """Show order ORDER_NO. This includes its timeline, ledger entries, exceptions and callbacks."""
    found = timeline.find(order_no)
    told = everything(found) if as_json else everything(found, reason_text)
    show(told | (kinds.of(found).personal_data(found) if reveal else {}), as_json, _tell)


def _say(order_no: str) -> None:
    click.echo(said(N_("order %(order_no)s: %(status)s"), order_no=order_no, status=timeline.find(order_no).status))


@order.command("check")
@click.argument("order_no")
def check(order_no: str) -> None:
    """Check the status of order ORDER_NO at its channel. The result is applied."""
    found = timeline.find(order_no)
    for report in kinds.ask_now(found, because(Why.CHANNEL_ASKED_BY, who="an operator")):
        amount = f" {grouped(report.amount)}" if report.state is State.PAID else ""
        click.echo(said(N_("status at the channel: %(status)s"), status=report.state.value + amount))
    _tell_exceptions(found)
    _say(order_no)


def _tell_exceptions(found: Order) -> None:
    for exception in lifecycle.open_exceptions(found):
        tell_exception(exception)


@order.command("approve")
@click.argument("order_no")
def approve(order_no: str) -> None:
    """Approve withdrawal ORDER_NO. The service then sends it to its channel."""
    found = timeline.find(order_no)
    second_operator.alone(found, "accept order", lambda: payouts.approve(found))
    _say(order_no)


in_bank_file = click.option(
    "--in-bank-file",
    "in_file",
    is_flag=True,
    help="Confirm although the payout is in a bank file without a result. Check at the bank first.",
)


@order.command("reject")
@click.argument("order_no")
@click.option("--reason", required=True, help="Reason. It is recorded in the order's history.")
@in_bank_file
def reject(order_no: str, reason: str, in_file: bool) -> None:
    """Reject withdrawal ORDER_NO. Its money returns to the merchant.

    If it was approved, the service first checks that its channel does not have it.
    """
    found = timeline.find(order_no)
    payouts.reject(found, reason, in_file=in_file)
    _say(order_no)


@order.command("paid")
@click.argument("order_no")
@click.option(
    "--amount",
    type=yuan(zero=True),
    help="Amount received or sent, in yuan. Default: the order's amount. 0: the bank took back all of a deposit.",
)
@click.option(
    "--reference",
    default="",
    help="Transaction ID of the bank or wallet. It prevents recording a payment twice. "
    "Without it, later statements cannot recognize a deposit's payment.",
)
@click.option("--shared-reference", "shared", is_flag=True, help="Confirm that this transfer also pays other orders.")
@in_bank_file
def paid(order_no: str, amount: int | None, reference: str, shared: bool, in_file: bool) -> None:
    """Record the manual payment or payout of order ORDER_NO."""
    found = timeline.find(order_no)

    def mark() -> bool:
        return kinds.of(found).mark_paid(found, amount=amount, reference=reference, shared=shared, in_file=in_file)

    if not second_operator.alone(found, "mark paid", mark, amount):
        click.echo(said(N_("already recorded")))
    elif found.is_buy and not reference.strip():
        click.echo(said(WITHOUT_ID), err=True)
    _tell_exceptions(found)
    _say(order_no)


@order.command("note")
@click.argument("order_no")
@click.argument("text")
def note(order_no: str, text: str) -> None:
    """Write TEXT as a note on order ORDER_NO, for other operators. Merchants and payers do not see it."""
    notes.write(timeline.find(order_no), text, "operator", audit.HERE)
    _say(order_no)


@order.command("returned")
@click.argument("order_no")
@transfer_options("Transaction ID of the return at the bank.")
@click.option("--reason", default="", help="The bank's reason. It is recorded in the order's history.")
@click.option("--yes", is_flag=True, help="Record it without confirmation.")
def payout_returned(order_no: str, reference: str, date: str, shared: bool, reason: str, yes: bool) -> None:
    """Record that the manual payout of ORDER_NO came back.

    The money of a completed withdrawal is in your account again. This opens an exception. Return the money to the
    merchant with `order resolve ORDER_NO --credit`.
    """
    found = timeline.find(order_no)
    refuse(payouts.why_not_return(found))
    transfer = returned(found, reference, date, shared=shared, is_needed=True)
    if not yes:
        text = N_("Did %(amount)s of order %(order_no)s come back to your account?")
        click.confirm(said(text, amount=grouped(found.amount), order_no=order_no), abort=True)
    payouts.report_returned(found, transfer=transfer, reason=reason)
    _tell_exceptions(found)
    _say(order_no)


@order.command("not-received")
@click.argument("order_no")
@click.option("--reason", default="", help="Reason for the order's history. Default: the payment was not received.")
def not_received(order_no: str, reason: str) -> None:
    """Cancel claimed deposit ORDER_NO: no money was received.

    If the channel supports it, the service checks the status there first.
    """
    found = timeline.find(order_no)
    claims.dismiss(found, reason)
    _say(order_no)


@order.command("resolve")
@click.argument("order_no")
@click.option(
    "--credit", is_flag=True, help="Deposit: credit the received amount. Withdrawal: credit the reversed amount."
)
@click.option("--refund", is_flag=True, help="Deposit: the money was or will be returned to the payer.")
@click.option("--complete", is_flag=True, help="Deposit: complete the order. Withdrawal: the money was sent.")
@click.option(
    "--cancel",
    is_flag=True,
    help="Deposit: it was not paid. Withdrawal: the money was not sent; return it to the merchant.",
)
@click.option("--exception", "exception_id", type=ROW_ID, help="Number of the exception, if several are open.")
@transfer_options("--refund: transaction ID of the transfer that returned the money. Manual channels need it.")
@click.option("--yes", is_flag=True, help="Complete a deposit without confirmation.")
def resolve(
    order_no: str, exception_id: int | None, reference: str, date: str, shared: bool, yes: bool, **ways: bool
) -> None:
    """Resolve an open exception of order ORDER_NO. Choose one resolution.

    Before a deposit is completed, the command shows the callback to the merchant and asks for confirmation.
    """
    chosen = [way for way, wanted in ways.items() if wanted]
    if len(chosen) != 1:
        raise click.UsageError(said(N_("Choose one of --credit, --refund, --complete, --cancel.")))
    found = timeline.find(order_no)
    possible = [
        each
        for each in actions.possible(found)
        if each.resolution == chosen[0] and each.exception and exception_id in (None, each.exception.id)
    ]
    action = possible[0] if len(possible) == 1 else None
    if action and action.effect is Case.COMPLETE_ORDER and not yes:
        text = N_("received: %(received)s, to be credited: %(available)s")
        click.echo(said(text, received=grouped(action.received), available=grouped(action.available)))
        click.echo(said(N_("callback to the merchant:")) + f"\n{action.sends[-1].body}")
        click.confirm(said(N_("Complete the order?")), abort=True)
    amount, transfer = action.exception.amount if action and action.exception else None, UNKNOWN
    if action and "transfer" in action.fields:
        transfer = returned(found, reference, date, shared=shared, is_needed=action.is_only_proof)
    elif action and (reference or date or shared):
        raise click.UsageError(
            said(N_("--reference, --date and --shared-reference are for money that you sent back yourself."))
        )
    done = resolution.resolve(found, chosen[0], exception_id=exception_id, amount=amount, transfer=transfer)
    if done.is_open:
        text = N_("exception %(id)s (%(kind)s): a refund was requested, and resolves it once completed")
        click.echo(said(text, id=done.id, kind=done.kind))
    else:
        text = N_("exception %(id)s (%(kind)s) resolved: %(resolution)s")
        click.echo(said(text, id=done.id, kind=done.kind, resolution=chosen[0]))
    _say(order_no)
