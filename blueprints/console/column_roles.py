"""The form that asks what each column of an unknown file has. The answer is kept for files of the channel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flask import render_template, request

from blueprints.console import uploads
from blueprints.console.forms import message_of
from models.tables.channel import Channel
from services.errors import N_, OperatorError
from services.statements import layouts
from services.statements.layouts import Layout, Role, UnknownLayout
from services.statements.tables import Row

EXAMPLES = 3  # rows below the header that are shown
MOST_HEADERS = 40  # rows that can be chosen as the header


def confirmed(content: bytes, head_of: Callable[[bytes], list[Row]], check: Callable[[Layout], None]) -> Layout | None:
    """Return the layout that the form has for a file; None if the form has none, and then the file is not read.

    Args:
        head_of: returns the first rows of the file.

    Raises:
        OperatorError: the file can't be read.
        UnknownLayout: the operator wants to choose again, the form is about other columns, or its roles do not pass the
            check.
    """
    roles = request.form.getlist("role")
    if not roles and not request.form.get("again"):
        return None
    head = head_of(content)
    if not roles:
        raise UnknownLayout(head, N_("Choose the content of each column."))
    header = next((layouts.header_of(cells) for at, cells in head if str(at) == request.form.get("header")), [])
    if not header or header != request.form.getlist("name"):
        raise UnknownLayout(head)
    try:
        chosen = layouts.confirmed(header, [Role(role) for role in roles])
        check(chosen)
    except OperatorError as refusal:
        raise UnknownLayout(head, refusal.text, **refusal.values) from None
    except ValueError:
        raise UnknownLayout(head, N_("Choose the content of each column.")) from None
    return chosen


def page(
    unknown: UnknownLayout,
    channel: Channel,
    labels_of_roles: Mapping[Role, Any],
    suggest: Callable[[list[str]], list[Role]],
    **facts: Any,
) -> tuple[str, int]:
    """Show the first rows of a file, and ask what each of its columns has.

    Args:
        suggest: returns the roles that the names of a header suggest.
        facts: of the template: `title`, `back`, `send_to` and `button`.
    """
    heads = [(line, cells, layouts.header_of(cells)) for line, cells in unknown.rows]
    likely = max(heads, key=lambda head: (sum(role is not Role.IGNORED for role in suggest(head[2])), len(head[2])))
    line, cells, names = next((head for head in heads if str(head[0]) == request.form.get("header")), likely)
    given = request.form.getlist("role") if names == request.form.getlist("name") else []
    below = [row for at, row in unknown.rows if at > line][:EXAMPLES]
    return render_template(
        "console/columns.html",
        channel=channel,
        problem=message_of(unknown),
        line=line,
        names=names,
        roles=labels_of_roles,
        titles=cells,
        chosen=given or [role.value for role in suggest(names)],
        examples=[[row[place] for row in below if place < len(row) and row[place]] for place in range(len(names))],
        file=uploads.hidden_fields("file"),
        headers=[(at, " | ".join(filter(None, row))[:80]) for at, row in unknown.rows[:MOST_HEADERS]],
        **facts,
    ), 422
