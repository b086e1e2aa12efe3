"""Rows of table files: encodings, separators, quotes, workbooks, and files that are too large."""

import io
import zipfile
from datetime import date, datetime

import pytest
from openpyxl import Workbook

from services.errors import OperatorError
from services.statements import tables

TEXT = "交易时间,流水号,收入金额,附言\n2026-11-25 10:00:00,B1,60.14,订单 1001\n2026-11-25 11:00:00,B2,7.00,谢谢\n"
CELLS = [
    ["交易时间", "流水号", "收入金额", "附言"],
    ["2026-11-25 10:00:00", "B1", "60.14", "订单 1001"],
    ["2026-11-25 11:00:00", "B2", "7.00", "谢谢"],
]


SHEET = "xl/worksheets/sheet1.xml"


def cells(raw):
    return [values for _, values in tables.rows(raw if isinstance(raw, bytes) else raw.encode())]


def workbook(*rows, sheets=()):
    book = Workbook()
    for row in rows:
        book.active.append(row)
    for title, state in sheets:
        sheet = book.create_sheet(title)
        sheet.append(["x", "y", "z"])
        sheet.sheet_state = state
    raw = io.BytesIO()
    book.save(raw)
    return raw.getvalue()


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "gbk", "gb18030"])
def test_text_is_read_in_each_encoding_with_each_separator(encoding, line_end, separator):
    assert cells(TEXT.replace(",", separator).replace("\n", line_end).encode(encoding)) == CELLS


@pytest.mark.parametrize("encoding", ["utf-8", "gbk"])
def test_a_damaged_character_costs_its_cell_only(encoding):
    raw = TEXT.encode(encoding)
    at = raw.index("谢".encode(encoding))
    found = cells(raw[: at + 1] + b"\xff" + raw[at + 2 :])
    assert found[:2] == CELLS[:2]
    assert found[2][:3] == CELLS[2][:3]
    assert tables.DAMAGED in found[2][3]


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


@pytest.mark.parametrize(
    "rows",
    [
        ['B1,1.00,"hello', 'B2,2.00,bye"'],
        ['"hello,B1,1.00', 'bye",B2,2.00'],
        ['B1,"hello,1.00', 'B2,bye",2.00'],
        ['B1,1.00,"hello', "B2,2.00,x", 'B3,3.00,bye"'],
    ],
)
def test_no_row_disappears_between_the_quotes_of_two_notes(rows):
    text = "a,b,c\n" + "\n".join(rows) + "\n"
    found = list(tables.rows(text.encode()))
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
    raw = io.BytesIO()
    book.save(raw)
    assert cells(raw.getvalue())[1:] == [
        ["2026-11-02 09:05:07", "2026-11-02", "4200001", "0.3"],
        ["46328.378", "46328", "2.02611021234568E+21", "1060", "True"],
    ]


def test_hidden_sheets_are_no_statement():
    assert cells(workbook(["a", "b"], sheets=[("list", "hidden"), ("dictionary", "veryHidden")])) == [["a", "b"]]


def test_data_on_two_sheets_is_refused():
    with pytest.raises(OperatorError, match=r"several sheets: Sheet, more\."):
        cells(workbook(["a", "b", "c"], sheets=[("more", "visible")]))


def test_a_sheet_of_remarks_does_not_count():
    book = Workbook()
    book.active.append(["Downloaded", "today"])
    book.create_sheet("bills").append(["a", "b", "c"])
    raw = io.BytesIO()
    book.save(raw)
    assert cells(raw.getvalue()) == [["a", "b", "c"]]


@pytest.mark.parametrize(
    ("number_format", "text"),
    [
        *[(each, "60.5") for each in ("General", "0.00", "#,##0.00", "¥#,##0.00", "[$¥-804]#,##0.00", "[$-804]0.00")],
        *[
            (each, "60.5")
            for each in ('_ "¥"* #,##0.00_ ;_ "¥"* -#,##0.00_ ;_ "¥"* "-"??_ ;_ @_ ', "#,##0.00_);[Red](#,##0.00)")
        ],
        *[
            (each, f"60.5 {each}")
            for each in (
                "[$$-409]#,##0.00",
                '0.00"美元";0',
                '0.00"万元";0',
                '"CAD "0.00',
                "#,##0.00 [$€-407]",
                "#,##0.00,",
                "0.00%",
                '"US$"0.00',
            )
        ],
    ],
)
def test_a_number_with_a_format_that_changes_it_is_no_plain_number(number_format, text):
    book = Workbook()
    book.active["A1"] = 60.5
    book.active["A1"].number_format = number_format
    raw = io.BytesIO()
    book.save(raw)
    assert cells(raw.getvalue()) == [[text]]


@pytest.mark.parametrize(
    "rows", [b'<row r="2">' + b"<c><v>1</v></c>" * 300_000 + b"</row>", b'<row r="1"><c><v>1</v></c></row>']
)
def test_a_row_that_openpyxl_would_build_first_or_leave_out_is_refused(rows):
    raw = replaced(workbook(["a"]), SHEET, lambda content: content.replace(b"</sheetData>", rows + b"</sheetData>"))
    with pytest.raises(OperatorError, match="of the file is too long"):
        cells(raw)


def test_a_sheet_may_declare_wrong_dimensions():
    raw = workbook(["a", "b"], ["c", "d"])
    assert cells(replaced(raw, SHEET, lambda content: content.replace(b'ref="A1:B2"', b'ref="A1:A1"'))) == [
        ["a", "b"],
        ["c", "d"],
    ]


def packed(**parts):
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name.replace("__", "/"), content)
    return raw.getvalue()


def replaced(raw, name, change):
    """The workbook with a changed part."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(made, "w") as new:
        for part in old.infolist():
            content = old.read(part)
            new.writestr(part.filename, change(content) if part.filename == name else content)
    return made.getvalue()


def with_entities():
    doctype = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
    return replaced(workbook(["text"]), SHEET, lambda content: doctype + content.replace(b"text", b"&b;"))


def with_styles(number):
    return replaced(
        workbook(["a"]), "xl/styles.xml", lambda content: content.replace(b"<xf ", b"<xf/>" * number + b"<xf ")
    )


def with_texts(number):
    made = io.BytesIO(workbook(["a"]))
    with zipfile.ZipFile(made, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/SharedStrings.xml", "<sst>" + "<si/>" * number + "</sst>")
    return made.getvalue()


def in_utf_16():
    return replaced(workbook(["a"]), SHEET, lambda content: content.decode().encode("utf-16"))


def elsewhere():
    """A workbook whose sheet is at an unusual place, with a row of many cells."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(workbook(["a"]))) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.infolist():
            content = old.read(part).replace(b"/xl/worksheets/", b"/xl/sheets/")
            row = b'<row r="2">' + b"<c><v>1</v></c>" * 80_000 + b"</row></sheetData>"
            name = part.filename.replace("/worksheets/", "/sheets/")
            new.writestr(name, content.replace(b"</sheetData>", row))
    return made.getvalue()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: with_styles(220_000), "too large"),
        (lambda: with_texts(2_000_001), "too large"),
        (elsewhere, "too large"),
        (in_utf_16, "damaged"),
        (lambda: b"PK\x03\x04" + bytes(100), "damaged"),
        (lambda: workbook(["a"])[:-200], "damaged"),
        (with_entities, "damaged"),
        (lambda: packed(bills="a,b\n"), "ZIP archive"),
        (lambda: packed(**{"[Content_Types].xml": "<x/>", "big": bytes(65 * 2**20)}), "too large"),
        (lambda: packed(**{"[Content_Types].xml": "<x/>", **{str(at): "" for at in range(1_001)}}), "too large"),
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
    book.active["A1"], book.active["A1048576"] = "a", "z"
    raw = io.BytesIO()
    book.save(raw)
    assert [at for at, _ in tables.rows(raw.getvalue())] == [1, 1_048_576]


def test_rows_without_values_cost_no_unlimited_time(monkeypatch):
    row = b'<row r="2"><c r="ZZZ2"/></row></sheetData>'
    raw = replaced(workbook(["a"]), SHEET, lambda content: content.replace(b"</sheetData>", row))
    assert cells(raw) == [["a"]]
    monkeypatch.setattr(tables, "MOST_SECONDS", -1)
    with pytest.raises(OperatorError, match="too large"):
        cells(raw)


def test_a_tag_that_never_ends_costs_no_time():
    raw = replaced(workbook(["a"]), SHEET, lambda content: content.replace(b"</sheetData>", b"<row " * 1_000_000))
    with pytest.raises(OperatorError, match="damaged"):
        cells(raw)


def test_a_row_that_no_sheet_can_have_is_refused():
    raw = replaced(workbook(["a"], ["b"]), SHEET, lambda content: content.replace(b'r="2"', b'r="9999999999"'))
    with pytest.raises(OperatorError):
        cells(raw)


def test_one_file_is_read_at_a_time(app):
    def second():
        with pytest.raises(OperatorError, match="Another file is being read"):
            tables.alone(cells, b"a,b\n")
        return "read"

    assert tables.alone(second) == "read"
    assert tables.alone(cells, b"a,b\n") == [["a", "b"]]
