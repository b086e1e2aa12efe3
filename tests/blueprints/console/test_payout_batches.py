"""Bank files of payouts: their content, and the import of the bank's result."""

import csv
import html
import io
import re
import time

import pytest

from models.tables.operator import AuditEntry
from models.tables.payout_batch import PayoutBatchLine
from services.security import operators
from tests.blueprints.console.reading import Shown

MANUAL, ACCOUNT = 3, "6222020000000000017"


@pytest.fixture
def accepted(api, flask):
    """`accepted("10.00", "20.00")`: the numbers of approved withdrawals on the manual channel."""

    def made(*amounts, channel=MANUAL):
        numbers = [api.sell(each, channel=channel).data["order_no"] for each in amounts]
        for order_no in numbers:
            flask("order", "accept", order_no)
        return numbers

    return made


@pytest.fixture
def statuses(api):
    """`statuses(numbers)`: their statuses."""
    return lambda numbers: [api.status(order_no) for order_no in numbers]


@pytest.fixture
def create(send):
    """`create(numbers, "icbc")`: the path of the new batch's page."""

    def made(numbers, template="generic"):
        answer = send("payouts/batch", order_no=numbers, template=template)
        assert answer.status_code == 303
        return answer.location.removeprefix("/console/")

    return made


@pytest.fixture
def download(send):
    """`download(path)`: the bytes of the batch's file."""

    def read(path):
        answer = send(f"{path}/file")
        assert answer.status_code == 200
        return answer.data

    return read


@pytest.fixture
def upload(send):
    """`upload(path, content)`: the response to a bank's file."""
    return lambda path, content: send(f"{path}/upload", file=(io.BytesIO(content), "result.csv"))


@pytest.fixture
def result(upload):
    """`result(path, rows)`: the page with what a bank's file would change."""

    def shown(path, rows, encoding="gb18030"):
        text = io.StringIO()
        csv.writer(text).writerows(rows)
        return upload(path, text.getvalue().encode(encoding))

    return shown


@pytest.fixture
def record(send):
    """`record(path, page)`: confirm what the page shows."""

    def confirmed(path, page, client=None):
        rows = [html.unescape(row) for row in re.findall(r'name="row" value="([^"]*)"', page.text)]
        return send(f"{path}/result/upload", row=rows, **({"client": client} if client else {}))

    return confirmed


def table(content, encoding="utf-8-sig"):
    return list(csv.reader(io.StringIO(content.decode(encoding))))


def log(*actions):
    rows = AuditEntry.select().where(AuditEntry.action.in_(actions)).order_by(AuditEntry.id)
    return [(row.action, row.key) for row in rows]


def test_a_file_has_each_payout_with_its_payee_and_a_number(accepted, create, download):
    numbers = accepted("10.00", "2000.50")
    content = download(create(numbers))
    assert content.startswith(b"\xef\xbb\xbf")
    header, *rows = table(content)
    assert header == ["编号", "订单号", "收款户名", "收款账号", "开户行", "支行", "金额", "备注"]
    assert rows == [
        ["P1-1", numbers[0], "张三", ACCOUNT, "Demo Bank", "Main Street", "10.00", "P1-1"],
        ["P1-2", numbers[1], "张三", ACCOUNT, "Demo Bank", "Main Street", "2000.50", "P1-2"],
    ]
    assert log("create batch", "download batch", "reveal") == [
        ("create batch", "1"),
        ("download batch", "1"),
        *(("reveal", order_no) for order_no in numbers),
    ]


def test_alipays_file_has_its_two_headings_in_gbk(accepted, create, download):
    numbers = accepted("10.00", "2.50")
    heading, sums, header, *rows = table(download(create(numbers, "alipay")), "gbk")
    assert heading == ["批次号", "付款日期", "付款人email", "账户名称", "总金额（元）", "总笔数"]
    assert (11 <= len(sums[0]) <= 32, sums[4:]) == (True, ["12.50", "2"])
    assert header == ["商户流水号", "收款人email", "收款人姓名", "付款金额（元）", "付款理由"]
    assert rows[0] == ["P1-1", ACCOUNT, "张三", "10.00", numbers[0]]


@pytest.mark.parametrize("template", ["icbc", "cmb"])
def test_a_banks_file_has_account_name_amount_and_number(accepted, create, download, template):
    header, row = table(download(create(accepted("10.00"), template)), "gbk")
    named = dict(zip(header, row, strict=True))
    assert named["收款账号"] == ACCOUNT
    assert named["金额"] == "10.00"
    assert "P1-1" in row


def test_a_name_is_not_run_as_a_formula(accepted, create, download, flask):
    flask("account", "add", "demo", "--card-number", "6222020000000000999", "--real-name", "=SUM(1)")
    _, row = table(download(create(accepted("10.00"))))
    assert row[2] == "'=SUM(1)"


def test_a_payout_is_in_one_open_file_only(page, accepted, create, console):
    numbers = accepted("10.00", "20.00")
    create(numbers[:1])
    shown = console.get("/console/payouts/batch", query_string={"order_no": numbers}).text
    assert re.findall(r'name="order_no" value="(\d+)"', shown) == numbers[1:]
    assert "It is already in batch 1." in shown
    assert create(numbers).startswith("payouts/batch"), "refused as a whole"
    assert [row["To do"] for row in page("payouts/?flt_state=send").rows] == ["Send manually Batch 1", "Send manually"]


def test_discarding_a_file_frees_its_payouts(accepted, create, send, download):
    numbers = accepted("10.00")
    first = create(numbers)
    assert send(f"{first}/discard").status_code == 303
    assert send(f"{first}/file").status_code == 303
    assert table(download(create(numbers)))[1][0] == "P2-1"
    assert log("discard batch") == [("discard batch", "1")]


def test_only_approved_payouts_of_one_manual_channel_are_exported(api, accepted, create, flask, flask_json):
    pending, at_channel = api.sell("1.00", channel=MANUAL).data["order_no"], accepted("2.00", channel=2)[0]
    for order_no in (pending, at_channel):
        assert create([order_no]).startswith("payouts/batch")
    new = (
        "channel",
        "add",
        "--name",
        "Second",
        "--driver",
        "manual",
        "--category",
        "gateway_c",
        "--pay-method",
        "bank",
    )
    channel = flask_json(*new)["id"]
    flask("channel", "link", str(channel), "demo")
    assert create([*accepted("3.00"), *accepted("4.00", channel=channel)]).startswith("payouts/batch")
    assert PayoutBatchLine.select().count() == 0


def test_the_banks_result_is_shown_and_then_recorded(accepted, create, result, record, statuses, order_details, page):
    numbers = accepted("10.00", "20.00", "30.00", "40.00", "50.00")
    path = create(numbers, "icbc")
    rows = [
        ["银行批量付款结果"],
        ["序号", "收款账号", "金额（元）", "备注", "处理状态", "银行流水号", "失败原因"],
        ["1", ACCOUNT, "10.00", numbers[0], "交易成功", "ICBC-1", ""],
        ["2", ACCOUNT, "20.00", "P1-2", "失败", "", f"户名不符 {ACCOUNT}"],
        ["3", ACCOUNT, "30.01", "P1-3", "成功", "ICBC-3", ""],
        ["4", ACCOUNT, "40.00", "P1-4", "银行处理中", "", ""],
        ["5", ACCOUNT, "50.00", "P9-5", "成功", "ICBC-5", ""],
    ]
    shown = result(path, rows)
    text = Shown(shown.text).text
    for expected in (
        "1 payout was sent · ¥10.00",
        "Paid out: 1",
        "Failed: 1",
        "Different amount: 1",
        "Result unclear: 1",
        "Not in this batch: 1",
    ):
        assert expected in text
    assert set(statuses(numbers)) == {"confirmed"}
    assert "2 results recorded." in record(path, shown).text
    assert statuses(numbers) == ["completed", *["confirmed"] * 4]
    assert order_details(numbers[0])["channel_reference"] == "ICBC-1"
    assert [line.reason for line in PayoutBatchLine.select().where(PayoutBatchLine.result == "failed")] == [
        "户名不符 ***"
    ]
    assert create([numbers[1]]) == "batch/2", "a failed payout can be exported again"


def test_importing_the_result_again_changes_nothing(accepted, create, result, record, balances, exceptions):
    path = create(accepted("10.00", "20.00"))
    rows = [["编号", "结果", "流水号"], ["P1-1", "success", "R1"], ["P1-2", "failed", ""]]
    shown = result(path, rows)
    record(path, shown)
    after = balances()
    assert "2 payouts were not changed" in record(path, shown).text, "the same form"
    again = Shown(result(path, rows).text).text
    assert "Already recorded: 2" in again
    assert "The file contains no new result" in again
    assert (balances(), exceptions()) == (after, {})


def test_a_payout_in_several_rows_is_left_to_the_operator(accepted, create, result):
    path = create(accepted("10.00"))
    rows = [["编号", "状态"], ["P1-1", "失败"], ["P1-1", "成功"]]
    assert "Result unclear: 2" in Shown(result(path, rows).text).text


@pytest.mark.parametrize("status", ["未成功", "部分成功", "待成功", "unsuccessful", ""])
def test_a_status_that_is_not_clearly_a_success_is_unclear(accepted, create, result, status):
    path = create(accepted("10.00"))
    assert "Result unclear: 1" in Shown(result(path, [["编号", "状态"], ["P1-1", status]]).text).text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04", "The Excel workbook is damaged."),
        (bytes(99), "neither a CSV file"),
        ("编号,金额\r\nP1-1,10.00".encode(), "The file has no column with the result of each payout"),
        (b"", "The file is empty."),
    ],
)
def test_an_unreadable_file_is_refused(accepted, create, upload, page, content, message):
    path = create(accepted("10.00"))
    assert upload(path, content).status_code == 303
    assert message in page(path).text


def test_viewers_see_batches_and_change_nothing(accepted, create, viewer, send, page):
    path = create(accepted("10.00"))
    assert "Download file" not in page(path, client=viewer).text
    assert page("batches/", client=viewer).column("Payouts") == ["1"]
    for action in ("file", "discard", "upload", "result/upload"):
        assert send(f"{path}/{action}", client=viewer).status_code == 403


def test_a_download_needs_a_recent_sign_in(accepted, create, sign_in, send):
    path = create(accepted("10.00"))
    refused = send(f"{path}/file", client=sign_in("demo", confirmed=False))
    assert (refused.status_code, ACCOUNT in refused.text) == (403, False)


class TestOfTwo:
    """`second_operator_above`: a large payout in the bank's result is only requested."""

    @pytest.fixture
    def settings_of_app(self):
        return {"second_operator_above": 5_000, "confirm_above": 6_000}

    def test_it_waits_for_another_operator_who_imports_the_result_too(
        self, accepted, create, result, record, statuses, sign_in
    ):
        operators.add("second", "second-password")
        numbers = accepted("50.01")
        path = create(numbers)
        shown = result(path, [["编号", "状态", "流水号"], ["P1-1", "成功", "R1"]])
        assert "Large payouts wait for a second operator: 1." in record(path, shown).text
        assert statuses(numbers) == ["confirmed"]
        record(path, shown, client=sign_in("second"))
        assert statuses(numbers) == ["completed"]

    def test_a_large_total_needs_the_password_again(self, accepted, create, result, record, sign_in, statuses):
        numbers = accepted("40.00", "40.00")
        path = create(numbers)
        shown = result(path, [["编号", "状态"], ["P1-1", "成功"], ["P1-2", "成功"]])
        assert record(path, shown, client=sign_in("demo", confirmed=False)).status_code == 403
        assert statuses(numbers) == ["confirmed", "confirmed"]


@pytest.mark.parametrize(
    "row", ["", "x", "0:paid:", "2:paid:", "1:done:", "٣:paid:", "[1e400,true,0]", "[" * 20_000, f"{'9' * 5_000}:paid:"]
)
def test_results_of_other_lines_or_of_no_page_are_refused(row, accepted, create, send, statuses):
    numbers = accepted("10.00")
    assert send(f"{create(numbers)}/result/upload", row=row).status_code == 400
    assert statuses(numbers) == ["confirmed"]


@pytest.mark.parametrize("content", [b"\0" * 200_000, b"x" * 200_000, b"(" * 100_000, b"\n" * 1_000_000])
def test_a_file_that_is_no_table_is_refused_soon(content, accepted, create, upload):
    path, begun = create(accepted("10.00")), time.process_time()
    assert upload(path, content).status_code == 303
    assert time.process_time() - begun < 2


def test_an_impossible_batch_is_not_found(console, send):
    assert console.get(f"/console/batch/{2**70}").status_code == 404
    assert send(f"batch/{2**70}/result/upload").status_code == 404


def test_a_page_with_results_from_before_they_were_recorded_changes_nothing(accepted, create, send, statuses):
    numbers = accepted("10.00")
    path = create(numbers)
    send(f"{path}/result/upload", row="1:refused:closed account")
    answer = send(f"{path}/result/upload", row="1:paid:R-1")
    assert "The result is already recorded." in answer.text
    assert statuses(numbers) == ["confirmed"]
