"""Start the service on a prepared folder, and the programs that it is compared with."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from bench import traffic
from bench.comparing import Bench, Failed, say

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = {"ORDERS_DEMO": "1", "ORDERS_REQUESTS_PER_SECOND": "1000000", "ORDERS_LOG_LEVEL": "WARNING"}


def free_port() -> int:
    """A free port on loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def cpu_seconds(pid: int) -> float:
    """Processor time of a process and its children, including ended ones."""

    def ticks(process: str) -> list[int]:
        return [int(field) for field in Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[11:15]]

    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return (sum(ticks(str(pid))) + sum(sum(ticks(child)[:2]) for child in children)) / os.sysconf("SC_CLK_TCK")


class Process:
    """A child process that serves HTTP on a port of loopback; a context manager that starts and stops it.

    `probe` is a path that returns 200 once it has started.
    """

    def __init__(self, command: list[str], port: int, log: Path, probe: str, environ: dict[str, str] | None = None):
        self.command, self.port, self.log, self.probe = command, port, log, probe
        self.url = f"http://127.0.0.1:{port}"
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ORDERS_")}
        self.environ = clean | (environ or {})
        self.child: subprocess.Popen[bytes] | None = None
        self.started_in = 0.0  # seconds to the first response
        self.headers: dict[str, str] = {}  # of the probe, and of requests to peers
        self.http = requests.Session()
        self.http.trust_env = False

    def start(self) -> None:
        """Start it and wait for its first response. Raises Failed."""
        began = time.perf_counter()
        with self.log.open("ab") as log:
            self.child = subprocess.Popen(self.command, cwd=ROOT, env=self.environ, stdout=log, stderr=log)
        self.pid = self.child.pid
        while not self.succeeds(traffic.request("GET", self.probe, Connection="close", **self.headers)):
            if self.child.poll() is not None or time.perf_counter() > began + 60:
                self.stop()
                raise Failed(f"{self.command[1:3]} does not start: {self.log.read_text()[-400:]}")
            time.sleep(0.002)
        self.started_in = time.perf_counter() - began

    def succeeds(self, request: str) -> bool:
        """Send one request; return whether the response is 200."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
                connection.sendall(request.encode())
                return connection.recv(64).startswith(b"HTTP/1.1 200")
        except OSError:
            return False

    def stop(self) -> None:
        """Terminate it. If it still runs a minute later, kill it and raise TimeoutExpired."""
        if self.child:
            self.child.terminate()
            try:
                self.child.wait(60)
            finally:
                self.child.kill()

    def __enter__(self) -> Any:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def cpu(self) -> float:
        """Seconds of processor time that it has used."""
        return cpu_seconds(self.pid)

    def memory(self) -> float:
        """Resident memory in MiB."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def cores(self) -> set[int]:
        """The cores that its most restricted thread may use: with `one_core`, the one that runs Python."""
        threads = Path(f"/proc/{self.pid}/task").iterdir()
        return min((os.sched_getaffinity(int(thread.name)) for thread in threads), key=len)

    def rest(self) -> None:
        """Wait until it has used almost no processor time for three seconds. Raises Failed after half an hour."""
        give_up, calm = time.monotonic() + 1800, 0
        while calm < 3:
            before = self.cpu()
            time.sleep(1)
            calm = calm + 1 if self.cpu() - before < 0.1 else 0
            if time.monotonic() > give_up:
                raise Failed(f"{self.command[1:3]} is busy without any request")


class Service(Process):
    """The service on a folder. `known` has what the commands of its setup printed as JSON."""

    def __init__(self, folder: Path, entry: tuple[str, ...] = ("app.py",), environ: dict[str, str] | None = None):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.database, port = folder, folder / "orders.sqlite", free_port()
        self.known: dict[str, Any] = {}
        environ = SETTINGS | (environ or {}) | {"ORDERS_INSTANCE": str(folder), "ORDERS_PORT": str(port)}
        super().__init__([sys.executable, *entry], port, folder / "service.log", "/healthz", environ)

    def call(self, endpoint: str, fields: dict[str, Any], key: str = "demo") -> Any:
        """Make one signed call and return the response's data. Raises Failed."""
        body = traffic.signed(endpoint, fields, key)
        response = self.http.post(f"{self.url}/merchant/{endpoint}", json=body, timeout=60)
        if response.status_code != 200:
            raise Failed(f"{endpoint}: {response.status_code} {response.text[:400]}")
        return response.json()["data"]

    def run(self, command: str) -> None:
        """Run one of the operator's commands, and add what it prints as JSON to `known`. Raises Failed."""
        words = shlex.split(command.format_map(self.known))
        done = subprocess.run([*self.command, *words], cwd=ROOT, env=self.environ, capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"tillbook {command}: {done.stderr.strip()[-400:]}")
        if "--json" in words:
            self.known |= json.loads(done.stdout)


@dataclass(frozen=True)
class Prepared:
    """Starts the service on a prepared folder, a new copy each time unless it has many orders.

    `commands` of the operator prepare it; `{name}` is taken from the JSON that earlier ones printed. `orders` is the
    number of seeded orders.
    """

    commands: tuple[str, ...] = ()
    orders: int = 0
    settings: tuple[tuple[str, str], ...] = ()
    entry: tuple[str, ...] = ("app.py",)

    def __call__(self, bench: Bench) -> Service:
        if self not in bench.prepared:
            folder = bench.work / f"prepared-{len(bench.prepared)}"
            _copy(seeded(bench, bench.at_most(self.orders)), folder)
            service = Service(folder, self.entry)
            for command in self.commands:
                service.run(command)
            bench.prepared[self] = service
        prepared = bench.prepared[self]
        folder = prepared.folder if self.orders else _copy(prepared.folder, bench.work / "started")
        service = Service(folder, self.entry, dict(self.settings))
        service.known = prepared.known
        return service


@dataclass(frozen=True)
class Beside:
    """Starts one of the servers of `bench/beside.py`."""

    kind: str

    def __call__(self, bench: Bench) -> Process:
        port = free_port()
        command = [sys.executable, "-m", "bench.beside", self.kind, str(port)]
        return Process(command, port, bench.work / f"{self.kind}.log", "/")


def _copy(source: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run(["cp", "-r", "--reflink=auto", str(source), str(target)], check=True)
    return target


def seeded(bench: Bench, orders: int) -> Path:
    """Return a folder, kept between runs, with this number of orders.

    It is created again when the code that determines its content has changed, and is read into the page cache.
    """
    patterns = ("models/**/*.py", "services/sandbox/seed*.py", "services/**/fees.py")
    code = (file.read_bytes() for pattern in patterns for file in sorted(ROOT.glob(pattern)))
    stamp = hashlib.sha256(b"".join(code)).hexdigest()
    folder = bench.folder / str(orders)
    mark, database = folder / "stamp", folder / "orders.sqlite"
    if not mark.exists() or mark.read_text() != stamp:
        shutil.rmtree(folder, ignore_errors=True)
        say(f"seeding {orders:,} orders")
        service = Service(folder)
        service.run(f"seed --orders {orders}")
        with service:  # its start may fill an index
            service.rest()
        with closing(sqlite3.connect(database)) as file:
            file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        mark.write_text(stamp)
    subprocess.run(["cat", str(database)], stdout=subprocess.DEVNULL, check=True)
    return folder
