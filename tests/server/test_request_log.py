"""The server's own responses, and those for a failed application, are logged like all others."""

import logging

import pytest
import requests

from blueprints.api.request_log import Logged
from services import metrics
from services.platform import logs
from serving.application import refusals


def _failing(environ, start_response):
    if environ["PATH_INFO"] == "/half":
        start_response("200 OK", [])
        return _half()
    raise RuntimeError("outside of the framework")


def _half():
    yield b"half"
    raise RuntimeError("on the way")


@pytest.fixture
def url(app, serve):
    """The address of a server whose application fails outside Flask."""
    plain = refusals(app, access_log=True)
    return f"http://127.0.0.1:{serve(application=Logged(_failing, access_log=True), plain=plain)}"


@pytest.fixture
def records(caplog):
    """`records(logger)`: the fields of its log records, with the request id, which is known only while logging."""
    caplog.set_level(logging.INFO)

    def note(record):
        record.request_id = logs.current.get()
        return True

    caplog.handler.addFilter(note)
    return lambda logger: [vars(record) for record in caplog.records if record.name == logger]


def test_an_error_outside_of_the_framework_is_logged_with_the_id_of_its_response(url, records):
    answers = [requests.get(url, headers=given, timeout=10) for given in ({}, {"X-Request-Id": "mine"})]
    ids = [answer.headers["X-Request-Id"] for answer in answers]
    assert [answer.json()["code"] for answer in answers] == [50000, 50000]
    assert [line["request_id"] for line in records("serving.http_server")] == ids
    assert ids[1] == "mine"
    assert ids[0] != "mine"


def test_an_interrupted_response_is_logged_with_its_id(url, records):
    with pytest.raises(requests.RequestException):
        requests.get(f"{url}/half", headers={"X-Request-Id": "mine"}, timeout=10)
    assert [line["request_id"] for line in records("serving.http_server")] == ["mine"]


def test_each_refusal_has_an_id_of_its_own(url):
    with requests.Session() as session:
        answers = [session.post(url, data=b"x" * 70_000, timeout=10) for _ in range(20)]
    assert [answer.status_code for answer in answers] == [413] * 20
    assert len({answer.headers["X-Request-Id"] for answer in answers}) == 20


def test_refusals_of_the_server_itself_have_a_line_and_are_counted(url, records):
    answer = requests.post(url, data=b"x" * 70_000, headers={"X-Request-Id": "mine"}, timeout=10)
    (line,) = records("access")
    facts = {name: line[name] for name in ("method", "endpoint", "status", "code", "address", "request_id")}
    assert facts == {
        "method": "POST",
        "endpoint": "other",
        "status": 413,
        "code": 41300,
        "address": "127.0.0.1",
        "request_id": "mine",
    }
    assert answer.headers["X-Request-Id"] == "mine"
    assert b'orders_http_requests_total{code="41300",endpoint="other",status="413"} 1.0' in metrics.text()
