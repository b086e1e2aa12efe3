"""Groups of channels at the epay gateway: a type leads to a group, and the shop sees one channel."""

import re
from types import SimpleNamespace

import pytest

from models.tables.order import Order
from tests.pages import CASHIER, CHOOSE, FORM
from tests.upstreams.epay import KINDS, EpayPlatform


@pytest.fixture
def group(web_server, flask, flask_json):
    """A group of the merchant `demo`, to which alone its epay account leads; its members refuse all payments.

    `number` is that of the group; `members` and `platforms` are in the same order.
    """
    new = ("channel", "add", "--category", "gateway_b", "--driver")
    platforms, members = [EpayPlatform(web_server, f"epay{at}") for at in (1, 2)], []
    for platform in platforms:
        platform.kinds = ()
        pairs = [part for name, value in platform.config("1").items() for part in ("--config", f"{name}={value}")]
        members.append(flask_json(*new, "epay", "--name", platform.prefix, *pairs)["id"])
    number = flask_json(*new, "group", "--name", "Online")["id"]
    flask("channel", "link", number, "demo")
    for member in members:
        flask("group", "add", number, member)
    flask("epay", "set", "demo", "--type", f"wxpay={number}", "--type", f"alipay={number}")
    return SimpleNamespace(number=number, members=members, platforms=platforms)


def _order(number):
    return Order.get(Order.order_no == number)


def test_a_type_that_leads_to_a_group_gets_the_member_that_works(shop, group):
    group.platforms[1].kinds = KINDS
    order = _order(shop.mapi(type="wxpay")["trade_no"])
    assert (order.channel_id, order.group_id, order.status) == (group.members[1], group.number, "pending")


def test_a_shop_learns_that_all_members_refused(shop, group):
    assert shop.mapi(type="wxpay")["code"] == -1
    assert [each.status for each in Order.select()][-1] == "cancelled"


def test_a_group_without_a_free_member_asks_the_shop_to_try_again(shop, flask, group):
    for member in group.members:
        flask("channel", "set", member, "--no-new-orders")
    answer = shop.mapi(type="wxpay")
    assert (answer["code"], answer["msg"]) == (-1, "The service is temporarily unavailable. Try again")


def test_a_payer_who_chooses_a_group_gets_one_of_its_members(shop, http, group):
    group.platforms[0].kinds = KINDS
    payment = shop.mapi(type=None)["trade_no"]
    offered = re.findall(r'name="choice" value="([^"]+)"', http("GET", f"{CASHIER}?order_no={payment}").text)
    assert offered == [f"{group.number}-wxpay", f"{group.number}-alipay"]
    http("POST", CHOOSE, f"order_no={payment}&choice={group.number}-alipay".encode(), FORM)
    assert _order(payment).channel_id == group.members[0]
