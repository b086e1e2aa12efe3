"""An operator who fills in the console's forms, and the resulting records."""

import re

import pytest

from models.tables.operator import AuditEntry
from tests.blueprints.console.setting_up.filling import Page

SHOWN = re.compile(r'<code id="(\w+)">([^<]+)</code>')


@pytest.fixture
def fill(console):
    """`fill("merchant/new", key="shop")`: the response to a page's own form, or to the one with this end of its
    address."""

    def send(path, ending="", client=console, **typed):
        form = Page(client.get(f"/console/{path}").text).form(ending)
        return client.post(form.action or f"/console/{path}", data=form.fill(typed))

    return send


@pytest.fixture
def wrong(fill):
    """`wrong("merchant/new", key="")`: the messages about fields in the response; nothing may be saved."""

    def send(path, **typed):
        answer = fill(path, **typed)
        assert answer.status_code == 422, answer.text
        return Page(answer.text).problems

    return send


@pytest.fixture
def typed(console):
    """`typed("channel/2")`: the values in the fields of a page's own form."""
    return lambda path: Page(console.get(f"/console/{path}").text).form().sent


@pytest.fixture
def shown():
    """`shown(answer)`: the secrets on a page, by name."""
    return lambda answer: dict(SHOWN.findall(answer.text))


@pytest.fixture
def audited(app):
    """`audited()`: the audit log, one line for each entry."""
    return lambda: [" ".join((row.who, row.action, row.about, row.key, row.detail)) for row in AuditEntry.select()]


@pytest.fixture
def everywhere(console, audited, caplog):
    """`everywhere(*pages)`: all places without secrets: these pages, the audit log, the log, the session."""

    def text(*pages):
        cookies = [cookie.value for cookie in console._cookies.values()]
        read = [console.get(f"/console/{path}").text for path in pages]
        return "\n".join([*read, *audited(), caplog.text, *cookies])

    return text
