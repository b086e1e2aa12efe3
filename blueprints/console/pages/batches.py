"""Batch files of payouts for a bank: make one from selected payouts, download it, import the bank's result."""

from __future__ import annotations

from dataclasses import astuple
from functools import partial
from typing import Any

from flask import Response, abort, current_app, flash, redirect, render_template, request, url_for
from flask_babel import gettext, lazy_gettext, ngettext
from itsdangerous import BadSignature, URLSafeSerializer

from blueprints.console import access, column_roles, uploads
from blueprints.console.access import current_user
from blueprints.console.columns import Column, channel_link
from blueprints.console.filters import SINCE, UNTIL
from blueprints.console.forms import find_or_404, message_of, translate
from blueprints.console.list_page import ListPage, pages_of_one
from models.db.base import LARGEST_ID
from models.tables.maintenance import paused_since
from models.tables.order import SELL, Order
from models.tables.payout_batch import DISCARDED, FAILED, SENT, PayoutBatch
from runtime.state import current
from services.console import record_lists
from services.errors import OperatorError
from services.operations import bank_results, bulk
from services.operations.bank_results import Effect
from services.platform.safe_text import cells
from services.statements import kept_layouts, tables
from services.statements.layouts import Role, UnknownLayout
from services.withdrawals import bank_files
from services.withdrawals.bank_templates import TEMPLATES


def _title(batch: PayoutBatch) -> str:
    return translate(TEMPLATES[batch.template].title)


BATCHES = ListPage(
    "batches",
    lazy_gettext("Bank files"),
    browse=record_lists.Batches,
    empty=lazy_gettext("No bank files yet."),
    filters=(SINCE, UNTIL),
    columns=(
        Column(
            "id",
            lazy_gettext("Batch"),
            lambda row: row.id,
            "number",
            link=lambda row: url_for("batch.show", number=row.id),
        ),
        Column("createtime", lazy_gettext("Created"), lambda row: row.createtime, "time"),
        Column("template", lazy_gettext("Template"), _title),
        Column(
            "channel", lazy_gettext("Channel"), lambda row: row.channel.name, link=lambda row: channel_link(row.channel)
        ),
        Column("count", lazy_gettext("Payouts"), lambda row: row.count, "number"),
        Column("total", lazy_gettext("Amount (¥)"), lambda row: row.total, "money"),
        Column("open", lazy_gettext("Without result"), lambda row: row.open, "number"),
        Column("who", lazy_gettext("By"), lambda row: row.who),
    ),
)

BATCH = f"/<int(max={LARGEST_ID}):number>"
pages = pages_of_one("batch", "batches")

# The labels of what a row of the bank's file does.
EFFECTS = {
    Effect.PAID: lazy_gettext("Will be recorded: paid out"),
    Effect.FAILED: lazy_gettext("Will be recorded: failed, stays to be sent"),
    Effect.CONTRADICTS: lazy_gettext("Will be recorded: contradicts the order"),
    Effect.NOTED: lazy_gettext("Will be recorded: agrees with the order"),
    Effect.RECORDED: lazy_gettext("Already recorded"),
    Effect.UNCLEAR: lazy_gettext("Unclear, nothing changes"),
    Effect.FOREIGN: lazy_gettext("Not in this batch"),
}
# The labels of what a column of the bank's file has.
ROLES = {
    Role.IGNORED: lazy_gettext("Not needed"),
    Role.CODE: lazy_gettext("Number of the payout, such as P12-3"),
    Role.STATUS: lazy_gettext("Result"),
    Role.AMOUNT: lazy_gettext("Amount"),
    Role.ACCOUNT: lazy_gettext("Account number"),
    Role.CURRENCY: lazy_gettext("Currency"),
    Role.REFERENCE: lazy_gettext("Transaction ID"),
    Role.REASON: lazy_gettext("Reason"),
}
RESULTS = {
    SENT: lazy_gettext("Paid out"),
    FAILED: lazy_gettext("Failed"),
    DISCARDED: lazy_gettext("Taken out of the file"),
}


def _find(number: int) -> PayoutBatch:
    return find_or_404(bank_files.find, number)


def new() -> Any:
    """Show the selected payouts with a choice of templates, and make a batch of them."""
    access.must_act()
    if request.method == "POST":
        numbers = request.form.getlist("order_no")[: bulk.MOST]
        try:
            batch = bank_files.create(request.form.get("template", ""), numbers, access.actor())
        except OperatorError as refusal:
            flash(message_of(refusal), "bad")
            return redirect(url_for("payouts.batch", order_no=numbers), 303)
        return redirect(url_for("batch.show", number=batch.id), 303)
    orders = Order.numbered(SELL, list(dict.fromkeys(request.args.getlist("order_no")))[: bulk.MOST])
    refused = bank_files.why_not(orders)
    chosen = [order for order in orders if order.id not in refused]
    return render_template(
        "console/payouts/batch_new.html",
        orders=chosen,
        refused=[(order, refused[order.id]) for order in orders if order.id in refused],
        channels=bulk.subtotals(chosen, "channel"),
        total=bulk.total(chosen),
        message_of=message_of,
        templates={name: translate(template.title) for name, template in TEMPLATES.items()},
    )


def _page(batch: PayoutBatch, **facts: Any) -> str:
    lines = bank_files.lines_of(batch)
    return render_template(
        "console/payouts/batch.html",
        batch=batch,
        lines=lines,
        open=[line for line in lines if bank_files.is_open(line)],
        title=_title(batch),
        results=RESULTS,
        message_of=message_of,
        is_out=any(bank_files.is_open(line) and line.filetime for line in lines),
        lacking=bank_files.unreadable(batch) if current_user.may_act else {},
        paused=paused_since() is not None,
        **facts,
    )


@pages.get(BATCH)
def show(number: int) -> str:
    """Show a batch with its payouts and their results."""
    return _page(_find(number))


@pages.post(f"{BATCH}/file")
def file(number: int) -> Any:
    """Send the file with the open payouts of a batch."""
    batch = _find(number)
    try:
        rows = bank_files.contents(batch, access.actor())
    except OperatorError as refusal:
        flash(message_of(refusal), "bad")
        return redirect(url_for(".show", number=number), 303)
    encoding = TEMPLATES[batch.template].encoding
    return Response(
        cells(rows).encode(encoding),
        content_type=f"text/csv; charset={'utf-8' if encoding == 'utf-8-sig' else 'gbk'}",
        headers={"Content-Disposition": f'attachment; filename="P{batch.id}-{batch.template}.csv"'},
    )


@pages.post(f"{BATCH}/discard")
def discard(number: int) -> Any:
    """Take the open payouts out of a batch."""
    batch = _find(number)
    try:
        count = bank_files.discard(batch, access.actor(), bool(request.form.get("not_given")))
    except OperatorError as refusal:
        flash(message_of(refusal), "bad")
        return redirect(url_for(".show", number=number), 303)
    text = ngettext("%(num)s payout was taken out of the file.", "%(num)s payouts were taken out of the file.", count)
    flash(text, "good")
    return redirect(url_for(".show", number=number), 303)


@pages.post(f"{BATCH}/upload")
def result(number: int) -> Any:
    """Show what the bank's file would change. Nothing is recorded yet."""
    batch = _find(number)
    try:
        _, content = uploads.sent_file("file")
        reported = tables.alone(_read, batch, content)
    except UnknownLayout as unknown:
        return _columns_page(batch, unknown)
    except OperatorError as refusal:
        flash(message_of(refusal), "bad")
        return redirect(url_for(".show", number=number), 303)
    matches = bank_results.compare(batch, reported, access.actor())
    sign = _serializer(batch).dumps
    return render_template(
        "console/payouts/batch_result.html",
        batch=batch,
        effects=EFFECTS,
        message_of=message_of,
        changes=bank_results.CHANGES,
        has_accounts=any(each.said[Role.ACCOUNT] for each in reported),
        found={effect: [each for each in matches if each.effect is effect] for effect in Effect},
        rows=[sign([*astuple(each.row), each.judgement.seal]) for each in matches if each.row and each.is_change],
    )


def _read(batch: PayoutBatch, content: bytes) -> list[bank_results.Reported]:
    """Read the bank's file by known columns, or by the roles that the form has for them, which are then kept.

    Raises:
        UnknownLayout: its columns are not known, or the form is about other columns.
    """
    names, kept = bank_results.names_of(batch), kept_layouts.of_results(batch.channel)
    chosen = column_roles.confirmed(content, bank_results.head_of, bank_results.check)
    if chosen is None:
        return bank_results.read(content, names, kept)
    reported = bank_results.read(content, names, [chosen, *kept])
    kept_layouts.keep(batch.channel, chosen, access.actor())
    return reported


def _columns_page(batch: PayoutBatch, unknown: UnknownLayout) -> tuple[str, int]:
    """Ask what each column of the bank's file has."""
    return column_roles.page(
        unknown,
        batch.channel,
        ROLES,
        partial(bank_results.suggested, bank_results.names_of(batch)),
        title=gettext("Columns of the bank's result"),
        back=(url_for(".show", number=batch.id), gettext("Batch %(batch)s", batch=batch.id)),
        send_to=url_for(".result", number=batch.id),
        button=gettext("Keep columns and check file"),
    )


def _serializer(batch: PayoutBatch) -> URLSafeSerializer:
    """Return what signs the rows that a page showed, so that nothing else can be confirmed."""
    return URLSafeSerializer(str(current_app.secret_key), salt=f"result of batch {batch.id}")


def _confirmed(batch: PayoutBatch) -> list[tuple[bank_results.Row, str]]:
    """Return the rows in the form with their seals. Raises BadRequest if the page of this batch did not show them."""
    try:
        signed = [_serializer(batch).loads(each) for each in request.form.getlist("row")[: batch.count]]
    except BadSignature:
        abort(400)
    return [(bank_results.Row(*row), seal) for *row, seal in signed]


def is_large(number: int) -> bool:
    """Return whether the confirmed results pay out more than `confirm_above` in total. Raises NotFound."""
    limit, batch = current().settings.confirm_above, _find(number)
    paid = {row.line for row, _ in _confirmed(batch) if row.is_paid} if limit else set()
    return bool(paid) and bulk.total(line.order for line in bank_files.lines_of(batch) if line.line in paid) > limit


@pages.post(f"{BATCH}/result/upload")
def apply(number: int) -> Any:
    """Record the confirmed results of a bank's file."""
    batch = _find(number)
    outcomes = bank_results.record(batch, _confirmed(batch), access.actor())
    refused = [each for each in outcomes if each.state == bulk.REFUSED]
    requested = [each for each in outcomes if each.state == bulk.REQUESTED]
    done = len(outcomes) - len(refused) - len(requested)
    flash(ngettext("%(num)s result recorded.", "%(num)s results recorded.", done), "good")
    if requested:
        flash(gettext("Large payouts wait for a second operator: %(count)s.", count=len(requested)), "warn")
    return _page(batch, refused=refused)
