"""Open-loop load: requests at a fixed rate, however long responses take.

`python -m bench.flood PORT RATE SECONDS FILE` sends the requests of the file and prints the outcome.
"""

from __future__ import annotations

import itertools
import json
import selectors
import socket
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bench.load import Failed
from bench.processes import ROOT

MOST_CONNECTIONS = 1500
PATIENCE = 30  # seconds to wait for the last responses


class Connection:
    """A connection that sends one request after the other."""

    def __init__(self, port: int):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.due, self._received = 0.0, b""

    def send(self, request: bytes, due: float) -> None:
        """Send a request that was due at this time."""
        self.due, self._received = due, b""
        self.socket.sendall(request)

    def status(self) -> str:
        """Status of the response once all of it was received; empty before, `broken` if the connection was closed."""
        try:
            more = self.socket.recv(65_536)
        except OSError:
            more = b""
        if not more:
            return "broken"
        self._received += more
        head, _, body = self._received.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
        return head[9:12].decode() if length and len(body) >= int(length) else ""


class Flood:
    """Sends each request when it is due, over a free connection. Latency counts from the due time."""

    def __init__(self, port: int, requests: list[bytes], rate: float):
        self._port, self._requests, self._rate = port, requests, rate
        self._selector = selectors.DefaultSelector()
        self._free: list[Connection] = []
        self._open = self._sent = self._waiting = 0
        self._began = time.perf_counter()
        self.statuses: Counter[str] = Counter()
        self.latencies: dict[str, list[float]] = {}  # milliseconds by status

    def _connection(self) -> Connection | None:
        if self._free:
            return self._free.pop()
        if self._open == MOST_CONNECTIONS:
            return None
        self._open += 1
        made = Connection(self._port)
        self._selector.register(made.socket, selectors.EVENT_READ, made)
        return made

    def _elapsed(self) -> float:
        return time.perf_counter() - self._began

    def _send_due(self) -> None:
        while self._sent < min(len(self._requests), int(self._elapsed() * self._rate)):
            connection = self._connection()
            request, self._sent = self._requests[self._sent], self._sent + 1
            if connection is None:
                self.statuses["unsent"] += 1
                continue
            connection.send(request, self._began + self._sent / self._rate)
            self._waiting += 1

    def _received(self) -> Iterator[tuple[Connection, str]]:
        for key, _ in self._selector.select(0.001):
            if status := key.data.status():
                yield key.data, status

    def run(self) -> float:
        """Send all requests and receive the responses. Returns the seconds that sending took."""
        self._began = time.perf_counter()
        sent_in = 0.0
        while self._sent < len(self._requests) or (self._waiting and self._elapsed() < sent_in + PATIENCE):
            self._send_due()
            if self._sent == len(self._requests) and not sent_in:
                sent_in = self._elapsed()
            for connection, status in self._received():
                self._count(connection, status)
        self.statuses["unanswered"] += self._waiting
        return sent_in

    def _count(self, connection: Connection, status: str) -> None:
        if status == "broken":
            self._selector.unregister(connection.socket)
            connection.socket.close()
            self._open -= 1
            if connection in self._free:  # an idle one that the server has closed
                self._free.remove(connection)
                return
        else:
            self._free.append(connection)
        self._waiting -= 1
        self.statuses[status] += 1
        self.latencies.setdefault(status, []).append((time.perf_counter() - connection.due) * 1000)


def start(port: int, requests: Iterable[str], rate: float, seconds: float, file: Path) -> subprocess.Popen[str]:
    """Start a process that sends the first `rate * seconds` requests to the port; `file` is written for it."""
    wanted = itertools.islice(requests, round(rate * seconds))
    file.write_text("".join(f"{json.dumps(each)}\n" for each in wanted), "utf-8")
    command = [sys.executable, "-m", "bench.flood", str(port), str(rate), str(seconds), str(file)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def outcome(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Wait for the process and return its measurement.

    Returns: `seconds` of sending, `statuses` (responses by status), and `p50` and `p99` in ms by status.

    Raises:
        Failed: the process failed.
    """
    out, errors = process.communicate()
    if process.returncode:
        raise Failed(f"flood: {errors.strip()[-400:]}")
    return json.loads(out)


def counts(found: dict[str, Any]) -> str:
    """The responses by status, for a note."""
    return ", ".join(f"{status}: {count}" for status, count in sorted(found["statuses"].items()))


def main(port: int, rate: float, seconds: float, file: Path) -> None:
    """Print the outcome as one line of JSON."""
    lines = file.read_text("utf-8").splitlines()[: round(rate * seconds)]
    flood = Flood(port, [json.loads(line).encode() for line in lines], rate)
    sent_in = flood.run()
    hundredths = {
        status: statistics.quantiles(each, n=100) for status, each in flood.latencies.items() if len(each) > 1
    }
    found = {
        "seconds": sent_in,
        "statuses": +flood.statuses,
        "p50": {status: each[49] for status, each in hundredths.items()},
        "p99": {status: each[98] for status, each in hundredths.items()},
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]))
