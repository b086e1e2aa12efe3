"""Responses of unknown length are sent while they are made, as fast as they are read, and never look complete early."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPResponse, IncompleteRead
from pathlib import Path

import pytest
from flask import Flask, Response

from serving import http_server
from serving.http_server import Server
from tests.server.conftest import listens
from tests.support import free_port, until

GET = b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n"
OURS = 1 << 20  # bytes that may be kept in addition to the system's buffers
STATUS = slice(9, 12)


class Long:
    """A WSGI application with a generator of parts for each path; some wait for `go`."""

    def __init__(self):
        self.made, self.closed, self.go = 0, threading.Event(), threading.Event()

    def __call__(self, environ, start_response):
        start_response("200 OK", [("Content-Type", "text/plain")])
        return self._told(getattr(self, environ["PATH_INFO"][1:])())

    def _told(self, parts):
        try:
            for part in parts:
                yield part
                self.made += len(part)
        finally:
            self.closed.set()

    def _then(self):
        assert self.go.wait(30)

    def three(self):
        yield b"one,"
        self._then()
        yield from (b"", b"two,", b"", b"three")

    def numbers(self):
        return (b"%d," % number for number in range(3_000))

    def rows(self):
        return (b"%099d\n" % number for number in range(250_000))

    def blocks(self):
        return (bytes([number]) * 100_000 for number in range(250))

    def huge(self):
        return (bytes([number]) * 5_000_000 for number in range(10))

    def endless(self):
        while True:
            yield b"x" * 50_000

    def nothing(self):
        return iter(())

    def breaks(self):
        yield b"half"
        self._then()
        raise SystemExit(3)

    def fails(self):
        yield b""
        raise ValueError("before the first byte")

    def text(self):
        yield b"half"
        self._then()
        yield "of another type"


@pytest.fixture
def long():
    made = Long()
    yield made
    made.go.set()


@pytest.fixture
def port(serve, long):
    return serve(application=long)


def response_to(connection, path, version=b"1.1", method=b"GET"):
    """Send a request; return the response, whose head has arrived."""
    connection.send(b"%s /%s HTTP/%s\r\nHost: x\r\n\r\n" % (method, path, version))
    answer = HTTPResponse(connection.socket, method=method.decode())
    answer.begin()
    return answer


def read_through(answer):
    while answer.read(50_000):
        pass


def test_the_first_part_arrives_before_the_second_is_made(port, long, raw):
    answer = response_to(raw(port), b"three")
    assert answer.read(4) == b"one,"
    assert not long.closed.is_set()
    long.go.set()
    assert answer.read() == b"two,three"
    assert long.closed.is_set()


@pytest.mark.parametrize("path", ["numbers", "blocks", "huge", "nothing"])
@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_the_whole_response_arrives(port, long, raw, path, version):
    connection = raw(port)
    assert response_to(connection, path.encode(), version).read() == b"".join(getattr(long, path)())
    if version == b"1.1":
        assert response_to(connection, b"blocks").read(2) == b"\0\0"


@pytest.mark.parametrize("path", [b"rows", b"blocks"])
def test_little_is_made_before_it_is_read(serve, raw, path):
    unsent = int(Path("/proc/sys/net/ipv4/tcp_wmem").read_text().split()[2])  # the most that the system keeps
    for buffer in (4096, 1 << 20):  # of a fixed size: one that the system tunes may take the whole response
        app, got, seen = Long(), 0, [0]
        answer = response_to(raw(serve(application=app), buffer), path)

        def rests(app=app, seen=seen):
            seen.append(app.made)
            return seen[-1] == seen[-2]

        until(rests)
        while part := answer.read(200_000):
            got += len(part)
            assert app.made - got < unsent + 2 * buffer + OURS


def test_a_slow_reader_occupies_only_one_thread(serve, long, busy, raw):
    port = serve(
        application=lambda environ, start: (long if environ["PATH_INFO"] == "/blocks" else busy)(environ, start)
    )
    slow = response_to(raw(port, 4096), b"blocks")
    for _ in range(20):
        assert raw(port).send(GET % b"").answer()[STATUS] == b"200"
    assert len(slow.read()) == 25_000_000


def test_a_client_that_does_not_read_is_disconnected(serve, long, raw, monkeypatch):
    monkeypatch.setattr(http_server, "UNREAD_SECONDS", 1)
    port = serve(application=long, threads=1)
    raw(port, 4096).send(GET % b"endless")
    assert long.closed.wait(30)
    assert response_to(raw(port), b"nothing").status == 200


ENDS = {
    "closed": lambda client: client.socket.close(),
    "shut": lambda client: client.socket.shutdown(socket.SHUT_WR),
    "shut, and more was asked": lambda client: client.send(GET % b"three").socket.shutdown(socket.SHUT_WR),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("read", [10, 10_000_000])
def test_nothing_is_made_for_a_disconnected_client(serve, long, raw, caplog, end, read):
    port = serve(application=long, threads=1)
    gone = raw(port)
    response_to(gone, b"endless").read(read)
    end(gone)
    assert long.closed.wait(30)
    assert response_to(raw(port), b"nothing").status == 200
    assert not caplog.records


@pytest.mark.parametrize("path", [b"breaks", b"text"])
@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_half_a_response_never_looks_complete(serve, long, raw, caplog, path, version):
    port = serve(application=long, threads=1)
    connection = raw(port)
    answer = response_to(connection, path, version)
    assert answer.read(4) == b"half"
    long.go.set()
    assert long.closed.wait(30)
    connection.socket.settimeout(1)
    with pytest.raises(TimeoutError):  # it does not end: its client waits until its timeout
        answer.read()
    assert caplog.messages == [f"GET '/{path.decode()}' failed"]
    assert response_to(raw(port), b"nothing").status == 200


def shorter_than_its_length(body):
    """An application whose response has this body, and a length of 8 bytes."""

    def short(environ, start_response):
        start_response("200 OK", [("Content-Length", "8")])
        return iter([body])

    return short


SHORT = ["GET '/short': the response is shorter than its length"]


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_a_body_shorter_than_its_length_ends_the_connection(serve, raw, caplog, version):
    answer = response_to(raw(serve(application=shorter_than_its_length(b"half"))), b"short", version)
    with pytest.raises((IncompleteRead, ConnectionResetError)):
        answer.read()
    assert caplog.messages == SHORT


def test_a_missing_body_ends_the_connection_after_the_head_or_before_it(serve, raw, caplog):
    connection = raw(serve(application=shorter_than_its_length(b"")))
    with pytest.raises((IncompleteRead, ConnectionResetError)):  # granian may not have sent the head yet
        response_to(connection, b"short").read()
    assert caplog.messages == SHORT


@pytest.mark.parametrize(("status", "method"), [("200 OK", b"HEAD"), ("304 Not Modified", b"GET")])
def test_a_response_without_a_body_may_declare_a_length(serve, raw, caplog, status, method):
    def head(environ, start_response):
        start_response(status, [("Content-Length", "8")])
        return []

    connection = raw(serve(application=head))
    for _ in range(2):
        assert response_to(connection, b"any", method=method).read() == b""
    assert caplog.messages == []


def test_a_failure_before_the_first_byte_is_an_error_response(port, long, raw, caplog):
    connection = raw(port)
    assert connection.send(GET % b"fails").answer()[STATUS] == b"500"
    assert long.closed.is_set()
    assert caplog.messages == ["GET '/fails' failed"]
    assert response_to(connection, b"nothing").status == 200


def test_head_gets_the_head_only(port, long, raw):
    connection = raw(port)
    answer = response_to(connection, b"endless", method=b"HEAD")
    assert (answer.status, answer.getheader("Content-Length")) == (200, None)
    assert long.closed.wait(30)
    answer.close()
    assert response_to(connection, b"blocks").read(1) == b"\0"


@pytest.fixture
def ending(long):
    """`ending()` stops a server with a response in progress; returns the port and the end of the response."""
    port, ask = free_port(), threading.Event()
    made = Server(long, "127.0.0.1", port, threads=2, body_limit=1000)
    with ThreadPoolExecutor(1) as pool:
        finished = pool.submit(made.run, ask)
        until(lambda: listens("127.0.0.1", port))
        yield port, ask, finished
        ask.set()
        long.go.set()


def test_a_response_in_progress_is_finished_at_the_stop(ending, long, raw):
    port, ask, finished = ending
    answer = response_to(raw(port), b"three")
    ask.set()
    assert answer.read(4) == b"one,"
    assert not finished.done()
    long.go.set()
    assert answer.read() == b"two,three"
    assert finished.result(30) is True


@pytest.mark.parametrize("reads", [True, False])
def test_an_endless_response_is_ended_at_the_stop(ending, long, raw, monkeypatch, reads):
    monkeypatch.setattr(http_server, "DRAIN_SECONDS", 1)
    monkeypatch.setattr(http_server, "LAST_SECONDS", 1)
    port, ask, finished = ending
    answer = response_to(raw(port, 4096), b"endless")
    ask.set()
    if reads:
        with pytest.raises((IncompleteRead, ConnectionResetError)):
            read_through(answer)
    assert finished.result(30) is False
    assert long.closed.wait(30)


@pytest.mark.parametrize(
    ("host", "client"), [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("::", "::1"), ("::", "127.0.0.1")]
)
def test_clients_by_ipv4_and_ipv6_are_treated_alike(serve, long, host, client):
    port = serve(application=long, host=host)
    with socket.create_connection((client, port)) as connection:
        connection.sendall(GET % b"blocks")
        answer = HTTPResponse(connection)
        answer.begin()
        assert len(answer.read()) == 25_000_000


def test_flasks_responses_of_known_length_are_sent_as_a_whole(serve, raw):
    flask = Flask(__name__)
    flask.add_url_rule("/known", "known", lambda: "text")
    flask.add_url_rule("/unknown", "unknown", lambda: Response(iter(["te", "xt"])))
    flask.add_url_rule("/empty", "empty", lambda: ("", 204))
    port = serve(application=flask)
    framing = {}
    for path in (b"known", b"unknown", b"empty"):
        answer = response_to(raw(port), path)
        framing[path] = answer.getheader("Content-Length"), answer.getheader("Transfer-Encoding"), answer.read()
    assert framing == {
        b"known": ("4", None, b"text"),
        b"unknown": (None, "chunked", b"text"),
        b"empty": (None,) * 2 + (b"",),
    }
