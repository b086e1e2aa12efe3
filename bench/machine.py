"""Facts about the machine, and its load during a measurement."""

from __future__ import annotations

import os
import platform
import sqlite3
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# Fields of the line `cpu` in /proc/stat. Idle and interrupt time is left out: our own traffic causes most interrupts.
USER, NICE, SYSTEM, STEAL = 1, 2, 3, 8


def facts() -> dict[str, Any]:
    """Processor, cores, versions and today's date."""
    models = [
        text.split(":", 1)[1].strip()
        for text in Path("/proc/cpuinfo").read_text().splitlines()
        if text.startswith("model name")
    ]
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


def _processor_seconds() -> tuple[float, float]:
    """Processor time since boot of all processes, and of this one with its children that have ended."""
    counts = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    everyone = sum(int(counts[field]) for field in (USER, NICE, SYSTEM, STEAL)) / os.sysconf("SC_CLK_TCK")
    return everyone, sum(os.times()[:4])


class Watch:
    """Observes the machine from its creation on. Running children count as other processes."""

    def __init__(self) -> None:
        self._began, self._before = time.monotonic(), _processor_seconds()

    def read(self) -> dict[str, float]:
        """How busy the machine was.

        Returns: `load_average`, of the last minute and with our own load; `others`, the share of all cores' time
        that processes other than ours and their children have used.
        """
        everyone, ours = (after - before for after, before in zip(_processor_seconds(), self._before, strict=True))
        available = (time.monotonic() - self._began) * (os.cpu_count() or 1)
        others = min(1.0, max(0.0, (everyone - ours) / available))
        return {"load_average": round(os.getloadavg()[0], 2), "others": round(others, 3)}
