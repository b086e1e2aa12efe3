"""The killer: SIGKILL at random moments, or at critical ones."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable

from tests.postgres import Cluster
from tests.support import Service

LONGEST_END = 40  # seconds: more than the service gives its requests to finish
OF_POSTGRES = "of Postgres"
HOW_OFTEN = 0.15  # of all kills
ENDED_WELL = (0, -15)  # stopped so early that Python itself ended it, before it began to serve


class Killer:
    """Kills serving processes; `kills` counts each SIGKILL to a live one by its moment, `wrong` are the problems."""

    def __init__(self, rng: random.Random, pressing: threading.Event, postgres: Cluster | None = None):
        self._rng, self._pressing, self._postgres = rng, pressing, postgres
        self.kills: Counter[str] = Counter()
        self.stops = 0
        self.wrong: list[str] = []

    def strike(self, process: Service) -> str:
        """Kill a serving process at one of the moments, or Postgres; start it again, and wait until it serves."""
        if self._postgres and self._rng.random() < HOW_OFTEN:
            return self._kill_postgres(self._postgres)
        moment = self._rng.choices(list(MOMENTS), [weight for weight, _ in MOMENTS.values()])[0]
        MOMENTS[moment][1](self, process)
        process.start()
        return moment

    def _kill(self, process: Service, moment: str) -> None:
        assert process.process
        if (status := process.process.poll()) is not None:
            self.wrong.append(f"the service ended unexpectedly with status {status}, {moment}")
            return
        process.kill()
        self.kills[moment] += 1

    def _kill_postgres(self, postgres: Cluster) -> str:
        self._wait(1)
        postgres.stop()
        self._wait(1)
        postgres.start()
        self.kills[OF_POSTGRES] += 1
        return OF_POSTGRES

    def _wait(self, longest: float) -> None:
        time.sleep(self._rng.uniform(0, longest))

    def at_any_time(self, process: Service) -> None:
        time.sleep(0.1)
        self._wait(1.4)
        self._kill(process, "at any time")

    def after_a_press(self, process: Service) -> None:
        time.sleep(0.2)
        self._wait(0.8)
        self._pressing.clear()
        self._pressing.wait(2)
        self._wait(0.03)
        self._kill(process, "after a press")

    def during_the_start(self, process: Service) -> None:
        self._wait(0.8)
        self._kill(process, "at any time")
        process.launch()
        self._wait(1.2)
        self._kill(process, "during the start")

    def during_a_drain(self, process: Service) -> None:
        self._wait(0.8)
        self._terminate(process)
        self._wait(0.15)
        if process.process and process.process.poll() is None:
            self._kill(process, "during a drain")

    def stopped_during_the_start(self, process: Service) -> None:
        self._wait(0.8)
        self._kill(process, "at any time")
        process.launch()
        self._wait(1.2)
        self._terminate(process)
        self._awaited(process)

    def stopped(self, process: Service) -> None:
        self._wait(0.8)
        self._terminate(process)
        self._awaited(process)

    def _terminate(self, process: Service) -> None:
        assert process.process
        process.process.terminate()
        self.stops += 1

    def _awaited(self, process: Service) -> None:
        """Stop the process without disturbance; it must end well."""
        assert process.process
        try:
            status = process.process.wait(LONGEST_END)
        except subprocess.TimeoutExpired:
            self.wrong.append(f"the service did not end within {LONGEST_END} s of SIGTERM")
            process.kill()
        else:
            if status not in ENDED_WELL:
                self.wrong.append(f"the service ended with status {status} on SIGTERM")


# The frequency of each moment, and its action; each leaves the process dead.
MOMENTS: dict[str, tuple[int, Callable[[Killer, Service], None]]] = {
    "at any time": (5, Killer.at_any_time),
    "after a press": (8, Killer.after_a_press),
    "during the start": (4, Killer.during_the_start),
    "during a drain": (3, Killer.during_a_drain),
    "stopped during the start": (1, Killer.stopped_during_the_start),
    "stopped": (1, Killer.stopped),
}
