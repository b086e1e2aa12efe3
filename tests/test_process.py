"""The service as a process: ready, stopped cleanly, killed, and refused with an invalid environment."""

import ctypes
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import requests

from services.platform import cpu_affinity
from tests.databases import orders_held_up
from tests.support import ROOT, DemoService, signed, until

pytestmark = pytest.mark.usefixtures("slow", "any_database", "demo")

LIBC = ctypes.CDLL(None)
BUY = {"order_type": 1, "cny_amount": "100.00", "paychannel_id": 2, "paychannel_paymethod": "wxpay"}


class Later(threading.Thread):
    """A request in a thread of its own; `answer()` waits for its response."""

    def __init__(self, work):
        super().__init__(daemon=True)
        self.work, self.got = work, None
        self.start()

    def run(self):
        self.got = self.work()

    def answer(self):
        self.join(30)
        return self.got


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


def test_it_is_ready_once_it_responds(service):
    ready = service.api.send("GET", "/healthz")
    assert (ready.status, ready.code) == (200, 1)
    assert service.api.buy().code == 1


def test_threads_of_the_server_never_outlive_the_interpreter(instance):
    service = Watched(instance).start()
    assert service.stop() == 0
    assert service.log.read_text("utf-8").endswith("\nstopped\n")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_request_in_flight_is_finished_and_new_ones_are_refused_meanwhile(instance, start, how):
    service = start(instance, ORDERS_LOG_LEVEL="DEBUG")
    with orders_held_up(instance):
        in_flight = Later(lambda: service.api.buy())
        time.sleep(1)  # it waits for the write lock by now; if not, it is refused and the test fails
        service.process.send_signal(how)
        refused = until(lambda: (answer := service.api.listed()).status != 200 and answer)
        assert _status(f"{service.url}/healthz") == 503
    assert (refused.status, refused.code) == (503, 50300)
    assert int(refused.headers["Retry-After"]) >= 1
    placed = in_flight.answer()
    assert (placed.code, service.process.wait(40)) == (1, 0)
    assert _status(f"{service.url}/healthz") is None
    assert start(instance).api.status(placed.data["order_no"]) == "pending"


def test_an_idle_process_ends_immediately_with_status_0(service):
    assert service.stop() == 0
    assert "Traceback" not in service.log.read_text()


@pytest.mark.skipif(not hasattr(LIBC, "tgkill"), reason="no signal can be sent to one thread")
def test_a_sigterm_that_does_not_wake_the_main_thread_is_handled(service):
    """As if it came just when the main thread starts to wait: Python has recorded it, and does nothing."""
    main = service.process.pid
    other = next(int(thread.name) for thread in Path(f"/proc/{main}/task").iterdir() if int(thread.name) != main)
    assert LIBC.tgkill(main, other, signal.SIGTERM) == 0
    assert service.process.wait(20) == 0


def test_a_persistent_connection_does_not_delay_the_exit(service):
    with socket.create_connection(("127.0.0.1", service.port)) as idle:
        idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200" in idle.recv(1000)
        assert service.stop() == 0


def test_orders_and_nonces_survive_kill_9(service):
    body = json.dumps(signed("createOrder", BUY)).encode()
    placed = service.api.post("createOrder", body).data
    service.kill()
    service.start()
    assert service.api.status(placed["order_no"]) == "pending"
    assert service.api.post("createOrder", body).code == 40104
    assert service.api.listed().data["total"] == 1


def test_a_safe_retry_survives_kill_9(service):
    first = service.api.buy(headers={"Idempotency-Key": "retry-1"})
    service.kill()
    service.start()
    again = service.api.buy(headers={"Idempotency-Key": "retry-1"})
    assert again.data == first.data
    assert again.headers["Idempotency-Replayed"] == "true"


def test_the_nonce_of_a_safe_retry_survives_kill_9(service):
    key = {"Idempotency-Key": "retry-1"}
    first = service.api.buy(headers=key)
    retry = json.dumps(signed("createOrder", BUY)).encode()
    assert service.api.post("createOrder", retry, key).data == first.data
    service.kill()
    service.start()
    assert service.api.post("createOrder", retry, key).code == 40104


def test_a_withdrawal_continues_after_kill_9(service):
    order_no = service.api.sell("10.00").data["order_no"]
    service.kill()
    service.flask("order", "accept", order_no)
    service.start()
    until(lambda: service.api.status(order_no) == "completed")
    assert json.loads(service.flask("ledger", "balances", "--json").stdout)["demo"] == {"available": 998_998, "held": 0}
    service.flask("ledger", "verify")


def test_commands_work_while_the_service_runs_and_take_effect_immediately(service):
    service.flask("merchant", "set", "demo", "--disabled")
    assert service.api.listed().code == 40101
    service.flask("merchant", "set", "demo", "--enabled")
    assert service.api.listed().code == 1


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
def test_services_on_neighbouring_ports_have_different_cores(pinned):
    assert pinned(8000) != pinned(8001)


@NEEDS_CORES
def test_long_work_leaves_the_core_of_requests_and_returns(pinned):
    every, core = os.sched_getaffinity(0), pinned(8000)
    assert cpu_affinity.do(os.sched_getaffinity, 0) == every
    assert os.sched_getaffinity(0) == {core}


@NEEDS_CORES
def test_if_a_core_may_not_be_chosen_it_runs_on_any(monkeypatch):
    def refuse(*_arguments):
        raise PermissionError

    every = os.sched_getaffinity(0)
    monkeypatch.setattr("os.sched_setaffinity", refuse)
    cpu_affinity.stay_on_one(8000)
    assert cpu_affinity.do(os.sched_getaffinity, 0) == every


def test_a_port_in_use_is_named_in_one_line(instance):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        said = DemoService(instance, ORDERS_PORT=port).refused()
    assert "in use" in said
    assert port in said


def test_the_demo_content_is_not_served_outside_demo_mode(instance):
    assert "demo merchants" in DemoService(instance, ORDERS_DEMO="0").refused()


@pytest.mark.sqlite
def test_a_file_that_is_not_a_database_is_refused_and_unchanged(tmp_path):
    file = tmp_path / "orders.sqlite"
    file.write_bytes(b"no database " * 1000)
    assert "database" in DemoService(tmp_path).refused()
    assert file.read_bytes() == b"no database " * 1000


@pytest.mark.sqlite
def test_a_first_start_killed_before_it_created_its_tables_can_be_repeated(tmp_path, start):
    (tmp_path / "orders.sqlite").touch()
    service = start(tmp_path)
    assert service.api.buy().code == 1


def test_a_start_on_an_empty_folder_in_demo_mode_is_seeded(tmp_path, start):
    service = start(tmp_path / "new" / "instance")
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


@pytest.mark.parametrize(("host", "is_warned"), [("0.0.0.0", True), ("127.0.0.1", False)])
def test_a_demo_that_other_machines_can_reach_causes_a_warning(tmp_path, start, host, is_warned):
    service = start(tmp_path, ORDERS_HOST=host)
    assert ("anyone who reaches it can sign in" in service.log.read_text()) is is_warned


@pytest.mark.parametrize(("proxies", "is_warned"), [("0", True), ("1", False)])
def test_an_uncounted_https_proxy_causes_a_warning_at_start(tmp_path, start, proxies, is_warned):
    service = start(tmp_path, ORDERS_SITE_URL="https://pay.example.com", ORDERS_TRUSTED_PROXIES=proxies)
    assert ("trusted_proxies is 0" in service.log.read_text()) is is_warned


@pytest.fixture
def in_terminal(tmp_path):
    """The demo's address and process, in a process group of its own as in a terminal. It prints each import."""
    service = DemoService(tmp_path / "instance")
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", "app.py", "demo"],
        cwd=ROOT,
        env=service.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    yield ("127.0.0.1", service.port), process
    process.kill()
    process.communicate()


def _read_until(process, pattern):
    while not re.search(pattern, process.stdout.readline()):
        assert process.poll() is None


@pytest.mark.sqlite
def test_it_says_that_it_serves_once_clients_can_connect(in_terminal):
    address, process = in_terminal
    _read_until(process, "serving on")
    socket.create_connection(address).close()


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        (r"\| +click\n", 0),
        (r"\| +peewee\n", 0),
        (r"\| +granian\n", 0),
        (r"\| +serving\.http_server\n", 0),
        ("serving on", 0),
        ("serving on", 0.3),
        ("serving on", 0.9),
    ],
)
def test_ctrl_c_at_any_moment_ends_it_without_an_error(in_terminal, line, seconds):
    _, process = in_terminal
    _read_until(process, line)
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)  # the ledger check is a process of its own
    printed = process.communicate(timeout=60)[0]
    assert "Traceback" not in printed
    assert "ERROR" not in printed
    if line == "serving on":
        assert process.returncode == 0
        assert printed.endswith("stopped\n")
