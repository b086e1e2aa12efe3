"""Load by wrk: how many answers a second, and how long each took."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

SCRIPT = Path(__file__).with_name("load.lua")
LATE = 60  # seconds after which an answer counts as missing


class Failed(Exception):
    """A measurement that can't count: something was refused, broke, or did not start."""


@dataclass(frozen=True)
class Load:
    """What one run of wrk saw; latencies in milliseconds.

    `spent` is True where the prepared bodies were used up before the time was over: every one of
    them was answered, and `seconds` ends with the last answer.
    """

    answers: int
    seconds: float
    spent: bool
    p50: float
    p99: float

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.answers / self.seconds


def run(
    url: str,
    connections: int,
    seconds: float,
    bodies: Iterable[str] | None = None,
    folder: Path | None = None,
    headers: Mapping[str, str] | None = None,
) -> Load:
    """Let wrk ask for `url` over so many connections at once.

    Args:
        seconds: whole ones, at least 1.
        bodies: POST these, one a line and each once; without, GET.
        folder: where the file of bodies goes; needed with bodies.

    Raises:
        Failed: any answer was not a success, or wrk could not work.
    """
    # One thread of wrk offers several times what one process of Python answers, and leaves it the other core.
    command = [wrk(), "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}", f"--timeout={LATE}", f"-s{SCRIPT}"]
    command += [part for name, value in (headers or {}).items() for part in ("-H", f"{name}: {value}")]
    command.append(url)
    file = None
    if bodies is not None:
        assert folder is not None
        file = folder / "bodies.txt"
        with file.open("w", encoding="utf-8") as out:
            out.writelines(f"{body}\n" for body in bodies)
        command += ["--", str(file), str(connections)]
    done = subprocess.run(command, capture_output=True, text=True)
    if file:
        file.unlink()
    return _read(url, done)


def wrk() -> str:
    """The program. Raises Failed where it is missing."""
    found = shutil.which("wrk")
    if found is None:
        raise Failed("wrk is not installed: apt-get install wrk")
    return found


def _read(url: str, done: subprocess.CompletedProcess[str]) -> Load:
    lines = [line for line in done.stdout.splitlines() if line.startswith("bench: ")]
    if not lines:
        raise Failed(f"wrk on {url}: {(done.stderr or done.stdout).strip()[-400:]}")
    said = json.loads(lines[-1].removeprefix("bench: "))
    wrong = {name: said.pop(name) for name in ("refused", "broken", "late")}
    if any(wrong.values()) or not said["answers"]:
        raise Failed(f"{url}: of {said['answers']} answers {wrong['refused']} were refusals; {wrong}")
    return Load(**said)
