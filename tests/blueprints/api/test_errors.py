"""Every documented error, provoked over HTTP: its status, envelope, headers, and text in both languages."""

import json
import re
import time
from types import SimpleNamespace

import pytest

from blueprints.api import envelope
from models.tables.merchant import Merchant
from models.tables.replay import IdempotencyKey
from tests.databases import impatient, orders_held_up
from tests.support import Api, signed

JSON = {"Content-Type": "application/json"}
FIELDS = {"order_type": 1, "cny_amount": "1.00", "paychannel_id": 2, "paychannel_paymethod": "wxpay"}
REGIONS = "/addons/paychannel/channel.gatewaya"

# The documented codes.
DOCUMENTED = {
    *(40000, 40101, 40102, 40103, 40104, 40300, 40401, 40402, 40403, 40404, 40500, 41300, 41500),
    *(40901, 40902, 40903, 42200, 42201, 42900, 50000, 50201, 50300),
}
WITH_RETRY_AFTER = {42900, 50000, 50300}
LIMIT = 20
ROWS = []


def row(code, name):
    """Register a way to provoke a code."""
    return lambda provoke: ROWS.append(pytest.param(code, provoke, id=f"{code}-{name}"))


@pytest.fixture
def settings_of_app():
    return {"requests_per_second": LIMIT, "refused_per_minute": LIMIT}


@pytest.fixture
def world(app, http, flask):
    """Tools to provoke errors, in the language `world.language`."""
    world = SimpleNamespace(flask=flask, language="en", instance=app.instance_path)

    def send(method, path, body=b"", headers=None):
        return http(method, path, body, (headers or {}) | {"Accept-Language": world.language})

    world.send, world.api, world.other = send, Api(send), Api(send, "other")
    world.post = lambda fields, headers=None: world.api.post("createOrder", json.dumps(fields).encode(), headers)
    yield world
    envelope.draining().clear()


for name, body in {
    "no body": b"",
    "no JSON": b"order_type=1",
    "an array": b"[]",
    "no UTF-8": b'{"a": "\xff"}',
    "a name twice": b'{"a": 1, "a": 1}',
    "too deep": b'{"a":{"a":{"a":{"a":{"a":{"a":{"a":1}}}}}}}',
    "a control character": b'{"a": "\\u0007"}',
}.items():
    row(40000, name)(lambda world, body=body: world.api.post("createOrder", body))


row(40101, "missing")(
    lambda world: world.post({key: value for key, value in signed("x", FIELDS).items() if key != "api_key"})
)
row(40101, "unknown")(lambda world: Api(world.send, "nobody", "?").buy())
row(40102, "wrong secret")(lambda world: Api(world.send, "demo", "guess").buy())
row(40102, "missing")(
    lambda world: world.post({k: v for k, v in signed("createOrder", FIELDS).items() if k != "signature"})
)
row(40102, "another endpoint's")(lambda world: world.post(signed("orderQueryList", FIELDS)))
row(40103, "old")(lambda world: world.api.buy(timestamp=int(time.time()) - 310))
row(40103, "early")(lambda world: world.api.buy(timestamp=int(time.time()) + 310))
row(40104, "malformed")(lambda world: world.api.buy(nonce="short"))
row(40401, "detail")(lambda world: world.api.detail(order_no="1" * 24))
row(40402, "province")(lambda world: world.send("GET", f"{REGIONS}/cityList?province=Atlantis"))
row(40402, "city")(lambda world: world.send("GET", f"{REGIONS}/districtList?province=北京市&city=广州市"))
row(40403, "buy")(lambda world: world.api.buy(channel=999))
row(40403, "sell")(lambda world: world.api.sell(channel=999))
row(40404, "root")(lambda world: world.send("GET", "/nowhere"))
row(40404, "merchant")(lambda world: world.api.call("deleteOrder"))
row(40500, "GET")(lambda world: world.send("GET", "/merchant/createOrder"))
row(40500, "DELETE")(lambda world: world.send("DELETE", "/merchant/orderQueryList"))
row(40500, "OPTIONS")(lambda world: world.send("OPTIONS", "/merchant/createOrder"))
row(40500, "OPTIONS of a region")(lambda world: world.send("OPTIONS", f"{REGIONS}/provinceList"))
row(40500, "POST")(lambda world: world.send("POST", f"{REGIONS}/provinceList"))
row(41300, "large")(lambda world: world.api.post("createOrder", b"{" + b" " * 65_536))
row(41500, "form")(lambda world: world.api.buy(headers={"Content-Type": "application/x-www-form-urlencoded"}))
row(41500, "none")(lambda world: world.api.buy(headers={"Content-Type": ""}))
row(40901, "sell")(lambda world: world.api.sell("10000.00"))
row(40903, "sell")(lambda world: world.other.sell())
row(42200, "buy")(lambda world: world.api.buy("0"))
row(42200, "list")(lambda world: world.api.listed(limit=0))
row(42200, "region")(lambda world: world.send("GET", f"{REGIONS}/cityList"))


@row(40101, "disabled")
def disabled(world):
    world.flask("merchant", "set", "demo", "--disabled")
    return world.api.buy()


@row(40104, "used")
def replayed(world):
    request = signed("createOrder", FIELDS)
    assert world.post(request).code == 1
    return world.post(request)


@row(40300, "not on the list")
def not_allowed(world):
    world.flask("merchant", "set", "demo", "--allow", "192.0.2.0/24")
    return world.api.buy()


@row(40902, "still running")
def in_flight(world):
    headers = {"Idempotency-Key": "k"}
    assert world.api.buy(headers=headers).code == 1
    IdempotencyKey.update(outcome=None).execute()  # as it is until the response to the first request
    return world.api.buy(headers=headers)


@row(42201, "another amount")
def reused(world):
    assert world.api.buy("1.00", headers={"Idempotency-Key": "k"}).code == 1
    return world.api.buy("2.00", headers={"Idempotency-Key": "k"})


@row(42900, "requests")
def too_many(world):
    return next(
        answer for answer in (world.api.detail(order_no="1") for _ in range(100 * LIMIT)) if answer.status == 429
    )


@row(42900, "refusals")
def refused_too_often(world):
    for _ in range(LIMIT):
        assert world.api.buy(signature="x", timestamp=0, api_key="nobody").status == 401
    return world.api.buy()


@row(50000, "a secret that can't be read")
def internal(world):
    Merchant.update(secret="damaged").where(Merchant.key == "demo").execute()
    return world.api.buy()


@row(50201, "refused")
def channel_refused(world):
    world.flask("channel", "set", 2, "--config", "open=refuse")
    return world.api.buy()


@row(50300, "shutting down")
def shutting_down(world):
    envelope.draining().set()
    return world.api.buy()


@row(50300, "database locked")
def locked(world):
    with impatient(), orders_held_up(world.instance):
        return world.api.buy()


@pytest.mark.parametrize(("code", "provoke"), ROWS)
def test_an_error_has_the_documented_response(world, code, provoke):
    answer = provoke(world)
    assert answer.code == code
    assert answer.status == code // 100
    assert list(answer.json) == ["code", "msg", "data"]
    assert answer.headers["Content-Type"].startswith("application/json")
    assert answer.headers["X-Service-Version"]
    if code == 42200:
        assert all(type(messages) is list and messages for messages in answer.data.values())
    elif code == 50201:
        assert world.api.status(answer.data["order_no"]) == "cancelled"
    else:
        assert answer.data is None


@pytest.mark.parametrize(("code", "provoke"), ROWS)
def test_retry_after_is_sent_as_documented(world, code, provoke):
    stated = provoke(world).headers.get("Retry-After", "")
    if code in WITH_RETRY_AFTER:
        assert re.fullmatch(r"[1-9][0-9]{0,3}", stated)
    elif code != 40902:  # 40902 may have a Retry-After, too
        assert stated == ""


@pytest.mark.parametrize(("code", "provoke"), ROWS)
@pytest.mark.parametrize("language", ["en-GB,en;q=0.9,zh;q=0.5", "zh-CN,zh;q=0.9,en;q=0.8"])
def test_the_message_is_in_the_callers_language(world, code, provoke, language):
    world.language = language
    message = provoke(world).json["msg"]
    assert bool(re.search(r"[\u4e00-\u9fff]", message)) is language.startswith("zh"), message


def test_every_documented_error_is_provoked_here():
    assert {parameters.values[0] for parameters in ROWS} == DOCUMENTED
