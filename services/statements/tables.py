"""Read the rows of a table file: CSV or xlsx, in the encodings and with the separators that banks and wallets use."""

from __future__ import annotations

import csv
import io
import logging
import re
import threading
import time
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from itertools import islice
from typing import IO, Any, TypeVar

from openpyxl import load_workbook

from runtime.state import Part
from services.errors import N_, OperatorError
from services.platform import cpu_affinity

T = TypeVar("T")
Row = tuple[int, list[str]]  # the file's line or the sheet's row, and its cells
log = logging.getLogger(__name__)

MOST_BYTES = 64 * 2**20  # of a file, and of an unpacked workbook
MOST_ROWS = 500_000
MOST_COLUMNS = 200
MOST_CELLS = 10_000_000
MOST_SECONDS = 60
LAST_OF_SHEET = 1_048_576  # the last row that a sheet can have
MOST_PARTS = 1_000  # files in a workbook
MOST_TAGS = 2_000_000  # of a workbook's shared texts
SETTINGS_BYTES = 2**20  # of a part of a workbook that has neither cells nor texts
LONGEST_LINE = 100_000  # characters
QUOTED_LINES = 20  # lines that one quoted value can span
SEPARATORS = ",\t;"
DAMAGED = "\ufffd"  # replaces bytes that are no character
# Characters that surround values so that spreadsheets do not shorten long numbers.
PADDING = " \t\u3000\xa0`'=\""
_PADDED = re.compile(r"\t+(?=[,;]|$)")  # tabs behind values keep spreadsheets from shortening them
_ROW_OR_CELL = re.compile(
    rb"<(?:\w+:)?(?:(?P<cell>c)(?=[\s/>])|row(?=[\s/>])(?:[^<>]*?\sr=[\"'](?P<number>\d{1,10})[\"'])?)"
)
_YUAN = re.compile(r"\[\$(¥|￥|CNY|RMB|元)?(-[^\]]*)?\]")
_CHANGES = re.compile(
    r"[$€£%]|\[\$|[0#?],+(?![0#?,])|美|港[币元]|[欧日]元|英镑|[百千万亿]|(?<![A-Z\[])(?!CNY|RMB)[A-Z]{3}"
)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
_CHINESE = re.compile("[\u4e00-\u9fff]")
NO_TABLE = {
    b"\x1f\x8b": N_("The file is compressed. Unpack it first."),
    b"\xd0\xcf\x11\xe0": N_("The file is an old Excel workbook (.xls). Save it as .xlsx and try again."),
    b"%PDF": N_("The file is a PDF document. Download the statement as CSV or Excel file."),
}
TOO_LARGE = N_("The workbook is too large. Choose fewer days at a time.")
DAMAGED_WORKBOOK = N_("The Excel workbook is damaged. Download it again.")
_reading = Part(threading.Lock)


class Busy(OperatorError):
    """Another file is being read."""


def alone(work: Callable[..., T], *arguments: Any) -> T:
    """Run the work on a file in this thread, away from the core of the requests; one file at a time in a process.

    Raises:
        Busy: another file is being read.
    """
    if not _reading().acquire(blocking=False):
        raise Busy(N_("Another file is being read. Try again in a moment."))
    try:
        return cpu_affinity.do(work, *arguments)
    finally:
        _reading().release()


def rows(raw: bytes) -> Iterator[Row]:
    """Yield the rows of a file that are not empty, without blanks and quotes around values.

    A damaged character is DAMAGED in its cell. Values of a workbook are as texts: times such as 2026-05-01 12:00:00,
    and numbers whose last digits the workbook has lost such as 2.02605011200001E+27.

    Raises:
        OperatorError: it is no such file, or too large.
    """
    if len(raw) > MOST_BYTES:
        raise OperatorError(N_("The file is larger than 64 MiB. Choose fewer days at a time."))
    for beginning, meaning in NO_TABLE.items():
        if raw.startswith(beginning):
            raise OperatorError(meaning)
    found = _of_workbook(raw) if raw.startswith(b"PK\x03\x04") else _of_text(text_of(raw))
    cells, ends = 0, time.monotonic() + MOST_SECONDS
    for count, (at, values) in enumerate(found):
        cells += len(values)
        if count >= MOST_ROWS or cells > MOST_CELLS or (not count % 1_000 and time.monotonic() > ends):
            raise OperatorError(N_("The file has too many rows. Choose fewer days at a time."))
        stripped = [value.strip(PADDING) for value in values]
        if any(stripped):
            yield at, stripped


# --- text


def text_of(raw: bytes) -> str:
    """Return the text of a file in UTF-8, UTF-16 or GB18030; bytes that are no character become DAMAGED.

    Raises:
        OperatorError: it is no text.
    """
    text = raw.decode(_encoding(raw), "replace").removeprefix("\ufeff")
    damaged = text.count(DAMAGED) + len(_CONTROL.findall(text))
    if damaged > max(20, len(text) // 50):
        raise OperatorError(N_("The file is neither a CSV file in UTF-8, UTF-16 or GBK nor an Excel workbook (.xlsx)."))
    return _CONTROL.sub(DAMAGED, text)


def _encoding(raw: bytes) -> str:
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    odd, even = raw[1:2_000:2].count(0), raw[:2_000:2].count(0)
    if max(odd, even) > len(raw[:2_000]) // 8:  # every digit, separator and line end has a zero byte
        return "utf-16-le" if odd > even else "utf-16-be"
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        # Text in GB18030 hardly ever looks like Chinese characters in UTF-8.
        text = raw.decode("utf-8", "replace")
        return "utf-8" if len(_CHINESE.findall(text)) > 4 * text.count(DAMAGED) else "gb18030"
    return "utf-8"


def _of_text(text: str) -> Iterator[Row]:
    """Yield the rows of a CSV text. Quotes that are not in pairs are part of their value, which is then DAMAGED."""
    separator, usual = _separator(text)
    lines = enumerate(io.StringIO(text, newline=None), start=1)
    ahead: list[tuple[int, str]] = []  # lines that were read to find the end of a quoted value
    while (line := ahead.pop(0) if ahead else next(lines, None)) is not None:
        at, whole = line[0], _bounded(*line)
        cells, more = _cells(whole, separator), 0
        while cells is None and whole.count('"') % 2 and more < QUOTED_LINES:
            if more == len(ahead) and (line := next(lines, None)) is not None:
                ahead.append((line[0], _bounded(*line)))
            if more == len(ahead):
                break
            whole += ahead[more][1]
            more += 1
            cells = _cells(whole, separator)
        if cells and more and any(cell.count(separator) >= usual for cell in cells):
            cells = None  # the quotes of two notes, with a whole row between them
        if cells is None:  # the quote is a part of its value, or the rest of the value is missing
            cells = [
                cell + DAMAGED if cell.count('"') % 2 else cell for cell in whole.split("\n", 1)[0].split(separator)
            ]
        else:
            del ahead[:more]
            at += more
        if len(cells) > 1 and all(cell.lstrip().startswith("`") for cell in cells[:2]):
            # WeChat: a backtick before each value allows separators in it.
            cells = re.split(rf"{separator}\s*`", separator.join(cells))
        yield at, cells


def _bounded(at: int, line: str) -> str:
    if len(line) > LONGEST_LINE or sum(map(line.count, SEPARATORS)) > 10 * MOST_COLUMNS:
        raise OperatorError(N_("Line %(line)s of the file is too long."), line=str(at))
    return line


def _cells(line: str, separator: str) -> list[str] | None:
    """Return the values of a line; None if its quotes are not in pairs around values."""
    try:
        return next(csv.reader(io.StringIO(line, newline=""), delimiter=separator, strict=True), [])
    except csv.Error:
        return None


def _separator(text: str) -> tuple[str, int]:
    """Return the separator that most lines have equally often, and how often."""
    lines = (_PADDED.sub("", line.rstrip("\n")) for line in io.StringIO(text, newline=None))
    head = list(islice(filter(None, lines), 500))

    def regular(separator: str) -> tuple[int, str, int]:
        counts = Counter(line.count(separator) for line in head)
        times, lines = max(counts.items(), key=lambda each: each[0] * each[1], default=(0, 0))
        return times * lines, separator, times

    _, separator, times = max(map(regular, SEPARATORS), key=lambda each: each[0])
    return separator, max(times, 1)


# --- workbooks


def _of_workbook(raw: bytes) -> Iterator[Row]:
    """Yield the rows of a workbook's only visible sheet with data."""
    try:
        packed = zipfile.ZipFile(io.BytesIO(raw))
        parts = packed.infolist()
        if "[Content_Types].xml" not in packed.namelist():
            raise OperatorError(N_("The file is a ZIP archive. Unpack it first."))
        if len(parts) > MOST_PARTS or sum(part.file_size for part in parts) > MOST_BYTES:
            raise OperatorError(TOO_LARGE)
        ends = time.monotonic() + MOST_SECONDS
        for part in parts:
            _refuse_odd(packed, part)
        # With defusedxml installed, openpyxl refuses entities.
        book = load_workbook(io.BytesIO(raw), read_only=True, data_only=True, keep_links=False)
        sheets = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
        # A row of fewer values can be no payment: a sheet without longer rows has remarks.
        filled = [sheet for sheet in sheets if any(sum(map(bool, values)) > 2 for _, values in _of_sheet(sheet, ends))]
        if len(filled) > 1:
            names = ", ".join(sheet.title[:40] for sheet in filled[:5])
            text = N_("The workbook has data on several sheets: %(names)s. Save the sheet of the statement alone.")
            raise OperatorError(text, names=names)
        for sheet in filled or sheets[:1]:
            yield from _of_sheet(sheet, ends)
    except OperatorError:
        raise
    except Exception as error:  # openpyxl has no error of its own for damaged workbooks
        log.info("Workbook without readable content: %r", error)
        raise OperatorError(DAMAGED_WORKBOOK) from error


def _refuse_odd(packed: zipfile.ZipFile, part: zipfile.ZipInfo) -> None:
    """Raise if openpyxl would need much memory or time for this part, or would leave out rows."""
    name = part.filename.casefold()
    with packed.open(part) as content:
        if name.startswith("xl/worksheets/"):
            _refuse_odd_rows(content)
        elif name.endswith("sharedstrings.xml"):
            tags = sum(block.count(b"<") for block in iter(lambda: content.read(2**20), b""))
            if tags > MOST_TAGS:
                raise OperatorError(TOO_LARGE)
        elif part.file_size > SETTINGS_BYTES and name.endswith((".xml", ".rels")) and "calcchain" not in name:
            raise OperatorError(TOO_LARGE)


def _refuse_odd_rows(content: IO[bytes]) -> None:
    """Raise if a row has too many cells, which openpyxl would build first, or does not follow the row before it.

    openpyxl leaves out rows whose number is not above that of the row before.
    """
    last = cells = 0
    rest = b""
    while block := content.read(2**20):
        text = rest + block
        if b"\0" in block:  # UTF-16, whose tags are not found here
            raise OperatorError(DAMAGED_WORKBOOK)
        end = max(text.rfind(b"<"), 0)  # a tag may continue in the next block
        for tag in _ROW_OR_CELL.finditer(text, 0, end):
            cells = cells + 1 if tag["cell"] else 0
            number = int(tag["number"] or last + 1) if not tag["cell"] else last
            if cells > MOST_COLUMNS or not (tag["cell"] or last < number <= LAST_OF_SHEET):
                raise OperatorError(N_("Line %(line)s of the file is too long."), line=str(number))
            last = number
        rest = text[end:]


def _of_sheet(sheet: Any, ends: float) -> Iterator[Row]:
    """Yield the rows with values; raise if the time is over, because rows and sheets without values take time too."""
    sheet.reset_dimensions()  # files declare wrong ones
    for at, cells in enumerate(sheet.iter_rows(), start=1):  # rows that the file leaves out are empty tuples
        values = [_text(cell) for cell in cells]
        if time.monotonic() > ends:
            raise OperatorError(TOO_LARGE)
        while values and not values[-1]:
            values.pop()
        if len(values) > MOST_COLUMNS or at > LAST_OF_SHEET:
            raise OperatorError(N_("Line %(line)s of the file is too long."), line=str(at))
        if values:
            yield at, values


def _text(cell: Any) -> str:
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, datetime):
        is_day = value.time() == datetime.min.time() and "h" not in str(cell.number_format).lower()
        return f"{value:%Y-%m-%d}" if is_day else f"{value + timedelta(milliseconds=500):%Y-%m-%d %H:%M:%S}"
    if isinstance(value, date):
        return f"{value:%Y-%m-%d}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        # A number cell keeps 15 digits.
        number = f"{value:.14E}" if abs(value) >= 10**15 else f"{value:.15g}"
        # A format with a currency, a scale or per cent changes what the number says.
        shown = str(cell.number_format)
        return f"{number} {shown[:40]}" if _CHANGES.search(_YUAN.sub("", shown)) else number
    return unicodedata.normalize("NFC", str(value))
