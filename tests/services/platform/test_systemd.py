"""What systemd receives: that the service is ready, stops, and works, and no longer that it works once it hangs."""

import os
import signal
import socket
import tempfile
import threading
from contextlib import ExitStack
from functools import partial

import pytest

from models.db import writer
from models.db.writer import transaction
from services.platform import heartbeats, storage_health, systemd
from tests.databases import impatient, orders_held_up
from tests.support import DemoService, until


class Systemd:
    """The socket on which systemd receives notifications; `next()` waits for one."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.settimeout(60)

    def next(self):
        return self.socket.recv(1000).decode()


@pytest.fixture
def listener():
    """`listener()`: systemd on a socket in a folder, or at this address."""
    # Shorter than pytest's folder: an address has at most 108 characters.
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:

        def listen(address=None):
            systemd_s = Systemd(address or f"{folder}/notify")
            opened.enter_context(systemd_s.socket)
            return systemd_s

        yield listen


@pytest.mark.parametrize("name", [None, f"orders-test-{os.getpid()}"], ids=["in a folder", "abstract"])
def test_a_state_is_sent_to_the_socket_that_systemd_names(listener, monkeypatch, name):
    received = listener(f"\0{name}" if name else None)
    monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}" if name else received.socket.getsockname())
    systemd.notify("READY=1")
    assert received.next() == "READY=1"


def test_without_systemd_no_state_is_sent_and_a_socket_that_is_gone_is_reported(monkeypatch, caplog):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    systemd.notify("READY=1")
    assert caplog.messages == []
    monkeypatch.setenv("NOTIFY_SOCKET", "/nowhere/notify")
    systemd.notify("READY=1")
    assert caplog.messages == ["Cannot send READY=1 to systemd: [Errno 2] No such file or directory"]


@pytest.mark.sqlite
def test_the_writing_thread_is_not_proven_to_work_while_it_is_stuck(app):
    begun, go = threading.Event(), threading.Event()

    @transaction
    def stuck():
        begun.set()
        assert go.wait(30)

    threading.Thread(target=stuck, daemon=True).start()
    assert begun.wait(30)
    works = writer.check()
    assert not works()
    go.set()
    until(works)


@pytest.mark.sqlite
def test_a_locked_database_does_not_count_as_a_stuck_thread(app, instance):
    with impatient(), orders_held_up(instance):
        until(writer.check())


def test_jobs_are_proven_to_work_by_runs_that_end_even_with_an_error(app):
    run = heartbeats.beating("orders", partial(int, "not a number"))
    heartbeats.beating("backups", list, heartbeats.LONG)  # may run for hours
    works = systemd.frequent_jobs()
    assert not works()
    with pytest.raises(ValueError, match="invalid literal"):
        run()
    assert works()
    heartbeats.forget()


@pytest.fixture
def watched(listener, monkeypatch, app):
    """`watched(check)`: what systemd receives from a watchdog that has this check."""
    monkeypatch.setenv("WATCHDOG_USEC", "40000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    begun = []

    def begin(*checks):
        received = listener()
        monkeypatch.setenv("NOTIFY_SOCKET", received.socket.getsockname())
        begun.append(systemd.Watchdog(checks))
        begun[-1].start()
        assert received.next() == "READY=1"
        return received

    yield begin
    for each in begun:
        each.stop()
        each.join(30)


def test_a_service_that_works_says_so_again_and_again_until_it_stops(watched):
    received = watched(lambda: lambda: True)
    assert [received.next() for _ in range(3)] == ["WATCHDOG=1"] * 3


def test_a_check_that_is_not_done_withholds_the_message(watched):
    asked = threading.Semaphore(0)
    received = watched(lambda: lambda: asked.release() or False)
    assert all(asked.acquire(timeout=30) for _ in range(3))  # it has looked three times
    received.socket.setblocking(False)
    with pytest.raises(BlockingIOError):
        received.next()


def test_a_check_that_fails_is_reported_and_repeated(watched, caplog):
    results = iter([lambda: 1 / 0, lambda: True])
    received = watched(lambda: next(results, lambda: True))
    assert received.next() == "WATCHDOG=1"
    assert "Watchdog check failed, will be retried" in caplog.text


def test_a_database_that_does_not_respond_is_no_reason_to_restart(watched, monkeypatch):
    monkeypatch.setattr(storage_health, "HANGS", -1)
    go = threading.Event()
    monkeypatch.setattr(storage_health, "raise_version", go.wait)
    received = watched(lambda: lambda: False)
    assert received.next() == "WATCHDOG=1"
    go.set()


def test_the_watchdog_of_another_process_is_not_this_one_s(listener, monkeypatch, app):
    received = listener()
    monkeypatch.setenv("NOTIFY_SOCKET", received.socket.getsockname())
    monkeypatch.setenv("WATCHDOG_USEC", "40000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid() + 1))
    watchdog = systemd.Watchdog([])
    watchdog.start()
    watchdog.join(30)
    watchdog.stop()
    assert [received.next(), received.next()] == ["READY=1", "STOPPING=1"]


# How a process can hang, as code that a thread of it runs.
HANGS = {
    "Python's lock is never released": "ctypes.PyDLL(None).pause()",
    "the thread that writes waits forever": "transaction(threading.Event().wait)()",
}


class Hanging(DemoService):
    """The service, which hangs once the file `hang` exists."""

    def __init__(self, instance, code, **environ):
        super().__init__(instance, **environ)
        self.entry = ("-c", SCRIPT.format(code=code))

    def hang(self):
        (self.instance / "hang").touch()
        until(lambda: (self.instance / "hung").exists())


SCRIPT = """
import ctypes, os, runpy, threading, time
from pathlib import Path
from models.db.writer import transaction

def hang():
    folder = Path(os.environ["ORDERS_INSTANCE"])
    while not (folder / "hang").exists():
        time.sleep(0.05)
    (folder / "hung").touch()
    {code}

threading.Thread(target=hang, daemon=True).start()
runpy.run_path("app.py", {{}}, "__main__")
"""


@pytest.fixture
def started(listener, instance, demo, slow):
    """`started(code)`: the service that hangs by this code, and what systemd receives from it."""
    services = []

    def start(code="pass"):
        received = listener()
        named = {"NOTIFY_SOCKET": received.socket.getsockname(), "WATCHDOG_USEC": "400000"}
        services.append(Hanging(instance, code, **named))
        services[-1].launch()
        return services[-1], received

    yield start
    for service in services:
        if service.process.poll() is None:
            service.kill()


def test_systemd_learns_that_the_service_listens_works_and_stops(started):
    service, received = started()
    assert received.next() == "READY=1"
    assert service.api.buy().code == 1
    assert [received.next(), received.next()] == ["WATCHDOG=1", "WATCHDOG=1"]
    service.process.send_signal(signal.SIGTERM)
    until(lambda: received.next() == "STOPPING=1")
    assert service.process.wait(40) == 0


@pytest.mark.sqlite
@pytest.mark.parametrize("code", HANGS.values(), ids=HANGS)
def test_a_hung_process_is_reported_no_longer_and_leaves_its_stacks_when_systemd_ends_it(started, code):
    service, received = started(code)
    assert [received.next(), received.next()] == ["READY=1", "WATCHDOG=1"]
    service.hang()
    received.socket.settimeout(12)  # twice the usual time between two messages
    with pytest.raises(TimeoutError):
        assert [received.next(), received.next()] == ["WATCHDOG=1"]  # at most that of a check that was almost done
    service.process.send_signal(signal.SIGABRT)
    assert service.process.wait(40) == -signal.SIGABRT
    assert "Fatal Python error: Aborted" in service.log.read_text()
    assert "services/platform/systemd.py" in service.log.read_text()
