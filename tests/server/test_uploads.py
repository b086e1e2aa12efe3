"""Large bodies: only requests with a session may send one, few at once."""

import re

import pytest
import requests

from tests.support import DemoService, until

pytestmark = pytest.mark.usefixtures("slow")

STATUS = slice(9, 12)
LENGTH = 5000
BODY = b"x" * LENGTH


def head(session="", framing=f"Content-Length: {LENGTH}", path="/files/upload"):
    cookie = f"Cookie: {session}\r\n" if session else ""
    return f"POST {path} HTTP/1.1\r\nHost: x\r\n{cookie}{framing}\r\n\r\n".encode()


@pytest.fixture
def uploads_to(serve):
    """The port of a server with two threads whose session is the cookie."""
    return lambda **more: serve(
        upload_limit=LENGTH,
        is_upload=lambda path: path.endswith("/upload"),
        **{"uploader": lambda environ: environ.get("HTTP_COOKIE", "")} | more,
    )


def test_an_upload_may_be_larger_than_other_bodies(uploads_to, raw):
    port = uploads_to()
    assert raw(port).send(head("a") + BODY).answer()[STATUS] == b"200"
    assert raw(port).send(head("a", path="/files/other") + BODY).answer()[STATUS] == b"413"
    assert raw(port).send(head("a", f"Content-Length: {LENGTH + 1}") + BODY + b"x").answer()[STATUS] == b"413"


def test_few_uploads_are_received_at_once_and_fewer_of_one_session(uploads_to, raw):
    port = uploads_to()
    begun = []
    for session in "aab":
        begun.append(raw(port).send(head(session)))
        assert not begun[-1].has_answer()
    until(lambda: raw(port).send(head("a") + BODY).answer()[STATUS] == b"503")
    begun.append(raw(port).send(head("c")))
    until(lambda: raw(port).send(head("d") + BODY).answer()[STATUS] == b"503")
    for one in begun:
        assert one.send(BODY).answer()[STATUS] == b"200"
    assert raw(port).send(head("d") + BODY).answer()[STATUS] == b"200"


@pytest.mark.parametrize(
    "framing", [f"Content-Length: {LENGTH}", "Content-Length: 9999999", "Transfer-Encoding: chunked"]
)
def test_strangers_get_the_applications_response_at_once_and_take_no_place(uploads_to, raw, framing):
    port = uploads_to(waiting=64)
    strangers = [raw(port).send(head(framing=framing)) for _ in range(20)]
    begun = [raw(port).send(head(session)) for session in "abcd"]
    for one in strangers:
        answer = one.answer()
        assert answer[STATUS] == b"200"
        assert b"connection: close" in answer.lower()
        assert one.is_closed()
    for one in begun:
        assert one.send(BODY).answer()[STATUS] == b"200"


def test_a_request_without_a_body_needs_no_place(uploads_to, raw):
    port = uploads_to()
    begun = [raw(port).send(head(session)) for session in "abcd"]
    for session in ("", "a"):
        assert raw(port).send(head(session, "Content-Length: 0")).answer()[STATUS] == b"200"
    for one in begun:
        assert one.send(BODY).answer()[STATUS] == b"200"


def test_without_a_free_thread_an_upload_is_refused_before_its_session_is_read(uploads_to, raw, kept_busy, busy):
    port = uploads_to(threads=1, waiting=0)
    kept_busy(port, 1)
    assert raw(port).send(head("a")).answer()[STATUS] == b"503"
    busy.go.set()
    until(lambda: raw(port).send(head("a") + BODY).answer()[STATUS] == b"200")


def test_a_session_that_cannot_be_read_is_none(uploads_to, raw, caplog):
    def fails(environ):
        raise ValueError

    port = uploads_to(uploader=fails)
    for _ in range(3):
        assert raw(port).send(head("a")).answer()[STATUS] == b"200"
    assert "could not be read" in caplog.text


class TestInTheConsole:
    PATH = "/console/claims/upload"

    @pytest.fixture
    def running(self, demo, instance):
        service = DemoService(instance).start()
        yield service
        service.stop()

    @pytest.fixture
    def browser(self, running):
        """A browser with a session; `browser.fill(path)` is the address and the token of a form."""
        client = requests.Session()
        client.trust_env = False

        def fill(path):
            page = client.get(f"{running.url}/console/{path}", timeout=20).text
            return f"{running.url}/console/{path}", re.search(r'name="csrf_token"[^>]*value="([^"]+)"', page)[1]

        client.fill = fill
        address, token = fill("login")
        form = {"csrf_token": token, "name": "demo", "password": "demo-password"}
        assert client.post(address, data=form, timeout=20).url == f"{running.url}/console/"
        return client

    @staticmethod
    def uploads(browser, between=lambda: None):
        """Return the status of an upload of a megabyte, which is not a statement."""
        address, token = browser.fill("claims/upload")
        between()
        form, file = {"csrf_token": token, "channel": "3"}, {"file": ("bills.csv", b"x" * 1_000_000)}
        return browser.post(address, data=form, files=file, timeout=20).status_code

    def test_strangers_who_send_slowly_keep_no_operator_from_uploading(self, running, browser, raw):
        cookie = f"console={browser.cookies['console']}"
        forged = ("", "console=forged", f"{cookie[:-3]}abc", "console_device=x", "x" * 4_000, "console=\xe9\xff;;=,")
        framings = ("Content-Length: 5000000", "Transfer-Encoding: chunked")
        requests_sent = [head(session, framing, self.PATH) for session in forged for framing in framings]
        for one in [raw(running.port).send(request) for request in requests_sent]:
            assert one.answer()[STATUS] == b"302"
        assert self.uploads(browser) == 422, "it was read"
        assert "Traceback" not in running.log.read_text("utf-8")

    def test_an_upload_may_be_the_first_request_after_a_restart(self, running, browser):
        def restart():
            running.stop()
            running.start()

        assert self.uploads(browser, restart) == 422, "it was read"

    def test_a_session_that_has_ended_takes_no_place(self, running, browser, raw):
        request = head(f"console={browser.cookies['console']}", "Content-Length: 5000000", self.PATH)
        begun = raw(running.port).send(request)
        _, token = browser.fill("")
        assert not begun.has_answer()
        browser.post(f"{running.url}/console/logout", data={"csrf_token": token}, timeout=20)
        assert raw(running.port).send(request).answer()[STATUS] == b"302"
