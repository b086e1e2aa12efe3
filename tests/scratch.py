"""The tests' temporary files: in memory if there is room, because a disk takes longer than the tests themselves."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
ENOUGH = 2 << 30  # bytes; the tests take 100 MiB, with Postgres as much again


def use_memory() -> None:
    """Put temporary files of this process and its children into memory, unless TMPDIR is set."""
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK) or shutil.disk_usage(MEMORY).free < ENOUGH:
        return
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)
