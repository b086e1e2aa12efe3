"""Limits of the epay gateway: payers per address, shops' servers per merchant, bad signatures per address."""

import pytest

from tests.epay_shop import Shop
from tests.support import through_flask

HERE, ELSEWHERE = "203.0.113.7", "203.0.113.8"


@pytest.fixture
def shop_at(app, web_server, keys):
    """`shop_at("203.0.113.7")`: the shop, or its payer, calling from there."""

    def at(address):
        client = app.test_client()
        client.environ_base |= {"REMOTE_ADDR": address}
        return Shop(through_flask(client), web_server, keys)

    return at


@pytest.mark.parametrize("settings_of_app", [{"pages_per_address": 2}])
def test_a_payers_address_that_submits_too_often_must_wait(shop_at, clock):
    assert [shop_at(HERE).submit().status for _ in range(3)] == [303, 303, 429]
    refused = shop_at(HERE).submit()
    assert "Too many requests" in refused.text
    assert int(refused.headers["Retry-After"]) >= 1
    assert shop_at(ELSEWHERE).submit().status == 303
    assert shop_at(HERE).mapi()["code"] == 1
    clock(2)
    assert shop_at(HERE).submit().status == 303


@pytest.mark.parametrize("settings_of_app", [{"requests_per_second": 2}])
def test_a_merchant_whose_server_calls_too_often_must_wait(shop_at, clock):
    assert [shop_at(HERE).api("query")["code"] for _ in range(2)] == [1, 1]
    shop = shop_at(ELSEWHERE)
    refused = shop.get("/api.php", {"act": "query", "pid": shop.pid, "key": shop.key})
    assert (refused.status, refused.json) == (429, {"code": -1, "msg": "Too many requests"})
    assert int(refused.headers["Retry-After"]) >= 1
    assert shop.submit().status == 303
    assert shop.mapi()["code"] == 1


@pytest.mark.parametrize("settings_of_app", [{"requests_per_second": 2}])
@pytest.mark.parametrize("path", ["/mapi.php", "/api/pay/create"])
def test_a_payer_that_repeats_a_signed_payment_stops_nobody_else(path, shop_at, api, flask_json):
    payer, shop = shop_at(HERE), shop_at(ELSEWHERE)
    payer.private_key = flask_json("epay", "rotate", "demo", "--rsa")["private_key"]
    seen = payer.signed(2 if path.startswith("/api/") else 1)
    assert [payer.post(path, seen).status for _ in range(4)] == [200, 200, 429, 429]
    assert shop.mapi(out_trade_no="SHOP-2")["code"] == 1
    assert shop.api("query")["code"] == 1
    assert api.buy().code == 1


@pytest.mark.parametrize("settings_of_app", [{"refused_per_minute": 3}])
@pytest.mark.parametrize("path", ["/mapi.php", "/submit.php", "/api/pay/create"])
def test_an_address_with_many_bad_signatures_must_wait(path, shop_at, clock):
    shop = shop_at(HERE)
    wrong = shop.signed() | {"sign": "0" * 32}
    assert [shop.post(path, wrong).status for _ in range(4)][-1] == 429
    assert shop.post("/mapi.php", shop.signed()).status == 429
    assert shop_at(ELSEWHERE).mapi()["code"] == 1


@pytest.mark.parametrize("settings_of_app", [{"refused_per_minute": 3}])
def test_an_address_that_guesses_keys_must_wait(shop_at, clock):
    shop = shop_at(HERE)
    guesses = [shop.get("/api.php", {"act": "query", "pid": shop.pid, "key": str(each)}) for each in range(4)]
    assert [guess.status for guess in guesses] == [200, 200, 200, 429]


@pytest.mark.parametrize("settings_of_app", [{"refused_per_minute": 3}])
def test_refused_fields_do_not_count_as_bad_signatures(shop_at):
    shop = shop_at(HERE)
    assert {shop.mapi(money="x")["code"] for _ in range(5)} == {-1}
    assert shop.mapi()["code"] == 1
