"""Limits on callers: disabled merchants, allow lists, rate limits."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import BoundedSemaphore

import pytest
import segno

from blueprints.api import view_share
from models.queries import search
from models.tables.order import BUY
from services import kinds
from services.platform import cpu_affinity, rate_limits
from tests.support import ENDPOINTS, Api, through_flask


@pytest.fixture
def from_address(app):
    """`from_address("10.0.0.9")`: the merchant `demo`, calling from there."""

    def client_at(address, **headers):
        client = app.test_client()
        client.environ_base |= {"REMOTE_ADDR": address} | headers
        return Api(through_flask(client))

    return client_at


def test_a_disabled_merchant_is_refused_like_an_unknown_one_until_it_is_enabled(api, other, flask):
    flask("merchant", "set", "demo", "--disabled")
    for endpoint in ENDPOINTS:
        refused, stranger = api.call(endpoint), api.call(endpoint, {"api_key": "nobody"})
        assert (refused.status, refused.code, refused.text) == (401, 40101, stranger.text)
    assert other.listed().code == 1
    flask("merchant", "set", "demo", "--enabled")
    assert api.listed().code == 1


@pytest.mark.parametrize(
    ("allowed", "admitted", "refused"),
    [
        ("", ["203.0.113.7"], []),
        ("203.0.113.7", ["203.0.113.7", "::ffff:203.0.113.7"], ["203.0.113.8", "::ffff:203.0.113.8"]),
        ("10.0.0.0/8, 203.0.113.0/24", ["203.0.113.8"], ["11.0.0.1"]),
        ("2001:db8::/32", ["2001:db8::5"], ["203.0.113.7"]),
        ("::ffff:203.0.113.7", ["203.0.113.7"], []),
        ("::ffff:203.0.113.0/120", ["::ffff:203.0.113.8"], []),
        ("::/0", [], ["::ffff:203.0.113.7"]),
        ("fe80::/10", ["fe80::1%eth0"], []),
        ("0.0.0.0/0", [], ["unknown", ""]),
    ],
)
def test_an_allow_list_lets_only_its_addresses_call(from_address, other, flask, allowed, admitted, refused):
    flask("merchant", "set", "demo", "--allow", allowed)
    for address in admitted:
        assert from_address(address).buy().code == 1, address
    for address in refused:
        answer = from_address(address).buy()
        assert (answer.status, answer.code) == (403, 40300), address
    assert other.listed().code == 1


@pytest.mark.parametrize("settings_of_app", [{"requests_per_second": 3}])
def test_only_a_merchant_with_too_many_requests_of_its_own_is_42900(clock, http, api, other):
    stranger = Api(http, "demo", "guessed-secret")
    assert {stranger.listed().code for _ in range(5)} == {40102}
    assert [api.listed().code for _ in range(3)] == [1] * 3
    refused = api.buy()
    assert (refused.status, refused.code, refused.data) == (429, 42900, None)
    assert int(refused.headers["Retry-After"]) >= 1
    assert other.listed().code == 1
    clock(2)
    assert api.listed().data["total"] == 0


@pytest.mark.parametrize("settings_of_app", [{"refused_per_minute": 4}])
def test_only_an_address_with_too_many_refusals_is_42900(clock, api, from_address):
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
def test_unreadable_requests_count_as_refused(clock, api, from_address):
    """Otherwise only the rate limit of the address would apply to the most expensive bodies."""
    sender = from_address("203.0.113.7")
    codes = [sender.post(name, body).code for name in ENDPOINTS[:2] for body in (b"{", b'{"a":1,"a":1}')]
    assert codes == [40000, 40000, 40000, 42900]
    assert api.listed().code == 1


@pytest.mark.parametrize("settings_of_app", [{"refused_per_minute": 2}])
def test_only_refused_authentications_count(clock, api):
    assert [api.buy("0").code for _ in range(4)] == [42200] * 4
    assert [api.detail(order_no="1").code for _ in range(4)] == [40401] * 4
    assert api.listed().code == 1


@pytest.mark.parametrize("settings_of_app", [{"requests_per_address": 3}])
@pytest.mark.parametrize(
    ("address", "the_same", "another"),
    [
        ("203.0.113.7", "203.0.113.7", "203.0.113.8"),
        ("2001:db8:1:2::5", "2001:db8:1:2:ffff::1", "2001:db8:1:3::5"),  # a network
        ("::ffff:203.0.113.7", "203.0.113.7", "::ffff:203.0.113.8"),
    ],
)
def test_an_address_with_too_many_requests_is_42900_on_every_path(clock, from_address, address, the_same, another):
    paths = ("/healthz", "/nowhere", "/addons/paychannel/channel.gatewaya/regionData")
    assert [from_address(address).send("GET", path).status for path in paths] == [200, 404, 200]
    for path in paths:
        refused = from_address(the_same).send("GET", path)
        assert (refused.status, refused.code, refused.headers["Retry-After"]) == (429, 42900, "2")
    assert from_address(another).listed().code == 1
    clock(2)
    assert from_address(address).listed().code == 1


@pytest.mark.parametrize("settings_of_app", [{"requests_per_address": 1}])
def test_this_machine_itself_has_no_limit(clock, from_address):
    for address in ("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"):
        assert {from_address(address).listed().code for _ in range(3)} == {1}, address


def test_the_memory_for_a_flood_of_addresses_is_limited(monkeypatch, clock):
    monkeypatch.setattr(rate_limits, "REMEMBERED", 100)
    rate = rate_limits.Rate(1, seconds=60)
    assert all(rate.hit(str(number)) for number in range(1_000))
    assert not rate.hit("999")
    assert len(rate._now) + len(rate._before) <= 200


def searched(client, text):
    return client.listed(merchant_order_no=text)


def test_searches_by_fewer_than_three_characters_have_a_rate_of_their_own(clock, api, other):
    assert [searched(api, text).code for text in ("a", "ab", "单", "1", "12")] == [1] * 5
    refused = searched(api, "ab")
    assert (refused.status, refused.code, refused.data) == (429, 42900, None)
    assert int(refused.headers["Retry-After"]) >= 1
    assert (searched(api, "abc").code, api.listed().code, searched(other, "ab").code) == (1, 1, 1)
    clock(2)
    assert searched(api, "ab").code == 1


def test_one_search_at_a_time_reads_all_orders_of_a_merchant(api, other, monkeypatch):
    """Also by characters that are in so many numbers that the index does not help."""
    monkeypatch.setattr(search, "RARE", -1)
    found = []
    assert (api.buy().code, other.buy().code) == (1, 1)

    def during(work):
        if not found:
            found.append("first")
            found.extend(answer.code for answer in (searched(api, "abc"), searched(api, "ab"), api.listed()))
            found.append(searched(other, "abc").code)
        return work()

    monkeypatch.setattr(cpu_affinity, "do", during)
    assert searched(api, "abc").code == 1
    assert found == ["first", 42900, 42900, 1, 1]
    assert searched(api, "abc").code == 1


@pytest.fixture
def payer(app, api):
    """`payer("203.0.113.7")` views a payment page from there."""
    order_no = api.buy().data["order_no"]
    client = app.test_client()

    def look(address, page="index"):
        path = f"/addons/paychannel/pay/{page}?order_no={order_no}"
        return client.get(path, environ_base={"REMOTE_ADDR": address}, headers={"Accept-Language": "zh"})

    return look


@pytest.mark.parametrize("settings_of_app", [{"pages_per_address": 2}])
def test_only_an_address_that_views_too_many_payment_pages_must_wait(clock, payer, api):
    assert [payer("203.0.113.7").status_code for _ in range(2)] == [200, 200]
    refused = payer("203.0.113.7")
    assert (refused.status_code, int(refused.headers["Retry-After"]) >= 1) == (429, True)
    assert "稍候" in refused.text
    assert "default-src 'none'" in refused.headers["Content-Security-Policy"]
    assert [payer("203.0.113.7", "status").status_code for _ in range(5)] == [200] * 5
    assert payer("203.0.113.8").status_code == 200
    assert api.buy().code == 1
    clock(2)
    assert payer("203.0.113.7").status_code == 200


@pytest.mark.parametrize("settings_of_app", [{"threads": 4}])
def test_payment_pages_beyond_their_share_must_wait_while_orders_and_claims_go_on(app, payer, api, claimed):
    assert payer("203.0.113.7").status_code == 200
    with app.test_request_context():
        view_share.begin_view()  # it has the only place
        page, poll = payer("203.0.113.7"), payer("203.0.113.7", "status")
        assert (page.status_code, page.headers["Retry-After"]) == (429, "1")
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
        assert (poll.status_code, poll.json["code"], poll.headers["Retry-After"]) == (503, 50300, "1")
        assert api.buy().code == 1
        assert api.status(claimed("88.00")) == "paid"
        view_share.end_view()
    pages = ("index", "status", "absent", "index")
    assert [payer("203.0.113.7", page).status_code for page in pages] == [200, 200, 404, 200]


@pytest.mark.parametrize("settings_of_app", [{"threads": 8}])
def test_a_view_waits_for_its_turn_and_for_orders_that_began_before(app, payer, monkeypatch):
    monkeypatch.setattr(view_share, "YIELD", 60)
    with app.test_request_context(), ThreadPoolExecutor() as pool:
        view_share.begin_view()
        waiting = pool.submit(payer, "203.0.113.7")
        view_share.begin_order()
        view_share.end_view()
        view_share.end_order()
        assert waiting.result(20).status_code == 200


@pytest.mark.parametrize("settings_of_app", [{"threads": 8}])
def test_no_view_waits_long_for_its_turn_or_for_orders(app, payer, monkeypatch):
    monkeypatch.setattr(view_share, "LONGEST_WAIT", 0.01)
    with app.test_request_context():
        monkeypatch.setattr(view_share._share(), "turns", BoundedSemaphore(view_share.AT_ONCE))  # on Postgres, too
        view_share.begin_order()
        assert payer("203.0.113.7").status_code == 200
        view_share.begin_view()
        assert payer("203.0.113.7").status_code == 429
        view_share.end_view()
        view_share.end_order()
    assert payer("203.0.113.7").status_code == 200


def test_views_yield_to_orders_until_these_have_their_response(api, monkeypatch):
    found, place = [], kinds.DEPOSIT.place

    def placing(*given):
        found.append(view_share._share().orders)
        return place(*given)

    monkeypatch.setitem(kinds.KINDS, BUY, replace(kinds.DEPOSIT, place=placing))
    assert api.buy().code == 1
    assert api.buy("0").code == 42200
    assert (found, view_share._share().orders) == ([1], 0)


def test_the_size_of_public_forms_is_limited(app):
    """Reading 64 KiB of fields takes a hundred times as long as sending them."""
    paths = {"/addons/paychannel/pay/paid": 404, "/addons/paychannel/pay/open": 404, "/console/login": 400}
    for path, code in paths.items():
        sizes = {size: app.test_client().post(path, data={"order_no": "x" * size}) for size in (4_000, 4_200)}
        assert {size: answer.status_code for size, answer in sizes.items()} == {4_000: code, 4_200: 413}, path


def test_a_qr_code_is_drawn_once_however_often_its_page_is_viewed(payer, monkeypatch):
    drawn = []
    make = segno.make
    monkeypatch.setattr(segno, "make", lambda *given, **how: drawn.append(given) or make(*given, **how))
    assert {'class="qr"' in payer("127.0.0.1").text for _ in range(3)} == {True}
    assert len(drawn) == 1


def warned(caplog):
    return [record.message for record in caplog.records if "trusted_proxies" in record.message]


@pytest.mark.parametrize("address", ["::1", "172.17.0.1"])
def test_an_uncounted_proxy_causes_one_warning(from_address, caplog, address):
    proxied = from_address(address, HTTP_X_FORWARDED_FOR="203.0.113.7")
    assert proxied.send("GET", "/healthz").code == 1
    assert proxied.send("GET", "/healthz").code == 1
    (line,) = warned(caplog)
    assert "X-Forwarded-For" in line
    assert line == from_address(address).send("GET", "/readyz").data["proxy"]


@pytest.mark.parametrize(
    "settings_of_app", [{}, {"trusted_proxies": 1, "site_url": "https://pay.example.com"}], ids=str
)
def test_direct_callers_and_counted_proxies_cause_no_warning(from_address, caplog):
    assert from_address("127.0.0.1").send("GET", "/readyz").data["proxy"] == "ok"
    assert from_address("203.0.113.7", HTTP_X_FORWARDED_FOR="203.0.113.9").send("GET", "/readyz").data["proxy"] == "ok"
    assert warned(caplog) == []


@pytest.mark.parametrize("settings_of_app", [{"site_url": "https://pay.example.com"}])
def test_an_https_address_without_a_counted_proxy_causes_a_warning(http):
    assert "trusted_proxies is 0" in http("GET", "/readyz").data["proxy"]
