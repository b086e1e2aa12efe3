"""What the console's pages are made of: pages, and lists that find their rows without counting them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from flask import request
from flask_admin import BaseView
from flask_admin.contrib.peewee import ModelView
from flask_admin.contrib.peewee.filters import BasePeeweeFilter
from flask_babel import gettext
from marshmallow import ValidationError
from peewee import JOIN
from wtforms import Form

from blueprints.console.local import zone
from schemas.fields import Yuan

PAGE = 50


class Page(BaseView):
    """One page, or several that belong together, below an address of its own."""


class Filter(BasePeeweeFilter):
    """One thing that a list can be narrowed by: `key` in the address, and what the form shows for it.

    `kind` is choice, text, time or amount; `choices` gives (value, label) pairs; `apply_to(query, value)` narrows.
    """

    def __init__(
        self,
        key: str,
        label: Any,
        apply_to: Callable[[Any, Any], Any],
        kind: str = "choice",
        choices: Callable[[], Sequence[tuple[str, Any]]] = lambda: (),
    ):
        super().__init__(None, label)
        self.key, self.kind, self.choices, self._apply = key, kind, choices, apply_to

    def operation(self) -> str:
        """Flask-Admin's name for how it compares."""
        return ""

    def validate(self, value: str) -> bool:
        """Can it be applied?"""
        try:
            self.clean(value)
        except (ValueError, ValidationError):
            return False
        return True

    def clean(self, value: str) -> Any:
        """The text of the form as a value: fen, Unix time, or a choice. Raises ValueError, ValidationError."""
        if self.kind == "amount":
            return Yuan().deserialize(value)
        if self.kind == "time":
            return int(datetime.fromisoformat(value).replace(tzinfo=zone()).timestamp())
        if self.kind == "choice" and value not in {each for each, _ in self.choices()}:
            raise ValueError(value)
        return value

    def apply(self, query: Any, value: Any) -> Any:
        """The query, narrowed."""
        return self._apply(query, value)


class List(ModelView):
    """Rows of a table, newest first, a page at a time from where the last one ended: no offset, and no count.

    `joined` names foreign keys whose rows are fetched by the same query.
    """

    list_template = "console/list.html"
    can_create = can_edit = can_delete = can_view_details = False
    can_export = True
    simple_list_pager = True
    named_filter_urls = True
    column_display_actions = False
    page_size = PAGE
    filters: Sequence[Filter] = ()
    joined: Sequence[Any] = ()
    empty = ""

    def __init__(self, model: Any, name: Any, endpoint: str, **options: Any):
        self.column_filters = list(self.filters)
        super().__init__(model, name, endpoint=endpoint, url=endpoint, **options)

    def scaffold_form(self) -> Any:
        """No fields: nothing is edited in a list."""
        return Form

    scaffold_list_form = scaffold_form

    def handle_filter(self, filter: Any) -> Any:
        return filter

    def get_filter_arg(self, index: int, flt: Any) -> str:
        """The filter's name in the address, the same in every language."""
        return str(flt.key)

    def _get_filters(self, filters: Any) -> dict[str, Any]:
        return {f"flt_{self._filters[index].key}": value for index, _, value in filters or ()}  # type: ignore[index]

    def _get_list_filter_args(self) -> Any:
        given = [
            (at, each, request.args.get(f"flt_{each.key}", "").strip()) for at, each in enumerate(self._filters or ())
        ]
        return [(at, each.name, text) for at, each, text in given if text and each.validate(text)]

    def get_query(self) -> Any:
        """All rows, with what is joined."""
        query = self.model.select(self.model, *[field.rel_model for field in self.joined])
        for field in self.joined:
            query = query.join_from(field.model, field.rel_model, JOIN.LEFT_OUTER, on=field)
        return query

    def get_list(
        self,
        page: Any,
        sort_column: Any,
        sort_desc: Any,
        search: Any,
        filters: Any,
        execute: bool = True,
        page_size: Any = None,
    ) -> tuple[None, list[Any]]:
        """One row more than a page, so that it shows whether there are older ones."""
        query = self.get_query()
        for index, _, value in filters or ():
            chosen = self._filters[index]  # type: ignore[index]
            query = chosen.apply(query, chosen.clean(value))
        before = request.args.get("before", type=int)
        if before is not None:
            query = query.where(self.model.id < before)
        return None, list(query.order_by(self.model.id.desc()).limit((page_size or PAGE) + 1))

    def render(self, template: str, **given: Any) -> str:
        """A page of the list; `list_url(before=...)` is the address of another one with the same filters."""

        def list_url(**changed: Any) -> str:
            return self.get_url(".index_view", **request.args.to_dict() | changed)

        return super().render(template, list_url=list_url, **given)

    def get_empty_list_message(self) -> str:
        """What stands in the place of rows."""
        return self.empty or gettext("Nothing here.")
