"""Where the tests write: in memory where there is room, for a disk takes longer than all that they test."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
ENOUGH = 2 << 30  # bytes; the tests take 100 MiB, with Postgres as much again


def use_memory() -> None:
    """Temporary files of this process and those that it starts are in memory, unless TMPDIR says where."""
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK) or shutil.disk_usage(MEMORY).free < ENOUGH:
        return
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)
