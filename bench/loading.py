"""Two ways to load a server: wrk over a number of connections, and a fixed rate however long responses take."""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import uvloop

from bench.comparing import Bench, Failed, Figures

SCRIPT = Path(__file__).with_name("load.lua")
FASTEST = 12_000  # requests that are prepared for each second; a run that has used them up ends with the last response
LONGEST = 280  # seconds, so that each body is sent before its timestamp is too old
MOST_CONNECTIONS, PATIENCE = 1500, 30  # of a fixed rate; seconds to wait for the last responses
Requests = Callable[[Any], Iterator[str]]  # makes complete HTTP requests (`traffic.request`) for a server


def wrk(
    server: Any, bench: Bench, requests: Requests, connections: int, seconds: float = LONGEST, count: int = 0
) -> Figures:
    """Let wrk send requests, each once, until the time is over or they are used up; at most `count`, if given.

    Returns: `responses`, `rate`, `p50` and `p99`, and `cpu`: ms of processor time of the server per response.

    Raises:
        Failed: a response was not a success, or wrk failed.
    """
    prepared = bench.work / f"requests-{server.port}.txt"
    with prepared.open("w", encoding="utf-8", newline="") as out:
        out.writelines(f"{one}\0" for one in islice(requests(server), count or round(FASTEST * seconds)))
    # One thread of wrk sends several times the requests that one process of Python serves, and leaves it the other
    # core.
    options = ["-t1", f"-c{connections}", f"-d{max(1, round(seconds))}", "--timeout=60", f"-s{SCRIPT}"]
    before = server.cpu()
    command = ["wrk", *options, server.url, "--", str(prepared), str(connections)]
    done = subprocess.run(command, capture_output=True, text=True)
    used = server.cpu() - before
    prepared.unlink()
    lines = [line for line in done.stdout.splitlines() if line.startswith("bench: ")]
    if not lines:
        raise Failed(f"wrk on {server.url}: {(done.stderr or done.stdout).strip()[-400:]}")
    found: Figures = json.loads(lines[-1].removeprefix("bench: "))
    errors = {name: found.pop(name) for name in ("refused", "broken", "late")}
    if any(errors.values()) or not found["responses"]:
        raise Failed(f"wrk on {server.url}: {found['responses']:.0f} responses, errors: {errors}")
    return found | {"rate": found["responses"] / found["seconds"], "cpu": 1000 * used / found["responses"]}


@dataclass(frozen=True)
class Wrk:
    """Load by wrk, as data.

    `before` makes requests that are sent for as long beforehand; otherwise the same ones are sent for a second,
    because the first responses are slower. `adds` counts what each response must have added. `count` is the number of
    requests, which are all sent and replace the run's time.
    """

    requests: Requests
    connections: int = 8
    before: Requests | None = None
    adds: Callable[[Any], int] | None = None
    count: int = 0

    def __call__(self, server: Any, bench: Bench) -> Figures:
        wrk(server, bench, self.before or self.requests, self.connections, bench.seconds if self.before else 1)
        known = self.adds(server) if self.adds else 0
        seconds = LONGEST if self.count else bench.seconds
        found = wrk(server, bench, self.requests, self.connections, seconds, self.count)
        if self.adds and (added := self.adds(server) - known) < found["responses"]:
            raise Failed(f"{found['responses']:.0f} responses, but {added} orders {self.adds.__name__}")
        return found


def fixed_rate(port: int, requests: list[str], rate: float) -> tuple[Counter[str], Figures]:
    """Send each request when it is due, over up to 1,500 connections; latency counts from that moment.

    It runs in a process of its own (`ProcessPoolExecutor`).

    Returns: the responses by status, among them `unsent` and `unanswered`, and the figures of those with 200: `rate`,
    `p50` and `p99`.
    """
    return uvloop.run(_fixed_rate(port, requests, rate))


async def _fixed_rate(port: int, requests: list[str], rate: float) -> tuple[Counter[str], Figures]:
    statuses: Counter[str] = Counter()
    latencies: list[float] = []
    free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    opened = 0

    async def send(request: str, due: float) -> None:
        nonlocal opened
        try:
            while free and free[-1][0].at_eof():  # the server has closed an idle one
                free.pop()[1].close()
                opened -= 1
            if not free and opened == MOST_CONNECTIONS:
                statuses["unsent"] += 1
                return
            if not free:
                opened += 1
            reader, writer = free.pop() if free else await asyncio.open_connection("127.0.0.1", port)
            writer.write(request.encode())
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"\ncontent-length: *(\d+)", head, re.IGNORECASE)
            await reader.readexactly(int(length[1]) if length else 0)
        except (OSError, asyncio.IncompleteReadError):
            statuses["broken"] += 1
            opened -= 1
            return
        free.append((reader, writer))
        statuses[head[9:12].decode()] += 1
        if head[9:12] == b"200":
            latencies.append(1000 * (time.perf_counter() - due))

    began, running = time.perf_counter(), set()
    for number, request in enumerate(requests):
        due = began + number / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        running.add(asyncio.create_task(send(request, due)))
    seconds = time.perf_counter() - began
    _, waiting = await asyncio.wait(running, timeout=PATIENCE)
    statuses["unanswered"] += len(waiting)
    hundredths = statistics.quantiles(latencies, n=100) if len(latencies) > 1 else [1000.0 * PATIENCE] * 99
    return +statuses, {"rate": statuses["200"] / seconds, "p50": hundredths[49], "p99": hundredths[98]}
