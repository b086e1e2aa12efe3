"""The payment page in each of its states, for tests of that page."""

import pytest

from tests.pages import CASHIER, CLAIM, FORM


@pytest.fixture
def visit(http):
    """`visit(order_no)`: the payer's response; `language` is the browser's."""
    return lambda order_no, language="en": http(
        "GET", f"{CASHIER}?order_no={order_no}", headers={"Accept-Language": language}
    )


@pytest.fixture
def reach(api, flask, ahead, due):
    """`reach(state)`: the number of an order whose page is in this state, by its payer, its channel or time."""

    def played(outcome, **more):
        order_no = api.buy(**more).data["order_no"]
        api.play(order_no, outcome)
        return order_no

    def confirmed():
        flask("channel", "set", 2, "--settlement-days", 1)
        return played("success")

    def paid():
        order_no = api.buy(channel=3).data["order_no"]
        assert api.send("POST", CLAIM, f"order_no={order_no}".encode(), FORM).status == 303
        return order_no

    def expired():
        order_no = api.buy().data["order_no"]
        ahead(901)
        return order_no

    def late():
        order_no = api.buy().data["order_no"]
        ahead(901)
        api.play(order_no, "late")
        return order_no

    def refunded():
        order_no = late()
        flask("order", "resolve", order_no, "--refund")
        due.orders()
        return order_no

    ways = {
        "pending": lambda: api.buy().data["order_no"],
        "paid": paid,
        "confirmed": confirmed,
        "completed": lambda: played("success"),
        "cancelled": lambda: played("fail"),
        "checking": lambda: played("wrong_amount"),
        "expired": expired,
        "late": late,
        "refunded": refunded,
    }
    return lambda state: ways[state]()
