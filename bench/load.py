"""Load by wrk: responses per second and latency."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

SCRIPT = Path(__file__).with_name("load.lua")
TIMEOUT = 60  # seconds after which a response counts as missing


class Failed(Exception):
    """A measurement that does not count: a request was refused or broken, or a process did not start."""


@dataclass(frozen=True)
class Load:
    """The outcome of one run of wrk; latencies in milliseconds.

    `spent` is True if the prepared requests were used up before the time was over: all of them have a response, and
    `seconds` ends with the last one.
    """

    responses: int
    seconds: float
    spent: bool
    p50: float
    p99: float

    @property
    def rate(self) -> float:
        """Responses per second."""
        return self.responses / self.seconds


def run(
    url: str,
    connections: int,
    seconds: float,
    requests: Iterable[str] | None = None,
    folder: Path | None = None,
    headers: Mapping[str, str] | None = None,
) -> Load:
    """Let wrk send requests over a number of connections.

    Args:
        url: the address to request, or the server that receives the requests.
        seconds: an integer, at least 1.
        requests: complete HTTP requests (`bodies.request`), each sent once; None sends GETs of `url`.
        folder: the folder for the file of requests; required with requests.
        headers: headers of the GETs.

    Raises:
        Failed: a response was not a success, or wrk failed.
    """
    # One thread of wrk sends several times the requests that one process of Python serves, and leaves it the other
    # core.
    command = [wrk(), "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}", f"--timeout={TIMEOUT}", f"-s{SCRIPT}"]
    command += [part for name, value in (headers or {}).items() for part in ("-H", f"{name}: {value}")]
    command.append(url)
    file = None
    if requests is not None:
        assert folder is not None
        file = folder / "requests.txt"
        with file.open("w", encoding="utf-8", newline="") as out:
            out.writelines(f"{request}\0" for request in requests)
        command += ["--", str(file), str(connections)]
    done = subprocess.run(command, capture_output=True, text=True)
    if file:
        file.unlink()
    return read(url, done)


def wrk() -> str:
    """The path of wrk. Raises Failed if it is not installed."""
    found = shutil.which("wrk")
    if found is None:
        raise Failed("wrk is not installed: apt-get install wrk")
    return found


def read(url: str, done: subprocess.CompletedProcess[str]) -> Load:
    """Return the outcome that load.lua has printed. Raises Failed."""
    lines = [line for line in done.stdout.splitlines() if line.startswith("bench: ")]
    if not lines:
        raise Failed(f"wrk on {url}: {(done.stderr or done.stdout).strip()[-400:]}")
    outcome = json.loads(lines[-1].removeprefix("bench: "))
    errors = {name: outcome.pop(name) for name in ("refused", "broken", "late")}
    if any(errors.values()) or not outcome["responses"]:
        raise Failed(f"{url}: {outcome['responses']} responses, errors: {errors}")
    return Load(**outcome)
