"""More requests than threads: accepted requests are served, the others refused immediately."""

import time
from contextvars import ContextVar, copy_context
from threading import Event, Thread

import pytest

from serving.http_server import Server, is_local
from tests.server.conftest import listens
from tests.support import free_port, until

GET = b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"
STATUS = slice(9, 12)


def test_the_queue_is_limited_and_the_rest_is_refused_immediately(serve, busy, raw, kept_busy):
    port = serve(threads=2, waiting=3)
    running = kept_busy(port, 2)
    more = [raw(port).send(GET) for _ in range(8)]
    until(lambda: sum(one.has_answer() for one in more) == 5)
    refused = [one for one in more if one.has_answer()]
    assert {one.answer()[STATUS] for one in refused} == {b"503"}
    busy.go.set()
    assert {one.answer()[STATUS] for one in running + [one for one in more if one not in refused]} == {b"200"}
    assert raw(port).send(GET).answer()[STATUS] == b"200"


@pytest.mark.parametrize("how", [{"threads": 1}, {"probe": "/wait"}], ids=["a request", "a probe behind a hanging one"])
def test_whatever_waits_too_long_is_refused_even_without_a_successor(serve, raw, kept_busy, short_limits, how):
    port = serve(**how)
    kept_busy(port, 1)
    assert raw(port).send(GET).answer()[STATUS] == b"503"


def test_sending_a_body_slowly_does_not_count_as_waiting(serve, busy, raw, kept_busy, monkeypatch):
    monkeypatch.setattr("serving.http_server.LONGEST_WAIT", 1.5)
    port = serve(threads=1, waiting=3)
    running = kept_busy(port, 1)
    slow = raw(port).send(b"POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhel")
    time.sleep(1.7)
    slow.send(b"lo")
    time.sleep(0.2)  # it enters the queue
    after = raw(port).send(GET)
    time.sleep(0.2)  # and this one follows it
    busy.go.set()
    assert [one.answer()[STATUS] for one in (*running, slow, after)] == [b"200"] * 3


def test_a_probe_of_this_machine_is_served_however_busy_all_threads_are(serve, raw, kept_busy):
    port = serve(threads=1, waiting=1)
    kept_busy(port, 1)
    raw(port).send(GET)
    for _ in range(5):
        assert raw(port).send(GET.replace(b"/wait", b"/healthz")).answer()[STATUS] == b"200"


def test_a_request_that_fails_badly_gets_a_response_and_frees_its_thread(serve, raw):
    port = serve(threads=1)
    for _ in range(3):
        assert raw(port).send(GET.replace(b"/wait", b"/end")).answer()[STATUS] == b"500"
    assert raw(port).send(GET.replace(b"/wait", b"/")).answer()[STATUS] == b"200"


def test_requests_share_no_context_with_each_other_or_with_the_servers_starter(raw):
    seen, name = [], ContextVar("name", default="none")

    def application(environ, start_response):
        seen.append(name.get())
        name.set("another request's")
        start_response("200 OK", [])
        return [b"ok"]

    port, asked = free_port(), Event()
    made = Server(application, "127.0.0.1", port, threads=1, body_limit=1000)
    context = copy_context()
    context.run(name.set, "the command's")
    running = Thread(target=context.run, args=[made.run, asked])
    running.start()
    until(lambda: listens("127.0.0.1", port))
    for _ in range(2):
        assert raw(port).send(GET).answer()[STATUS] == b"200"
    asked.set()
    running.join(30)
    assert seen == ["none", "none"]


@pytest.mark.parametrize(
    "framing",
    [b"Content-Length: 5\r\n\r\nhello", b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"],
    ids=["of known length", "in chunks"],
)
def test_a_refused_connection_can_send_the_next_request(serve, raw, kept_busy, busy, framing):
    port = serve(threads=1, waiting=1)
    kept_busy(port, 1)
    lined_up = [raw(port).send(GET) for _ in range(2)]
    until(lambda: any(one.has_answer() for one in lined_up))  # one waits, the other was refused
    kept = raw(port)
    assert kept.send(b"POST /wait HTTP/1.1\r\nHost: x\r\n" + framing).answer()[STATUS] == b"503"
    busy.go.set()
    for one in lined_up:
        one.answer()
    assert kept.send(GET).answer()[STATUS] == b"200"


def test_only_this_machine_has_the_probes_thread():
    for client in ("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"):
        assert is_local(client), client
    for client in ("10.0.0.1", "::ffff:10.0.0.1", "2001:db8::1", "::", ""):
        assert not is_local(client), client
