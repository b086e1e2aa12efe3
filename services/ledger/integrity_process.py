"""`python -m services.ledger.integrity_process`: the proof of the books in a process of its own.

Hashing every entry is Python's own work for a second per 100,000: in the service it would keep all threads waiting.
Standard input says where the database is; each check's name and what it found is a line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from models.db.base import open_database, open_postgres
from runtime import Runtime
from services.ledger import integrity
from settings import Settings


def main() -> None:
    """Verify, at the system's leisure."""
    with suppress(OSError):
        os.nice(10)
    given = json.loads(sys.stdin.readline())
    Runtime(Settings()).enter()
    if given["url"]:
        open_postgres(given["url"], 2)
    else:
        open_database(Path(given["file"]))
    for name, off in integrity.verify():
        print(json.dumps([name, off]), flush=True)


if __name__ == "__main__":
    main()
