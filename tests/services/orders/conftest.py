"""Fixtures of the tests of orders."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from services.orders import next_step


@pytest.fixture(autouse=True)
def _every_order_has_a_next_step(request: pytest.FixtureRequest, _database_goes: None) -> Iterator[None]:
    """Check after every test that used the application that nobody waits for nothing."""
    yield
    if "app" in request.fixturenames and "breaks_the_ledger" not in request.keywords:
        assert [order.order_no for order in next_step.missing(5)] == []
