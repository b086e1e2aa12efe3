"""What drivers share to fetch bills: unpacking within limits, and the closing balance of a flow of funds."""

from __future__ import annotations

import csv
import io
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from gateways.base import ChannelUnknown
from runtime import money
from runtime.texts import N_

BILL_BYTES = 64 * 2**20  # of an unpacked file: as many as services/statements/tables.py reads
NAMES = "gb18030"  # the charset of names in a ZIP archive that are not marked as UTF-8
DAMAGED = N_("the file is damaged")
TOO_LARGE = N_("the file is too large")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}", re.ASCII)


def gunzipped(packed: bytes) -> bytes:
    """Return the content of a gzip file. Raises ChannelUnknown if it is damaged, incomplete or too large."""
    reader = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        content = reader.decompress(packed, BILL_BYTES + 1)
    except zlib.error:
        raise ChannelUnknown(DAMAGED) from None
    if len(content) > BILL_BYTES:
        raise ChannelUnknown(TOO_LARGE)
    if not reader.eof or reader.unused_data:
        raise ChannelUnknown(DAMAGED)
    return content


def details(archive: bytes) -> bytes:
    """Return Alipay's file of details (明细) in a ZIP archive, which also has one of sums (汇总).

    Raises ChannelUnknown if it is damaged or too large, or if the archive has no such file or several.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(archive), metadata_encoding=NAMES) as packed:
            found = [each for each in packed.infolist() if "明细" in each.filename and "汇总" not in each.filename]
            if len(found) != 1:
                raise ChannelUnknown(N_("the archive has %(count)s files of details") % {"count": len(found)})
            # The other methods of compression have no limit for what they unpack at once.
            if found[0].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ChannelUnknown(DAMAGED)
            with packed.open(found[0]) as file:
                content = file.read(BILL_BYTES + 1)
    except (zipfile.BadZipFile, zlib.error, ValueError, OSError, EOFError, RuntimeError, NotImplementedError):
        raise ChannelUnknown(DAMAGED) from None
    if len(content) > BILL_BYTES:
        raise ChannelUnknown(TOO_LARGE)
    return content


@dataclass(frozen=True)
class Flow:
    """The columns of an upstream's flow of funds; their names may have half-width or full-width brackets.

    The change is in `received` less `spent`, or in `amount` with its `direction`: 收入 or 支出.
    """

    time: str
    balance: str
    received: str = ""
    spent: str = ""
    amount: str = ""
    direction: str = ""

    def closing_balance(self, raw: bytes) -> int | None:
        """Return the balance after the last line, in fen; None if the file has none. Raises ChannelUnknown."""
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = raw.decode(NAMES, "replace")
        names = [name for name in vars(self).values() if name]
        header: list[str] = []
        lines: list[tuple[str, int, int]] = []  # the time, the change and the balance after it
        for line in text.splitlines():
            cells = _cells(line)
            if not header:
                header = cells if set(names) <= set(cells) else []
            elif line.startswith("#") or "总笔数" in cells[0]:
                break
            elif any(cells):
                lines.append(self._line(header, cells))
        if not header:
            raise ChannelUnknown(N_("the file has no columns %(names)s") % {"names": ", ".join(names)})
        return _last_balance(lines) if lines else None

    def _line(self, header: list[str], cells: list[str]) -> tuple[str, int, int]:
        """Return the time, the change and the balance of a line, whose notes may have unquoted commas."""
        found = set()
        for more in range(len(cells) - len(header) + 1):
            with_names = dict(zip(header, cells[more:], strict=False))
            try:
                found.add(self._read(with_names))
            except ValueError:
                continue
        if len(found) != 1:
            raise ChannelUnknown(N_("a line of the flow of funds cannot be read"))
        return found.pop()

    def _read(self, cells: Mapping[str, str]) -> tuple[str, int, int]:
        """Raises ValueError."""
        if not _TIME.fullmatch(cells[self.time]):
            raise ValueError
        if self.amount:
            signs = {"收入": 1, "支出": -1}
            if cells[self.direction] not in signs:
                raise ValueError
            change = signs[cells[self.direction]] * _fen(cells[self.amount])
        else:
            change = _fen(cells[self.received] or "0") - abs(_fen(cells[self.spent] or "0"))
        return cells[self.time], change, _fen(cells[self.balance])


def _cells(line: str) -> list[str]:
    """Return the values of a line, without the backticks, blanks and tabs around them."""
    is_marked = line.lstrip("\t ").startswith("`")  # a backtick before each value allows commas in it
    cells = re.split(r",\s*`", line) if is_marked else next(csv.reader([line]), []) or [""]
    return [cell.strip(" \t\r`").translate(_BRACKETS) for cell in cells]


_BRACKETS = str.maketrans("（）", "()")


def _fen(text: str) -> int:
    """Return an amount with its sign, in fen. Raises ValueError."""
    digits = text.replace(",", "").removeprefix("+")
    return -money.fen(digits[1:]) if digits.startswith("-") else money.fen(digits)


def _last_balance(lines: list[tuple[str, int, int]]) -> int:
    """Return the balance after all lines, whatever their order within a second.

    Of the lines of one second, the last one's balance is not the balance before another one. If all of them together
    change nothing, the balance is the one before them. Raises ChannelUnknown if the lines do not follow each other.
    """
    for last in sorted({time for time, _, _ in lines}, reverse=True):
        same = [(change, balance) for time, change, balance in lines if time == last]
        after = Counter(balance for _, balance in same)
        after.subtract(balance - change for change, balance in same)
        ends = [balance for balance, count in after.items() if count > 0]
        if len(ends) == 1:
            return ends[0]
        if ends:
            break
    raise ChannelUnknown(N_("the balances of the flow of funds do not follow each other"))
