"""Callers that send slowly, too much or not at all delay no others, and are disconnected."""

import gc

import pytest

from serving.http_server import _Exchange
from tests.server.conftest import Raw
from tests.support import until

HEAD = b"POST /x HTTP/1.1\r\nHost: x\r\n"
SLOW = {
    "of known length": b"Content-Length: 500\r\n\r\nhello",
    "in chunks": b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    "not begun": b"Content-Length: 500\r\n\r\n",
}


@pytest.mark.parametrize("body", SLOW.values(), ids=SLOW)
def test_an_endless_body_is_a_408_and_occupies_no_thread(serve, raw, short_limits, body):
    port = serve(threads=1)
    slow = [raw(port).send(HEAD + body) for _ in range(20)]
    assert raw(port).send(HEAD + b"Content-Length: 5\r\n\r\nhello").answer().startswith(b"HTTP/1.1 200")
    for one in slow:
        assert one.answer().startswith(b"HTTP/1.1 408")
        assert one.is_closed()


@pytest.mark.parametrize("length", [b"5000", b"9999999999999"])
@pytest.mark.parametrize("sent", [0, 2000])
def test_a_far_too_large_and_slow_body_is_41300(serve, raw, short_limits, length, sent):
    slow = raw(serve()).send(HEAD + b"Content-Length: " + length + b"\r\n\r\n" + b"x" * sent)
    assert slow.answer().startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize("begun", [b"", b"GET /", HEAD, HEAD + b"X-A: "], ids=["nothing", "a line", "a head", "a name"])
def test_a_connection_with_an_endless_head_is_closed(serve, raw, short_limits, begun):
    slow = raw(serve()).send(begun)
    assert slow.answer() in (b"", b"HTTP/1.1 408 Request Timeout\r\n")
    assert slow.is_closed()


def test_an_idle_connection_is_closed_after_some_time(serve, raw, short_limits):
    idle = raw(serve()).send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert idle.answer().startswith(b"HTTP/1.1 200")
    assert idle.is_closed()


@pytest.mark.parametrize(
    "broken",
    [
        b"Content-Length: 500\r\n\r\nhello",
        b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n64\r\nhello",
        b"Transfer-Encoding: chunked\r\n\r\nno size\r\n",
    ],
    ids=["of known length", "in chunks", "half a chunk", "a chunk without a size"],
)
def test_half_a_body_is_never_parsed_as_a_whole_one(serve, raw, broken, busy):
    half = raw(serve()).send(HEAD.replace(b"/x", b"/wait") + broken)
    half.socket.shutdown(1)
    assert b" 200 " not in half.answer()
    assert busy.inside == 0


ENDS = {"closed": lambda sender: sender.socket.close(), "shut": lambda sender: sender.socket.shutdown(1)}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("body", SLOW.values(), ids=SLOW)
def test_an_incomplete_or_slow_body_leaves_nothing_in_memory(serve, raw, short_limits, body, end):
    port = serve()
    for ending in [*[end] * 5, Raw.answer]:
        ending(raw(port).send(HEAD + body))
    assert raw(port).send(HEAD + b"Content-Length: 5\r\n\r\nhello").answer().startswith(b"HTTP/1.1 200")

    def left():
        gc.collect()
        return [each for each in gc.get_objects() if type(each) is _Exchange]  # isinstance would evaluate lazy objects

    until(lambda: not left())


@pytest.mark.parametrize(
    "flood",
    [
        b"".join(b"X-%d: y\r\n" % number for number in range(10_000)),
        b"X-A: " + b"y" * 1_000_000 + b"\r\n",
        b"X-A: y\r\n" * 10_000,
        b"Cookie: " + b"a=b; " * 100_000 + b"\r\n",
    ],
    ids=["10,000 headers", "a megabyte", "the same one", "a cookie"],
)
def test_a_flood_of_headers_is_refused(serve, raw, flood):
    port = serve()
    flooding = raw(port)
    try:
        answer = flooding.send(HEAD + flood + b"\r\n").answer()
    except (ConnectionResetError, BrokenPipeError):
        answer = b""
    assert answer[:12] in (b"", b"HTTP/1.1 431")
    assert raw(port).send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").answer().startswith(b"HTTP/1.1 200")


def test_a_head_may_be_as_large_as_proxies_allow_and_no_larger(serve, raw):
    port = serve()
    heads = {size: HEAD + b"Cookie: " + b"x" * size + b"\r\n\r\n" for size in (15_000, 17_000)}
    answers = {size: raw(port).send(head).answer()[9:12] for size, head in heads.items()}
    assert answers == {15_000: b"200", 17_000: b"431"}


def test_a_header_with_an_underscore_is_not_read_as_one_with_a_hyphen(serve, raw):
    said = raw(serve()).send(
        b"GET /a%20b%E9?q=%20 HTTP/1.1\r\nHost: x\r\nX_Forwarded_For: 1.2.3.4\r\nX-Twice: a\r\nX-Twice: b\r\n"
        b"X-Bytes: \xff\r\n\r\n"
    )
    answer = said.answer()
    assert b"FORWARDED" not in answer
    assert b"('HTTP_X_TWICE', 'a,b')" in answer
    assert b"('QUERY_STRING', 'q=%20')" in answer
