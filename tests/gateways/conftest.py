"""Channels of real upstreams' protocols, whose other side is on this machine (`tests/upstreams/`)."""

import json
from collections.abc import Iterator
from functools import cache

import pytest

from gateways import config


@pytest.fixture(scope="session", autouse=True)
def _a_key_is_checked_once() -> Iterator[None]:
    """Check private keys once instead of for each channel, which would take 30 ms."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config, "load_der_private_key", cache(config.load_der_private_key))
        yield


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
def impatient(fault, monkeypatch):
    """If the test's `fault` is `slow`, calls to upstreams time out after half a second."""
    if fault == "slow":
        for name in ("CONNECT", "READ", "WHOLE"):
            monkeypatch.setattr(f"gateways.upstream.{name}", 0.5)


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
