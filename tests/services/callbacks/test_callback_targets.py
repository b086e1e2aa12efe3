"""Forbidden addresses of callbacks, and the effect of unusual ones."""

import socket
import ssl
import threading

import pytest
from pytest_httpserver import HTTPServer

from tests.support import Receiver, completed, https_certificate

IN_PRODUCTION = {"private_callbacks": False}
PUBLIC = "93.184.215.14"
in_production = pytest.mark.parametrize("settings_of_app", [IN_PRODUCTION])
PROXIES = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
AT_HOME = ["127.0.0.1", "::1", "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "fe80::1"]


@pytest.fixture
def swept(due):
    """Send due callbacks from a new thread, as the service does: a thread keeps its connections."""

    def sweep():
        thread = threading.Thread(target=due.callbacks)
        thread.start()
        thread.join()

    return sweep


@pytest.fixture
def attempt(flask, api, swept, tries):
    """`attempt(url)`: the only attempt of a new callback to this address, as (status, answer)."""

    def send(url):
        flask("merchant", "set", "demo", "--callback-url", url)
        completed(api)
        swept()
        (made,) = tries()
        return made["status"], made["answer"]

    return send


@pytest.fixture
def dials(monkeypatch):
    """The addresses that this process connects to meanwhile, except those that only look up a route."""
    dialled, connect = [], socket.socket.connect

    def remember(carrier, address):
        dialled.append(address[0])
        return connect(carrier, address)

    monkeypatch.setattr(socket.socket, "connect", remember)
    return dialled


@pytest.fixture
def internet(monkeypatch, receiver):
    """A network in which names resolve by `internet.names`, one list after the other; the receiver has PUBLIC."""

    class Internet:
        def __init__(self):
            self.names, self.asked, self.dialled, self.receiver = {}, [], [], receiver

        def look_up(self, host, port, *_, **__):
            self.asked.append(host)
            answers = self.names[host]
            found = answers.pop(0) if len(answers) > 1 else answers[0]
            families = [socket.AF_INET6 if ":" in address else socket.AF_INET for address in found]
            return [
                (family, socket.SOCK_STREAM, 6, "", (address, port, 0, 0)[: 4 if ":" in address else 2])
                for family, address in zip(families, found, strict=True)
            ]

    net, connect = Internet(), socket.socket.connect

    def lead(carrier, address):
        net.dialled.append(address[0])
        if address[0] == PUBLIC:
            address = ("127.0.0.1", net.receiver.server.port)
        return connect(carrier, address)

    monkeypatch.setattr(socket, "getaddrinfo", net.look_up)
    monkeypatch.setattr(socket.socket, "connect", lead)
    return net


LOOPBACK = str.split("""
127.0.0.1 localhost 127.1 127.0.1 2130706433 0x7f000001 0x7f.1 0x7F.0X0.0x0.0x1 017700000001 0177.0.0.1 00000177.1
127.0.0.1. 127.2.3.4 0 0.0.0.0 0x0 ０.０.０.０ １２７.０.０.１ ①②⑦.①
[::1] [::] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:0.0.0.0] [::127.0.0.1] [::1%lo] [::1%25lo]
[fe80::1%25lo] public.example@127.0.0.1 public.example%40@127.0.0.1 user:password@127.0.0.1 127.0.0.1#@public.example
""")


# `tests/gateways/test_ip_addresses.py` has all networks.
ELSEWHERE = str.split("""
10.1.2.3 169.254.169.254 2852039166 0xa9fea9fe 0251.0376.0251.0376 169.254.43518 100.64.0.1 [fe80::1] [fd00:ec2::254]
[::ffff:a9fe:a9fe] [64:ff9b::a9fe:a9fe] [2002:7f00:1::1]
""")


@in_production
def test_an_address_that_is_not_public_is_refused_in_production_in_any_notation(receiver, attempt, dials):
    for host in LOOPBACK:
        host, hash_sign, rest = host.partition("#")
        status, answer = attempt(f"http://{host}:{receiver.server.port}/demo{hash_sign}{rest}")
        assert (status, bool(answer)) == (None, True), host
    for url in (*(f"http://{host}/hook" for host in ELSEWHERE), *(f"https://{host}/hook" for host in ELSEWHERE[:4])):
        status, answer = attempt(url)
        assert (status, answer.partition(":")[0]) == (None, "AddressRefused"), url
    for path in ("/sandbox/inbox", "/\\127.0.0.1/", "/../", "/@127.0.0.1/"):  # on the service itself
        assert attempt(path) == (None, "AddressRefused: 127.0.0.1 is not a public address"), path
    assert (dials, receiver.got) == ([], [])


@pytest.mark.parametrize("settings_of_app", [{"private_callbacks": True}, IN_PRODUCTION | {"demo": True}])
def test_a_private_target_is_allowed_by_a_setting_and_in_demo_mode(settings_of_app, api, shop, swept):
    completed(api)
    swept()
    assert shop.got[0].event["type"] == "order.completed"


@in_production
def test_a_name_is_called_if_all_its_addresses_are_public(attempt, internet):
    internet.names["shop.example"] = [[PUBLIC]]
    assert attempt("http://shop.example:8080/demo")[0] == 200
    (got,) = internet.receiver.got
    assert (got.headers["Host"], got.event["type"]) == ("shop.example:8080", "order.completed")
    first, *others = AT_HOME
    mixed = [[first], [first, PUBLIC], [PUBLIC, first], *([PUBLIC, PUBLIC, home] for home in others)]
    for addresses in mixed:
        internet.names["shop.example"] = [addresses]
        [home] = set(addresses) - {PUBLIC}
        refused = (None, f"AddressRefused: {home} is not a public address")
        assert attempt("http://shop.example/demo") == refused, addresses
    assert (internet.dialled, len(internet.receiver.got)) == ([PUBLIC], 1)


@in_production
def test_a_name_is_resolved_once_for_each_attempt(attempt, swept, tries, ahead, internet):
    internet.names["shop.example"] = [[PUBLIC], ["127.0.0.1"]]
    internet.receiver.answers(500)
    assert attempt(f"http://shop.example:{internet.receiver.server.port}/demo")[0] == 500
    assert (internet.asked, internet.dialled) == (["shop.example"], [PUBLIC])
    ahead(60)
    swept()
    assert (internet.asked, internet.dialled) == (["shop.example"] * 2, [PUBLIC])
    assert tries()[1]["answer"] == "AddressRefused: 127.0.0.1 is not a public address"


@in_production
@pytest.mark.parametrize("without", ["a route", "IPv6"])
def test_if_the_first_address_of_a_name_can_not_be_called_the_next_one_is(without, attempt, internet, monkeypatch):
    connect, make = socket.socket.connect, socket.socket.__init__

    def unreachable(carrier, address):
        if ":" in address[0]:
            internet.dialled.append(address[0])
            raise OSError(101, "Network is unreachable")
        return connect(carrier, address)

    def without_ipv6(carrier, family=socket.AF_INET, *others, **named):
        if family == socket.AF_INET6:
            raise OSError(97, "Address family not supported by protocol")
        make(carrier, family, *others, **named)

    internet.names["shop.example"] = [["2606:4700::dead", PUBLIC]]
    if without == "a route":
        monkeypatch.setattr(socket.socket, "connect", unreachable)
    else:
        monkeypatch.setattr(socket.socket, "__init__", without_ipv6)
    assert attempt("http://shop.example/demo")[0] == 200
    assert internet.dialled == (["2606:4700::dead", PUBLIC] if without == "a route" else [PUBLIC])


@in_production
def test_a_redirect_is_a_failed_attempt_and_not_followed(attempt, internet, web_server):
    inside, here = Receiver(web_server, "/other", "whsec_"), f"127.0.0.1:{web_server.port}"
    internet.names |= {"shop.example": [[PUBLIC]], "localhost": [["127.0.0.1"]], "127.0.0.1": [["127.0.0.1"]]}
    for status, location in (
        (301, f"http://{here}/other"),
        (302, "http://169.254.169.254/latest/meta-data/"),
        (307, f"//localhost:{web_server.port}/other"),
        (308, "/other"),
    ):
        internet.receiver.answers(status, headers={"Location": location})
        assert attempt("http://shop.example/demo")[0] == status
    assert (internet.dialled, inside.got) == ([PUBLIC] * 4, [])


@in_production
@pytest.mark.parametrize(("certified", "status"), [("shop.example", 200), ("other.example", None), (PUBLIC, None)])
def test_a_certificate_must_be_for_the_name_and_not_for_its_address(
    certified, status, api, flask, swept, tries, internet, tmp_path, monkeypatch
):
    names, context = [], ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sni_callback = lambda _, name, __: names.append(name)
    certificate = https_certificate(tmp_path, certified)
    context.load_cert_chain(certificate)
    monkeypatch.setattr("requests.adapters.DEFAULT_CA_BUNDLE_PATH", str(certificate))
    internet.names |= {"shop.example": [[PUBLIC]], "127.0.0.1": [["127.0.0.1"]]}
    flask("merchant", "set", "demo", "--callback-url", "https://shop.example/demo")
    with HTTPServer("127.0.0.1", 0, ssl_context=context, threaded=True) as server:
        internet.receiver = Receiver(server, "/demo", internet.receiver.secret)
        completed(api)
        swept()
        assert (names, tries()[0]["status"]) == (["shop.example"], status)


def test_neither_proxies_nor_passwords_of_the_environment_are_used(api, shop, other_shop, swept, tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login operator password secret\ndefault login operator password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    for name in PROXIES:
        monkeypatch.setenv(name, other_shop.url)
    for without in ("", "*", "127.0.0.1"):
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.setenv(name, without) if without else monkeypatch.delenv(name, raising=False)
        completed(api)
        swept()
    assert (len(shop.got), len(shop.server.log)) == (3, 3)
    assert not any("Authorization" in got.headers for got in shop.got)


@in_production
def test_a_proxy_in_the_environment_gives_no_access_to_private_addresses(receiver, attempt, monkeypatch, dials):
    for name in PROXIES:
        monkeypatch.setenv(name, receiver.url)
    for scheme in ("http", "https"):
        assert "AddressRefused" in attempt(f"{scheme}://169.254.169.254/latest/meta-data/")[1]
    assert (dials, receiver.got) == ([], [])


NO_ADDRESS = str.split("""
ftp://x/ file:///etc/passwd gopher://127.0.0.1:6379/_INFO dict://127.0.0.1:11211/ ldap://x/ jar:http://x!/ data:,x
http+unix://%2Frun%2Fx.sock/ unix:/run/x.sock javascript:1 HTTP:x http:// http://[::/ http://x:y/ http://x:99999/
//x.example/ ///x.example/ x.example http:///x.example/ http://user@/
""")


def test_an_invalid_address_is_refused_with_a_line(refuses, flask_json):
    for url in NO_ADDRESS:
        assert refuses("merchant", "set", "demo", "--callback-url", url).startswith("Error: "), url
    assert flask_json("merchant", "show", "demo")["callback_url"] == "/sandbox/inbox"


@pytest.mark.parametrize("settings_of_app", [IN_PRODUCTION, {"private_callbacks": True}])
def test_an_unresolvable_address_is_a_failed_attempt(settings_of_app, attempt):
    for url in ("http://a..b/", "http://.example/", "http://%/", "http://nowhere.invalid/"):
        status, answer = attempt(url)
        assert (status, bool(answer)) == (None, True), url
