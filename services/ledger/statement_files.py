"""Monthly statements as files: the lines as CSV for programs, and the files of all merchants as one ZIP."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Iterator
from itertools import islice

from runtime.clock import in_china
from runtime.money import hundredths
from services.ledger.monthly_statement import GROUPS, Line, Statement
from services.platform.safe_text import cells, printable

COLUMNS = ("time", "kind", "order_no", "merchant_order_no", "amount", "fees", "change", "balance", "memo", "line_no")
AT_ONCE = 500  # lines that one part of a file has
LONGEST_NAME = 60  # characters of a merchant's name in the name of a file
SUMMARY = "summary.csv"
COUNTS = tuple(f"{group}_count" for group in GROUPS)
SUMMARY_COLUMNS = ("merchant", "name", "opening", *GROUPS, "fees", "closing", "held", *COUNTS)
_UNSAFE = re.compile(r'[<>:"/\\|?*\ufffd\s]+')  # Windows refuses them in a file's name, or they are hard to type


def lines_csv(lines: Iterable[Line]) -> Iterator[str]:
    """Yield lines as CSV without a heading: times in China, amounts in yuan, and codes instead of labels."""
    rest = iter(lines)
    while some := list(islice(rest, AT_ONCE)):
        yield cells(
            [
                in_china(line.at).isoformat(),
                line.kind,
                line.order_no,
                line.merchant_order_no,
                *map(hundredths, (line.gross, line.fees, line.amount, line.balance)),
                line.memo,
                line.number,
            ]
            for line in some
        )


def summary_row(statement: Statement) -> list[str]:
    """Return the row of a statement in the summary of all merchants, by SUMMARY_COLUMNS; amounts in yuan."""
    sums, merchant = statement.sums, statement.merchant
    groups = [getattr(sums, group) for group in GROUPS]
    amounts = [statement.opening, *groups, sums.fees, statement.closing, statement.held]
    counts = [str(getattr(statement.counts, group)) for group in GROUPS]
    return [merchant.key, merchant.name, *map(hundredths, amounts), *counts]


def zipped(statements: Iterable[tuple[Statement, Iterable[str]]], summary: Iterable[str]) -> Iterator[bytes]:
    """Yield a ZIP, part by part, with a CSV file for each statement and one with the sums of all merchants.

    The parts of a file are texts. Names have the merchant's key and name, without characters that Windows refuses.
    """
    sink = _Sink()
    # A name is never used twice, however the file system compares upper and lower case.
    taken: set[str] = set()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as packed:
        for statement, parts in statements:
            yield from _add(packed, sink, _name(statement, taken), parts)
        yield from _add(packed, sink, SUMMARY, summary)
    yield sink.taken()


def _name(statement: Statement, taken: set[str]) -> str:
    called = _UNSAFE.sub(" ", printable(statement.merchant.name)).strip()[:LONGEST_NAME].rstrip(". ")
    stem = "-".join(filter(None, ("statement", f"{statement.month:%Y-%m}", statement.merchant.key, called)))
    name, number = stem, 1
    while name.casefold() in taken:
        number += 1
        name = f"{stem}-{number}"
    taken.add(name.casefold())
    return f"{name}.csv"


def _add(packed: zipfile.ZipFile, sink: _Sink, name: str, parts: Iterable[str]) -> Iterator[bytes]:
    with packed.open(name, "w", force_zip64=True) as file:
        for part in parts:
            file.write(part.encode())
            yield sink.taken()


class _Sink(io.RawIOBase):
    """A file that only keeps what has not been sent yet; the ZIP is written without going back."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self._parts.append(bytes(data))
        return len(data)

    def taken(self) -> bytes:
        found, self._parts = b"".join(self._parts), []
        return found
