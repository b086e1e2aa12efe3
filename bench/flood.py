"""Load at a fixed rate, whether it is answered or not: `python -m bench.flood PORT RATE SECONDS REQUESTS`."""

from __future__ import annotations

import json
import selectors
import socket
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

MOST_CONNECTIONS = 1500
PATIENCE = 30  # seconds for the last answers
JSON = "application/json"


def request(method: str, path: str, body: str = "", media: str = JSON, **headers: str) -> str:
    """One request as it is sent; `X_Forwarded_For="..."` becomes a header."""
    given = {"Host": "bench", **{name.replace("_", "-"): value for name, value in headers.items()}}
    if body:
        given |= {"Content-Type": media, "Content-Length": str(len(body))}
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n{body}"


def write(file: Path, requests: Iterable[str]) -> None:
    """Write the requests for a run, one in JSON a line."""
    file.write_text("".join(f"{json.dumps(each)}\n" for each in requests), "utf-8")


class Connection:
    """Carries one request after the other."""

    def __init__(self, port: int):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.began, self._got = 0.0, b""

    def send(self, request: bytes) -> None:
        self.began, self._got = time.perf_counter(), b""
        self.socket.sendall(request)

    def status(self) -> str:
        """Of the answer, once all of it is here; empty before, `broken` where the connection was closed."""
        try:
            more = self.socket.recv(65_536)
        except OSError:
            more = b""
        if not more:
            return "broken"
        self._got += more
        head, _, body = self._got.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
        return head[9:12].decode() if length and len(body) >= int(length) else ""


class Flood:
    """Requests go out when their time has come, each over a connection that is free."""

    def __init__(self, port: int, requests: list[bytes], rate: float):
        self._port, self._requests, self._rate = port, requests, rate
        self._selector = selectors.DefaultSelector()
        self._free: list[Connection] = []
        self._open = self._sent = self._waiting = 0
        self.said: Counter[str] = Counter()
        self.took: dict[str, list[float]] = {}  # milliseconds by status

    def _connection(self) -> Connection | None:
        if self._free:
            return self._free.pop()
        if self._open == MOST_CONNECTIONS:
            return None
        self._open += 1
        made = Connection(self._port)
        self._selector.register(made.socket, selectors.EVENT_READ, made)
        return made

    def _send_due(self, elapsed: float) -> None:
        while self._sent < min(len(self._requests), int(elapsed * self._rate)):
            connection = self._connection()
            request, self._sent = self._requests[self._sent], self._sent + 1
            if connection is None:
                self.said["unsent"] += 1
                continue
            connection.send(request)
            self._waiting += 1

    def _answered(self) -> Iterator[tuple[Connection, str]]:
        for key, _ in self._selector.select(0.001):
            if status := key.data.status():
                yield key.data, status

    def run(self) -> float:
        """Send all and take in the answers; how many seconds it took to send them."""
        began = time.perf_counter()
        sent_in = 0.0
        while self._sent < len(self._requests) or (self._waiting and time.perf_counter() - began < sent_in + PATIENCE):
            self._send_due(time.perf_counter() - began)
            if self._sent == len(self._requests) and not sent_in:
                sent_in = time.perf_counter() - began
            for connection, status in self._answered():
                self._take(connection, status)
        self.said["unanswered"] += self._waiting
        return sent_in

    def _take(self, connection: Connection, status: str) -> None:
        self._waiting -= 1
        self.said[status] += 1
        self.took.setdefault(status, []).append((time.perf_counter() - connection.began) * 1000)
        if status == "broken":
            self._selector.unregister(connection.socket)
            connection.socket.close()
            self._open -= 1
        else:
            self._free.append(connection)


def main(port: int, rate: float, seconds: float, requests: Path) -> None:
    """Print what came of it as one line of JSON: answers by status, the p99 of each in milliseconds."""
    lines = requests.read_text("utf-8").splitlines()[: round(rate * seconds)]
    flood = Flood(port, [json.loads(line).encode() for line in lines], rate)
    sent_in = flood.run()
    p99 = {status: statistics.quantiles(took, n=100)[98] for status, took in flood.took.items() if len(took) > 1}
    print(json.dumps({"seconds": sent_in, "said": +flood.said, "p99": p99}))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]))
