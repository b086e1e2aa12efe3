"""Orders on the manual channel, where an operator decides."""

import pytest

from cli import help

MANUAL = 3


@pytest.fixture
def chinese():
    """The help and the usage errors are in Chinese."""
    help.choose("zh")
    yield
    help.choose("en")


@pytest.fixture
def deposit(api):
    """The number of a deposit of 100 yuan on the manual channel."""
    return api.buy("100.00", channel=MANUAL).data["order_no"]


@pytest.fixture
def withdrawal(api):
    """The number of a withdrawal of 50 yuan on the manual channel, which holds 50.15."""
    return api.sell("50.00", channel=MANUAL).data["order_no"]


@pytest.fixture
def open_exceptions(flask_json):
    """`open_exceptions(order_no)`: an order's open exceptions, as (kind, yuan)."""

    def read(order_no):
        found = flask_json("order", "show", order_no)["exceptions"]
        return [(row["kind"], row["amount"]) for row in found if row["resolution"] is None]

    return read
