"""The overview for a reader in a time zone, and a ledger that was checked."""

import pytest

from services.console import statistics
from services.ledger import scheduled_checks


@pytest.fixture
def overview(page, sign_in, monkeypatch):
    """`overview(zone, range="30")`: the present overview, for a reader who signs in again if necessary."""
    monkeypatch.setattr(statistics, "FRESH", -1)
    clients = {}

    def look(zone="UTC", range="7", name="demo"):
        if name not in clients or clients[name].get("/console/").status_code != 200:
            clients[name] = sign_in(name)
        clients[name].set_cookie("console_zone", zone, path="/console")
        return page(f"?range={range}", client=clients[name])

    return look


@pytest.fixture
def verified(app):
    """The ledger was checked just now."""
    scheduled_checks.record("command", {}, 0.1)
