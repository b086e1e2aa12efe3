"""Channels that take no new orders now, at the epay gateway: shops and payers use the others."""

import re

import pytest

from models.tables.order import Order
from runtime import clock
from runtime.clock import in_china
from tests.pages import CASHIER, CHOOSE, FORM


@pytest.fixture(params=["no new orders", "outside its hours", "disabled"])
def close(request, flask):
    """`close(2)`: the channel takes no orders now."""

    def closed(channel):
        now = in_china(clock.now()).hour
        later = f"{(now + 2) % 24:02}:00-{(now + 3) % 24:02}:00"
        how = {"no new orders": ("--no-new-orders",), "outside its hours": ("--hours", later)}
        flask("channel", "set", channel, *how.get(request.param, ("--disabled",)))

    return closed


def _offered(http, number):
    return re.findall(r'name="choice" value="([^"]+)"', http("GET", f"{CASHIER}?order_no={number}").text)


def _channel(answer):
    return Order.get(Order.order_no == answer["trade_no"]).channel_id


def test_a_type_with_several_channels_uses_the_open_one(shop, close):
    close(2)
    assert _channel(shop.mapi(type="wxpay")) == 1


def test_a_type_whose_only_channel_is_closed_is_refused_and_works_again_later(shop, close, flask):
    close(2)
    assert shop.mapi(type="alipay")["code"] != 1
    flask("channel", "set", 2, "--takes-orders", "--hours", "none", "--enabled")
    assert _channel(shop.mapi(type="alipay")) == 2


def test_a_payer_who_chooses_a_channel_that_was_closed_meanwhile_gets_no_order_there(shop, close, http):
    number = shop.mapi(type="wxpay")["trade_no"]
    assert _offered(http, number) == ["2-wxpay", "1-wxpay"]
    close(2)
    assert _offered(http, number) == ["1-wxpay"]
    http("POST", CHOOSE, f"order_no={number}&choice=2-wxpay".encode(), FORM)
    assert not Order.select().where(Order.order_no == number).exists()
    http("POST", CHOOSE, f"order_no={number}&choice=1-wxpay".encode(), FORM)
    assert Order.get(Order.order_no == number).channel_id == 1
