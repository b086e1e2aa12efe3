"""A bulk action that `kill -9` interrupts: each payout is processed once or not at all."""

import threading
from contextlib import suppress

import pytest
import requests

from tests.blueprints.console.bulk import Bulk
from tests.blueprints.console.reading import Shown
from tests.databases import raw
from tests.support import Service, until

COUNT, AMOUNT, MANUAL = 150, 100, 3


class Browser:
    """A signed-in operator of a running service."""

    def __init__(self, url):
        self.url, self.session = f"{url}/console", requests.Session()
        self.session.trust_env = False
        form = {"name": "demo", "password": "demo-password", **self._token("login")}
        assert self.session.post(f"{self.url}/login", data=form, allow_redirects=False).status_code == 302

    def _token(self, path):
        return {"csrf_token": Shown(self.session.get(f"{self.url}/{path}").text).fields["csrf_token"]}

    def confirmation(self, kind, numbers):
        answer = self.session.get(f"{self.url}/payouts/{kind}", params={"order_no": numbers})
        assert answer.status_code == 200
        return Bulk(answer.text)

    def confirm(self, kind, page, **fields):
        form = {"row": page.rows_sent, **self._token("password"), **fields}
        answer = self.session.post(f"{self.url}/payouts/{kind}", data=form, timeout=60)
        assert answer.status_code == 200
        return answer


@pytest.fixture
def running(slow, instance):
    """The service, which accepts many orders in a second."""
    service = Service(instance, ORDERS_REQUESTS_PER_SECOND="1000").start()
    yield service
    if service.process.poll() is None:
        service.stop()


@pytest.fixture
def numbers(running):
    """The numbers of withdrawals on the manual channel."""
    return [running.api.sell("1.00", channel=MANUAL).data["order_no"] for _ in range(COUNT)]


@pytest.fixture
def books(running, instance):
    """A connection to the service's database."""
    with raw(instance) as connection:
        yield connection


def count(books, sql):
    ((number,),) = books.execute(f"SELECT COUNT(*) FROM {sql}").fetchall()
    return number


def status_count(books, status):
    return count(books, f"\"order\" WHERE order_type = 2 AND status = '{status}'")


def interrupt(running, kind, page, has_begun, **fields):
    """Send the form, and kill the service once the action has begun."""
    browser = Browser(running.url)

    def send():
        with suppress(requests.ConnectionError):
            browser.confirm(kind, page, **fields)

    sending = threading.Thread(target=send)
    sending.start()
    until(has_begun)
    running.kill()
    sending.join()
    running.start()


@pytest.mark.parametrize(
    ("kind", "before", "after"), [("sent", "confirmed", "completed"), ("reject", "pending", "cancelled")]
)
def test_each_payout_is_processed_once_or_not_at_all(running, numbers, books, kind, before, after):
    browser, fields = Browser(running.url), {"reason": "stop"} if kind == "reject" else {}
    if kind == "sent":
        browser.confirm("approve", browser.confirmation("approve", numbers))
    posting = {"sent": "spend", "reject": "release"}[kind]
    page = browser.confirmation(kind, numbers)
    interrupt(running, kind, page, lambda: status_count(books, after) > 2, **fields)

    done = status_count(books, after)
    assert 0 < done < COUNT
    assert (status_count(books, before), count(books, f"posting WHERE purpose = '{posting}'")) == (COUNT - done, done)
    assert running.flask("ledger", "verify").returncode == 0

    again = Browser(running.url).confirmation(kind, numbers)
    assert len(again.sealed) == COUNT - done
    assert f"{done} payouts are left out" in again.text
    assert "were not changed" in browser.confirm(kind, page, **fields).text, "the same form again"
    assert status_count(books, after) == count(books, f"posting WHERE purpose = '{posting}'") == COUNT
    assert count(books, "payment_exception") == 0
    assert running.flask("ledger", "verify").returncode == 0


def test_an_approval_is_complete_or_did_not_happen(running, numbers, books):
    page = Browser(running.url).confirmation("approve", numbers)
    interrupt(running, "approve", page, lambda: count(books, "audit_entry WHERE action = 'approve payouts'"))
    approved = status_count(books, "confirmed")
    assert approved in (0, COUNT)
    assert count(books, "audit_entry WHERE action = 'accept order'") == approved
    browser = Browser(running.url)
    if not approved:
        browser.confirm("approve", browser.confirmation("approve", numbers))
    assert status_count(books, "confirmed") == COUNT
