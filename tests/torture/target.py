"""The service under torture: the processes that serve one database, and the operator's commands beside them."""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support import ROOT, DemoService, Service

SETTINGS = {
    "ORDERS_REQUESTS_PER_SECOND": "1000000",
    "ORDERS_REFUSED_PER_MINUTE": "1000000",
    "ORDERS_LOG_LEVEL": "WARNING",
}
COMMANDS_TAKE = 90  # seconds at most, on a machine that is busy
ENTRY, HASTY = ("app.py",), ("-m", "tests.torture.hasty")


class CommandFailed(Exception):
    """One of the operator's commands, which must not."""


def _port(rng: random.Random) -> int:
    """A free port that the system gives to no outgoing connection, so that it stays free while nobody listens."""
    while True:
        port = rng.randrange(20_000, 30_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class Target:
    """One or more service processes on one instance folder; `more` are their settings.

    Clients choose a process for each request, the killer one for each kill.
    """

    def __init__(self, folder: Path, rng: random.Random, processes: int = 1, hasty: bool = False, **more: str):
        self.folder, self._rng = folder, rng
        environ = SETTINGS | more
        self.processes = [DemoService(folder, port=_port(rng), **environ) for _ in range(processes)]
        for process in self.processes:
            process.entry = HASTY if hasty else ENTRY

    def start(self) -> None:
        """Start every process, one after the other, and wait for their first answers."""
        for process in self.processes:
            process.start()

    def stop(self) -> None:
        """End every process that lives, by force."""
        for process in self.processes:
            if process.process and process.process.poll() is None:
                process.kill()

    def url(self) -> str:
        """The address of any process, whether it lives just now or not."""
        return random.choice(self.processes).url

    def victim(self) -> Service:
        """The process that is to suffer next."""
        return self._rng.choice(self.processes)

    def operate(self, *commands: tuple[str, ...]) -> list[str]:
        """What each of these operator's commands prints. Raises CommandFailed."""
        done = subprocess.run(
            [sys.executable, "-m", "tests.torture.operator"],
            cwd=ROOT,
            env=self.processes[0].environ,
            input=json.dumps(commands),
            capture_output=True,
            text=True,
            timeout=COMMANDS_TAKE,
        )
        if done.returncode:
            raise CommandFailed(done.stderr)
        results = json.loads(done.stdout)
        for words, result in zip(commands, results, strict=True):
            if result["status"] and not result["said"]:
                raise CommandFailed(f"orders {' '.join(words)}: {result['error']}")
        return [result["said"] for result in results]

    def ask(self, *commands: tuple[str, ...]) -> list[Any]:
        """What each of these commands prints as JSON; its status may say that something is off."""
        return [json.loads(said) for said in self.operate(*((*words, "--json") for words in commands))]
