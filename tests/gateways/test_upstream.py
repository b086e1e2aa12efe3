"""HTTP to an upstream: each call ends in time, accepts no compressed response, and logs no address."""

import contextlib
import gzip
import logging
import socket
import socketserver
import threading
import time

import pytest

from gateways import upstream
from gateways.base import ChannelUnknown
from gateways.upstream import Upstream
from runtime import settings
from runtime.state import Runtime
from tests.upstreams.epay import KEY, EpayPlatform
from tests.upstreams.loopback import BareServer


@pytest.fixture(autouse=True)
def chosen(monkeypatch):
    """`chosen(private_channels=False)`: the settings of this process; at first private addresses are allowed."""

    def use(**wanted):
        Runtime(settings.Settings(**wanted)).enter()

    use(private_channels=True)
    return use


ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@pytest.fixture
def serving():
    """`serving(serve)`: the port of a `BareServer`."""
    with contextlib.ExitStack() as stack:
        yield lambda serve: stack.enter_context(BareServer(serve)).port


@pytest.fixture
def dead():
    """A port that accepts no connection because its queue is full."""
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        yield listening.getsockname()[1]


@pytest.fixture
def name_of(monkeypatch):
    """`name_of(*ports)`: every name resolves to these ports of this machine."""

    def lead(*ports):
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)) for port in ports]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)

    return lead


def patience(monkeypatch, connect, whole):
    """Set the timeouts of a connection and of a call; a read alone may take longer than either."""
    for name, seconds in {"CONNECT": connect, "READ": 10.0, "WHOLE": whole}.items():
        monkeypatch.setattr(upstream, name, seconds)


def fails_after(base, **named):
    """Return the seconds of a call without a usable response."""
    began = time.monotonic()
    with pytest.raises(ChannelUnknown):
        Upstream(base, **named).get("a", {})
    return time.monotonic() - began


# --- deadlines of calls


@pytest.mark.parametrize(
    ("base", "proxy", "connect", "whole"),
    [
        ("http://upstream.example", "", 0.6, 10.0),
        ("http://upstream.example", "", 10.0, 0.6),
        ("http://upstream.example", "http://proxy.example:3128", 0.6, 10.0),
        ("https://upstream.example", "http://proxy.example:3128", 10.0, 0.6),
    ],
    ids=["directly", "directly, as a whole", "through a proxy", "through a tunnel, as a whole"],
)
def test_a_name_with_many_dead_addresses_takes_no_longer_than_one(
    base, proxy, connect, whole, dead, name_of, monkeypatch
):
    patience(monkeypatch, connect, whole)
    name_of(*[dead] * 60)
    assert 0.5 < fails_after(base, proxy=proxy) < 20


def test_a_dead_address_leaves_time_for_the_next_one(dead, serving, name_of, monkeypatch):
    patience(monkeypatch, 1.0, 10.0)
    name_of(dead, serving(lambda carrier, _: carrier.sendall(ANSWER)))
    assert Upstream("http://upstream.example").get("a", {}).body == b"{}"


def test_a_proxy_that_responds_slowly_delays_no_call(serving, monkeypatch):
    patience(monkeypatch, 10.0, 0.6)

    dripped = []

    def drip(carrier, over):
        carrier.sendall(b"HTTP/1.1 200 OK\r\n")
        while not over.wait(0.1):
            carrier.sendall(b"X: y\r\n")
            dripped.append(True)

    fails_after("https://upstream.example", proxy=f"http://127.0.0.1:{serving(drip)}")
    assert len(dripped) < 50  # it would take a hundred lines


def test_a_proxy_may_be_given_by_its_ipv6_address():
    asked = []

    class Proxy(socketserver.BaseRequestHandler):
        def handle(self):
            asked.append(self.request.recv(1024).partition(b" HTTP")[0])

    class Server(socketserver.TCPServer):
        address_family = socket.AF_INET6

    with Server(("::1", 0), Proxy) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        fails_after("https://upstream.example", proxy=f"http://[::1]:{server.server_address[1]}")
        thread.join()
    assert asked == [b"CONNECT upstream.example:443"]


# --- the response

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
INCOMPLETE = (
    CHUNKED + b"2\r\n{}\r\n",
    CHUNKED + b"ffffffffffffffff\r\n{}",
    b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n{}",
)


@pytest.fixture
def sending(serving):
    """`sending(*parts)`: the address of a server that responds with these bytes."""
    return lambda *parts: f"http://127.0.0.1:{serving(lambda carrier, _: carrier.sendall(b''.join(parts)))}"


def packed(body, encoding):
    """A response with this Content-Encoding."""
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode(), body


def test_a_compressed_response_is_refused_because_none_was_requested(sending):
    twice = gzip.compress(gzip.compress(bytes(1000)))
    for encoding, body in (("gzip", gzip.compress(b"{}")), ("gzip, gzip", twice), ("x-own", b"{}")):
        with pytest.raises(ChannelUnknown, match=f"127.0.0.1 .*{encoding}"):
            Upstream(sending(*packed(body, encoding))).get("a", {})
    for encoding in ("identity", "Identity", ""):
        assert Upstream(sending(*packed(b"{}", encoding))).get("a", {}).json() == {}


def test_a_chunked_response_is_joined_and_an_incomplete_one_refused(sending):
    assert Upstream(sending(CHUNKED, b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n")).get("a", {}).body == b"{}"
    for sent in INCOMPLETE:
        fails_after(sending(sent))


def test_a_redirect_is_a_response_and_not_followed(sending, recorded):
    other, heard = recorded
    for status in (301, 302, 307):
        moved = f"HTTP/1.1 {status} Moved\r\nLocation: http://127.0.0.1:{other}/\r\nContent-Length: 0\r\n\r\n"
        assert Upstream(sending(moved.encode())).get("api.php", {}).status == status
    assert heard == []


# --- the addresses that are called


@pytest.fixture
def recorded(serving):
    """The port of a server, and the list of its connections."""
    heard = []
    return serving(lambda client, _: (heard.append(client), client.sendall(ANSWER))), heard


def test_a_private_address_is_called_only_if_the_settings_allow_it(recorded, chosen):
    port, heard = recorded
    chosen(private_channels=False)
    refusal = r"was not called: .* is not a public address, and private_channels is not set"
    for host in ("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433"):
        with pytest.raises(ChannelUnknown, match=refusal):
            Upstream(f"http://{host}:{port}").get("api.php", {"key": "secret"})
    with pytest.raises(ChannelUnknown, match="private_channels is not set"):
        Upstream("http://pay.example", f"http://127.0.0.1:{port}").get("api.php", {})  # its proxy
    assert heard == []
    for wanted in ({"private_channels": True}, {"demo": True}):
        chosen(**wanted)
        assert Upstream(f"http://127.0.0.1:{port}").get("api.php", {}).status == 200


def test_a_name_with_one_private_address_is_not_called(recorded, chosen, monkeypatch):
    port, heard = recorded
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in ("93.184.215.14", "127.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    chosen()
    with pytest.raises(ChannelUnknown, match=r"pay\.example was not called: 127\.0\.0\.1"):
        Upstream(f"http://pay.example:{port}").get("api.php", {})
    assert heard == []


def test_a_proxy_in_the_environment_is_not_called(sending, recorded, monkeypatch):
    proxy, heard = recorded
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy}")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert Upstream(sending(ANSWER)).get("api.php", {}).status == 200
    assert heard == []


def test_an_impossible_host_has_no_response():
    for host in ("①②⑦.0.0.1", "*.example", "a..example"):
        with pytest.raises(ChannelUnknown, match="no response from"):
            Upstream(f"https://{host}").get("api.php", {"key": "secret"})


# --- logs


def test_a_malformed_header_puts_no_address_into_a_log(app, web_server, add_channel, refuses, sending, caplog):
    caplog.set_level(logging.DEBUG)  # of the root only
    malformed = ANSWER.replace(b"\r\n\r\n", b"\r\nno header\r\n\r\n")
    base = sending(malformed)
    channel = add_channel("epay", EpayPlatform(web_server).config("1", base_url=base))
    refuses("channel", "check", str(channel))
    Upstream(base).get("api.php", {"key": KEY})
    assert KEY not in caplog.text
    assert "api.php" not in caplog.text
