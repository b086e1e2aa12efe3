"""The processes of a measurement: the service, its bare yardsticks and the receiver of callbacks."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import requests

from bench import bodies
from bench.load import Failed

ROOT = Path(__file__).resolve().parents[1]
WAITRESS_THREADS = 8
SETTINGS = {
    "ORDERS_DEMO": "1",
    "ORDERS_REQUESTS_PER_SECOND": "1000000",
    "ORDERS_LOG_LEVEL": "WARNING",
}


def free_port() -> int:
    """A free port on loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def copied(source: Path, target: Path) -> Path:
    """Copy a folder; an existing target is replaced."""
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-r", "--reflink=auto", str(source), str(target)], check=True)
    return target


class Process:
    """`python ARGUMENTS` as a child process; a context manager that starts and stops it."""

    def __init__(self, arguments: list[str], port: int, log: Path, probe: str, environ: dict[str, str] | None = None):
        self.command = [sys.executable, *arguments]
        self.port, self.url, self.log, self.probe = port, f"http://127.0.0.1:{port}", log, probe
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ORDERS_")}
        self.environ = clean | (environ or {})
        self.child: subprocess.Popen[bytes] | None = None
        self.started_in = 0.0  # seconds to the first response
        self.http = requests.Session()
        self.http.trust_env = False

    def start(self) -> None:
        """Start it and wait for its first response. Raises Failed."""
        began = time.perf_counter()
        with self.log.open("ab") as log:
            self.child = subprocess.Popen(self.command, cwd=ROOT, env=self.environ, stdout=log, stderr=log)
        while not self._responds():
            if self.child.poll() is not None or time.perf_counter() > began + 60:
                self.stop()
                raise Failed(f"{self.command[1:3]} does not start: {self.log.read_text()[-400:]}")
            time.sleep(0.002)
        self.started_in = time.perf_counter() - began

    def _responds(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as probe:
                probe.sendall(f"GET {self.probe} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n".encode())
                return probe.recv(64).startswith(b"HTTP/1.1 200")
        except OSError:
            return False

    def stop(self) -> None:
        """Terminate it, and kill it after a minute."""
        if self.child and self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
            try:
                self.child.wait(60)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()

    def __enter__(self) -> Any:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def rest(self, patience: float = 1800) -> None:
        """Wait until it has used almost no processor time for three seconds. Raises Failed."""
        assert self.child
        give_up, calm = time.monotonic() + patience, 0
        while calm < 3:
            before = ticks(self.child.pid)
            time.sleep(1)
            calm = calm + 1 if ticks(self.child.pid) - before < 0.1 * os.sysconf("SC_CLK_TCK") else 0
            if time.monotonic() > give_up:
                raise Failed(f"{self.command[1:3]} is busy for {patience:.0f} s without any request")

    def own_cores(self) -> set[int]:
        """The cores that its most restricted thread may use: with `one_core`, the one that runs Python."""
        assert self.child
        threads = Path(f"/proc/{self.child.pid}/task").iterdir()
        return min((os.sched_getaffinity(int(thread.name)) for thread in threads), key=len)

    def memory(self) -> int:
        """Resident bytes of it and all its descendants."""
        assert self.child
        parents = {int(at.name): _facts(at) for at in Path("/proc").iterdir() if at.name.isdigit()}
        family = {self.child.pid}
        while more := {child for child, (parent, _) in parents.items() if parent in family} - family:
            family |= more
        return sum(parents[member][1] for member in family if member in parents)


def _facts(process: Path) -> tuple[int, int]:
    """A process's parent and its resident bytes; zeros if it has ended."""
    try:
        lines = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines() if ":" in line)
    except OSError:
        return 0, 0
    return int(lines["PPid"]), int(lines.get("VmRSS", "0 kB").split()[0]) * 1024


def ticks(pid: int, *, ended: bool = False) -> int:
    """Processor time of a process in clock ticks; `ended` adds its children that have ended."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(int(after_name[at]) for at in ((11, 12, 13, 14) if ended else (11, 12)))


class Service(Process):
    """The service on the folder `instance`; `entry` replaces `app.py`, `more` are settings."""

    def __init__(self, instance: Path, entry: tuple[str, ...] = ("app.py",), **more: str):
        instance.mkdir(parents=True, exist_ok=True)
        self.instance, port = instance, free_port()
        environ = SETTINGS | more | {"ORDERS_INSTANCE": str(instance), "ORDERS_PORT": str(port)}
        super().__init__([*entry], port, instance / "service.log", "/healthz", environ)

    def call(self, endpoint: str, fields: dict[str, Any], key: str = "demo") -> Any:
        """Make one signed call and return the response's data. Raises Failed."""
        (body,) = bodies.signed(endpoint, 1, [fields], key)
        response = self.http.post(
            f"{self.url}/merchant/{endpoint}", body.encode(), headers={"Content-Type": "application/json"}, timeout=60
        )
        if response.status_code != 200:
            raise Failed(f"{endpoint}: {response.status_code} {response.text[:400]}")
        return response.json()["data"]

    def flask(self, *arguments: str, entry: tuple[str, ...] = ("-m", "flask")) -> str:
        """Run one of the operator's commands and return its output. Raises Failed."""
        command = [sys.executable, *entry, *arguments]
        done = subprocess.run(command, cwd=ROOT, env=self.environ, capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"flask {' '.join(arguments)}: {done.stderr.strip()[-400:]}")
        return done.stdout


def bare(server: str, threads: int, folder: Path) -> Process:
    """The bare application on `server`: "same" is the service's HTTP server, "waitress" is waitress."""
    port = free_port()
    arguments = ["-m", "bench.bare", server, str(port), str(threads)]
    return Process(arguments, port, folder / f"bare-{server}.log", "/empty")


def receiver(delay: float, folder: Path) -> Process:
    """A merchant's server that responds after `delay` seconds."""
    port = free_port()
    return Process(["-m", "bench.receiver", str(port), str(delay)], port, folder / "receiver.log", "/seen")
