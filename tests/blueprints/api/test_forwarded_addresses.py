"""The caller's address behind trusted proxies, however they write it, is a plain address for everyone who uses it."""

import pytest

from blueprints.api import request_log
from tests.support import Api, through_flask

PROXY = "10.0.0.4"
CALLER, CALLER6 = "203.0.113.7", "2001:db8::1"

# What a proxy appends, and the address that it means.
WRITTEN = [
    ("203.0.113.7", CALLER),
    ("203.0.113.7:50123", CALLER),
    (" 203.0.113.7:1\t", CALLER),
    ('"203.0.113.7:50123"', CALLER),
    ("[203.0.113.7]:443", CALLER),
    ("::ffff:203.0.113.7", CALLER),
    ("::FFFF:cb00:7107", CALLER),
    ("[::ffff:203.0.113.7]:50123", CALLER),
    ("2001:db8::1", CALLER6),
    ("2001:DB8:0:0:0:0:0:1", CALLER6),
    ("[2001:db8::1]", CALLER6),
    ("[2001:db8::1]:443", CALLER6),
    ('"[2001:db8::1]:443"', CALLER6),
    ("fe80::1%eth0", "fe80::1"),
    ("[fe80::1%25eth0]:443", "fe80::1"),
]
NO_ADDRESS = [
    *("", " ", "unknown", "_hidden", "_hidden:443", "pay.example.com", "pay.example.com:443", "for=203.0.113.7"),
    *("203.0.113.7:", "203.0.113.7:x", "203.0.113.7:999999", "203.0.113.7:1:2", "203.0.113", "203.0.113.256:80"),
    *("[2001:db8::1", "2001:db8::1]", "[2001:db8::1]443", "[]:443", "[unknown]:443", "[]", ":443", "%eth0", '"', "é"),
    *("203.0.113.7 10.0.0.9", "203.0.113.7;10.0.0.9", "203.0.113.7/32", "２０３.0.113.7", "1" * 5_000),
]


@pytest.fixture
def seen(app, caplog):
    """`seen("203.0.113.7:50123")`: the address in the request log if the proxy sends this."""
    caplog.set_level("INFO", request_log.log.name)

    def address(*forwarded, peer=PROXY):
        headers = {} if forwarded == () else {"HTTP_X_FORWARDED_FOR": ",".join(forwarded).encode().decode("latin-1")}
        app.test_client().get("/healthz", environ_overrides={"REMOTE_ADDR": peer, **headers})
        return caplog.records[-1].address

    return address


@pytest.mark.parametrize("settings_of_app", [{"trusted_proxies": 1, "access_log": True}])
def test_behind_one_proxy_the_address_is_what_it_appends_as_a_plain_address_or_its_own(seen):
    for written, address in WRITTEN:
        assert seen(written) == address, written
    for written in NO_ADDRESS:
        assert seen(written) == PROXY, written
    assert seen() == PROXY
    for claimed in (*NO_ADDRESS, "6.6.6.6", "6.6.6.6, 7.7.7.7", '"6.6.6.6', "\\", ",,", "[::1"):  # by the caller
        assert seen(claimed, "203.0.113.7:50123") == CALLER, claimed
        assert seen(claimed, "unknown") == PROXY, claimed


@pytest.mark.parametrize("settings_of_app", [{"trusted_proxies": 2, "access_log": True}])
def test_behind_two_proxies_the_outer_one_names_the_caller_and_no_other_hop_replaces_it(seen):
    for written, address in WRITTEN:
        assert seen("6.6.6.6:80", written, "192.0.2.9:443") == address, written
    for written in NO_ADDRESS:
        assert seen("6.6.6.6", written, "192.0.2.9") == PROXY, written
        assert seen(CALLER, written) == CALLER, written
    assert seen(CALLER) == PROXY


@pytest.mark.parametrize("settings_of_app", [{"access_log": True}])
def test_without_a_proxy_the_header_is_ignored_and_the_peers_address_is_plain(seen):
    for peer in ("::ffff:203.0.113.7", "203.0.113.7"):
        assert seen("6.6.6.6", peer=peer) == CALLER


@pytest.mark.parametrize("settings_of_app", [{"trusted_proxies": 1, "requests_per_address": 1}])
def test_another_port_is_the_same_caller(app, time_machine):
    time_machine.move_to(1_800_000_000, tick=False)

    def called(port, address=CALLER):
        headers = {"X-Forwarded-For": f"{address}:{port}"}
        return app.test_client().get("/healthz", headers=headers).status_code

    assert [called(port) for port in (50_123, 50_124, 50_125)] == [200, 429, 429]
    assert [called(port, f"[{CALLER6}]") for port in (50_123, 50_124)] == [200, 429]


@pytest.mark.parametrize("settings_of_app", [{"trusted_proxies": 1}])
@pytest.mark.parametrize("written", [f"{CALLER}:50123", f"[::ffff:{CALLER}]:50123"])
def test_an_allow_list_admits_a_caller_whose_port_the_proxy_sends(app, flask, written):
    flask("merchant", "set", "demo", "--allow", CALLER)
    client = app.test_client()
    client.environ_base |= {"HTTP_X_FORWARDED_FOR": written}
    assert Api(through_flask(client)).listed().code == 1
    client.environ_base |= {"HTTP_X_FORWARDED_FOR": "203.0.113.8:50123"}
    assert Api(through_flask(client)).listed().code == 40300
