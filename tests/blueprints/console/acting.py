"""An operator's actions on an order's page, through its forms."""

import re

from models.tables.operator import Operator, Session
from tests.blueprints.console.reading import Shown

PASSWORD = "-password"
LATER = 2**40  # after any time that a test sets


def signed_in(app, name, confirmed=True):
    """Flask's test client with a session of this account, whose password is its name with `PASSWORD`.

    The session is confirmed, so that no action requires the password again, unless `confirmed` is false.
    """
    client = app.test_client()
    token = Shown(client.get("/console/login").text).fields["csrf_token"]
    form = {"csrf_token": token, "name": name, "password": name + PASSWORD}
    assert client.post("/console/login", data=form).status_code == 302
    if confirmed:
        Session.update(confirmtime=LATER).where(Session.operator == Operator.get(name=name)).execute()
    return client


def token_of(client):
    """The token of this session's forms, from a page that is made faster than the overview."""
    return re.search(r'name="csrf_token" value="([^"]+)"', client.get("/console/search").text)[1]


class Desk:
    """An operator with a browser, who signs in again once the session has ended."""

    def __init__(self, sign_in, name="demo"):
        self._sign_in = lambda: sign_in(name)
        self.client = self._sign_in()

    def see(self, path):
        """A page of the console, with its forms separated."""
        answer = self.client.get(f"/console/{path}")
        if answer.status_code == 302:
            self.client = self._sign_in()
            answer = self.client.get(f"/console/{path}")
        assert answer.status_code == 200, answer.text
        return Shown(answer.text)

    def order(self, order_no):
        return self.see(f"order/{order_no}")

    def send(self, form, **given):
        """Send a form, follow the redirect, and return the message there: (category, text)."""
        answer = self.client.post(form.url, data={**form, **given})
        assert answer.status_code == 303, answer.text
        return flashed(self.client.get(answer.headers["Location"]).text)

    def act(self, order_no, key, **given):
        """Perform one of the offered actions of an order."""
        return self.send(self.order(order_no).actions[key], **given)


def flashed(html):
    """The one message on top of a page: its category, and its text."""
    ((category, text),) = messages(html)
    return category, text


def messages(html):
    """All messages on top of a page, as (category, text)."""
    return re.findall(r'<p class="notice (\w+)" role="status">.*?<span>(.*?)</span></p>', html)


def main_form(html, **more):
    """The address and the fields of the first form of a page's content, each field with all its values."""
    form = re.search(r'<main.*?(<form method="post".*?</form>)', html, re.S)[1]
    fields = {}
    for tag in re.findall(r"<input[^>]*>", form):
        name, value = re.search(r'name="([^"]+)"', tag), re.search(r'value="([^"]*)"', tag)
        fields.setdefault(name[1], []).append(value[1] if value else "")
    to = re.search(r'action="([^"]+)"', form)
    return to and to[1], fields | more
