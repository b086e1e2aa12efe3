"""Channels that take no new orders for a while, and disabled ones, over HTTP."""

import pytest

from runtime import clock
from runtime.clock import in_china

KEY = {"Idempotency-Key": "order-17"}


def hours(first, last):
    """Hours of the day in China that begin and end this many hours from now."""
    now = in_china(clock.now()).hour
    return f"{(now + first) % 24:02}:00-{(now + last) % 24:02}:00"


CLOSED = {
    "no new orders": lambda: ("--no-new-orders",),
    "outside its hours": lambda: ("--hours", hours(2, 3)),
}


def test_a_disabled_channel_says_so_to_its_merchants_only(api, other, flask):
    assert api.buy(channel=4).code == 40403
    flask("channel", "set", 4, "--disabled")
    for place in (other.buy, other.sell):
        refused = place(channel=4)
        assert (refused.status, refused.code) == (404, 40403)
        assert "disabled" in refused.json["msg"]
    stranger = api.buy(channel=4)
    assert (stranger.code, stranger.json["msg"]) == (40403, "channel not found")
    assert api.buy(channel=99).json == stranger.json


@pytest.mark.parametrize("closed", CLOSED)
def test_a_channel_without_new_orders_asks_merchants_to_try_again(api, flask, closed):
    flask("channel", "set", 2, *CLOSED[closed]())
    for place in (api.buy, api.sell):
        refused = place(headers=KEY)
        assert (refused.status, refused.code) == (503, 50300)
        assert int(refused.headers["Retry-After"]) >= 1
    flask("channel", "set", 2, "--takes-orders", "--hours", "none")
    assert api.buy(headers=KEY).code == 1, "the refusal did not use the key"


def test_a_channel_takes_orders_within_its_hours_also_past_midnight(api, flask):
    for wanted in (hours(0, 2), hours(0, 23)):
        flask("channel", "set", 2, "--hours", wanted)
        assert api.buy().code == 1, wanted


@pytest.mark.parametrize("closed", [*CLOSED, "disabled"])
def test_present_orders_notices_refunds_and_payouts_go_on(api, flask, later, closed):
    flask("merchant", "set", "demo", "--refunds", "automatic", "--refund-auto-max", "1000")
    paid, unpaid, payout = api.buy().data["order_no"], api.buy().data["order_no"], api.sell("5.00").data["order_no"]
    api.play(paid, "success")
    repeated = api.buy(headers=KEY).data["order_no"]
    flask("channel", "set", 2, *CLOSED.get(closed, lambda: ("--disabled",))())
    assert api.buy(headers=KEY).data["order_no"] == repeated, "a repeated request gets its order"
    api.play(unpaid, "success")
    assert api.status(unpaid) == "completed"
    flask("order", "approve", payout)
    api.play(payout, "success")
    later(60, 3)
    assert api.status(payout) == "completed"
    refund = api.call("createRefund", {"order_no": paid, "cny_amount": "1.00", "merchant_refund_no": "R-1"})
    assert refund.code == 1


def test_the_list_has_a_channel_that_takes_no_orders_now_but_no_disabled_one(api, flask):
    """A shop that reads its menu at night must not miss the channel in the morning."""

    def listed():
        return [row["id"] for row in api.call("getPayChannels").data["list"]]

    for closed in CLOSED.values():
        flask("channel", "set", 2, *closed())
        assert listed() == [1, 2, 3]
    flask("channel", "set", 2, "--disabled")
    assert listed() == [1, 3]
