"""An operator at the console: signed in through its own form, reading its pages, sending its forms."""

import pytest

from models.tables.operator import Operator, Session
from services.sandbox import seeding
from tests.blueprints.console.acting import Desk
from tests.blueprints.console.reading import Shown

PASSWORD = "-password"
LATER = 2**40  # after any time that a test sets


@pytest.fixture
def sign_in(app):
    """`sign_in(name)`: Flask's test client with a session of this account of the demo.

    The session is confirmed, so that no action requires the password again, unless `confirmed` is false.
    """
    seeding.seed_operators()

    def signed_in(name, confirmed=True):
        client = app.test_client()
        token = Shown(client.get("/console/login").text).fields["csrf_token"]
        form = {"csrf_token": token, "name": name, "password": name + PASSWORD}
        assert client.post("/console/login", data=form).status_code == 302
        if confirmed:
            Session.update(confirmtime=LATER).where(Session.operator == Operator.get(name=name)).execute()
        return client

    return signed_in


@pytest.fixture
def console(sign_in):
    """The operator `demo`, signed in."""
    return sign_in("demo")


@pytest.fixture
def viewer(sign_in):
    """The viewer, signed in."""
    return sign_in("viewer")


@pytest.fixture
def page(console):
    """`page("orders/?status=paid")`: the page for a signed-in operator (or `client`)."""

    def read(path="", client=console, status=200):
        answer = client.get(f"/console/{path}")
        assert answer.status_code == status, answer.text
        shown = Shown(answer.text)
        assert not shown.inline, "the policy forbids inline styles and scripts"
        return shown

    return read


@pytest.fixture
def send(console, page):
    """`send("order/123/accept", reason="...")`: the response to a form of the console, with its token."""

    def post(path, client=console, **fields):
        token = page(client=client).fields["csrf_token"]
        return client.post(f"/console/{path}", data={"csrf_token": token, **fields})

    return post


@pytest.fixture
def export(console, page):
    """`export("orders/export?flt_status=paid")`: the response to the button of a list, `buffered` or not."""

    def post(path, client=console, **how):
        token = page(client=client).fields["csrf_token"]
        return client.post(f"/console/{path}", data={"csrf_token": token}, **how)

    return post


@pytest.fixture
def desk(sign_in):
    """The operator `demo`, on the pages of orders."""
    return Desk(sign_in)
