"""A shop of the merchant `demo` whose plug-in is connected to the epay gateway."""

import pytest

from tests.epay_shop import Shop


@pytest.fixture
def keys(flask_json):
    """The settings that the shop's owner pasted. Alipay leads to one channel, WeChat Pay to two."""
    hosts = ("--host", "127.0.0.1", "--host", "localhost")
    types = ("--type", "alipay=2", "--type", "wxpay=2", "--type", "wxpay=1")
    return flask_json("epay", "enable", "demo", *hosts, *types)


@pytest.fixture
def settings_of_app():
    """The shop's server has a private address."""
    return {"private_callbacks": True}


@pytest.fixture
def shop(http, web_server, keys):
    """The shop."""
    return Shop(http, web_server, keys)


@pytest.fixture
def rsa_shop(http, web_server, keys, flask_json):
    """The shop with RSA keys, for version 2."""
    return Shop(http, web_server, keys | flask_json("epay", "rotate", "demo", "--rsa"))
