"""The HTTP server: chunked bodies, persistent connections, and requests that do not delay others."""

import json
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection

import pytest

from serving.application import BODY_LIMIT
from tests import contract
from tests.databases import orders_held_up
from tests.support import Api, Service, signed, through_http
from tests.test_process import BUY

pytestmark = pytest.mark.usefixtures("slow")

JSON = {"Content-Type": "application/json"}
REGIONS = "/addons/paychannel/channel.gatewaya/regionData"
MANY = 24  # writers at once


def order_of(size):
    """A signed order with a body of this length."""
    body = json.dumps(signed("createOrder", BUY)).encode()
    return body + b" " * (size - len(body))


def in_chunks(body, *sizes):
    """A body in chunks of these sizes, and the rest."""
    start = 0
    for size in sizes:
        yield body[start : start + size]
        start += size
    yield body[start:]


def post(service, body):
    """createOrder with a body; an iterator is sent in chunks."""
    return service.api.post("createOrder", body)


@pytest.mark.parametrize("sizes", [None, (), (1, 2, 3), (BODY_LIMIT - 1,), (30_000, 30_000), tuple([997] * 60)])
def test_a_body_of_the_largest_size_is_accepted_and_one_byte_more_refused(running, sizes):
    taken, refused = (
        post(running, body if sizes is None else in_chunks(body, *sizes))
        for body in (order_of(BODY_LIMIT), order_of(BODY_LIMIT + 1))
    )
    assert (taken.status, taken.code) == (200, 1)
    assert (refused.status, refused.code) == (413, 41300)


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("size", [BODY_LIMIT * 2, 4 * 1024 * 1024])
def test_a_far_too_large_body_is_41300(running, size, chunked):
    body = order_of(size)
    refused = post(running, in_chunks(body, *[60_000] * (size // 60_000)) if chunked else body)
    assert refused.code == 41300


@contextmanager
def connection_to(service):
    """A connection; `send(method, path, body)` fails if the service has closed it."""
    connection = HTTPConnection("127.0.0.1", service.port, timeout=20)
    connection.connect()
    kept = connection.sock

    def send(method, path, body=None, headers=JSON):
        connection.request(method, path, body, headers, encode_chunked=not isinstance(body, (bytes, type(None))))
        answer = connection.getresponse()
        text = answer.read()
        contract.hold_answer(method, path, answer.status, dict(answer.getheaders()), text)
        assert connection.sock is kept
        return answer.status, text

    yield send
    connection.close()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/nowhere", 404),
        ("POST", REGIONS, 405),
        ("PUT", "/merchant/createOrder", 405),
        ("POST", "/merchant/orderQueryList", 400),
        ("GET", "/healthz", 200),
    ],
)
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("size", [1000, BODY_LIMIT * 2])
def test_an_unread_body_is_not_parsed_as_the_next_request(running, method, path, status, chunked, size):
    body = b"GET /merchant HTTP/1.1\r\n\r\n" * (size // 26)
    headers = JSON | ({"Transfer-Encoding": "chunked"} if chunked else {})
    with connection_to(running) as send:
        said = send(method, path, in_chunks(body, 10, 500) if chunked else body, headers)[0]
        assert said in (status, 413)
        for _ in range(2):
            assert send("GET", "/healthz")[0] == 200


def test_pipelined_requests_are_served_in_turn(running):
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as sender:
        paths = ["/healthz", "/nowhere", REGIONS, "/healthz"]
        sender.sendall("".join(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n" for path in paths).encode())
        answers = b""
        while answers.count(b'"version"') < 2:
            answers += sender.recv(65_536)
    assert re.findall(rb"HTTP/1.1 (\d+)", answers) == [b"200", b"404", b"200", b"200"]


def test_expect_100_continue_is_supported(running):
    body = order_of(3000)
    head = "POST /merchant/createOrder HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as sender:
        sender.sendall(f"{head}Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n".encode())
        assert sender.recv(1000).startswith(b"HTTP/1.1 100")
        sender.sendall(body)
        assert b"200 OK" in sender.recv(65_536)


def test_a_second_service_on_the_port_is_refused_in_one_line(running, instance):
    said = Service(instance, ORDERS_PORT=str(running.port)).refused()
    assert "in use" in said
    assert str(running.port) in said
    assert running.api.listed().code == 1


@pytest.mark.parametrize("host", ["nowhere.invalid", "1.2.3.4", "a..b", "x" * 70])
def test_a_host_that_can_not_be_listened_on_is_named_in_one_line(instance, host):
    said = Service(instance, ORDERS_HOST=host).refused()
    assert f"cannot listen on {host}:" in said
    assert "None" not in said


@pytest.mark.parametrize(
    ("settings", "url", "site"),
    [
        ({"ORDERS_SITE_URL": "https://pay.example.com"}, "http://127.0.0.1:{}", ", as https://pay.example.com"),
        ({"ORDERS_HOST": "::1"}, "http://[::1]:{}", ""),
        ({"ORDERS_HOST": "localhost"}, "http://localhost:{}", ""),
    ],
    ids=["behind a proxy", "IPv6", "a name"],
)
def test_a_service_prints_its_address_and_its_site(instance, settings, url, site):
    service = Service(instance, **settings)
    service.url = url.format(service.port)
    try:
        service.start()
        assert f"serving on {service.url}{site}\n" in service.log.read_text()
        assert service.stop() == 0
    finally:
        if service.process.poll() is None:
            service.kill()


def test_a_request_has_one_valid_host_header_unless_it_is_http_1_0(running, raw):
    def status(version, *hosts):
        head = "".join(f"Host: {host}\r\n" for host in hosts)
        request = f"GET /healthz HTTP/{version}\r\n{head}Connection: close\r\n\r\n"
        return raw(running.port).send(request.encode()).answer().split()[1]

    assert (status("1.1", "localhost"), status("1.0")) == (b"200", b"200")
    for hosts in ((), ("localhost", "localhost"), ("localhost", "evil.example"), ("",), ("a..b",), ("x" * 64,)):
        assert status("1.1", *hosts) == b"400", hosts


def test_while_writes_wait_all_other_requests_are_served(running):
    clients = [Api(through_http(running.url)) for _ in range(MANY)]
    known = running.api.buy().data["order_no"]
    with ThreadPoolExecutor(MANY) as pool:
        with orders_held_up(running.instance):
            writing = [pool.submit(client.buy) for client in clients]
            for _ in range(5):
                for path in ("/healthz", REGIONS, f"/addons/paychannel/pay/status?order_no={known}"):
                    assert running.api.send("GET", path).status == 200
                assert running.api.listed().code == 1
                assert running.api.detail(order_no=known).code == 1
                assert running.api.call("getPayChannels").code == 1
            assert not any(call.done() for call in writing)
        placed = [call.result(20) for call in writing]
    assert [answer.code for answer in placed] == [1] * MANY
    assert len({answer.data["order_no"] for answer in placed}) == MANY
