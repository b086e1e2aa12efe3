"""Hostile servers of merchants: they can only let their own callbacks fail."""

import contextlib
import gzip
import socket
import struct
import threading
import time

import pytest

from net import http
from services.callbacks import delivery
from tests.support import completed, until
from tests.upstreams.loopback import BareServer

pytestmark = pytest.mark.usefixtures("slow")  # most of it waits

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
BOMB = gzip.compress(bytes(50_000_000))


def endless(*parts, pause=0.0):
    """A server that sends the first parts once and the last one forever."""

    def serve(carrier, over):
        carrier.sendall(b"".join(parts[:-1]))
        while not over.wait(pause):
            carrier.sendall(parts[-1])

    return serve


def once(*parts):
    """A server that sends this once and closes the connection."""
    return lambda carrier, over: carrier.sendall(b"".join(parts))


def reset(carrier, over):
    carrier.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.fixture
def hostile(flask, monkeypatch):
    """`hostile(serve)` gives the merchant `demo` this `BareServer`."""
    monkeypatch.setattr(delivery, "TIMEOUT", 2.0)
    with contextlib.ExitStack() as stack:

        def start(serve, scheme="http"):
            server = stack.enter_context(BareServer(serve))
            flask("merchant", "set", "demo", "--callback-url", f"{scheme}://127.0.0.1:{server.port}/")

        yield start


@pytest.mark.parametrize(
    ("serve", "scheme", "status"),
    [
        pytest.param(endless(b""), "http", None, id="never answers"),
        pytest.param(endless(b"HTTP/1.1 100 Continue\r\n\r\n"), "http", None, id="endless 100s"),
        pytest.param(endless(OK, b"X: y\r\n"), "http", None, id="endless headers"),
        pytest.param(endless(OK, b"X: y\r\n", pause=0.1), "http", 200, id="headers that drip"),
        pytest.param(endless(OK + b"X: ", b"y" * 1000), "http", None, id="an endless header"),
        pytest.param(endless(b"HTTP/1.1 200 ", b"y" * 1000), "http", None, id="an endless status line"),
        pytest.param(endless(b"\x16\x03\x03\x3f\xff", b"y", pause=0.1), "https", None, id="a handshake that drips"),
        pytest.param(once(b"\x16\x03\x03\x00\x02yy"), "https", None, id="a handshake of garbage"),
        pytest.param(once(b"SSH-2.0-OpenSSH_9.2\r\n"), "http", None, id="another protocol"),
        pytest.param(once(b""), "http", None, id="hangs up"),
        pytest.param(reset, "http", None, id="resets"),
        pytest.param(endless(OK + b"\r\n", b"y" * 1000), "http", 200, id="an endless body"),
        pytest.param(endless(OK + b"Content-Length: 99\r\n\r\n", b"y", pause=0.1), "http", 200, id="a body that drips"),
        pytest.param(endless(OK + CHUNKED, b"1\r\ny\r\n", pause=0.1), "http", 200, id="chunks that drip"),
        pytest.param(once(OK, CHUNKED, b"ffffffffffffffff\r\n"), "http", 200, id="a huge chunk"),
        pytest.param(once(OK, CHUNKED, b"no number\r\n"), "http", 200, id="a wrong chunk"),
        pytest.param(once(OK, b"Content-Length: -1\r\n\r\nyes"), "http", 200, id="a negative length"),
        pytest.param(once(OK, b"Content-Encoding: gzip\r\n\r\n", BOMB), "http", 200, id="a bomb"),
    ],
)
def test_whatever_a_server_sends_the_attempt_ends_and_is_recorded(serve, scheme, status, hostile, api, due, tries):
    hostile(serve, scheme)
    completed(api)
    worker = threading.Thread(target=due.callbacks)
    worker.start()
    worker.join(40)
    assert not worker.is_alive()
    (attempt,) = tries()
    assert (attempt["status"], len(attempt["answer"]) <= delivery.KEPT) == (status, True)


@pytest.mark.parametrize(
    ("serve", "status", "answer"),
    [
        pytest.param(endless(b"HTTP/1.1 100 Continue\r\n\r\n" * 50), None, "longer than 32768 bytes", id="100s"),
        pytest.param(endless(OK, CHUNKED, b"1\r\ny\r\n0\r\n", b"X: y\r\n" * 50), 200, "in the body)", id="trailers"),
    ],
)
def test_only_the_beginning_of_an_endless_response_is_read(serve, status, answer, hostile, api, due, tries):
    """Reading all of it would keep the processor busy, and delay all other callers, until the timeout."""
    hostile(serve)
    completed(api)
    due.callbacks()
    (attempt,) = tries()
    assert attempt["status"] == status
    assert answer in attempt["answer"]


def test_the_time_to_resolve_a_name_is_part_of_the_attempts(hostile, api, due, tries, monkeypatch):
    look_up = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda *asked, **named: time.sleep(2.5) or look_up(*asked, **named))
    hostile(endless(OK, b"X: ", b".", pause=0.2))
    completed(api)
    worker = threading.Thread(target=due.callbacks)
    worker.start()
    worker.join(20)
    assert not worker.is_alive()
    assert len(tries()) == 1


def test_if_no_thread_could_watch_an_attempt_the_next_one_watches_them_all(hostile, api, due, flask_json, monkeypatch):
    watchdog, start, refused = http._Watchdog(), threading.Thread.start, []
    monkeypatch.setattr(http, "_watchdog", watchdog)

    def refuse_the_watch(thread):
        if thread.name == "deadlines" and not refused:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_the_watch)
    hostile(endless(OK, b"X: ", b"y", pause=0.1))
    workers = [threading.Thread(target=due.callbacks) for _ in range(2)]
    for worker in workers:
        completed(api)
        worker.start()
        until(lambda: watchdog._open)
    for worker in workers:
        worker.join(40)
        assert not worker.is_alive()
    assert len(refused) == 1
    assert [row["attempts"] for row in flask_json("callback", "list")] == [1, 1]
