"""The console's menu: every view that has a category stands under it, with how much waits there."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

from flask import Flask, request
from flask_admin import Admin


@dataclass(frozen=True)
class Item:
    """One line of the menu; `count` is how much waits there for a person."""

    endpoint: str
    label: str
    current: bool
    count: int = 0


def _item(view: Any) -> Item:
    endpoint = f"{view.endpoint}.{view._default_view}"
    waiting = getattr(view, "waiting", lambda: 0)
    current = request.blueprint in (view.endpoint, getattr(view, "of_one", ""))
    return Item(endpoint, str(view.name), current, waiting())


def init(app: Flask, admin: Admin) -> None:
    """Give templates `navigation()`: (group, items) pairs. A view without a category, but for the first, is in none."""
    first, *others = admin._views
    shown = [first, *(view for view in others if view.category is not None)]

    def navigation() -> list[tuple[str, list[Item]]]:
        return [
            (str(group or ""), [_item(view) for view in views])
            for group, views in groupby(shown, lambda view: view.category)
        ]

    app.jinja_env.globals["navigation"] = navigation
