"""Rows of table files: encodings, separators, quotes, workbooks, and files that are too large."""

import io
from datetime import date, datetime
from itertools import product

import pytest
from openpyxl import Workbook

from services.errors import OperatorError
from services.statements import tables
from tests.bank_files.layouts import SHEET, parts_of, zipped

TEXT = "交易时间,流水号,收入金额,附言\n2026-11-25 10:00:00,B1,60.14,订单 1001\n2026-11-25 11:00:00,B2,7.00,谢谢\n"
CELLS = [
    ["交易时间", "流水号", "收入金额", "附言"],
    ["2026-11-25 10:00:00", "B1", "60.14", "订单 1001"],
    ["2026-11-25 11:00:00", "B2", "7.00", "谢谢"],
]


def cells(raw):
    return [values for _, values in tables.rows(raw if isinstance(raw, bytes) else raw.encode())]


def saved(book):
    raw = io.BytesIO()
    book.save(raw)
    return raw.getvalue()


def workbook(*rows, sheets=()):
    book = Workbook()
    for row in rows:
        book.active.append(row)
    for title, state in sheets:
        sheet = book.create_sheet(title)
        sheet.append(["x", "y", "z"])
        sheet.sheet_state = state
    return saved(book)


def changed(raw, old, new, part=SHEET):
    """The workbook with a changed text in one of its files."""
    parts = parts_of(raw)
    assert old in parts[part]
    return zipped(parts | {part: parts[part].replace(old, new)})


END = b"</sheetData>"


# Text


def test_text_is_read_in_each_encoding_with_each_separator_and_line_end():
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "gbk", "gb18030"):
        for separator, line_end in product((",", ";", "\t"), ("\n", "\r\n", "\r")):
            raw = TEXT.replace(",", separator).replace("\n", line_end).encode(encoding)
            assert cells(raw) == CELLS, (encoding, separator, line_end)


def test_a_damaged_character_costs_its_cell_only():
    for encoding in ("utf-8", "gbk"):
        raw = TEXT.encode(encoding)
        at = raw.index("谢".encode(encoding))
        *intact, (*others, note) = cells(raw[: at + 1] + b"\xff" + raw[at + 2 :])
        assert (intact, others, tables.DAMAGED in note) == (CELLS[:2], CELLS[2][:3], True)


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ('B1,"say ""hi"", please",1.00', ["B1", 'say "hi", please', "1.00"]),
        ('B1,5" screen,1.00', ["B1", '5" screen', "1.00"]),
        ('B1,"urgent" payment,1.00', ["B1", 'urgent" payment', "1.00"]),
        ('B1,"never closed,1.00', ["B1", "never closed\ufffd", "1.00"]),
        ('B1,"two\nlines",1.00', ["B1", "two\nlines", "1.00"]),
        ("`B1,`a, b,`1.00", ["B1", "a, b", "1.00"]),
        ('`B1,"`say ""a"",\nb",`1.00', ["B1", 'say "a",\nb', "1.00"]),
        ("B1\t,a\t,1.00\t", ["B1", "a", "1.00"]),
        ('="B1",a,\'1.00', ["B1", "a", "1.00"]),
    ],
)
def test_quotes_and_separators_inside_a_value(line, values):
    assert cells(f"流水号,附言,金额\n{line}\nB2,x,2.00\nB3,y,3.00\n")[1:] == [
        values,
        ["B2", "x", "2.00"],
        ["B3", "y", "3.00"],
    ]


def test_no_row_disappears_between_the_quotes_of_two_notes():
    for rows in (
        ['B1,1.00,"hello', 'B2,2.00,bye"'],
        ['"hello,B1,1.00', 'bye",B2,2.00'],
        ['B1,"hello,1.00', 'B2,bye",2.00'],
        ['B1,1.00,"hello', "B2,2.00,x", 'B3,3.00,bye"'],
    ):
        found = list(tables.rows(("a,b,c\n" + "\n".join(rows) + "\n").encode()))
        assert [at for at, _ in found] == list(range(1, len(rows) + 2))
        assert tables.DAMAGED in str(found[1])


def test_a_row_is_known_by_its_line_in_the_file():
    assert [at for at, _ in tables.rows(b'a,b\n\n1,"x\ny"\n2,z\n')] == [1, 4, 5]


def test_a_workbook_has_its_values_as_texts():
    book = Workbook()
    sheet = book.active
    sheet.append(["交易时间", "日期", "流水号", "金额", "附言"])
    sheet.append([datetime(2026, 11, 2, 9, 5, 7), date(2026, 11, 2), 4_200_001, 0.1 + 0.2, None])
    sheet.append([46_328.378, 46_328, 2_026_110_212_345_678_901_234, 1_060, True])
    sheet["B2"].number_format = "yyyy-mm-dd"
    assert cells(saved(book))[1:] == [
        ["2026-11-02 09:05:07", "2026-11-02", "4200001", "0.3"],
        ["46328.378", "46328", "2.02611021234568E+21", "1060", "True"],
    ]


def test_only_one_visible_sheet_has_a_table():
    hidden = [("list", "hidden"), ("dictionary", "veryHidden")]
    assert cells(workbook(["a", "b"], sheets=hidden)) == [["a", "b"]]
    assert cells(workbook(["Downloaded", "today"], sheets=[("bills", "visible")])) == [["x", "y", "z"]]
    with pytest.raises(OperatorError, match=r"several sheets: Sheet, more\."):
        cells(workbook(["a", "b", "c"], sheets=[("more", "visible")]))


def test_a_number_with_a_format_that_changes_it_is_no_plain_number():
    plain = [
        *("General", "0.00", "#,##0.00", "¥#,##0.00", "[$¥-804]#,##0.00", "[$-804]0.00"),
        *('_ "¥"* #,##0.00_ ;_ "¥"* -#,##0.00_ ;_ "¥"* "-"??_ ;_ @_ ', "#,##0.00_);[Red](#,##0.00)"),
    ]
    changing = [
        *("[$$-409]#,##0.00", '0.00"美元";0', '0.00"万元";0', '"CAD "0.00', "#,##0.00 [$€-407]", "#,##0.00,"),
        *("0.00%", '"US$"0.00'),
    ]
    book = Workbook()
    for row, number_format in enumerate([*plain, *changing], 1):
        cell = book.active.cell(row, 1, 60.5)
        cell.number_format = number_format
    assert cells(saved(book)) == [["60.5"]] * len(plain) + [[f"60.5 {each}"] for each in changing]


@pytest.mark.parametrize(
    "rows", [b'<row r="2">' + b"<c><v>1</v></c>" * 300_000 + b"</row>", b'<row r="1"><c><v>1</v></c></row>']
)
def test_a_row_that_openpyxl_would_build_first_or_leave_out_is_refused(rows):
    with pytest.raises(OperatorError, match="of the file is too long"):
        cells(changed(workbook(["a"]), END, rows + END))


def test_a_sheet_may_declare_wrong_dimensions():
    raw = workbook(["a", "b"], ["c", "d"])
    assert cells(changed(raw, b'ref="A1:B2"', b'ref="A1:A1"')) == [["a", "b"], ["c", "d"]]


# Files that are no table or too large


def with_entities():
    doctype = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
    parts = parts_of(workbook(["text"]))
    return zipped(parts | {SHEET: doctype + parts[SHEET].replace(b"text", b"&b;")})


def with_texts(number):
    return zipped(parts_of(workbook(["a"])) | {"xl/SharedStrings.xml": "<sst>" + "<si/>" * number + "</sst>"})


def in_utf_16():
    parts = parts_of(workbook(["a"]))
    return zipped(parts | {SHEET: parts[SHEET].decode().encode("utf-16")})


def elsewhere():
    """A workbook whose sheet is at an unusual place, with a row of many cells."""
    row = b'<row r="2">' + b"<c><v>1</v></c>" * 80_000 + b"</row></sheetData>"
    return zipped(
        {
            name.replace("/worksheets/", "/sheets/"): part.replace(b"/xl/worksheets/", b"/xl/sheets/").replace(END, row)
            for name, part in parts_of(workbook(["a"])).items()
        }
    )


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: changed(workbook(["a"]), b"<xf ", b"<xf/>" * 220_000 + b"<xf ", "xl/styles.xml"), "too large"),
        (lambda: with_texts(2_000_001), "too large"),
        (elsewhere, "too large"),
        (in_utf_16, "damaged"),
        (lambda: b"PK\x03\x04" + bytes(100), "damaged"),
        (lambda: workbook(["a"])[:-200], "damaged"),
        (with_entities, "damaged"),
        (lambda: zipped({"bills": "a,b\n"}), "ZIP archive"),
        (lambda: zipped({"[Content_Types].xml": "<x/>", "big": bytes(65 * 2**20)}), "too large"),
        (lambda: zipped({"[Content_Types].xml": "<x/>", **{str(at): "" for at in range(1_001)}}), "too large"),
        (lambda: workbook(range(300)), "Line 1 of the file is too long"),
        (lambda: b"\x1f\x8b" + bytes(100), "compressed"),
        (lambda: b"\xd0\xcf\x11\xe0" + bytes(100), r"old Excel workbook \(\.xls\)"),
        (lambda: b"%PDF-1.7 ...", "PDF"),
        (lambda: b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9, "neither a CSV file"),
        (lambda: bytes(5_000), "neither a CSV file"),
        (lambda: b"a,b\n" + b"x" * 200_000, "Line 2 of the file is too long"),
        (lambda: b"," * 2_600_000, "Line 1 of the file is too long"),
        (lambda: b"x" * (tables.MOST_BYTES + 1), "larger than 64 MiB"),
    ],
)
def test_a_file_that_is_no_table_or_too_large_is_refused(make, words):
    raw = make()
    with pytest.raises(OperatorError, match=words):
        cells(raw)


def test_more_rows_than_can_be_read_are_refused(monkeypatch):
    monkeypatch.setattr(tables, "MOST_ROWS", 2)
    with pytest.raises(OperatorError, match="too many rows"):
        cells("a,b\nc,d\ne,f\n")


def test_a_row_far_below_the_others_costs_no_time():
    book = Workbook()
    book.active["A1"], book.active["A200000"] = "a", "z"
    assert [at for at, _ in tables.rows(saved(book))] == [1, 200_000]


def test_rows_without_values_cost_no_unlimited_time(monkeypatch):
    raw = changed(workbook(["a"]), END, b'<row r="2"><c r="ZZZ2"/></row>' + END)
    assert cells(raw) == [["a"]]
    monkeypatch.setattr(tables, "MOST_SECONDS", -1)
    with pytest.raises(OperatorError, match="too large"):
        cells(raw)


@pytest.mark.parametrize(
    ("old", "new"),
    [(END, b"<row " * 200_000), (b'r="2"', b'r="9999999999"')],
    ids=["a tag that never ends", "a row that no sheet can have"],
)
def test_a_damaged_sheet_is_refused(old, new):
    with pytest.raises(OperatorError):
        cells(changed(workbook(["a"], ["b"]), old, new))


def test_one_file_is_read_at_a_time(app):
    def second():
        with pytest.raises(OperatorError, match="Another file is being read"):
            tables.alone(cells, b"a,b\n")
        return "read"

    assert tables.alone(second) == "read"
    assert tables.alone(cells, b"a,b\n") == [["a", "b"]]
