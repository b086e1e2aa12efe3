"""Who may call and how often: disabled merchants, allow lists, rate limits."""

from datetime import UTC, datetime

import pytest

from services import rates
from tests.support import Api, through_flask

ENDPOINTS = ("createOrder", "orderQueryDetail", "orderQueryList", "getPayChannels")


@pytest.fixture
def clock(time_machine):
    """`clock(seconds)` sets the clock to noon and that much, where it stands still."""
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC).timestamp()
    time_machine.move_to(noon, tick=False)
    return lambda seconds: time_machine.move_to(noon + seconds, tick=False)


@pytest.fixture
def from_address(app):
    """`from_address("10.0.0.9")` is the merchant `demo` calling from there."""

    def client_at(address, **headers):
        client = app.test_client()
        client.environ_base |= {"REMOTE_ADDR": address} | headers
        return Api(through_flask(client))

    return client_at


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_disabled_merchant_is_as_unknown_as_any(api, other, flask, endpoint):
    flask("merchant", "set", "demo", "--disabled")
    refused, stranger = api.call(endpoint), api.call(endpoint, {"api_key": "nobody"})
    assert (refused.status, refused.text) == (401, stranger.text)
    assert refused.code == 40101
    assert other.listed().code == 1


def test_an_enabled_merchant_may_call_again(api, flask):
    flask("merchant", "set", "demo", "--disabled")
    flask("merchant", "set", "demo", "--enabled")
    assert api.listed().code == 1


@pytest.mark.parametrize(
    ("allowed", "address", "code"),
    [
        ("", "203.0.113.7", 1),
        ("203.0.113.7", "203.0.113.7", 1),
        ("203.0.113.7", "203.0.113.8", 40300),
        ("10.0.0.0/8, 203.0.113.0/24", "203.0.113.8", 1),
        ("10.0.0.0/8", "11.0.0.1", 40300),
        ("2001:db8::/32", "2001:db8::5", 1),
        ("2001:db8::/32", "203.0.113.7", 40300),
        ("203.0.113.7", "::ffff:203.0.113.7", 1),
        ("::ffff:203.0.113.7", "203.0.113.7", 1),
        ("::ffff:203.0.113.0/120", "::ffff:203.0.113.8", 1),
        ("203.0.113.7", "::ffff:203.0.113.8", 40300),
        ("::/0", "::ffff:203.0.113.7", 40300),
        ("fe80::/10", "fe80::1%eth0", 1),
        ("0.0.0.0/0", "unknown", 40300),
        ("0.0.0.0/0", "", 40300),
    ],
)
def test_an_allow_list_lets_only_its_addresses_call(from_address, flask, allowed, address, code):
    flask("merchant", "set", "demo", "--allow", allowed)
    answer = from_address(address).buy()
    assert (answer.code, answer.status) == (code, 200 if code == 1 else 403)


def test_an_allow_list_binds_its_own_merchant_only(api, other, flask):
    flask("merchant", "set", "demo", "--allow", "10.0.0.1")
    assert (api.listed().code, other.listed().code) == (40300, 1)


def test_a_list_that_names_no_address_is_refused(flask):
    assert "no IP address" in flask("merchant", "set", "demo", "--allow", "somewhere", fails=True).output


@pytest.mark.parametrize(("settings_of_app", "code"), [({}, 40300), ({"trusted_proxies": 1}, 1)])
def test_a_forwarded_address_counts_only_behind_a_trusted_proxy(from_address, flask, code):
    flask("merchant", "set", "demo", "--allow", "203.0.113.7")
    assert from_address("127.0.0.1", HTTP_X_FORWARDED_FOR="203.0.113.7").listed().code == code


@pytest.mark.parametrize("settings_of_app", [{"requests_per_second": 3}])
def test_a_merchant_that_asks_too_often_is_42900_and_no_other(clock, api, other):
    assert [api.listed().code for _ in range(3)] == [1] * 3
    refused = api.buy()
    assert (refused.status, refused.code, refused.data) == (429, 42900, None)
    assert int(refused.headers["Retry-After"]) >= 1
    assert other.listed().code == 1
    clock(2)
    assert api.listed().data["total"] == 0


@pytest.mark.parametrize("settings_of_app", [{"requests_per_second": 3}])
def test_a_stranger_uses_up_nobody_s_requests(clock, http, api):
    stranger = Api(http, "demo", "guessed-secret")
    assert {stranger.listed().code for _ in range(5)} == {40102}
    assert api.listed().code == 1


@pytest.mark.parametrize("settings_of_app", [{"refused_per_minute": 4}])
def test_an_address_that_is_refused_too_often_is_42900_and_no_other(clock, api, from_address):
    guesser = from_address("203.0.113.7")
    refusals = [{"api_key": "nobody"}, {"timestamp": 1}, {"nonce": "short"}, {"api_key": "other"}]
    assert [guesser.call("orderQueryList", fields).code for fields in refusals] == [40101, 40103, 40104, 40102]
    refused = guesser.listed()
    assert (refused.status, refused.code) == (429, 42900)
    assert int(refused.headers["Retry-After"]) >= 1
    assert api.listed().code == 1
    clock(121)
    assert guesser.listed().code == 1


@pytest.mark.parametrize("settings_of_app", [{"refused_per_minute": 3}])
def test_what_can_not_be_read_counts_as_refused(clock, api, from_address):
    """Else the dearest bodies of all would be those that nothing but the rate of the address holds back."""
    sender = from_address("203.0.113.7")
    codes = [sender.post(name, body).code for name in ENDPOINTS[:2] for body in (b"{", b'{"a":1,"a":1}')]
    assert codes == [40000, 40000, 40000, 42900]
    assert api.listed().code == 1


@pytest.mark.parametrize("settings_of_app", [{"refused_per_minute": 2}])
def test_only_refused_authentications_count(clock, api):
    assert [api.buy("0").code for _ in range(4)] == [42200] * 4
    assert [api.detail(order_no="1").code for _ in range(4)] == [40401] * 4
    assert api.listed().code == 1


ADDRESSES = {
    "an address": ("203.0.113.7", "203.0.113.7", "203.0.113.8"),
    "a network of IPv6": ("2001:db8:1:2::5", "2001:db8:1:2:ffff::1", "2001:db8:1:3::5"),
    "an IPv4 address within IPv6": ("::ffff:203.0.113.7", "203.0.113.7", "::ffff:203.0.113.8"),
}


@pytest.mark.parametrize("settings_of_app", [{"requests_per_address": 3}])
@pytest.mark.parametrize(("address", "the_same", "another"), ADDRESSES.values(), ids=ADDRESSES)
def test_an_address_that_asks_too_often_is_42900_whatever_it_asks_for(clock, from_address, address, the_same, another):
    paths = ("/healthz", "/nowhere", "/addons/paychannel/channel.gatewaya/regionData")
    assert [from_address(address).send("GET", path).status for path in paths] == [200, 404, 200]
    for path in paths:
        refused = from_address(the_same).send("GET", path)
        assert (refused.status, refused.code, refused.headers["Retry-After"]) == (429, 42900, "2")
    assert from_address(another).listed().code == 1
    clock(2)
    assert from_address(address).listed().code == 1


@pytest.mark.parametrize("settings_of_app", [{"requests_per_address": 1}])
@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
def test_this_machine_itself_may_ask_as_often_as_it_likes(clock, from_address, address):
    assert {from_address(address).listed().code for _ in range(5)} == {1}


@pytest.mark.parametrize("settings_of_app", [{"requests_per_address": 1, "trusted_proxies": 1}])
def test_behind_a_proxy_the_address_is_the_one_that_it_names(clock, from_address):
    for _ in range(2):
        first, again = (from_address("127.0.0.1", HTTP_X_FORWARDED_FOR="6.6.6.6, 203.0.113.7").listed() for _ in "12")
        assert (first.code, again.code) == (1, 42900)
        assert from_address("127.0.0.1", HTTP_X_FORWARDED_FOR="203.0.113.8").listed().code == 1
        clock(2)


def test_a_flood_of_addresses_is_not_remembered_without_end(monkeypatch, clock):
    monkeypatch.setattr(rates, "REMEMBERED", 100)
    rate = rates.Rate(1, seconds=60)
    assert all(rate.hit(str(number)) for number in range(1_000))
    assert not rate.hit("999")
    assert len(rate._now) + len(rate._before) <= 200
