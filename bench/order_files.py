"""Files with many orders, kept in `FOLDER/<orders>/` and created again when the schema changes."""

from __future__ import annotations

import hashlib
import math
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from bench.processes import ROOT, Service, copied

__all__ = ["FOLDER", "copied", "demo_orders", "seeded"]

FOLDER = ROOT / "instance" / "bench"  # the default
DEMO_SHARE = 0.9  # of the seeded orders belong to the merchant `demo`


def _stamp() -> str:
    """Digest of the code that determines the content of a seeded file."""
    files = sorted(
        [*ROOT.glob("models/**/*.py"), *ROOT.glob("services/sandbox/seed*.py"), ROOT / "services/ledger/fees.py"]
    )
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def seeded(kept: Path, orders: int, say: Callable[[str], None]) -> Path:
    """Return the folder of a service in which `demo` has at least this number of orders, read into the page cache."""
    folder, stamp = kept / str(orders), _stamp()
    mark = folder / "stamp"
    if not mark.exists() or mark.read_text() != stamp:
        shutil.rmtree(folder, ignore_errors=True)
        # The share varies randomly.
        wanted = math.ceil(orders / DEMO_SHARE + 4 * math.sqrt(orders)) if orders else 0
        say(f"seeding {wanted:,} orders")
        service = Service(folder)
        service.flask("seed", "--orders", str(wanted))
        with service:  # its start may fill an index
            service.rest()
        with closing(sqlite3.connect(folder / "orders.sqlite")) as file:
            file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        mark.write_text(stamp)
    with (folder / "orders.sqlite").open("rb") as file:
        while file.read(1 << 24):
            pass
    return folder


def demo_orders(folder: Path, count: int) -> list[tuple[str, str]]:
    """`order_no` and `merchant_order_no` of up to `count` orders of `demo`, spread over the whole file."""
    with closing(sqlite3.connect(folder / "orders.sqlite")) as file:
        (last,) = file.execute('SELECT max(id) FROM "order"').fetchone()
        step = max(1, last // count)
        ids = ",".join(str(row_id) for row_id in range(step // 2 + 1, last, step))
        return file.execute(
            'SELECT order_no, merchant_order_no FROM "order" JOIN merchant ON merchant.id = merchant_id '
            f"WHERE key = 'demo' AND \"order\".id IN ({ids})"
        ).fetchall()
