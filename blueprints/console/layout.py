"""What the console's pages are made of: pages, and lists that find their rows without counting them."""

from __future__ import annotations

import csv
import io
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import Any

from flask import Response, g, request, stream_with_context
from flask_admin import BaseView, expose
from flask_admin.contrib.peewee import ModelView
from flask_admin.model.base import ViewArgs
from flask_babel import gettext
from werkzeug.exceptions import UnprocessableEntity
from wtforms import Form

from blueprints.console import filters
from blueprints.console.access import actor
from blueprints.console.cells import Column
from blueprints.console.locale import zone
from models.db.base import LARGEST_ID
from runtime import Part
from services.console import lists
from services.errors import ApiError, Code
from services.security import audit

PAGE = 50
MOST_EXPORTS = 8  # at once: each keeps a thread of the server for as long as it is read
BYTE_ORDER_MARK = "\ufeff"  # by which Excel knows UTF-8
_exports = Part(lambda: threading.BoundedSemaphore(MOST_EXPORTS))


class Page(BaseView):
    """One page, or several that belong together, below an address of its own."""


def _place() -> ExitStack:
    """One of the places for exports, until it is closed. Raises ApiError: TOO_MANY_REQUESTS, all are taken."""
    if not _exports().acquire(blocking=False):
        raise ApiError(Code.TOO_MANY_REQUESTS)
    held = ExitStack()
    held.callback(_exports().release)
    return held


def _row_id(name: str) -> int | None:
    """The id of a row in the address, if there is one."""
    row_id = request.args.get(name, type=int)
    return row_id if row_id is not None and 0 <= row_id <= LARGEST_ID else None


class List(ModelView):
    """Rows of a table, newest first, a page at a time from where the last one ended: no offset, and no count.

    What can be seen and looked for is said by `columns` and `filters`; the rows are found by `browse`, a
    `services.console.lists.Browse`. The same rows come as a file from `export`.
    """

    list_template = "console/list.html"
    can_create = can_edit = can_delete = can_view_details = can_export = False
    column_display_actions = False
    page_size = PAGE
    columns: Sequence[Column] = ()
    filters: Sequence[filters.Filter] = ()
    browse: type[lists.Browse]
    empty: Any = ""
    of_one = ""  # the endpoint of the pages of one row, which stand under this list in the menu
    new: tuple[str, Any] | None = None  # the endpoint and the label of the form for one more
    # Flask-Admin's own pages, of which none is used: without these lines each list would serve them.
    create_view = edit_view = details_view = delete_view = action_view = ajax_lookup = ajax_update = None

    def __init__(self, name: Any, endpoint: str, **options: Any):
        shown = [column for column in self.columns if column.on != "export"]
        self._cells = {column.name: column for column in shown}
        self.column_list = [column.name for column in shown]
        self.column_labels = {column.name: column.label for column in shown}
        self.column_sortable_list: list[str] = []
        super().__init__(self.browse.table, name, endpoint=endpoint, url=f"/{endpoint}", **options)

    def scaffold_form(self) -> Any:
        """No fields: nothing is edited in a list."""
        return Form

    scaffold_list_form = scaffold_form

    def _get_list_extra_args(self) -> ViewArgs:
        """Flask-Admin's own arguments: none, for it makes addresses of them. What the address says, `filters` read."""
        return ViewArgs()

    def get_list(self, *given: Any, **options: Any) -> tuple[None, list[Any]]:
        """The rows of this page; none where a filter can't be applied."""
        g.wanted = filters.read(self.filters)
        g.found = lists.Found([])
        if not g.wanted.wrong:
            browse = self.browse(g.wanted.values)
            g.found = lists.find(browse, before=_row_id("before"), after=_row_id("after"), limit=self.page_size)
        return None, g.found.rows

    @expose("/")
    def index_view(self) -> Any:
        """A page of the list."""
        page = super().index_view()
        return (page, 422) if g.wanted.wrong else page

    def render(self, template: str, **given: Any) -> str:
        """A page of the list; `list_url(before=...)` is the address of another one with the same filters."""

        def list_url(endpoint: str = ".index_view", **changed: Any) -> str:
            given = {each.argument: request.args.get(each.argument) for each in self.filters}
            return self.get_url(endpoint, **given | changed)

        return super().render(template, list_url=list_url, found=g.found, wanted=g.wanted, cells=self._cells, **given)

    def get_empty_list_message(self) -> Any:
        """What stands in the place of rows."""
        if [each for each, _ in g.wanted.shown if not each.default] or g.found.looked_to or request.args.get("before"):
            return gettext("Nothing here fits.")
        return self.empty or gettext("Nothing here yet.")

    @expose("/export", methods=("POST",))
    def export(self, export_type: str = "csv") -> Response:
        """All rows that fit the filters, as a CSV file that is written while it is sent. Raises ApiError."""
        wanted = filters.read(self.filters)
        if wanted.wrong:
            raise UnprocessableEntity
        said = ", ".join(f"{each.key}: {value}" for each, value in wanted.shown)
        held = audit.act(actor(), "export", "list", str(self.endpoint), _place, said)
        name = f"{self.endpoint}-{datetime.now(zone()):%Y%m%d-%H%M%S}.csv"
        response = Response(
            stream_with_context(self._lines(self.browse(wanted.values), held)),
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )
        response.call_on_close(held.close)  # also where nobody reads it
        return response

    def _lines(self, browse: lists.Browse, held: ExitStack) -> Iterator[str]:
        columns = [column for column in self.columns if column.on != "page"]
        with held:
            yield BYTE_ORDER_MARK + _csv([[str(column.label) for column in columns]])
            for rows in lists.every(browse):
                yield _csv([[column.csv(row) for column in columns] for row in rows])


def _csv(rows: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()
