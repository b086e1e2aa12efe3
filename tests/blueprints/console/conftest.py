"""An operator at the console: signed in through its own form, reading its pages, sending its forms."""

import csv
import html
import io
import re
from functools import partial

import pytest

from services.sandbox import seeding
from tests.blueprints.console.acting import Desk, signed_in, token_of
from tests.blueprints.console.reading import Shown

MANUAL, ACCOUNT = 3, "6222020000000000017"


@pytest.fixture
def sign_in(app):
    """`sign_in(name)`: Flask's test client with a session of this account of the demo.

    The session is confirmed, so that no action requires the password again, unless `confirmed` is false.
    """
    seeding.seed_operators()

    return partial(signed_in, app)


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
def send(console):
    """`send("order/123/accept", reason="...")`: the response to a form of the console, with its token."""

    def post(path, client=console, **fields):
        return client.post(f"/console/{path}", data={"csrf_token": token_of(client), **fields})

    return post


@pytest.fixture
def export(console):
    """`export("orders/export?flt_status=paid")`: the response to the button of a list, `buffered` or not."""

    def post(path, client=console, **how):
        return client.post(f"/console/{path}", data={"csrf_token": token_of(client)}, **how)

    return post


@pytest.fixture
def desk(sign_in):
    """The operator `demo`, on the pages of orders."""
    return Desk(sign_in)


# --- bank files of payouts


@pytest.fixture
def accepted(api, flask):
    """`accepted("10.00", "20.00")`: the numbers of approved withdrawals on the manual channel."""

    def made(*amounts, channel=MANUAL):
        numbers = [api.sell(each, channel=channel).data["order_no"] for each in amounts]
        for order_no in numbers:
            flask("order", "accept", order_no)
        return numbers

    return made


@pytest.fixture
def statuses(api):
    """`statuses(numbers)`: their statuses."""
    return lambda numbers: [api.status(order_no) for order_no in numbers]


@pytest.fixture
def create(send):
    """`create(numbers, "icbc")`: the path of the new batch's page."""

    def made(numbers, template="generic"):
        answer = send("payouts/batch", order_no=numbers, template=template)
        assert answer.status_code == 303
        return answer.location.removeprefix("/console/")

    return made


@pytest.fixture
def download(send):
    """`download(path)`: the bytes of the batch's file."""

    def read(path):
        answer = send(f"{path}/file")
        assert answer.status_code == 200
        return answer.data

    return read


@pytest.fixture
def upload(send):
    """`upload(path, content)`: the response to a bank's file."""
    return lambda path, content, **more: send(f"{path}/upload", file=(io.BytesIO(content), "result.csv"), **more)


@pytest.fixture
def result(upload):
    """`result(path, rows)`: the page with what a bank's file would change."""

    def shown(path, rows, encoding="gb18030", **more):
        text = io.StringIO()
        csv.writer(text).writerows(rows)
        return upload(path, text.getvalue().encode(encoding), **more)

    return shown


@pytest.fixture
def record(send):
    """`record(path, page)`: confirm what the page shows."""

    def confirmed(path, page, client=None):
        assert page.status_code == 200
        rows = [html.unescape(row) for row in re.findall(r'name="row" value="([^"]*)"', page.text)]
        return send(f"{path}/result/upload", row=rows, **({"client": client} if client else {}))

    return confirmed
