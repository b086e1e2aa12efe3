"""The service as a process: ready, stopped cleanly, killed, and refused with an invalid environment."""

import ctypes
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from services.platform import cpu_affinity
from tests.databases import orders_held_up
from tests.support import ROOT, DemoService, signed, until

pytestmark = pytest.mark.usefixtures("slow", "any_database", "demo")

LIBC = ctypes.CDLL(None)
BUY = {"order_type": 1, "cny_amount": "100.00", "paychannel_id": 2, "paychannel_paymethod": "wxpay"}


class Watched(DemoService):
    """The service, whose log has a last line if the interpreter shuts down before the process ends."""

    entry = (
        "-c",
        "import atexit, runpy; atexit.register(print, 'interpreter ends'); runpy.run_path('app.py', {}, '__main__')",
    )


@pytest.fixture
def start():
    """`start(folder, NAME=value)`: the service in a process of its own, which ends with the test."""
    started = []

    def begin(folder, **environ):
        started.append(DemoService(folder, **environ))
        return started[-1].start()

    yield begin
    for service in started:
        if service.process and service.process.poll() is None:
            service.kill()


def _status(url):
    try:
        return requests.get(url, timeout=5).status_code
    except requests.ConnectionError:
        return None


def test_it_is_ready_once_it_responds_follows_commands_and_ends_despite_an_open_connection(instance):
    service = Watched(instance).start()
    ready = service.api.send("GET", "/healthz")
    assert (ready.status, ready.code) == (200, 1)
    service.flask("merchant", "set", "demo", "--disabled")
    assert service.api.listed().code == 40101, "a command takes effect immediately"
    service.flask("merchant", "set", "demo", "--enabled")
    assert service.api.listed().code == 1
    with socket.create_connection(("127.0.0.1", service.port)) as idle:
        idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200" in idle.recv(1000)
        assert service.stop() == 0
    assert "Traceback" not in service.log.read_text("utf-8")
    assert service.log.read_text("utf-8").endswith("\nstopped\n"), "threads of the server outlived the interpreter"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_request_in_flight_is_finished_and_new_ones_are_refused_meanwhile(instance, start, how):
    service = start(instance, ORDERS_LOG_LEVEL="DEBUG")
    with ThreadPoolExecutor() as pool, orders_held_up(instance):
        in_flight = pool.submit(service.api.buy)
        time.sleep(1)  # it waits for the write lock by now; if not, it is refused and the test fails
        service.process.send_signal(how)
        refused = until(lambda: (answer := service.api.listed()).status != 200 and answer)
        assert _status(f"{service.url}/healthz") == 503
    assert (refused.status, refused.code) == (503, 50300)
    assert int(refused.headers["Retry-After"]) >= 1
    placed = in_flight.result(30)
    assert (placed.code, service.process.wait(40)) == (1, 0)
    assert _status(f"{service.url}/healthz") is None
    assert start(instance).api.status(placed.data["order_no"]) == "pending"


@pytest.mark.skipif(not hasattr(LIBC, "tgkill"), reason="no signal can be sent to one thread")
def test_a_sigterm_that_does_not_wake_the_main_thread_is_handled(service):
    """As if it came just when the main thread starts to wait: Python has recorded it, and does nothing."""
    main = service.process.pid
    other = next(int(thread.name) for thread in Path(f"/proc/{main}/task").iterdir() if int(thread.name) != main)
    assert LIBC.tgkill(main, other, signal.SIGTERM) == 0
    assert service.process.wait(20) == 0


def test_orders_nonces_safe_retries_and_withdrawals_survive_kill_9(service):
    """All of one merchant, because the balance and the number of orders show anything done twice."""
    first, retry = (json.dumps(signed("createOrder", BUY)).encode() for _ in range(2))
    key = {"Idempotency-Key": "retry-1"}
    placed, safe = service.api.post("createOrder", first).data, service.api.buy(headers=key).data
    assert service.api.post("createOrder", retry, key).data == safe
    payout = service.api.sell("10.00").data["order_no"]
    service.kill()
    service.flask("order", "accept", payout)
    service.start()
    assert service.api.status(placed["order_no"]) == "pending"
    assert [service.api.post("createOrder", *each).code for each in ([first], [retry, key])] == [40104, 40104]
    again = service.api.buy(headers=key)
    assert (again.data, again.headers["Idempotency-Replayed"]) == (safe, "true")
    assert service.api.listed().data["total"] == 3
    until(lambda: service.api.status(payout) == "completed")
    assert json.loads(service.flask("ledger", "balances", "--json").stdout)["demo"] == {"available": 998_998, "held": 0}
    service.flask("ledger", "verify")


def _cores(service):
    """The cores that its threads may use."""
    threads = Path(f"/proc/{service.process.pid}/task").iterdir()
    return set().union(*(os.sched_getaffinity(int(thread.name)) for thread in threads))


NEEDS_CORES = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2, reason="there are no cores to choose from"
)


@NEEDS_CORES
def test_a_service_stays_on_one_core_unless_a_setting_disables_it(tmp_path, start):
    service = start(tmp_path / "service")
    until(lambda: len(_cores(service)) == 1)  # the backup at the start runs on any core
    assert _cores(start(tmp_path / "free", ORDERS_ONE_CORE="0")) == os.sched_getaffinity(0)


@pytest.fixture
def pinned(monkeypatch):
    """`pinned(port)` keeps this thread on one core until the end of the test, and returns the core."""
    before = os.sched_getaffinity(0)
    monkeypatch.setattr(cpu_affinity, "_all", set())

    def pin(port):
        os.sched_setaffinity(0, before)
        cpu_affinity.stay_on_one(port)
        (core,) = os.sched_getaffinity(0)
        return core

    yield pin
    os.sched_setaffinity(0, before)


@NEEDS_CORES
def test_services_on_neighbouring_ports_have_different_cores_which_long_work_leaves_meanwhile(pinned):
    every, core = os.sched_getaffinity(0), pinned(8000)
    assert cpu_affinity.do(os.sched_getaffinity, 0) == every
    assert os.sched_getaffinity(0) == {core}
    assert pinned(8001) != core


@NEEDS_CORES
def test_if_a_core_may_not_be_chosen_it_runs_on_any(monkeypatch):
    def refuse(*_arguments):
        raise PermissionError

    every = os.sched_getaffinity(0)
    monkeypatch.setattr("os.sched_setaffinity", refuse)
    cpu_affinity.stay_on_one(8000)
    assert cpu_affinity.do(os.sched_getaffinity, 0) == every


def test_the_demo_content_is_not_served_outside_demo_mode(instance):
    assert "demo merchants" in DemoService(instance, ORDERS_DEMO="0").refused()


@pytest.mark.sqlite
def test_a_file_that_is_not_a_database_is_refused_and_unchanged(tmp_path):
    file = tmp_path / "orders.sqlite"
    file.write_bytes(b"no database " * 1000)
    assert "database" in DemoService(tmp_path).refused()
    assert file.read_bytes() == b"no database " * 1000


@pytest.mark.sqlite
@pytest.mark.parametrize("was_killed", [False, True])
def test_a_first_start_seeds_the_demo_also_after_one_that_was_killed_before_it_created_its_tables(
    tmp_path, start, was_killed
):
    folder = tmp_path / "new" / "instance"
    if was_killed:
        folder.mkdir(parents=True)
        (folder / "orders.sqlite").touch()
    service = start(folder)
    assert service.api.buy().code == 1
    assert "demo-secret" in service.log.read_text()  # the keys for trying the demo


def test_a_start_outside_demo_mode_has_no_merchants_and_no_sandbox(tmp_path, start):
    service = start(tmp_path, ORDERS_DEMO="0")
    assert service.api.buy().code == 40101
    assert service.api.play("1", "success").status == 404
    assert "demo" not in service.log.read_text()


def test_on_a_socket_of_both_kinds_an_allow_list_knows_ipv4_callers(instance):
    try:
        with socket.create_server(("::", 0), family=socket.AF_INET6):
            pass
    except OSError:
        pytest.skip("this machine has no IPv6")
    service = DemoService(instance, ORDERS_HOST="::").start()
    try:
        for allowed, code in (("127.0.0.1", 1), ("10.0.0.1,::1", 40300)):
            service.flask("merchant", "set", "demo", "--allow", allowed)
            until(lambda code=code: service.api.listed().code == code)  # another process changed it
    finally:
        service.stop()


@pytest.mark.parametrize(("host", "proxies", "is_warned"), [("0.0.0.0", "0", True), ("127.0.0.1", "1", False)])
def test_a_demo_that_others_reach_and_an_uncounted_proxy_cause_warnings(tmp_path, start, host, proxies, is_warned):
    site = {"ORDERS_SITE_URL": "https://pay.example.com", "ORDERS_TRUSTED_PROXIES": proxies}
    log = start(tmp_path, ORDERS_HOST=host, **site).log.read_text()
    assert ("anyone who reaches it can sign in" in log) is is_warned
    assert ("trusted_proxies is 0" in log) is is_warned


@pytest.fixture
def in_terminal(tmp_path):
    """The demo's port and process, in a process group of its own as in a terminal. It prints each import."""
    service = DemoService(tmp_path / "instance")
    command = [sys.executable, "-X", "importtime", "app.py", "demo"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen(command, cwd=ROOT, env=service.environ, start_new_session=True, **pipes)
    yield service.port, process
    process.kill()
    process.communicate()


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        (r"\| +click\n", 0),
        (r"\| +granian\n", 0),
        (r"\| +serving\.http_server\n", 0),
        ("serving on", 0),
        ("serving on", 0.3),
        ("serving on", 0.9),
    ],
)
def test_ctrl_c_at_any_moment_ends_it_without_an_error(in_terminal, line, seconds):
    port, process = in_terminal
    while not re.search(line, process.stdout.readline()):
        assert process.poll() is None
    if line == "serving on":
        socket.create_connection(("127.0.0.1", port)).close()  # clients can connect from here on
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)  # the ledger check is a process of its own
    printed = process.communicate(timeout=60)[0]
    assert "Traceback" not in printed
    assert "ERROR" not in printed
    if line == "serving on":
        assert process.returncode == 0
        assert printed.endswith("stopped\n")
