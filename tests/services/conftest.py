"""Fixtures of the services' tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from services.orders import next_step

OF_ORDERS = ("deposits", "jobs", "orders", "withdrawals")  # packages of tests


@pytest.fixture
def tries(flask_json: Any) -> Any:
    """The attempts of the newest callback."""
    return lambda: flask_json("callback", "show", flask_json("callback", "list", "--limit", "1")[0]["id"])["tries"]


@pytest.fixture
def now(api: Any, balances: Any, exceptions: Any) -> Any:
    """`now(order_no)`: the order's status, the merchant's balances, and the open exceptions by order number."""
    return lambda order_no: (api.status(order_no), balances(), exceptions())


@pytest.fixture
def about(order_details: Any) -> Any:
    """`about(order_no)`: the order's exceptions: kind, amount, resolution."""

    def read(order_no: str) -> list[tuple[str, str, str | None]]:
        found = order_details(order_no)["exceptions"]
        return [(each["kind"], each["amount"], each["resolution"]) for each in found]

    return read


@pytest.fixture(autouse=True)
def _every_order_has_a_next_step(request: pytest.FixtureRequest, _database_goes: None) -> Iterator[None]:
    """Check after every test of orders that used the application that no order is left without a next step."""
    yield
    is_about_orders = request.path.parent.name in OF_ORDERS
    if is_about_orders and "app" in request.fixturenames and "breaks_the_ledger" not in request.keywords:
        assert [order.order_no for order in next_step.missing(5)] == []
