"""Batch files of payouts for a bank: make one from selected payouts, download it, import the bank's result."""

from __future__ import annotations

from dataclasses import astuple
from functools import partial
from typing import Any

from flask import Response, abort, current_app, flash, redirect, render_template, request, session, url_for
from flask_babel import gettext, lazy_gettext
from itsdangerous import BadSignature, URLSafeSerializer

from blueprints.console import access, column_roles, uploads
from blueprints.console.access import current_user
from blueprints.console.columns import Column, channel_link
from blueprints.console.filters import SINCE, UNTIL
from blueprints.console.forms import find_or_404, message_of, translate
from blueprints.console.list_page import ListPage, pages_of_one
from blueprints.console.locale import ngettext, sentences
from models.db.base import LARGEST_ID
from models.tables.maintenance import paused_since
from models.tables.order import CONFIRMED, SELL, Order
from models.tables.payout_batch import DISCARDED, FAILED, SENT, PayoutBatch, PayoutBatchLine
from runtime.money import grouped
from runtime.state import current
from services.console import record_lists
from services.errors import OperatorError
from services.operations import bank_results, bulk
from services.operations.bank_results import Effect
from services.platform.safe_text import cells
from services.security import masking, second_operator
from services.statements import kept_layouts, tables
from services.statements.layouts import Role, UnknownLayout
from services.withdrawals import bank_files, change_account
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
        Column("count", lazy_gettext("Payouts"), lambda row: row.count, "count"),
        Column("total", lazy_gettext("Amount (¥)"), lambda row: row.total, "money"),
        Column("refused", lazy_gettext("Refused"), lambda row: row.refused, "count"),
        Column("open", lazy_gettext("Without result"), lambda row: row.open, "count"),
        Column("who", lazy_gettext("By"), lambda row: row.who),
    ),
)

BATCH = f"/<int(max={LARGEST_ID}):number>"
pages = pages_of_one("batch", "batches")

# The labels of what a row of the bank's file does.
EFFECTS = {
    Effect.PAID: lazy_gettext("Will be recorded: paid out"),
    Effect.REQUESTED: lazy_gettext("Will wait for a second operator"),
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
    FAILED: lazy_gettext("Refused by the bank"),
    DISCARDED: lazy_gettext("Taken out of the file"),
}
STATES = {SENT: "good", FAILED: "bad", DISCARDED: "off"}  # which select their colors
DOWNLOAD = "download"  # in the session: the number of the batch whose page starts the download once


def _find(number: int) -> PayoutBatch:
    return find_or_404(bank_files.find, number)


def refused_because(line: PayoutBatchLine) -> str:
    """Return that the bank refused the payout of this line, with its reason if it has one."""
    told = gettext("Refused by the bank")
    return gettext("Refused by the bank: %(reason)s", reason=line.reason) if line.reason else told


def refusal(order: Order) -> dict[str, Any] | None:
    """Return what the page of a payout that the bank refused shows; None for other orders.

    `line` is that of the bank file. `account` is the account on file that it can be put to, masked, or None; then
    `why_not` is the reason. `is_changed` if it was put to another account since.
    """
    line = bank_files.refused(order)
    if line is None:
        return None
    why_not, account = change_account.why_not(order), change_account.present(order)
    other = masking.account(account) if account and not why_not else None
    return {
        "line": line,
        "text": refused_because(line),
        "account": other,
        "why_not": translate(why_not),
        "is_changed": change_account.is_changed(order),
    }


def new() -> Any:
    """Show the selected payouts with a choice of templates, and make a batch of them, whose page starts the download.

    Names that the bank's encoding lacks are shown before the download.
    """
    access.must_act()
    if request.method == "POST":
        numbers = request.form.getlist("order_no")[: bulk.MOST]
        try:
            batch = bank_files.create(request.form.get("template", ""), numbers, access.actor())
        except OperatorError as refusal:
            flash(message_of(refusal), "bad")
            return redirect(url_for("payouts.batch", order_no=numbers), 303)
        if bank_files.unreadable(batch):
            return redirect(url_for("batch.show", number=batch.id), 303)
        return start(batch.id)
    orders = Order.numbered(SELL, list(dict.fromkeys(request.args.getlist("order_no")))[: bulk.MOST])
    refused = bank_files.why_not(orders)
    chosen = [order for order in orders if order.id not in refused]
    channels = bulk.subtotals(chosen, "channel")
    lines = bank_files.newest_lines([order.id for order in chosen])
    return render_template(
        "console/payouts/batch_new.html",
        orders=chosen,
        refused=[(order, refused[order.id]) for order in orders if order.id in refused],
        channels=channels,
        numbers={
            channel.id: [order.order_no for order in chosen if order.channel_id == channel.id]
            for channel, _, _ in channels
        },
        last_template=bank_files.last_template(channels[0][0]) if channels else "",
        refused_before=[
            (order, refused_because(lines[order.id]))
            for order in chosen
            if order.id in lines and lines[order.id].result == FAILED and not change_account.is_changed(order)
        ],
        total=bulk.total(chosen),
        message_of=message_of,
        sentences=sentences,
        templates={name: translate(template.title) for name, template in TEMPLATES.items()},
    )


def _ended(by_result: dict[str | None, list[Order]]) -> str:
    """Return the count and the total of each result of a batch in which no payout is open."""
    texts = {
        SENT: lazy_gettext("%(count)s paid out ¥%(amount)s"),
        FAILED: lazy_gettext("%(count)s refused by the bank ¥%(amount)s"),
        DISCARDED: lazy_gettext("%(count)s taken out of the file ¥%(amount)s"),
        None: lazy_gettext("%(count)s decided without the file ¥%(amount)s"),
    }
    results = gettext(", ").join(
        str(text) % {"count": len(orders), "amount": grouped(bulk.total(orders))}
        for result, text in texts.items()
        if (orders := by_result[result])
    )
    return ngettext(
        "%(num)s payout has a result: %(results)s.",
        "All %(num)s payouts have a result: %(results)s.",
        sum(map(len, by_result.values())),
        results=results,
    )


def _page(batch: PayoutBatch, **facts: Any) -> str:
    lines = sorted(bank_files.lines_of(batch), key=lambda line: line.result != FAILED)
    by_result = {result: [line.order for line in lines if line.result == result] for result in (*RESULTS, None)}
    open_lines = [line for line in lines if bank_files.is_open(line)]
    return render_template(
        "console/payouts/batch.html",
        batch=batch,
        lines=lines,
        open=open_lines,
        open_total=bulk.total(line.order for line in open_lines),
        requested=second_operator.requested([line.order for line in open_lines]),
        next_count=len(bank_files.to_send(batch)) if open_lines else 0,
        ended="" if open_lines else _ended(by_result),
        has_refused=bool(by_result[FAILED]),
        refused_left=[order for order in by_result[FAILED] if order.status == CONFIRMED],
        title=_title(batch),
        results=RESULTS,
        states=STATES,
        message_of=message_of,
        sentences=sentences,
        is_out=any(line.filetime for line in open_lines),
        lacking=bank_files.unreadable(batch) if current_user.may_act else {},
        paused=paused_since() is not None,
        **facts,
    )


@pages.get(BATCH)
def show(number: int) -> str:
    """Show a batch with its payouts and their results. After `start`, the page starts the download once."""
    batch = _find(number)
    starts = not access.is_renewal() and session.pop(DOWNLOAD, None) == number
    return _page(batch, starts=starts)


@pages.post(f"{BATCH}/download")
def start(number: int) -> Any:
    """Redirect to the page of a batch, which then starts the download: the response with a file leaves no page."""
    session[DOWNLOAD] = number
    return redirect(url_for("batch.show", number=number), 303)


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
        if not bank_results.is_our_file(batch, unknown.rows):
            return _columns_page(batch, unknown)
        flash(gettext("This is the file for the bank. Upload the file with its results."), "bad")
        return redirect(url_for(".show", number=number), 303)
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
        partial(bank_results.guessed, bank_results.names_of(batch), unknown.rows),
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
    rows = _confirmed(batch)
    outcomes = bank_results.record(batch, rows, access.actor())
    done = [row for (row, _), each in zip(rows, outcomes, strict=True) if each.state == bulk.DONE]
    requested = sum(each.state == bulk.REQUESTED for each in outcomes)
    recorded = ngettext("%(num)s result recorded.", "%(num)s results recorded.", len(done))
    if requested and not done:
        recorded = ngettext("%(num)s payout requested.", "%(num)s payouts requested.", requested)
    elif failed := sum(not row.is_paid for row in done):
        recorded = ngettext(
            "%(num)s result recorded: %(paid)s paid out, %(failed)s refused by the bank.",
            "%(num)s results recorded: %(paid)s paid out, %(failed)s refused by the bank.",
            len(done),
            paid=f"{len(done) - failed:,}",
            failed=f"{failed:,}",
        )
    return _page(batch, refused=[each for each in outcomes if each.state == bulk.REFUSED], recorded=recorded)
