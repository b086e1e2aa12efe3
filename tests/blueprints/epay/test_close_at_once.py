"""A shop closes an expired payment while its payer starts it again: the payment is closed, or there is a new order."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from tests.epay_shop import Shop
from tests.support import through_flask

ROUNDS = 12


def test_a_payment_is_either_closed_or_ordered_again(rsa_shop, app, api, later):
    numbers = [f"S-{each}" for each in range(ROUNDS)]
    for number in numbers:
        assert rsa_shop.v2("pay/create", **rsa_shop.fields(out_trade_no=number))["code"] == 0
    later(901)
    start = Barrier(2)

    def close(number):
        start.wait()
        return _at(app, rsa_shop).v2("pay/close", out_trade_no=number)["code"]

    def submit(number):
        start.wait()
        return _at(app, rsa_shop).submit(out_trade_no=number).status

    with ThreadPoolExecutor(2) as pool:
        for number in numbers:
            closed, submitted = pool.submit(close, number), pool.submit(submit, number)
            assert submitted.result() in (303, 400)
            closed.result()
            orders = api.listed(merchant_order_no=number).data["list"]
            statuses = {order["status"] for order in orders if order["merchant_order_no"] == number}
            assert statuses == ({"cancelled"} if closed.result() == 0 else {"cancelled", "pending"})


def _at(app, shop):
    """The same shop with a connection of its own."""
    other = Shop.__new__(Shop)
    other.__dict__ |= shop.__dict__ | {"send": through_flask(app.test_client())}
    return other
