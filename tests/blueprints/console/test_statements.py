"""Monthly statements: the page, its days and lines, and the file."""

import csv
import io
import re
import zipfile
from datetime import datetime, timedelta, timezone

import pytest

from models.tables.merchant import PROPORTIONAL, Merchant
from services.ledger import day_sums, monthly_statement
from services.sandbox import seeded_orders
from tests.blueprints.console.acting import token_of
from tests.refunds import allow, refunded
from tests.support import completed

CHINA = timezone(timedelta(hours=8))
MAY = "statements/?merchant=demo&month=2026-05"


@pytest.fixture(autouse=True)
def may(time_machine):
    """Noon on 2 May 2026 in China."""
    time_machine.move_to(datetime(2026, 5, 2, 12, tzinfo=CHINA), tick=False)


@pytest.fixture
def sums(page):
    """`sums()`: the amounts of the summary, by label."""

    def read(path=MAY, **more):
        html = page(path, **more).html.partition('class="card statement"')[2].partition("</table>")[0]
        rows = [row.partition("</th>") for row in html.split('<th scope="row">')[1:]]
        return {label: rest.rpartition("<td")[2].partition(">")[2].partition("<")[0] for label, _, rest in rows}

    return read


@pytest.fixture
def file(export):
    """`file("2026-05")`: the rows of the statement's file."""

    def read(month, **more):
        answer = export(f"statements/export?merchant=demo&month={month}", **more)
        assert answer.status_code == 200, answer.text
        return list(csv.DictReader(io.StringIO(answer.data.decode("utf-8-sig"))))

    return read


def test_the_page_has_balances_movements_and_days_with_their_lines(sums, page, api, flask):
    order_no = completed(api)
    api.sell("50.00", channel=3)
    flask("ledger", "adjust", "demo", "-12.50", "--reason", "bank fee")
    assert sums() == {
        "Opening balance": "10,000.00",
        "Deposits": "100.00",
        "Withdrawals": "0.00",
        "Refunds": "0.00",
        "Exceptions": "0.00",
        "Adjustments": "-12.50",
        "Fees": "-0.60",
        "Closing balance": "10,086.90",
        "of which available": "10,036.75",
        "of which reserved": "50.15",
    }
    shown = page(f"{MAY}&day=2026-05-02")
    (row,) = [row for row in shown.rows if "Day" in row]
    assert [*filter(None, row.values())] == [
        *("2026-05-02", "100.00 1 line", "-12.50 1 line"),
        *("-0.60", "86.90", "10,086.90"),
    ]
    assert [
        tuple(row[name] for name in ("Time (China)", "Type", "Change (¥)", "Balance (¥)"))
        for row in shown.rows
        if "Type" in row
    ] == [
        ("12:00:00", "Deposit credited", "99.40", "10,099.40"),
        ("12:00:00", "Adjustment bank fee", "-12.50", "10,086.90"),
    ]
    assert shown.links[order_no] == f"/console/order/{order_no}"


def test_the_file_has_all_lines_between_its_balances(file):
    seeded_orders.seed_orders(300)
    month = "2026-03"
    opening, *lines, closing, held = file(month)
    shown = monthly_statement.of(Merchant.get(key="demo"), monthly_statement.month_of(month))
    assert [(row["Type"], row["Balance (¥)"]) for row in (opening, closing, held)] == [
        ("Opening balance", f"{shown.opening / 100:.2f}"),
        ("Closing balance", f"{shown.closing / 100:.2f}"),
        ("of which reserved", f"{shown.held / 100:.2f}"),
    ]
    fen = [int(line["Change (¥)"].replace(".", "")) for line in lines]
    assert (len(fen) > 10, shown.opening + sum(fen)) == (True, shown.closing)
    assert closing["Change (¥)"] == f"{sum(fen) / 100:.2f}"
    assert {line["Time (China)"][-6:] for line in lines} == {"+08:00"}


def test_refunds_have_a_line_a_column_and_a_section_of_their_own(sums, page, api, file):
    allow(fees=PROPORTIONAL)
    order_no = completed(api)
    refunded(api, order_no, "40.00")
    shown = sums()
    assert (shown["Refunds"], shown["Fees"], shown["Closing balance"]) == ("-40.00", "-0.36", "10,059.64")
    month = page(f"{MAY}&day=2026-05-02")
    section = month.html.partition('id="refunds"')[2].partition("</table>")[0]
    assert re.findall(r'scope="row">([^<]+)</th><td[^>]*></td><td class="money">([^<]+)<', section) == [
        ("Number of refunds", "1"),
        ("Refunded to payers", "40.00"),
        ("Fees returned", "0.24"),
        ("Deducted", "39.76"),
    ]
    (row,) = [row for row in month.rows if "Day" in row]
    assert row["Refunds"] == "-40.00 1 line"
    (line,) = [row for row in month.rows if row.get("Type") == "Deposit refunded"]
    assert (line["Amount before fees (¥)"], line["Fees (¥)"], line["Change (¥)"]) == ("-40.00", "0.24", "-39.76")
    assert month.links[order_no] == f"/console/order/{order_no}"
    *_, closing, held, refunds = file("2026-05")
    assert (closing["Balance (¥)"], held["Balance (¥)"]) == ("10059.64", "0.00")
    assert closing["Memo"] == "Number of lines: Deposits: 1; Refunds: 1"
    assert refunds["Memo"] == "Number of refunds: 1"
    assert [refunds[name] for name in ("Type", "Amount before fees (¥)", "Fees (¥)", "Change (¥)")] == [
        "Refunds",
        "-40.00",
        "0.24",
        "-39.76",
    ]


def test_the_last_month_is_the_default_and_each_page_links_to_it(page, console):
    shown = page("statements/")
    assert (shown.fields["merchant"], shown.fields["month"]) == ("demo", "2026-04")
    merchant = page("merchant/demo")
    assert merchant.links["All statements"] == "/console/statements/?merchant=demo"
    assert merchant.sends["Download statement of 2026-04"] == "/console/statements/export?merchant=demo"
    assert page("ledger/").links["Statement"].startswith("/console/statements/?merchant=")
    button, of_all = re.findall(r"<button[^>]+formaction[^>]+>", shown.html)
    assert 'formmethod="post" formaction="/console/statements/export"' in button
    assert 'formmethod="post" formaction="/console/statements/export/all"' in of_all
    chosen = {"csrf_token": token_of(console), "merchant": "demo", "month": "2026-03"}
    sent = console.post("/console/statements/export", data=chosen).headers["Content-Disposition"]
    assert "statement-demo-2026-03.csv" in sent, "the month that is selected, not the one that is shown"
    assert ("until now" in page(MAY).html, "until now" in shown.html) == (True, False)
    assert "Nothing was credited or deducted in this month." in page(MAY).html
    assert "on this day" in page(f"{MAY}&day=2026-05-02").html
    for path in (
        "statements/?merchant=nobody",
        "statements/?month=2026-13",
        "statements/?month=2027-01",
        "statements/?month=x",
    ):
        page(path, status=404)


def test_a_month_in_the_future_has_no_statement(console, flask, tmp_path):
    assert console.get("/console/statements/?merchant=demo&month=2026-06").status_code == 404
    for command in (("statement", "demo", "2026-06"), ("statements", "2026-06", tmp_path / "all.zip")):
        assert "The month is in the future." in flask("merchant", *command, fails=True).output
    assert not (tmp_path / "all.zip").exists()


@pytest.fixture
def packed(export):
    """`packed("2026-05")`: the files of the ZIP with all statements, by name."""

    def read(month, **more):
        answer = export(f"statements/export/all?month={month}", **more)
        assert (answer.status_code, answer.content_type) == (200, "application/zip"), answer.text
        assert f"statements-{month}.zip" in answer.headers["Content-Disposition"]
        with zipfile.ZipFile(io.BytesIO(answer.data)) as found:
            assert found.testzip() is None
            return {name: found.read(name).decode("utf-8-sig") for name in found.namelist()}

    return read


def test_all_merchants_of_a_month_are_one_zip_with_a_summary(packed, export, viewer, page, api, flask, monkeypatch):
    completed(api)
    flask("merchant", "set", "demo", "--name", "商户: 1/2")
    files = packed("2026-05", client=viewer)
    own = export("statements/export?merchant=demo&month=2026-05").data.decode("utf-8-sig")
    assert files["statement-2026-05-demo-商户 1 2.csv"] == own
    summary = {row["Merchant key"]: row for row in csv.DictReader(io.StringIO(files["summary.csv"]))}
    assert len(summary) == len(files) - 1
    row = summary["demo"]
    assert (row["Merchant"], row["Deposits"], row["Number of deposits"]) == ("商户: 1/2", "100.00", "1")
    assert (row["Opening balance"], row["Closing balance"]) == ("10000.00", "10099.40")
    assert "downloaded the statements of all merchants" in page("audit/").html
    monkeypatch.setattr(day_sums, "MOST", 0)
    waits = export("statements/export/all?month=2026-05")
    assert (waits.status_code, waits.location) == (303, "/console/statements/?month=2026-05")
    assert export("statements/export/all?month=2026-06").status_code == 404


def test_the_printed_page_has_a_letterhead_and_places_for_stamps(page, console, viewer):
    shown = page(MAY).html
    head = shown.partition('class="letterhead"')[2].partition("</section>")[0]
    facts = {name: re.sub("<[^>]+>", "", value) for name, value in re.findall(r"<dt>([^<]+)</dt><dd>(.+?)</dd>", head)}
    assert facts == {
        "Merchant": "Demo Shop 演示商户 (demo)",
        "Statement number": "demo-202605",
        "Statement period": "2026-05-01 to 2026-05-02 (until now)",
        "Issued on": "2026-05-02 12:00",
        "Opening balance": "¥10,000.00",
        "Closing balance": "¥10,000.00",
    }
    assert shown.count('class="stamp"') == 2
    assert "Set issuer_name" in shown
    assert "Set issuer_name" not in page(MAY, client=viewer).html
    assert "2026-04-01 to 2026-04-30<" in page("statements/?merchant=demo&month=2026-04").html


@pytest.mark.parametrize("settings_of_app", [{"issuer_name": "示例支付 <有限公司>", "issuer_details": "北京 | 电话 1"}])
def test_the_letterhead_has_the_issuer_of_the_settings(page):
    shown = page(MAY).html
    assert "<b>示例支付 &lt;有限公司&gt;</b><br>北京<br>电话 1</p>" in shown
    assert "Set issuer_name" not in shown


def test_a_viewer_may_download_it_once_the_sums_of_many_new_entries_are_ready(file, viewer, page, api, monkeypatch):
    completed(api)
    monkeypatch.setattr(day_sums, "MOST", 0)
    assert "The statement is being prepared." in page(MAY, status=503).html
    day_sums.complete()
    page(MAY)
    assert len(file("2026-05", client=viewer)) == 4
    assert "downloaded a statement of" in page("audit/").html
