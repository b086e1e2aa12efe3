"""Faults that are not the shop's: a negative code for its server, a page for the payer, and a later try succeeds."""

from contextlib import contextmanager

import pytest

from blueprints.api import envelope
from tests.databases import impatient, orders_held_up


@contextmanager
def shutting_down(app):
    envelope.draining().set()
    try:
        yield
    finally:
        envelope.draining().clear()


@contextmanager
def locked(app):
    with impatient(), orders_held_up(app.instance_path):
        yield


@pytest.mark.parametrize("fault", [shutting_down, locked])
def test_a_fault_of_the_service_has_the_protocols_form(fault, app, shop):
    with fault(app):
        answer, page = shop.post("/mapi.php", shop.signed()), shop.submit()
    assert (answer.status, answer.json["code"], page.status) == (503, -1, 503)
    assert "temporarily unavailable" in answer.json["msg"]
    assert int(answer.headers["Retry-After"]) >= 1
    assert page.headers["Content-Type"].startswith("text/html")
    assert "reload this page" in page.text
    assert shop.mapi()["code"] == 1
