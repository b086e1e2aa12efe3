"""Forbidden addresses of callbacks, and the effect of unusual ones."""

import socket
import ssl
import threading

import pytest
from pytest_httpserver import HTTPServer

from tests.support import Receiver, completed, https_certificate

IN_PRODUCTION = {"private_callbacks": False}
PUBLIC = "93.184.215.14"
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


@pytest.mark.parametrize("settings_of_app", [IN_PRODUCTION])
@pytest.mark.parametrize("host", LOOPBACK)
def test_loopback_is_refused_in_production_in_any_notation(host, api, receiver, flask, swept, tries, dials):
    host, hash_sign, rest = host.partition("#")
    flask("merchant", "set", "demo", "--callback-url", f"http://{host}:{receiver.server.port}/demo{hash_sign}{rest}")
    completed(api)
    swept()
    (attempt,) = tries()
    assert attempt["status"] is None
    assert attempt["answer"]
    assert (dials, receiver.got) == ([], [])


ELSEWHERE = str.split("""
10.1.2.3 172.16.0.1 192.168.1.1 169.254.169.254 2852039166 0xa9fea9fe 0251.0376.0251.0376 169.254.43518 100.64.0.1
100.100.100.200 168.63.129.16 192.0.0.192 198.18.0.1 224.0.0.1 255.255.255.255 [fe80::1] [fd00::1]
[fd00:ec2::254] [ff02::1] [::ffff:10.0.0.1] [::ffff:a9fe:a9fe] [64:ff9b::10.0.0.1] [64:ff9b::a9fe:a9fe]
[64:ff9b:1::10.0.0.1] [2002:a00:1::] [2002:7f00:1::1] [2001:0:a00:1::] [fec0::1] [100::1] [2001:db8::1]
""")


@pytest.mark.parametrize("settings_of_app", [IN_PRODUCTION])
@pytest.mark.parametrize(
    ("scheme", "host"), [*(("http", host) for host in ELSEWHERE), *(("https", host) for host in ELSEWHERE[:4])]
)
def test_a_target_that_is_not_public_is_refused_in_production(scheme, host, api, flask, swept, tries, dials):
    flask("merchant", "set", "demo", "--callback-url", f"{scheme}://{host}/hook")
    completed(api)
    swept()
    (attempt,) = tries()
    assert (attempt["status"], attempt["answer"].partition(":")[0]) == (None, "AddressRefused")
    assert dials == []


@pytest.mark.parametrize("settings_of_app", [{"private_callbacks": True}, IN_PRODUCTION | {"demo": True}])
def test_a_private_target_is_allowed_by_a_setting_and_in_demo_mode(settings_of_app, api, shop, swept):
    completed(api)
    swept()
    assert shop.got[0].event["type"] == "order.completed"


@pytest.mark.parametrize("settings_of_app", [IN_PRODUCTION])
def test_a_name_with_a_public_address_is_called(api, flask, swept, tries, internet):
    internet.names["shop.example"] = [[PUBLIC]]
    flask("merchant", "set", "demo", "--callback-url", "http://shop.example:8080/demo")
    completed(api)
    swept()
    assert (internet.dialled, tries()[0]["status"]) == ([PUBLIC], 200)
    (got,) = internet.receiver.got
    assert (got.headers["Host"], got.event["type"]) == ("shop.example:8080", "order.completed")


@pytest.mark.parametrize("settings_of_app", [IN_PRODUCTION])
@pytest.mark.parametrize("home", AT_HOME)
@pytest.mark.parametrize("addresses", [["{}"], ["{}", PUBLIC], [PUBLIC, "{}"], [PUBLIC, PUBLIC, "{}"]])
def test_a_name_with_any_address_that_is_not_public_is_refused(addresses, home, api, flask, swept, tries, internet):
    internet.names["shop.example"] = [[address.format(home) for address in addresses]]
    flask("merchant", "set", "demo", "--callback-url", "http://shop.example/demo")
    completed(api)
    swept()
    assert tries()[0]["answer"] == f"AddressRefused: {home} is not a public address"
    assert (internet.dialled, internet.receiver.got) == ([], [])


@pytest.mark.parametrize("settings_of_app", [IN_PRODUCTION])
def test_a_name_is_resolved_once_for_each_attempt(api, flask, swept, tries, ahead, internet):
    internet.names["shop.example"] = [[PUBLIC], ["127.0.0.1"]]
    internet.receiver.answers(500)
    flask("merchant", "set", "demo", "--callback-url", f"http://shop.example:{internet.receiver.server.port}/demo")
    completed(api)
    swept()
    assert (internet.asked, internet.dialled) == (["shop.example"], [PUBLIC])
    ahead(60)
    swept()
    assert (internet.asked, internet.dialled) == (["shop.example"] * 2, [PUBLIC])
    assert [attempt["status"] for attempt in tries()] == [500, None]
    assert tries()[1]["answer"] == "AddressRefused: 127.0.0.1 is not a public address"


@pytest.mark.parametrize("settings_of_app", [IN_PRODUCTION])
def test_if_the_first_address_of_a_name_is_down_the_next_one_is_called(api, flask, swept, tries, internet):
    internet.names["shop.example"] = [["2606:4700::dead", PUBLIC]]
    flask("merchant", "set", "demo", "--callback-url", "http://shop.example/demo")
    completed(api)
    connect = socket.socket.connect

    def unreachable(carrier, address):
        if ":" in address[0]:
            internet.dialled.append(address[0])
            raise OSError(101, "Network is unreachable")
        return connect(carrier, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", unreachable)
        swept()
    assert (internet.dialled, tries()[0]["status"]) == (["2606:4700::dead", PUBLIC], 200)


@pytest.mark.parametrize("settings_of_app", [IN_PRODUCTION])
def test_without_ipv6_on_the_machine_the_ipv4_address_is_called(api, flask, swept, tries, internet):
    internet.names["shop.example"] = [["2606:4700::dead", PUBLIC]]
    flask("merchant", "set", "demo", "--callback-url", "http://shop.example/demo")
    completed(api)
    make = socket.socket.__init__

    def without_ipv6(carrier, family=socket.AF_INET, *others, **named):
        if family == socket.AF_INET6:
            raise OSError(97, "Address family not supported by protocol")
        make(carrier, family, *others, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "__init__", without_ipv6)
        swept()
    assert (internet.dialled, tries()[0]["status"]) == ([PUBLIC], 200)


@pytest.mark.parametrize("settings_of_app", [IN_PRODUCTION])
@pytest.mark.parametrize(
    "location",
    ["http://127.0.0.1:{port}/other", "http://169.254.169.254/latest/meta-data/", "//localhost:{port}/other", "/other"],
)
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_a_failed_attempt_and_not_followed(
    status, location, api, flask, swept, tries, internet, web_server
):
    inside = Receiver(web_server, "/other", "whsec_")
    internet.names |= {"shop.example": [[PUBLIC]], "localhost": [["127.0.0.1"]], "127.0.0.1": [["127.0.0.1"]]}
    internet.receiver.answers(status, headers={"Location": location.format(port=web_server.port)})
    flask("merchant", "set", "demo", "--callback-url", "http://shop.example/demo")
    completed(api)
    swept()
    assert (tries()[0]["status"], internet.dialled, inside.got) == (status, [PUBLIC], [])


@pytest.mark.parametrize("settings_of_app", [IN_PRODUCTION])
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


@pytest.mark.parametrize("without", ["", "*", "127.0.0.1"])
def test_proxies_in_the_environment_are_not_used(without, api, shop, other_shop, swept, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, other_shop.url)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, without) if without else monkeypatch.delenv(name, raising=False)
    completed(api)
    swept()
    assert len(shop.got) == 1
    assert len(shop.server.log) == 1


@pytest.mark.parametrize("settings_of_app", [IN_PRODUCTION])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_in_the_environment_gives_no_access_to_private_addresses(
    scheme, api, flask, receiver, swept, tries, monkeypatch, dials
):
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, receiver.url)
    flask("merchant", "set", "demo", "--callback-url", f"{scheme}://169.254.169.254/latest/meta-data/")
    completed(api)
    swept()
    assert "AddressRefused" in tries()[0]["answer"]
    assert (dials, receiver.got) == ([], [])


def test_passwords_in_netrc_are_not_sent(api, shop, swept, tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login operator password secret\ndefault login operator password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    completed(api)
    swept()
    assert "Authorization" not in shop.got[0].headers


NO_ADDRESS = str.split("""
ftp://x/ file:///etc/passwd gopher://127.0.0.1:6379/_INFO dict://127.0.0.1:11211/ ldap://x/ jar:http://x!/ data:,x
http+unix://%2Frun%2Fx.sock/ unix:/run/x.sock javascript:1 HTTP:x http:// http://[::/ http://x:y/ http://x:99999/
//x.example/ ///x.example/ x.example http:///x.example/ http://user@/
""")


@pytest.mark.parametrize("url", NO_ADDRESS)
def test_an_invalid_address_is_refused_with_a_line(url, flask, flask_json):
    said = flask("merchant", "set", "demo", "--callback-url", url, fails=True).output
    assert said.startswith("Error: ")
    assert flask_json("merchant", "show", "demo")["callback_url"] == "/sandbox/inbox"


@pytest.mark.parametrize("settings_of_app", [IN_PRODUCTION, {"private_callbacks": True}])
@pytest.mark.parametrize("url", ["http://a..b/", "http://.example/", "http://%/", "http://nowhere.invalid/"])
def test_an_unresolvable_address_is_a_failed_attempt(url, settings_of_app, api, flask, swept, tries):
    flask("merchant", "set", "demo", "--callback-url", url)
    completed(api)
    swept()
    (attempt,) = tries()
    assert attempt["status"] is None
    assert attempt["answer"]


@pytest.mark.parametrize("settings_of_app", [IN_PRODUCTION])
@pytest.mark.parametrize("path", ["/sandbox/inbox", "/\\127.0.0.1/", "/../", "/@127.0.0.1/"])
def test_a_path_alone_is_an_address_of_the_service_itself(path, api, flask, swept, tries, dials):
    flask("merchant", "set", "demo", "--callback-url", path)
    completed(api)
    swept()
    assert tries()[0]["answer"] == "AddressRefused: 127.0.0.1 is not a public address"
    assert dials == []
