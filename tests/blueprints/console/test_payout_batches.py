"""Bank files of payouts: their content, and the payouts that are in one."""

import csv
import io
import re
from datetime import UTC, datetime

import pytest

from models.tables.operator import AuditEntry
from models.tables.payout_batch import PayoutBatch, PayoutBatchLine
from services.security import operators
from tests.backups import Backup
from tests.blueprints.console.acting import Desk, flashed
from tests.blueprints.console.bulk import confirm, confirmation
from tests.blueprints.console.conftest import ACCOUNT, MANUAL


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


def test_alipays_file_has_its_two_headings_in_gbk_and_the_date_of_china(accepted, create, download):
    numbers = accepted("10.00", "2.50")
    path = create(numbers, "alipay")
    late = datetime(2026, 11, 1, 23, 30, tzinfo=UTC)
    PayoutBatch.update(createtime=int(late.timestamp())).execute()
    heading, sums, header, *rows = table(download(path), "gbk")
    assert heading == ["批次号", "付款日期", "付款人email", "账户名称", "总金额（元）", "总笔数"]
    assert (sums[:2], sums[4:]) == (["2026110200000001", "20261102"], ["12.50", "2"])
    assert header == ["商户流水号", "收款人email", "收款人姓名", "付款金额（元）", "付款理由"]
    assert rows[0] == ["P1-1", ACCOUNT, "张三", "10.00", numbers[0]]


def test_a_payout_is_in_one_open_file_only(page, accepted, create, console):
    numbers = accepted("10.00", "20.00")
    create(numbers[:1])
    shown = console.get("/console/payouts/batch", query_string={"order_no": numbers}).text
    assert re.findall(r'name="order_no" value="(\d+)"', shown) == numbers[1:]
    assert "It is already in batch 1." in shown
    assert create(numbers).startswith("payouts/batch"), "refused as a whole"
    assert [row["To do"] for row in page("payouts/?flt_state=send").rows] == ["Send manually Batch 1", "Send manually"]


def test_discarding_a_file_frees_its_payouts(accepted, create, send, download, console):
    numbers = accepted("10.00")
    first = create(numbers)
    download(first)
    refused = send(f"{first}/discard")
    assert flashed(console.get(refused.location).text)[0] == "bad", "the bank may have got it"
    assert PayoutBatchLine.get().result is None
    assert send(f"{first}/discard", not_given="1").status_code == 303
    assert send(f"{first}/file").status_code == 303
    second = create(numbers)
    assert send(f"{second}/discard").status_code == 303, "it was not downloaded"
    assert table(download(create(numbers)))[1][0] == "P3-1"
    assert set(log("discard batch")) == {("discard batch", "1"), ("discard batch", "2")}


def test_only_approved_payouts_of_one_manual_channel_are_exported(api, accepted, create, flask, flask_json):
    (in_question,) = accepted("10.00")
    flask("order", "paid", in_question, "--amount", "9.00", "--reference", "HAND-1")
    pending, at_channel = api.sell("1.00", channel=MANUAL).data["order_no"], accepted("2.00", channel=2)[0]
    for order_no in (pending, at_channel, in_question):
        assert create([order_no]).startswith("payouts/batch")
    kind = ("--driver", "manual", "--category", "gateway_c", "--pay-method", "bank")
    channel = flask_json("channel", "add", "--name", "Second", *kind)["id"]
    flask("channel", "link", str(channel), "demo")
    assert create([*accepted("3.00"), *accepted("4.00", channel=channel)]).startswith("payouts/batch")
    assert PayoutBatchLine.select().count() == 0


def test_viewers_see_batches_and_a_download_needs_a_recent_sign_in(
    accepted, create, viewer, console, sign_in, send, page
):
    path = create(accepted("10.00"))
    assert "Download file" not in page(path, client=viewer).text
    assert page("batches/", client=viewer).column("Payouts") == ["1"]
    for action in ("file", "discard", "upload", "result/upload"):
        assert send(f"{path}/{action}", client=viewer).status_code == 403
    refused = send(f"{path}/file", client=sign_in("demo", confirmed=False))
    assert (refused.status_code, ACCOUNT in refused.text) == (403, False)
    assert console.get(f"/console/batch/{2**70}").status_code == 404
    assert send(f"batch/{2**70}/result/upload").status_code == 404


@pytest.mark.parametrize("template", ["alipay", "icbc", "cmb"])
def test_a_banks_file_has_account_and_amount_and_its_page_lists_names_that_gbk_lacks(
    template, accepted, create, download, flask, page, viewer
):
    readable = accepted("1.00")
    flask("account", "add", "demo", "--card-number", "6222020000000000999", "--real-name", "㛃𠮷•·三")
    rare = accepted("2.00")
    path = create([*readable, *rare], template)
    shown = page(path).text
    assert (f"{rare[0]} 㛃 𠮷 •" in shown, f"{readable[0]} 㛃" in shown) == (True, False)
    assert "㛃" not in page(path, client=viewer).text
    row = next(row for row in table(download(path), "gb18030") if any(cell.startswith("P") for cell in row))
    assert {ACCOUNT, "1.00", f"P{path[-1]}-1"} <= set(row)
    assert "GBK lacks" not in page(create(accepted("2.00"))).text


class TestAPayoutInAFile:
    """The bank may pay a payout whose file was downloaded, so nobody decides about it unknowingly."""

    @pytest.fixture
    def out(self, accepted, create, download):
        """The number of a payout in a downloaded file."""
        (order_no,) = accepted("10.00")
        download(create([order_no]))
        return order_no

    @pytest.mark.parametrize(
        ("action", "in_bulk", "given", "becomes"),
        [
            ("reject", "reject", {"reason": "no"}, "cancelled"),
            ("paid", "sent", {"reference": "HAND-1"}, "completed"),
        ],
    )
    def test_the_console_says_so_and_wants_a_confirmation(
        self, action, in_bulk, given, becomes, accepted, create, download, desk, console, statuses
    ):
        numbers = accepted("10.00", "20.00")
        download(create(numbers))
        form = desk.order(numbers[0]).actions[action]
        assert "The payout is in bank file 1, which was downloaded" in desk.order(numbers[0]).text
        category, text = desk.send(form, **given)
        assert (category, "--in-bank-file" in text) == ("bad", True)
        page = confirmation(console, in_bulk, numbers[1:])
        assert "1 of them is in a bank file without a result." in page.text
        assert "The payout is in bank file 1" in confirm(console, in_bulk, page, reason="no").text
        assert statuses(numbers) == ["confirmed", "confirmed"]
        assert desk.send(form, in_file="1", **given)[0] == "good"
        confirm(console, in_bulk, page, reason="no", in_file="1")
        assert statuses(numbers) == [becomes, becomes]

    @pytest.mark.parametrize(
        ("command", "becomes"),
        [(("reject", "--reason", "no"), "cancelled"), (("paid", "--reference", "HAND-1"), "completed")],
    )
    def test_the_command_line_says_so_and_wants_a_confirmation(self, command, becomes, out, refuses, flask, api):
        name, *options = command
        assert ("bank file 1" in refuses("order", name, out, *options), api.status(out)) == (True, "confirmed")
        flask("order", name, out, *options, "--in-bank-file")
        assert api.status(out) == becomes

    def test_an_exception_about_it_is_not_resolved_as_not_paid_out(self, out, flask, refuses, send, api):
        flask("order", "paid", out, "--amount", "9.00", "--reference", "HAND-1", "--in-bank-file")
        assert "in a bank file without a result" in refuses("order", "resolve", out, "--cancel")
        send("batch/1/discard", not_given="1")
        flask("order", "resolve", out, "--cancel")
        assert api.status(out) == "cancelled"

    def test_a_page_from_before_the_download_changes_nothing(self, accepted, create, download, desk, api):
        (order_no,) = accepted("10.00")
        path = create([order_no])
        form = desk.order(order_no).actions["reject"]
        assert "bank file" not in desk.order(order_no).text
        download(path)
        assert desk.send(form, reason="no")[0] == "bad"
        assert api.status(order_no) == "confirmed"

    def test_it_stays_listed_until_it_has_a_result(self, out, flask, flask_json, page):
        assert [row["count"] for row in flask_json("to-do")] == [1]
        flask("order", "reject", out, "--reason", "no", "--in-bank-file")
        assert page("batches/").column("Without result") == ["1"]
        (row,) = flask_json("to-do")
        assert row["to do"] == "payouts in bank files without a result"
        assert "Downloaded, no result yet" in page("batch/1").text


class TestWithASecondOperator:
    """`second_operator_above`: what awaits an approval is in no file."""

    @pytest.fixture
    def settings_of_app(self):
        return {"second_operator_above": 5_000}

    @pytest.fixture
    def second(self, sign_in):
        operators.add("second", "second-password")
        return Desk(sign_in, "second")

    def test_a_payout_that_awaits_a_second_operator_is_in_no_new_file(self, accepted, create, desk):
        (order_no,) = accepted("50.01")
        desk.act(order_no, "paid", reference="HAND-1")
        assert create([order_no]).startswith("payouts/batch")
        assert PayoutBatchLine.select().count() == 0

    def test_it_is_not_in_the_file_that_was_made_before(self, accepted, create, desk, send, download):
        large, small = accepted("50.01", "10.00")
        path = create([large, small])
        desk.act(large, "paid", reference="HAND-1")
        assert [row[1] for row in table(download(path))[1:]] == [small]

    def test_a_request_for_a_payout_in_a_file_wants_a_confirmation(self, accepted, create, download, desk, second, api):
        (order_no,) = accepted("50.01")
        download(create([order_no]))
        assert desk.act(order_no, "paid", reference="HAND-1")[0] == "bad"
        assert desk.act(order_no, "paid", reference="HAND-1", in_file="1")[0] == "good"
        assert "in bank file 1" in second.order(order_no).text
        assert second.act(order_no, "second-approval")[0] == "good"
        assert api.status(order_no) == "completed"


def test_after_a_restore_bank_files_wait_for_the_operator(accepted, create, send, sign_in, flask, instance, tmp_path):
    in_file, free = accepted("10.00", "20.00")
    path = create([in_file])
    Backup(instance, tmp_path).restore()
    client = sign_in("demo")
    new = {"order_no": [free], "template": "generic"}
    for to, form in ((f"{path}/file", {}), ("payouts/batch", new)):
        refused = send(to, client=client, **form)
        assert flashed(client.get(refused.location).text)[1].startswith("Bank files are paused since a restore")
    flask("db", "resume")
    assert send(f"{path}/file", client=client).status_code == 200
    assert send("payouts/batch", client=client, **new).location.startswith("/console/batch/")
