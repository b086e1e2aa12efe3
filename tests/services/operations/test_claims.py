"""Bulk actions on claims that a kill -9 interrupts: each deposit is decided on once or not at all."""

import json
import threading
from contextlib import suppress

import pytest
import requests

from tests.blueprints.console.acting import main_form
from tests.support import until

MANUAL, DEPOSITS, PASSWORD = 3, 40, "four words not together"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def claims(service):
    """The numbers of claimed deposits."""
    numbers = [service.api.buy("10.00", MANUAL).data["order_no"] for _ in range(DEPOSITS)]
    for order_no in numbers:
        service.api.send("POST", "/addons/paychannel/pay/paid", f"order_no={order_no}".encode(), FORM)
    return numbers


@pytest.fixture
def browser(service):
    """A signed-in operator's browser."""
    service.flask("operator", "add", "anna", stdin=f"{PASSWORD}\n")
    session = requests.Session()
    url = f"{service.url}/console/login"
    _, form = main_form(session.get(url, timeout=30).text, name="anna", password=PASSWORD)
    assert "Sign out" in session.post(url, data=form, timeout=30).text
    return session


@pytest.mark.parametrize("action", ["confirm", "not-received"])
def test_each_deposit_is_decided_on_once_or_not_at_all(service, browser, claims, action):
    ended = {"confirm": "completed", "not-received": "cancelled"}[action]
    address = f"{service.url}/console/claims/{action}"
    page = browser.get(address, params={"order_no": claims}, timeout=30).text
    _, form = main_form(page)

    def send():
        with suppress(requests.RequestException):
            browser.post(address, data=form, timeout=60)

    for number in (2, 15, 30):
        sending = threading.Thread(target=send)
        sending.start()
        until(lambda at=number: service.api.status(claims[at]) == ended)
        service.kill()
        sending.join()
        service.start()
        states = [service.api.status(order_no) for order_no in claims]
        assert set(states) <= {"paid", ended}
        assert states == sorted(states, key=lambda state: state == "paid")  # the oldest first, without gaps
    send()
    for order_no in claims:
        details = json.loads(service.flask("order", "show", order_no, "--json").stdout)
        assert details["status"] == ended
        purposes = [entry["purpose"] for entry in details["ledger"]]
        assert purposes == (["credit"] * 3 if action == "confirm" else [])
    service.flask("ledger", "verify")
