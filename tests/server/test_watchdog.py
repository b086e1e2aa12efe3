"""The server proves that it works: its event loop turns, and a thread takes requests."""

import threading

from serving.http_server import Server
from tests.support import free_port, until


def test_a_server_listens_once_it_runs(serve, servers):
    assert not Server(lambda *_: [], "127.0.0.1", free_port(), threads=1, body_limit=1).is_listening()
    assert servers[serve()].is_listening()


def test_an_idle_server_works(serve, servers):
    until(servers[serve()].check())


def test_it_is_not_proven_to_work_while_every_thread_is_stuck(serve, servers, busy, kept_busy, raw):
    port = serve(threads=2)
    kept_busy(port, 1)
    until(servers[port].check())
    raw(port).send(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
    until(lambda: busy.inside == 2)
    works = servers[port].check()
    assert raw(port).send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").answer()  # the event loop has taken the check
    assert not works()
    busy.go.set()
    until(works)


def test_it_is_not_proven_to_work_while_the_event_loop_is_blocked(serve, servers, raw):
    inside, go = threading.Event(), threading.Event()

    def blocking(path):
        if path == "/block":
            inside.set()
            go.wait(30)
        return False

    port = serve(is_upload=blocking)
    raw(port).send(b"GET /block HTTP/1.1\r\nHost: x\r\n\r\n")
    assert inside.wait(30)
    works = servers[port].check()
    assert not works()
    go.set()
    until(works)


def test_threads_that_send_long_responses_are_not_stuck(serve, servers, raw):
    go, ends = threading.Semaphore(0), threading.Event()

    def parts():
        while not ends.is_set():
            yield b"x"
            assert go.acquire(timeout=30)

    def streaming(environ, start_response):
        start_response("200 OK", [])
        return parts()

    port = serve(threads=1, application=streaming)
    raw(port).send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    until(lambda: servers[port].sent_parts == 1)
    works = servers[port].check()
    assert not works()
    go.release()
    until(works)
    ends.set()
    go.release()
