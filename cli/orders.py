"""`flask order`: see orders and their exceptions, and decide what only a person can."""

from __future__ import annotations

from typing import Any

import click

from cli.output import YUAN, Commands, facts, json_option, show, table, when
from models.ledger import Entry, LedgerAccount, Posting
from models.merchant import Merchant
from models.order import BUY, SELL, STATUSES, History, Order, PaymentException
from models.outbox import Callback
from schemas.views import hundredths, order_view
from services import administration, payouts, settlement
from services.errors import NotPossible

order = Commands("order", help="Orders, their exceptions, and what an operator decides.")
TYPES = {"buy": BUY, "sell": SELL}


def _find(order_no: str) -> Order:
    found = Order.get_or_none(Order.order_no == order_no)
    if found is None:
        raise NotPossible(f"no order {order_no}")
    return found


def _row(found: Order, exceptions: list[str]) -> dict[str, Any]:
    return {
        "order_no": found.order_no,
        "merchant": found.merchant.key,
        "channel": found.channel_id,
        "type": "buy" if found.is_buy else "sell",
        "status": found.status,
        "cny_amount": hundredths(found.amount),
        "merchant_order_no": found.merchant_order_no,
        "createtime": found.createtime,
        "exceptions": ",".join(exceptions),
    }


@order.command("list")
@click.option("--merchant", "key", help="Of this merchant.")
@click.option("--status", type=click.Choice(STATUSES))
@click.option("--type", "kind", type=click.Choice(list(TYPES)))
@click.option("--exceptions", is_flag=True, help="With an open exception.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 10_000))
@json_option
def every(key: str | None, status: str | None, kind: str | None, exceptions: bool, limit: int, as_json: bool) -> None:
    """List orders, newest first."""
    is_open = PaymentException.resolution.is_null()
    rows = Order.select(Order, Merchant).join(Merchant).order_by(Order.createtime.desc(), Order.id.desc()).limit(limit)
    if key:
        rows = rows.where(Order.merchant == administration.find_merchant(key))
    if status:
        rows = rows.where(Order.status == status)
    if kind:
        rows = rows.where(Order.order_type == TYPES[kind])
    if exceptions:
        rows = rows.where(Order.id.in_(PaymentException.select(PaymentException.order).where(is_open)))
    kinds: dict[int, list[str]] = {}
    for exception in PaymentException.select().where(is_open, PaymentException.order.in_([row.id for row in rows])):
        kinds.setdefault(exception.order_id, []).append(exception.kind)
    views = [_row(row, kinds.get(row.id, [])) for row in rows]
    show(views, as_json, lambda views: table([view | {"createtime": when(view["createtime"])} for view in views]))


def _story(found: Order) -> dict[str, Any]:
    """Everything about one order that is no secret."""
    history = History.select().where(History.order == found).order_by(History.id)
    exceptions = PaymentException.select().where(PaymentException.order == found).order_by(PaymentException.id)
    entries = (
        Entry.select(Entry, Posting, LedgerAccount)
        .join(Posting)
        .switch(Entry)
        .join(LedgerAccount)
        .where(Posting.order == found)
        .order_by(Entry.id)
    )
    callbacks = Callback.select().where(Callback.order == found).order_by(Callback.id)
    return order_view.dump(found) | {
        "id": found.id,
        "merchant": found.merchant.key,
        "channel": found.channel_id,
        "payment_method": found.payment_method,
        "channel_reference": found.channel_reference,
        "history": [{"at": h.at, "from": h.before, "to": h.after, "who": h.who, "why": h.why} for h in history],
        "ledger": [
            {
                "purpose": e.posting.purpose,
                "account": e.account.kind,
                "owner": e.account.owner,
                "yuan": hundredths(e.amount),
            }
            for e in entries
        ],
        "exceptions": [
            {
                "id": e.id,
                "kind": e.kind,
                "amount": hundredths(e.amount),
                "reference": e.reference,
                "at": e.createtime,
                "detail": e.detail,
                "resolution": e.resolution,
            }
            for e in exceptions
        ],
        "callbacks": [
            {"id": c.webhook_id, "type": c.type, "state": c.state, "attempts": c.attempts} for c in callbacks
        ],
    }


def _tell(story: dict[str, Any]) -> None:
    parts = ("history", "ledger", "exceptions", "callbacks")
    times = {name: when(story[name]) for name in ("createtime", "updatetime")}
    facts({name: value for name, value in (story | times).items() if name not in parts})
    for part in parts:
        if story[part]:
            click.echo(f"\n{part}")
            table([row | {"at": when(row["at"])} if "at" in row else row for row in story[part]])


@order.command("show")
@click.argument("order_no")
@json_option
def one(order_no: str, as_json: bool) -> None:
    """Show an order's whole story: states, money, exceptions, callbacks."""
    show(_story(_find(order_no)), as_json, _tell)


def _say(order_no: str) -> None:
    click.echo(f"order {order_no} is {_find(order_no).status}")


@order.command("accept")
@click.argument("order_no")
def accept(order_no: str) -> None:
    """Accept a pending withdrawal: the service hands it to its channel."""
    payouts.accept(_find(order_no))
    _say(order_no)


@order.command("reject")
@click.argument("order_no")
@click.option("--reason", required=True, help="Stands in the order's history.")
def reject(order_no: str, reason: str) -> None:
    """Reject a withdrawal and return what it held."""
    payouts.reject(_find(order_no), reason)
    _say(order_no)


@order.command("paid")
@click.argument("order_no")
@click.option("--amount", type=YUAN, help="What came or went, in yuan, where it is not the order's amount.")
@click.option("--reference", default="", help="The bank's or wallet's number for the payment.")
def paid(order_no: str, amount: int | None, reference: str) -> None:
    """Say that the money came (deposit) or was sent (withdrawal), on a manual channel."""
    found = _find(order_no)
    if not payouts.mark_paid(found, amount=amount, reference=reference):
        click.echo("this was on record already")
    for exception in settlement.open_exceptions(found):
        click.echo(f"exception {exception.id}: {exception.detail} ({exception.kind})")
    _say(order_no)


@order.command("settle")
@click.argument("order_no")
@click.option("--credit", "resolution", flag_value="credit", help="Deposit: credit what came in to the merchant.")
@click.option("--refund", "resolution", flag_value="refund", help="Deposit: you send the money back to the payer.")
@click.option("--complete", "resolution", flag_value="complete", help="Withdrawal: the money is out as ordered.")
@click.option("--cancel", "resolution", flag_value="cancel", help="Withdrawal: the money is not out; return the hold.")
@click.option("--exception", "exception_id", type=int, help="Which one, where several are open.")
def settle(order_no: str, resolution: str | None, exception_id: int | None) -> None:
    """Settle an open exception of an order."""
    if resolution is None:
        raise click.UsageError("say how: --credit or --refund (deposit), --complete or --cancel (withdrawal)")
    done = settlement.resolve(_find(order_no), resolution, exception_id=exception_id)
    click.echo(f"exception {done.id} ({done.kind}) is settled: {resolution}")
    _say(order_no)
