"""The service under torture: the processes of one database, and the operator's commands."""

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
COMMANDS_TAKE = 90  # seconds at most, on a busy machine
ENTRY = ("-m", "tests.torture.hasty")


class CommandFailed(Exception):
    """An operator's command failed unexpectedly."""


def _port(rng: random.Random) -> int:
    """A free port that the system gives to no outgoing connection, so that it stays free while unused."""
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
            process.entry = (*ENTRY, "--leases") if hasty else ENTRY

    def start(self) -> None:
        """Start every process, one after the other, and wait for their first responses."""
        for process in self.processes:
            process.start()

    def stop(self) -> None:
        """Kill every living process."""
        for process in self.processes:
            if process.process and process.process.poll() is None:
                process.kill()

    def url(self) -> str:
        """The address of any process, even if it does not run at the moment."""
        return random.choice(self.processes).url

    def victim(self) -> Service:
        """Return the process to kill next."""
        return self._rng.choice(self.processes)

    def operate(self, *commands: tuple[str, ...]) -> list[str]:
        """Return the output of each of these operator's commands. Raises CommandFailed."""
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
                raise CommandFailed(f"tillbook {' '.join(words)}: {result['error']}")
        return [result["said"] for result in results]

    def ask(self, *commands: tuple[str, ...]) -> list[Any]:
        """Return the JSON of each of these commands; their status may report a problem."""
        return [json.loads(said) for said in self.operate(*((*words, "--json") for words in commands))]
