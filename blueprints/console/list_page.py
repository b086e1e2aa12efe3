"""A page that lists rows, newest first: filters, keyset paging, and an export of all rows as CSV."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from flask import Blueprint, Response, flash, redirect, render_template, request, stream_with_context, url_for
from werkzeug.exceptions import UnprocessableEntity

from blueprints.console import access, filters
from blueprints.console.access import current_user
from blueprints.console.columns import Column
from blueprints.console.filters import SINCE, UNTIL, Filter, named_ranges
from blueprints.console.forms import message_of
from blueprints.console.icons import ICONS
from blueprints.console.locale import zone
from models.db.base import LARGEST_ID
from runtime.state import Part
from services.console import lists, saved_views
from services.errors import ApiError, Code, OperatorError
from services.platform.safe_text import cells

MOST_EXPORTS = 8  # concurrent exports; each occupies a server thread until the client has read it
BYTE_ORDER_MARK = "\ufeff"  # Excel detects UTF-8 by it
_exports = Part(lambda: threading.BoundedSemaphore(MOST_EXPORTS))


@dataclass(frozen=True)
class BulkAction:
    """An action on the selected rows: the endpoint of its confirmation page, and the label and style of its button."""

    endpoint: str
    label: Any
    style: str = ""


@dataclass(frozen=True)
class ListPage:
    """One list: its columns, its filters, and the `Browse` that finds its rows.

    Args:
        name: of the blueprint, in the address and in file names.
        empty: the text for an empty list.
        hint: what adds rows to an empty list.
        new: the endpoint and the label of the form that adds a row.
        template: of the page; it extends `console/list.html`.
        facts: returns further variables of the template, for the rows of the page.
        bulk: the actions on selected rows, which are orders, or other rows with a number and an amount.
        number: the attribute with that number.
        counts: returns how many rows each choice of the tabs has, by its text ("" for all), for the wanted values.
        groups: returns the groups that lead the list in place of their rows, for the wanted values. The template shows
            them, the `Browse` gets them as `apart`. An export has all rows.
        limit: the most rows of a page.
        oldest_first: whether the list begins with the oldest row.
        unindexed: the keys of filters that no index serves, so that a search checks row by row. The page names them.
    """

    name: str
    title: Any
    browse: Callable[[dict[str, Any]], lists.Browse]
    columns: Sequence[Column]
    filters: Sequence[Filter]
    empty: Any
    hint: Any = ""
    new: tuple[str, Any] | None = None
    template: str = "console/list.html"
    facts: Callable[[list[Any]], dict[str, Any]] = lambda rows: {}
    bulk: Sequence[BulkAction] = ()
    number: str = "order_no"
    counts: Callable[[dict[str, Any]], dict[str, int]] = lambda wanted: {}
    groups: Callable[[dict[str, Any]], Sequence[Any]] = lambda wanted: ()
    limit: int = 50
    oldest_first: bool = False
    unindexed: Sequence[str] = ()

    @property
    def icon(self) -> str:
        """The name of the icon of an empty list."""
        return self.name if self.name in ICONS else "page"

    def blueprint(self) -> Blueprint:
        """Return a blueprint that serves the list and its export."""
        pages = Blueprint(self.name, __name__, url_prefix=f"/{self.name}")
        pages.add_url_rule("/", "index", self.index)
        pages.add_url_rule("/export", "export", self.export, methods=["POST"])
        pages.add_url_rule("/views", "save_view", self.save_view, methods=["POST"])
        pages.add_url_rule("/views/delete", "delete_view", self.delete_view, methods=["POST"])
        return pages

    def index(self) -> tuple[str, int]:
        """Show a page of rows, or the errors of the filters."""
        wanted, found, counts, sort = filters.read(self.filters), lists.Found([]), {}, ""
        groups = () if wanted.wrong else self.groups(wanted.values)
        if not wanted.wrong:
            browse, oldest_first = self.browse(wanted.values | ({"apart": groups} if groups else {})), self.oldest_first
            if "sort" in wanted.values:
                oldest_first = wanted.values["sort"].startswith("-")
            before, after = _row_id("before"), _row_id("after")
            found = lists.find(browse, before=before, after=after, limit=self.limit, oldest_first=oldest_first)
            counts = self.counts(wanted.values)
            sort = ("-" if oldest_first else "") + browse.sorted_by
        given = self._given()
        views = saved_views.of(current_user.operator, self.name)
        own = {"counts": counts, "bulk": self.bulk if current_user.may_act else ()}  # `facts` may have others
        narrowed = any(not each.default for each, _ in wanted.shown) or found.looked_to or request.args.get("before")
        page = render_template(
            self.template,
            page=self,
            wanted=wanted,
            found=found,
            list_url=self.list_url,
            sort=sort,
            # The reader's saved views: name, address, and whether it is shown now.
            views=[(each.name, f"{url_for('.index')}?{each.query}", each.query == urlencode(given)) for each in views],
            may_save=bool(given) and not wanted.wrong,
            ranges=named_ranges() if {SINCE, UNTIL} <= set(self.filters) else (),
            columns=[column for column in self.columns if column.on != "export"],
            narrowed=narrowed,
            groups=groups,
            **own | self.facts(found.rows),
        )
        return page, 422 if wanted.wrong else 200

    def row_url(self, row: Any) -> str:
        """Return the address of a row's page: the first link of its columns; empty if it has none."""
        urls = (column.url(row) for column in self.columns if column.on != "export")
        return next(filter(None, urls), "")

    def _given(self) -> dict[str, str]:
        """Return the parameters of the filters in the address."""
        return {name: request.args[name] for name in (each.argument for each in self.filters) if name in request.args}

    def save_view(self) -> Any:
        """Save the filters in the address under the name in the form."""
        name = request.form.get("name", "").strip()
        try:
            saved_views.save(current_user.operator, self.name, name, urlencode(self._given()))
        except OperatorError as refusal:
            flash(message_of(refusal), "bad")
        return redirect(self.list_url(), 303)

    def delete_view(self) -> Any:
        """Delete the view of the name in the form."""
        saved_views.delete(current_user.operator, self.name, request.form.get("name", ""))
        return redirect(self.list_url(), 303)

    def list_url(self, endpoint: str = ".index", **changed: Any) -> str:
        """Return the address of another page or of the export, with the same filters."""
        given = {each.argument: request.args.get(each.argument) for each in self.filters}
        return url_for(endpoint, **given | changed)

    def export(self) -> Response:
        """Stream all rows that match the filters as CSV. Raises ApiError if too many exports are running."""
        wanted = filters.read(self.filters)
        if wanted.wrong:
            raise UnprocessableEntity
        applied = "; ".join(f"{each.key}: {value}" for each, value in wanted.shown)
        slot = access.act("export", "list", self.name, export_slot, applied)
        name = f"{self.name}-{datetime.now(zone()):%Y%m%d-%H%M%S}.csv"
        response = Response(
            stream_with_context(self._lines(self.browse(wanted.values), slot)),
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )
        response.call_on_close(slot.close)  # the generator does not start if the client leaves before the first byte
        return response

    def _lines(self, browse: lists.Browse, slot: ExitStack) -> Iterator[str]:
        columns = [column for column in self.columns if column.on != "page"]
        with slot:
            yield BYTE_ORDER_MARK + cells([[str(column.label) for column in columns]])
            for rows in lists.every(browse):
                yield cells([[column.csv(row) for column in columns] for row in rows])


def pages_of_one(name: str, list_name: str) -> Blueprint:
    """Return a blueprint for the pages of one row; without a key, it redirects to the list."""
    pages = Blueprint(name, __name__, url_prefix=f"/{name}")
    pages.add_url_rule("/", "index", lambda: redirect(url_for(f"{list_name}.index")))
    return pages


def export_slot() -> ExitStack:
    """Reserve an export slot; close it to release it. Raises ApiError TOO_MANY_REQUESTS."""
    if not _exports().acquire(blocking=False):
        raise ApiError(Code.TOO_MANY_REQUESTS)
    slot = ExitStack()
    slot.callback(_exports().release)
    return slot


def _row_id(name: str) -> int | None:
    """Return the row id in the address; None if it is missing or invalid."""
    row_id = request.args.get(name, type=int)
    return row_id if row_id is not None and 0 <= row_id <= LARGEST_ID else None
