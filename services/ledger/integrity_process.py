"""`python -m services.ledger.integrity_process`: the ledger integrity check in a process of its own.

Hashing takes a second of Python's time per 100,000 entries, during which all threads of the service would wait.
Standard input names the database, and its end is the end of the service: a check that survived a killed service would
keep the database open. Each check's name and its failures are a line of JSON on standard output.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

from models.db.base import open_database, open_postgres
from runtime.settings import Settings
from runtime.state import Runtime
from services.ledger import integrity


def _end_with_the_service() -> None:
    os.read(sys.stdin.fileno(), 1)  # without the lock of `sys.stdin`, which Python may need when it ends
    os._exit(1)


def main() -> None:
    """Run the check at low priority."""
    with suppress(OSError):
        os.nice(10)
    given = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_service, daemon=True).start()
    Runtime(Settings()).enter()
    if given["url"]:
        open_postgres(given["url"], 2)
    else:
        open_database(Path(given["file"]))
    for name, off in integrity.verify():
        print(json.dumps([name, off]), flush=True)


if __name__ == "__main__":
    main()
