"""Fixtures of the tests of refunds."""

from __future__ import annotations

from typing import Any

import pytest

from models.tables.merchant import Merchant
from models.tables.refund import Refund
from services.merchants import cache
from services.orders import next_step
from tests.support import Answer, completed


@pytest.fixture(autouse=True)
def refunds_on(app: Any) -> Any:
    """`refunds_on(mode, fees=...)` sets the refunds of the merchant `demo`; automatic ones up to 1,000 yuan before."""

    def change(mode: str = "automatic", most: int = 100_000, fees: str = "keep") -> None:
        facts = {"refund_mode": mode, "refund_auto_max": most, "refund_fees": fees}
        Merchant.update(facts).where(Merchant.key == "demo").execute()
        cache.forget()

    change()
    return change


@pytest.fixture
def paid(api: Any) -> str:
    """The number of a completed deposit of 100.00 with a fee of 0.60."""
    return completed(api)


@pytest.fixture
def refund(api: Any) -> Any:
    """`refund(order_no, "40.00")` requests a refund by the API and returns the response."""
    numbers = iter(range(1, 1_000))

    def request(order_no: str, amount: Any = "100.00", number: str = "", **more: Any) -> Answer:
        number = number or f"R-{next(numbers)}"
        fields = {"order_no": order_no, "cny_amount": amount, "merchant_refund_no": number}
        return api.call("createRefund", fields | more)

    return request


@pytest.fixture
def plays(flask: Any) -> Any:
    """`plays("processing")` sets the outcome of refunds at channel 2."""
    return lambda outcome: flask("channel", "set", "2", "--config", f"refund={outcome}")


@pytest.fixture
def state(app: Any) -> Any:
    """`state(refund_no)`: the status of a refund."""
    return lambda refund_no: Refund.get(Refund.refund_no == refund_no).status


@pytest.fixture(autouse=True)
def _every_refund_has_a_next_step(_database_goes: None, app: Any) -> Any:
    """Check after every test that no order and no refund is left without a next step."""
    yield
    assert [order.order_no for order in next_step.missing(5)] == []
    assert [refund.refund_no for refund in next_step.missing_refunds(5)] == []
