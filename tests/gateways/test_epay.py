"""epay, version 1 and 2: a deposit from its QR code to its notice, and a payout, against the loopback platform."""

import pytest

from tests.upstreams.epay import EpayPlatform

START = 1_000_000
PAID = (START + 9_940, 0)
VERSIONS = pytest.mark.parametrize("version", ["1", "2"])


@pytest.fixture
def platform(web_server):
    return EpayPlatform(web_server)


@VERSIONS
def test_a_deposit_is_paid_and_credited(version, api, platform, add_channel, balances, steps):
    channel = add_channel("epay", platform.config(version))
    order_no = api.buy(channel=channel).data["order_no"]
    platform.pay(order_no)
    answer = platform.notice(order_no, version).to(api.send, order_no)
    assert (answer.status, answer.text) == (200, "success")
    assert (api.status(order_no), balances()) == ("completed", PAID)
    assert steps(order_no)[-1] == ("service", "confirmed", "completed")


@VERSIONS
def test_a_lost_notice_is_found_by_asking(version, api, platform, add_channel, later, balances):
    order_no = api.buy(channel=add_channel("epay", platform.config(version))).data["order_no"]
    platform.pay(order_no)
    later(60)
    assert (api.status(order_no), balances()) == ("completed", PAID)


def test_a_payout_is_paid_once(api, platform, add_channel, flask, later, balances, story):
    channel = add_channel("epay", platform.config("2"), "--auto-accept-max", "1000")
    flask("account", "add", "demo", "--card-number", "payee@example.com", "--real-name", "张三")
    order_no = api.sell(channel=channel, paychannel_paymethod="alipay").data["order_no"]
    later(1, times=4)
    assert (api.status(order_no), len(platform.payouts)) == ("completed", 1)
    assert story(order_no)["channel_reference"].startswith("BZ2")
