"""The service in a process of its own under hundreds of hostile connections."""

import json
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import requests

from tests import contract
from tests.blueprints.console.setting_up.filling import Page
from tests.databases import orders_held_up
from tests.support import ROOT, Api, Service, through_http, until
from tests.test_process import BUY

pytestmark = pytest.mark.usefixtures("slow")

MANY = 200
POST = b"POST /merchant/createOrder HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
REGIONS = b"GET /addons/paychannel/channel.gatewaya/regionData HTTP/1.1\r\nHost: x\r\n\r\n"
MEGABYTE = 1024  # KiB


@pytest.fixture
def small(instance):
    """A service with few threads, so that it is easily too busy."""
    service = Service(instance, ORDERS_THREADS="4", ORDERS_WAITING="8").start()
    yield service
    if service.process.poll() is None:
        service.stop()


def memory(service, kind="VmRSS"):
    """Resident memory of the service, in KiB; VmHWM is its peak."""
    status = Path(f"/proc/{service.process.pid}/status").read_text()
    return int(status.partition(f"{kind}:")[2].split()[0])


def test_hundreds_of_slow_senders_delay_no_others_and_cost_little(running, raw):
    running.api.buy()
    before = memory(running)
    for _ in range(MANY):
        raw(running.port).send(POST)
        raw(running.port).send(POST + b"Content-Length: 60000\r\n\r\n" + b"x" * 50_000)
        raw(running.port).send(POST + b"Transfer-Encoding: chunked\r\n\r\n10000\r\n" + b"x" * 50_000)
    assert {running.api.buy().code for _ in range(20)} == {1}
    assert running.api.send("GET", "/healthz").status == 200
    assert memory(running) - before < 150 * MEGABYTE


def test_a_too_slow_body_gets_an_envelope_in_the_callers_language(running, raw):
    texts = {b"en": "the request body was not received in time", b"zh, en;q=0.5": "请求体接收超时"}
    slow = POST + b"Content-Length: 9\r\nAccept-Language: %s\r\n\r\n{"
    for sender, text in [(raw(running.port).send(slow % name), text) for name, text in texts.items()]:
        head, _, body = sender.answer().partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 408")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
        contract.hold_answer("POST", "/merchant/createOrder", 408, headers, body)
        assert json.loads(body) == {"code": 40800, "msg": text, "data": None}


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 65_000,
        b'{"a":' * 13_000,
        b'{"a":' + b"[" * 30_000 + b"]" * 30_000 + b"}",
        b'{"cny_amount": ' + b"9" * 65_000 + b"}",
        json.dumps({f"a{number}": 1 for number in range(5_000)}).encode(),
    ],
    ids=["arrays", "objects", "closed arrays", "a huge number", "5,000 names"],
)
def test_an_expensive_body_is_refused(running, body):
    assert running.api.post("createOrder", body).code in (40000, 40101)
    assert running.api.listed().code == 1


def test_a_thousand_signed_unknown_fields_are_refused_by_name(running):
    answer = running.api.call("createOrder", BUY | {f"a{number}": 1 for number in range(1_000)})
    assert (answer.code, len(answer.data)) == (42200, 1_000)


def test_under_overload_all_requests_get_a_response_and_it_recovers(small):
    clients = [Api(through_http(small.url)) for _ in range(60)]
    small.api.buy()
    before = memory(small)
    with ThreadPoolExecutor(len(clients)) as pool:
        with orders_held_up(small.instance):
            calls = [pool.submit(client.buy) for client in clients]
            until(lambda: sum(call.done() for call in calls) >= len(clients) - 12)
            assert small.api.send("GET", "/healthz").status == 200
        answers = [call.result(30) for call in calls]
    taken, refused = ([a for a in answers if (a.status == 200) is wanted] for wanted in (True, False))
    assert 4 <= len(taken) <= 12
    assert {(a.status, a.code, a.headers["Retry-After"]) for a in refused} == {(503, 50300, "1")}
    assert memory(small) - before < 50 * MEGABYTE
    assert small.api.buy().code == 1
    assert small.api.listed().data["total"] == len(taken) + 2


def test_thirty_sign_ins_at_once_take_less_than_a_hundred_megabytes(instance):
    def form(number):
        """The sign-in form of one of thirty addresses, filled in."""
        client = requests.Session()
        client.headers["X-Forwarded-For"] = f"198.51.100.{number}"
        page = Page(client.get(f"{service.url}/console/login").text)
        return client, page.form().fill({"name": "demo", "password": "wrong-password"})

    service = Service(instance, ORDERS_TRUSTED_PROXIES="1").start()
    try:
        forms = [form(number) for number in range(30)]
        Path(f"/proc/{service.process.pid}/clear_refs").write_text("5")  # begin a new peak
        before = memory(service)
        with ThreadPoolExecutor(len(forms)) as pool:
            sent = [pool.submit(client.post, f"{service.url}/console/login", data=data) for client, data in forms]
            statuses = {each.result().status_code for each in sent}
        assert memory(service, "VmHWM") - before < 100 * MEGABYTE
    finally:
        service.stop()
    assert statuses <= {401, 429}


def test_a_client_that_reads_no_response_does_not_delay_the_exit(small, raw):
    deaf = raw(small.port, buffer=4096)
    deaf.socket.settimeout(1)
    with suppress(TimeoutError):
        while True:
            deaf.send(REGIONS * 20)
    assert small.api.listed().code == 1
    assert small.stop() == 0


def test_a_sigterm_during_the_start_is_obeyed(instance):
    service = Service(instance)
    with service.log.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, *service.entry], cwd=ROOT, env=service.environ, stdout=log, stderr=log
        )
        while "serving on" not in service.log.read_text() and process.poll() is None:
            pass  # not a moment later
        process.send_signal(signal.SIGTERM)
        assert process.wait(40) == 0
    assert "stopped" in service.log.read_text()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", service.port))


def test_an_address_with_unescaped_bytes_is_read_unchanged(running, raw):
    path = b"/addons/paychannel/channel.gatewaya/regionData?search=%s"
    sent = [b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % (path % name) for name in ("中".encode(), b"%E4%B8%AD")]
    answers = [raw(running.port).send(each).answer().partition(b"\r\n\r\n") for each in sent]
    assert [head[9:12] for head, _, _ in answers] == [b"200"] * 2
    assert answers[0][2] == answers[1][2]


def test_only_the_beginning_of_a_list_of_languages_is_read(running):
    asked = [", ".join(["xx"] * most) + ", zh" for most in (10, 3_000)]
    answers = [running.api.send("GET", "/nowhere", headers={"Accept-Language": each}) for each in asked]
    assert [answer.json["msg"].isascii() for answer in answers] == [False, True]
