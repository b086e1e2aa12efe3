"""A channel with a slow upstream occupies only a part of the threads that serve requests."""

import threading
from contextlib import ExitStack

import pytest

from gateways.base import ChannelUnknown
from services.channels.bulkhead import channel_slot
from tests.support import Api, through_flask, until
from tests.upstreams.epay import EpayPlatform

pytestmark = pytest.mark.parametrize("settings_of_app", [{"threads": 8}])


@pytest.fixture
def slow(web_server, flask, flask_json):
    """A platform whose channel is number 5."""
    platform = EpayPlatform(web_server)
    pairs = [part for name, value in platform.config("1").items() for part in ("--config", f"{name}={value}")]
    flask_json("channel", "add", "--category", "gateway_b", "--driver", "epay", "--name", "Slow", *pairs)
    flask("channel", "link", 5, "demo")
    return platform


def test_only_some_requests_wait_for_it_and_the_others_are_opened_later(
    app, api, slow, later, exceptions, order_details
):
    slow.fails("slow", "slow")
    waiting = [threading.Thread(target=Api(through_flask(app.test_client())).buy, kwargs={"channel": 5}) for _ in "ab"]
    for each in waiting:
        each.start()
    until(lambda: slow.busy == 2)
    third = api.buy(channel=5)
    assert (third.code, slow.busy, len(slow.calls)) == (1, 2, 2)
    order_no = third.data["order_no"]
    assert order_details(order_no)["exceptions"][0]["detail"] == "2 requests wait for this channel already"
    for each in waiting:
        each.join()
    later(1)
    assert exceptions() == {}
    assert len(slow.orders) == 3


def test_half_of_the_threads_never_wait_for_channels(app):
    with ExitStack() as waiting:
        for channel in (1, 1, 2, 2):
            waiting.enter_context(channel_slot(channel))
        with pytest.raises(ChannelUnknown, match="4 requests wait for channels already"), channel_slot(3):
            pass
    with channel_slot(3):
        pass
