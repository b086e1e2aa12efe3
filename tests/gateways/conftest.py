"""Channels of real upstreams' protocols, whose other side is on this machine (`tests/upstreams/`)."""

import json
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from wechatpayv3 import WeChatPay, WeChatPayType

from tests.payers import Payer
from tests.support import free_port
from tests.upstreams.alipay import Alipay
from tests.upstreams.epay import EpayPlatform
from tests.upstreams.loopback import key_pair
from tests.upstreams.wechatpay import APPID, KEY_ID, MCHID, MERCHANT_SERIAL, WechatPay, WechatSignIn, apiv3_key


@pytest.fixture
def add_channel(flask, flask_json):
    """`add_channel("epay", config)` adds a channel of gateway_b for the merchant `demo`; returns its number."""

    def add(driver, config, *more):
        pairs = [part for name, value in config.items() for part in ("--config", f"{name}={value}")]
        new = ("channel", "add", "--category", "gateway_b", "--driver", driver, "--name", driver.title())
        number = flask_json(*new, *pairs, *more)["id"]
        flask("channel", "link", number, "demo")
        return number

    return add


@pytest.fixture
def platform(web_server):
    """An epay platform."""
    return EpayPlatform(web_server)


@pytest.fixture(params=["1", "2"])
def version(request):
    """The version of its protocol."""
    return request.param


@pytest.fixture
def channel(version, platform, add_channel):
    """A channel of either version at the platform."""
    return add_channel("epay", platform.config(version))


@pytest.fixture
def placed(api, channel):
    """`placed()`: the number of a new deposit of 100 yuan at the platform."""
    return lambda: api.buy(channel=channel).data["order_no"]


@pytest.fixture
def outcome(api, balances, exceptions):
    """`outcome(order_no)`: the order's status, the balances of `demo`, and all open exceptions."""
    return lambda order_no: (api.status(order_no), balances(), exceptions())


@pytest.fixture
def notify(api, version, platform):
    """`notify(number)`: send the platform's notice about an order, or about a later attempt to pay it (`_2`)."""

    def send(number, **facts):
        return platform.notice(number, version, **facts).to(api.send, number.partition("_")[0])

    return send


@pytest.fixture
def wechat(web_server):
    return WechatPay(web_server)


@pytest.fixture
def wechat_sdk(wechat):
    """`wechat_sdk()`: a third party's SDK, wechatpayv3, for the merchant's account or with another key.

    It has no public setting for its address.
    """

    def make(private=wechat.merchant_private, **whom):
        key = {"public_key": key_pair("wechatpay platform")[1], "public_key_id": KEY_ID}
        account = (WeChatPayType.NATIVE, MCHID, private, MERCHANT_SERIAL, APPID, apiv3_key())
        made = WeChatPay(*account, notify_url="https://shop.example.com/notify", **whom or key)
        made._core._gate_way = wechat.base_url
        return made

    return make


@pytest.fixture
def sign_in(web_server):
    """WeChat's sign-in of payers."""
    return WechatSignIn(web_server)


@pytest.fixture
def alipay(web_server):
    return Alipay(web_server)


@pytest.fixture
def payer(app):
    """`payer("mobile")`: a payer with this browser, at another address if given (`tests/payers.py`)."""
    return lambda *browser, **address: Payer(app, *browser, **address)


@pytest.fixture
def impatient(monkeypatch):
    """`with impatient():` calls to upstreams time out after half a second, so that the fault `slow` is one."""

    @contextmanager
    def hurry():
        with monkeypatch.context() as patch:
            for name in ("CONNECT", "READ", "WHOLE"):
                patch.setattr(f"gateways.upstream.{name}", 0.5)
            yield

    return hurry


@pytest.fixture
def called():
    """`called(upstream)`: the requested paths, without their query."""
    return lambda upstream: [request.path.removeprefix(f"/{upstream.prefix}/") for request in upstream.calls]


@pytest.fixture
def shown(http):
    """`shown(order_no)`: the payment page's HTML."""
    return lambda order_no: http("GET", f"/addons/paychannel/pay/index?order_no={order_no}").text


@pytest.fixture
def checked(flask, channel):
    """`checked()`: the results by subject, `(result, detail)`; with `fails` if something is a problem."""

    def check(fails=False):
        rows = json.loads(flask("channel", "check", channel, "--json", fails=fails).output)
        return {row["check"]: (row["result"], row["detail"]) for row in rows}

    return check


@pytest.fixture
def members(web_server, add_channel, flask, flask_json, app):
    """`members(2, open_on_view="true")`: a group of the merchant `demo` with so many epay platforms.

    `platforms` and `channels` of the result are in the order of their positions, and `group` is the group's number.
    """

    def add(count, mode="priority", version="1", limits=(), **config):
        platforms = [EpayPlatform(web_server, f"epay{at}", key=f"an-epay-key-number-{at}") for at in range(count)]
        channels = []
        for at, platform in enumerate(platforms):
            channels.append(add_channel("epay", platform.config(version, **config), "--name", f"Platform {at}"))
            flask("channel", "unlink", channels[-1], "demo")
        new = ("channel", "add", "--category", "gateway_b", "--driver", "group", "--name", "Group")
        group = flask_json(*new, "--config", f"mode={mode}")["id"]
        flask("channel", "link", group, "demo")
        for channel in channels:
            flask("group", "add", group, channel, *limits)
        return SimpleNamespace(platforms=platforms, channels=channels, group=group)

    return add


@pytest.fixture
def cut_off(flask):
    """`cut_off(channel)`: nothing listens at the channel's address any more."""

    def change(channel):
        flask("channel", "set", channel, "--config", f"base_url=http://127.0.0.1:{free_port()}", "--same-account")

    return change


@pytest.fixture
def order(flask_json):
    """`order(order_no)`: its facts, such as `channel`, `group`, and `tried`: the members before, each with a reason."""

    def read(order_no):
        found = flask_json("order", "show", order_no)
        return SimpleNamespace(**found)

    return read
