"""The bank's result of a file: which payout a row is about, what it does to it, whatever happened before."""

import html
import io
import re

import pytest
from openpyxl import Workbook

from models.tables.payout_batch import PayoutBatchLine
from services.security import operators
from services.withdrawals.bank_templates import TEMPLATES
from tests.blueprints.console.acting import Desk, flashed
from tests.blueprints.console.conftest import ACCOUNT, MANUAL
from tests.blueprints.console.reading import Shown

HEADER = ["编号", "收款账号", "金额", "状态", "流水号", "失败原因"]
EFFECTS = {
    "Will be recorded: paid out": "paid",
    "Will wait for a second operator": "requested",
    "Will be recorded: failed, stays to be sent": "failed",
    "Will be recorded: contradicts the order": "contradicts",
    "Will be recorded: agrees with the order": "noted",
    "Already recorded": "recorded",
    "Unclear, nothing changes": "unclear",
    "Not in this batch": "foreign",
}


def paid(code, amount="10.00", reference="", account=ACCOUNT):
    return [code, account, amount, "成功", reference or f"BANK-{code}", ""]


def failed(code, amount="10.00", reason="户名不符", status="失败"):
    return [code, ACCOUNT, amount, status, "", reason]


def effects(shown):
    """How many rows of the file have which effect."""
    found = re.findall(r'"Effect"><div>(.*?)</div></td>\s*<td[^>]+data-label="Rows"><div>(\d+)</div>', shown.text)
    return {EFFECTS[label]: int(count) for label, count in found}


def results():
    return [line.result for line in PayoutBatchLine.select().order_by(PayoutBatchLine.id)]


@pytest.fixture
def out(accepted, create, download):
    """`out("10.00", "20.00")`: the numbers of payouts in a new file that was downloaded, and its path."""

    def made(*amounts, template="generic"):
        numbers = accepted(*amounts)
        path = create(numbers, template)
        download(path)
        return numbers, path

    return made


@pytest.fixture
def again(create, download):
    """`again(numbers)`: the path of another downloaded file with these payouts."""

    def made(numbers):
        path = create(numbers)
        download(path)
        return path

    return made


@pytest.fixture
def imports(result, record):
    """`imports(path, row, ...)`: check a file with these rows, record what it shows, and return the effects."""

    def done(path, *rows, client=None):
        shown = result(path, [HEADER, *rows])
        found = effects(shown)
        assert sum(found.values()) == len(rows)
        if 'name="row"' in shown.text:
            assert record(path, shown, client).status_code == 200
        return found

    return done


# --- the file


def test_the_banks_result_is_shown_and_then_recorded(out, create, result, record, statuses, order_details):
    numbers, path = out("10.00", "20.00", "30.00", "40.00", "50.00", template="icbc")
    rows = [
        ["银行批量付款结果"],
        ["序号", "收款账号", "金额（元）", "用途", "备注", "处理状态", "银行流水号", "失败原因"],
        ["1", ACCOUNT, "10.00", "P1-1", numbers[0], "交易成功", "ICBC-1", ""],
        ["2", ACCOUNT, "20.00", "P1-2", numbers[1], "失败", "", f"户名不符 {ACCOUNT}"],
        ["3", ACCOUNT, "30.01", "P1-3", numbers[2], "成功", "ICBC-3", ""],
        ["4", ACCOUNT, "40.00", "P1-4", numbers[3], "银行处理中", "", ""],
        ["5", ACCOUNT, "50.00", "P9-5", numbers[4], "成功", "ICBC-5", ""],
        ["合计", "", "150.01"],
    ]
    shown = result(path, rows)
    text = Shown(shown.text).text
    assert "no column with account numbers" not in text
    without = result(path, [[*row[:1], *row[2:]] for row in rows])
    assert "no column with account numbers" in without.text
    assert effects(shown) == {"paid": 1, "failed": 1, "unclear": 2, "foreign": 1}
    assert "5 rows in the file · ¥150.01" in text, "a total is not a row"
    for why in ("It has a different amount.", "The bank has it in progress.", "It is about batch 9."):
        assert why in text
    assert set(statuses(numbers)) == {"confirmed"}
    assert "2 results recorded: 1 paid out, 1 refused by the bank." in record(path, shown).text
    assert statuses(numbers) == ["completed", *["confirmed"] * 4]
    told = order_details(numbers[0])
    assert told["channel_reference"] == "ICBC-1"
    assert ("operator demo", "Bank's result of payout P1-1") in [(line["who"], line["why"]) for line in told["history"]]
    assert results() == ["sent", "failed", None, None, None]
    assert PayoutBatchLine.get(line=2).reason == "户名不符 ***"
    assert create([numbers[1]]) == "batch/2", "a failed payout can be exported again"


def test_totals_are_not_rows_unless_they_have_one_of_our_numbers(out, result):
    numbers, path = out("10.00", "20.00")
    totals = ["合计", "总计：", "小 计", "合计金额", "合计（2笔）", "Total"]
    rows = [
        paid("P1-1"),
        *[[total, "", "30.00"] for total in totals],
        ["", "合计", "30.00"],
        ["合计", "", "20.00", "成功", numbers[1]],
        ["合计", "", "20.00", "成功", "", "P1-2"],
        ["合计科技", "", "20.00"],
    ]
    shown = result(path, [HEADER, *rows])
    assert effects(shown) == {"paid": 1, "foreign": 3}
    assert "4 rows in the file · ¥70.00" in Shown(shown.text).text


def test_the_headings_of_another_bank_are_known(out, result, record, order_details):
    numbers, path = out("10.00", "20.00")
    header = ["编号", "收款账号", "交易额", "处理情况", "银行回单号", "失败说明"]
    shown = result(path, [header, paid("P1-1"), failed("P1-2", "20.00")])
    assert effects(shown) == {"paid": 1, "failed": 1}
    record(path, shown)
    assert order_details(numbers[0])["channel_reference"] == "BANK-P1-1"
    assert PayoutBatchLine.get(line=2).reason == "户名不符"


def test_likely_columns_are_suggested_and_an_operator_confirms_them(out, result, statuses):
    numbers, path = out("10.00", "20.00")
    header = ["客户编码", "手续费额", "出账额", "回执", "二次回执", "网银回单流水号", "拒付说明", "收款方银行卡号"]
    rows = [
        ["P1-1", "0.50", "10.00", "交易成功", "成功", "B-1", "", ACCOUNT],
        ["P1-2", "0.50", "20.00", "交易失败", "失败", "", "户名不符", ACCOUNT],
        ["合计", "1.00", "30.00"],
    ]
    asked = result(path, [["代发回单"], header, *rows])
    assert asked.status_code == 422
    chosen = re.findall(r'<option value="(\w+)" selected>', asked.text)
    assert chosen == ["2", "code", "ignored", "amount", "status", "status", "reference", "reason", "account"]
    names = re.findall(r'name="name" value="([^"]*)"', asked.text)
    assert statuses(numbers) == ["confirmed", "confirmed"]
    confirmed = result(path, [["代发回单"], header, *rows], header="2", name=names, role=chosen[1:])
    assert effects(confirmed) == {"paid": 1, "failed": 1}


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_file_for_the_bank_is_not_taken_for_its_result(out, console, download, upload, template):
    _, path = out("10.00", template=template)
    answer = upload(path, download(path))
    assert flashed(console.get(answer.headers["Location"]).text) == (
        "bad",
        "This is the file for the bank. Upload the file with its results.",
    )


def test_a_reason_in_the_column_for_notes_is_shown_unless_it_repeats_our_file(out, result, record, order_details):
    numbers, path = out(*["10.00"] * 7)
    notes = ["账户已销户", f"（{numbers[1]}）", "P1-2", f"P1-4 {numbers[3]} 户名不符", "无", "/", "2.02611E+23"]
    rows = [[f"P1-{line}", ACCOUNT, "10.00", "失败", note] for line, note in enumerate(notes, 1)]
    shown = result(path, [["编号", "收款账号", "金额", "状态", "备注"], *rows])
    assert effects(shown) == {"failed": 6, "unclear": 1}, "the note of the third row names another payout"
    record(path, shown)
    kept = [line.reason for line in PayoutBatchLine.select().order_by(PayoutBatchLine.id)]
    assert kept == ["账户已销户", "", "", f"P1-4 {numbers[3]} 户名不符", "", "", ""]
    why = [[line["why"] for line in order_details(number)["history"]][-1] for number in numbers[:2]]
    assert why == ["Refused by the bank, payout P1-1: 账户已销户", "Refused by the bank, payout P1-2"]


def test_the_first_column_with_a_reason_counts_in_each_row(out, result, record):
    numbers, path = out(*["10.00"] * 6)
    header = ["编号", "收款账号", "金额", "状态", "备注", "处理信息", "失败原因", "银行返回信息"]
    rows = [
        ("转账", "", "户名不符", "E101"),
        ("", "账户已销户", "", ""),
        ("", "P1-3", "-", "余额不足"),
        (f"{ACCOUNT} 已冻结", numbers[3], "", ""),
        ("转账", "请核对", "无", ""),
        ("", "P1-6", "", "0"),
    ]
    shown = result(path, [header, *[[f"P1-{at}", ACCOUNT, "10.00", "失败", *row] for at, row in enumerate(rows, 1)]])
    assert effects(shown) == {"failed": 6}
    record(path, shown)
    kept = [line.reason for line in PayoutBatchLine.select().order_by(PayoutBatchLine.id)]
    assert kept == ["户名不符", "账户已销户", "余额不足", "*** 已冻结", "请核对", ""]


def test_a_workbook_is_read_too(out, upload):
    _, path = out("10.00")
    book, file = Workbook(), io.BytesIO()
    for row in (HEADER, paid("P1-1")):
        book.active.append(row)
    book.save(file)
    assert effects(upload(path, file.getvalue())) == {"paid": 1}


def test_a_file_with_transaction_ids_agrees_with_what_one_without_them_recorded(out, result, record, imports):
    _, path = out("10.00")
    header = ["编号", "收款账号", "金额", "状态"]
    shown = result(path, [header, ["P1-1", ACCOUNT, "10.00", "成功"]])
    record(path, shown)
    assert imports(path, paid("P1-1")) == {"recorded": 1}


def test_importing_the_result_again_changes_nothing(out, result, record, imports, balances, exceptions):
    _, path = out("10.00", "10.00")
    rows = [paid("P1-1"), failed("P1-2")]
    shown = result(path, [HEADER, *rows])
    record(path, shown)
    after = balances()
    assert "2 payouts were not changed" in record(path, shown).text, "the same form"
    assert imports(path, *rows) == {"recorded": 2}
    assert (balances(), exceptions()) == (after, {})


def test_a_file_that_is_no_table_or_two_is_refused(out, upload, result, console):
    _, path = out("10.00", "20.00")
    two = [HEADER, paid("P1-1"), [*HEADER[:3], "提交状态", "流水号"], ["P1-2", ACCOUNT, "20.00", "成功", "B-2"]]

    def refusal(answer):
        return flashed(console.get(answer.location).text)[1]

    assert "The file is an old Excel workbook" in refusal(upload(path, b"\xd0\xcf\x11\xe0"))
    assert "The file is empty." in refusal(upload(path, b""))
    assert "Line 3 names other columns." in refusal(result(path, two))


UNKNOWN_COLUMNS = {
    "编号,金额\r\nP1-1,10.00": "The file has no known column for: 状态 / ",
    "金额,状态\r\n10.00,成功": "The file has no known column for: 编号 / ",
    "编号,状态\r\nP1-1,成功": "The file has no known column for: 付款金额 / ",
    "编号,金额,状态,退票标志\r\nP1-1,10.00,成功,是": "Column 退票标志 is not known",
    "编号,金额,状态,二次处理状态\r\nP1-1,10.00,成功,失败": "Column 二次处理状态 is not known",
    "编号,金额,状态,核对\r\nP1-1,10.00,成功,已退票": "Column 核对 is not known",
    "编号,金额,状态,网银流水号\r\nP1-1,10.00,成功,B-1": "Column 网银流水号 is not known",
    "编号,金额,状态,成功金额\r\nP1-1,10.00,已完成,0.00": "Column 成功金额 is not known",
    "编号,金额,状态,入账账号\r\nP1-1,10.00,成功,6222": "Column 入账账号 is not known",
}


def test_unknown_columns_are_asked_for(out, upload):
    _, path = out("10.00")
    for content, message in UNKNOWN_COLUMNS.items():
        asked = upload(path, content.encode())
        assert (asked.status_code, message in html.unescape(asked.text)) == (422, True), content


class TestConfirmedColumns:
    """A file whose columns are not known: an operator says what each one has, once for each channel."""

    FILE = "批次回单\r\n指令,对方,数额,回执,网银流水号\r\nP{}-1,张三,10.00,成功,B-{}\r\n"
    NAMES = ("指令", "对方", "数额", "回执", "网银流水号")
    ROLES = ("code", "ignored", "amount", "status", "reference")

    @pytest.fixture
    def choose(self, upload):
        """`choose(path, roles)`: upload the file of the first batch with these roles of its columns."""

        def chosen(path, roles, names=self.NAMES):
            return upload(path, self.FILE.format(1, 1).encode(), header="2", name=list(names), role=list(roles))

        return chosen

    def test_the_page_shows_the_first_rows_and_the_answer_is_kept(self, out, upload, choose, record, order_details):
        (order_no,), path = out("10.00")
        asked = upload(path, self.FILE.format(1, 1).encode()).text
        assert "The file has no known column for:" in asked
        assert '<option value="2" selected>' in asked, "the row that most likely names the columns"
        shown = choose(path, self.ROLES)
        assert effects(shown) == {"paid": 1}
        record(path, shown)
        assert order_details(order_no)["channel_reference"] == "B-1"
        _, second = out("10.00")
        assert effects(upload(second, self.FILE.format(2, 2).encode())) == {"paid": 1}, "not asked again"
        other = upload("claims", self.FILE.format(1, 1).encode(), channel=MANUAL)
        assert other.status_code == 422, "not used for account statements"

    def test_the_file_is_chosen_once(self, out, upload, console):
        _, path = out("10.00")
        asked = Shown(upload(path, self.FILE.format(1, 1).encode()).text)
        (form,) = [form for form in asked.forms if form.url.endswith(f"{path}/upload")]
        form |= {"header": "2", "name": list(self.NAMES), "role": list(self.ROLES)}
        shown = console.post(form.url, data=form, content_type="multipart/form-data")
        assert effects(shown) == {"paid": 1}

    def test_roles_that_are_not_enough_or_of_other_columns_are_asked_for_again(self, out, choose):
        _, path = out("10.00")
        several = "Choose one column at most for the number"
        for roles, message in (
            (("code", "ignored", "amount", "ignored", "reference"), "Choose the columns of the payout's number"),
            (("code", "code", "amount", "status", "reference"), several),
            (("code", "time", "amount", "status", "reference"), several),
            (("code", "x", "amount", "status", "reference"), "Choose the content of each column"),
            (("code",), "Choose the content of each column"),
        ):
            asked = choose(path, roles)
            assert (asked.status_code, message in html.unescape(asked.text)) == (422, True), roles
        assert choose(path, self.ROLES, [*self.NAMES[:4], "别的"]).status_code == 422
        assert effects(choose(path, ("code", "reason", "amount", "status", "reason"))) == {"paid": 1}


def test_only_what_the_page_showed_can_be_recorded(out, result, send, record, flask, statuses):
    numbers, path = out("10.00")
    _, other = out("20.00")
    shown = result(path, [HEADER, paid("P1-1")])
    row = re.search(r'name="row" value="([^"]*)"', shown.text)[1]
    for wrong in ("", "x", "1:paid:R-1", "[1,true]", f"{row}x", "[" * 20_000):
        assert send(f"{path}/result/upload", row=wrong).status_code == 400
    assert send(f"{other}/result/upload", row=row).status_code == 400
    assert statuses(numbers) == ["confirmed"]
    flask("order", "reject", numbers[0], "--reason", "no", "--in-bank-file")
    assert "The order changed since this page was loaded." in record(path, shown).text
    assert (statuses(numbers), results()) == (["cancelled"], [None, None])


# --- which payout a row is about


def test_a_payee_named_like_another_order_gets_nobody_paid_twice(accepted, again, flask, result, record, statuses):
    (victim,) = accepted("10.00")
    flask("account", "add", "demo", "--card-number", ACCOUNT, "--real-name", victim)
    (other,) = accepted("10.00")
    path = again([victim, other])
    header = ["编号", "收款户名", "收款账号", "金额", "状态", "流水号"]
    rows = [["P1-1", "张三", ACCOUNT, "10.00", "失败", ""], ["P1-2", victim, ACCOUNT, "10.00", "成功", "B-2"]]
    shown = result(path, [header, *rows])
    assert effects(shown) == {"failed": 1, "unclear": 1}
    record(path, shown)
    assert statuses([victim, other]) == ["confirmed", "confirmed"]


def test_a_payee_named_like_a_number_of_a_file_is_unclear(out, result):
    _, path = out("10.00", "10.00")
    header = ["编号", "收款户名", "金额", "状态"]
    rows = [["P1-1", "Ｐ１-２", "10.00", "成功"], ["P1-2", "p9-9", "10.00", "失败"]]
    shown = result(path, [header, *rows])
    assert effects(shown) == {"unclear": 2}
    assert "It names several payouts." in shown.text


def test_the_result_of_one_file_changes_nothing_in_another(out, imports, statuses):
    first, path = out("10.00")
    second, other = out("10.00")
    assert imports(other, paid("P1-1")) == {"foreign": 1}
    assert statuses([*first, *second]) == ["confirmed", "confirmed"]
    assert imports(path, paid("P1-1"), paid("P1-7")) == {"paid": 1, "foreign": 1}


OTHER_ROWS = [
    (paid("P1-1 P1-2"), "unclear"),
    *[(paid(code), "unclear") for code in ("P1-1P1-2", "P1-1,2", "P1-1-2", "P1-1、2", "1/P1-1")],
    (paid("P1-1", account="622202*********0018"), "unclear"),
    (paid("P1-1", account="*******************"), "unclear"),
    (paid("P1-1", account="6.22202E+18"), "unclear"),
    (paid("P1-1", account=""), "unclear"),
    (paid("P1-1", amount=""), "unclear"),
    (paid("P1-1", amount="-10.00"), "unclear"),
    (paid("P1-1", amount="1000"), "unclear"),
    (paid("P1-1", reference="2.02611E+27"), "unclear"),
    (failed("P1-1", amount="10.01"), "unclear"),
    (paid("XP1-1"), "foreign"),
    (paid("P1-10"), "foreign"),
    (paid(""), "foreign"),
]


def test_number_amount_and_account_must_match(out, imports, statuses):
    numbers, path = out("10.00", "10.00", "10.00", "10.00")
    for row, effect in OTHER_ROWS:
        assert imports(path, row) == {effect: 1}, row
    assert set(statuses(numbers)) == {"confirmed"}
    rows = [
        paid("P1-1 货款"),
        paid("p1-2"),
        paid("P1-3", account="6222 0200 0000 0000 017"),
        paid("P1-4", account="622202*********0017"),
    ]
    assert imports(path, *rows) == {"paid": 4}
    assert set(statuses(numbers)) == {"completed"}


def test_the_order_number_alone_names_no_line_of_a_file(out, result):
    numbers, path = out("10.00", template="icbc")
    rows = [["汇款用途", "备注", "金额", "状态"], ["", numbers[0], "10.00", "成功"]]
    assert effects(result(path, rows)) == {"foreign": 1}


def test_a_payout_or_a_transaction_id_in_several_rows_is_unclear(out, imports):
    _, path = out("10.00", "10.00", "10.00")
    rows = [failed("P1-1"), paid("P1-1"), paid("P1-2", reference="B-1"), paid("P1-3", reference="B-1")]
    assert imports(path, *rows) == {"unclear": 4}


def test_a_result_is_a_whole_known_word(out, imports):
    _, path = out("10.00", "10.00", "10.00", "10.00")
    for text in (
        *("退回成功", "退款成功", "支付成功，已退回", "提交成功", "受理成功", "未成功", "部分成功", "待成功"),
        *("unsuccessful", "", "0000"),
    ):
        assert imports(path, failed("P1-1", status=text)) == {"unclear": 1}, text
    words = enumerate(("交易成功", "success", "退票", "拒绝"), 1)
    assert imports(path, *[failed(f"P1-{line}", status=word) for line, word in words]) == {"paid": 2, "failed": 2}
    assert results() == ["sent", "sent", "failed", "failed"]


def test_all_columns_with_a_result_or_an_amount_must_agree(out, result):
    _, path = out("10.00", "10.00", "10.00")
    header = ["编号", "金额", "实付金额", "处理状态", "交易结果"]
    rows = [
        ["P1-1", "10.00", "10.00", "处理成功", "失败"],
        ["P1-2", "10.00", "9.00", "成功", "成功"],
        ["P1-3", "10", "10.00", "成功", "交易成功"],
    ]
    assert effects(result(path, [header, *rows])) == {"unclear": 2, "paid": 1}
    for column in ("备注", "失败原因"):
        for note in ("已退票", "户名不符，退汇", "失败"):
            rows = [["P1-1", "10.00", "成功", note], ["P1-2", "10.00", "成功", "处理成功"]]
            shown = result(path, [["编号", "金额", "状态", column], *rows])
            assert effects(shown) == {"unclear": 1, "paid": 1}, (column, note)


def test_a_placeholder_is_not_a_transaction_id(out, result, record, order_details):
    placeholders = ("", "-", "0", "00000000", "/")
    numbers, path = out(*["10.00"] * len(placeholders))
    rows = [[f"P1-{line}", ACCOUNT, "10.00", "成功", each, ""] for line, each in enumerate(placeholders, 1)]
    record(path, result(path, [HEADER, *rows]))
    assert {order_details(order_no)["channel_reference"] for order_no in numbers} == {""}
    assert effects(result(path, [HEADER, *rows])) == {"recorded": 5}


# --- results are reports, whatever happened before

COMMANDS = {
    "rejected": ("reject", "--reason", "no", "--in-bank-file"),
    "marked": ("paid", "--reference", "HAND-1", "--in-bank-file"),
    "completed": ("resolve", "--complete"),
}
ROWS = {
    "paid": paid("P1-1"),
    "paid-without-id": paid("P1-1", reference="-"),
    "paid-as-BANK-2": paid("P1-1", reference="BANK-2"),
    "paid-as-HAND-1": paid("P1-1", reference="HAND-1"),
    "failed": failed("P1-1"),
    "returned": failed("P1-1", status="退票"),
    "returned-BANK-1": ["P1-1", ACCOUNT, "10.00", "退票", "BANK-P1-1", ""],
    "returned-BANK-2": ["P1-1", ACCOUNT, "10.00", "退票", "BANK-2", ""],
    "second-file-paid": paid("P2-1"),
    "second-file-paid-without-id": paid("P2-1", reference="-"),
    "second-file-paid-as-BANK-2": paid("P2-1", reference="BANK-2"),
    "second-file-failed": failed("P2-1"),
    "second-file-returned": failed("P2-1", status="退票"),
}
# Lives of a payout in a file: commands, or rows of the bank, each with its effect and the exceptions open after it.
# At last the order's status, and the result of each line.
LIVES = {
    "rejected, failed noted": "cancelled: failed",
    "rejected, paid contradicts payout_conflict, paid recorded payout_conflict": "cancelled: sent",
    "rejected, paid contradicts payout_conflict, completed, paid recorded": "cancelled: sent",
    "rejected, paid contradicts payout_conflict, returned contradicts": "cancelled: failed",
    "failed failed, exported-again, paid paid, second-file-failed noted": "completed: sent failed",
    "failed failed, exported-again, second-file-paid paid, paid contradicts payout_conflict": "completed: sent sent",
    "failed failed, exported-again, second-file-paid-without-id paid, paid-without-id contradicts payout_conflict": (
        "completed: sent sent"
    ),
    "failed failed, exported-again, second-file-paid-as-BANK-2 paid, paid-as-BANK-2 noted": "completed: sent sent",
    "failed failed, exported-again, rejected, paid contradicts payout_conflict, "
    "second-file-paid contradicts payout_conflict,payout_conflict, second-file-returned contradicts payout_conflict": (
        "cancelled: sent failed"
    ),
    "discarded, failed recorded, paid paid": "completed: sent",
    "discarded, exported-again, paid paid": "completed: sent None",
    "marked, paid contradicts payout_conflict": "completed: sent",
    "marked, paid-as-HAND-1 noted": "completed: sent",
    "marked, failed contradicts reversed": "completed: failed",
    "paid paid, paid-as-BANK-2 contradicts payout_conflict, returned-BANK-2 contradicts, "
    "returned-BANK-1 contradicts reversed, returned-BANK-1 recorded reversed": "completed: failed",
}


@pytest.mark.parametrize("life", LIVES)
def test_a_result_is_a_report_whatever_happened_before(life, out, again, imports, flask, send, exceptions, statuses):
    (order_no,), path = out("10.00")
    for step in life.split(", "):
        name, *told = step.split(" ")
        if name == "exported-again":
            again([order_no])
        elif name == "discarded":
            send(f"{path}/discard", not_given="1")
        elif name in COMMANDS:
            command, *options = COMMANDS[name]
            flask("order", command, order_no, *options)
        else:
            row, (effect, *kinds) = ROWS[name], told
            batch = row[0][1]
            assert imports(f"batch/{batch}", row) == {effect: 1}, step
            assert [*exceptions().values()] == kinds, step
    assert f"{statuses([order_no])[0]}: {' '.join(str(each) for each in results())}" == LIVES[life]


def test_the_page_warns_of_a_payout_that_is_in_another_file_too(out, again, imports, result):
    numbers, path = out("10.00")
    imports(path, failed("P1-1"))
    again(numbers)
    shown = result(path, [HEADER, paid("P1-1")])
    assert "It is also in batch 2: make sure that the bank does not send it again." in shown.text


@pytest.mark.parametrize("status", ["退票", "失败", "已退汇", "退回成功", "支付成功，已退回"])
def test_a_payout_returned_after_it_was_recorded_is_reversed(status, out, imports, exceptions, flask, balances):
    before = balances()
    (order_no,), path = out("10.00")
    imports(path, paid("P1-1"))
    assert imports(path, failed("P1-1", status=status)) == {"contradicts": 1}
    assert exceptions() == {order_no: "reversed"}
    assert imports(path, failed("P1-1", status=status)) == {"recorded": 1}
    flask("order", "resolve", order_no, "--credit")
    assert balances() == before
    assert imports(path, paid("P1-1")) == {"unclear": 1}, "the first result again"
    assert (balances(), exceptions()) == (before, {})


def test_a_transaction_id_of_another_order_is_a_conflict(out, flask, imports, exceptions, statuses, accepted):
    (first,) = accepted("10.00")
    flask("order", "paid", first, "--reference", "BANK-7")
    (order_no,), path = out("10.00")
    assert imports(path, paid("P1-1", reference="BANK-7")) == {"contradicts": 1}
    assert exceptions() == {order_no: "payout_conflict"}
    assert imports(path, failed("P1-1")) == {"contradicts": 1}
    assert (exceptions(), statuses([order_no])) == ({}, ["confirmed"])


# --- two operators


class TestOfTwo:
    """`second_operator_above`: a large payout in the bank's result is only requested."""

    ROWS = (HEADER, paid("P1-1", amount="50.01", reference="BANK-1"))

    @pytest.fixture
    def settings_of_app(self):
        return {"second_operator_above": 5_000, "confirm_above": 6_000}

    @pytest.fixture
    def second(self, sign_in):
        operators.add("second", "second-password")
        return Desk(sign_in, "second")

    @pytest.fixture
    def requested(self, out, result, record):
        """The number of a large payout, and its batch, after the operator `demo` confirmed the bank's result."""
        (order_no,), path = out("50.01")
        told = record(path, result(path, self.ROWS)).text
        assert "1 payout requested. 1 payout waits for a second operator, ¥50.01." in told
        return order_no, path

    @pytest.fixture
    def ended(self, statuses, order_details):
        """`ended(order_no)`: its status, the result of its line, and its transaction ID."""
        return lambda order_no: (*statuses([order_no]), results(), order_details(order_no)["channel_reference"])

    def test_what_will_wait_is_said_before_and_after(self, out, result, record, page, second):
        numbers, path = out("50.01", "10.00", "20.00", "40.00")
        page(path)
        shown = result(path, [HEADER, paid("P1-1", "50.01"), paid("P1-2"), failed("P1-3", "20.00")])
        assert effects(shown) == {"paid": 1, "requested": 1, "failed": 1}
        text = Shown(shown.text).text
        for told in ("Will wait for a second operator 1 50.01", "Will be recorded: paid out 1 10.00", "Record 2 rows"):
            assert told in text
        told = Shown(record(path, shown).text).text
        assert "2 results recorded: 1 paid out, 1 refused by the bank." in told
        some = "2 payouts without a result, ¥90.01. 1 of them waits for a second operator. The next download contains 1"
        assert all(some in after for after in (told, page(path).text))
        told = Shown(record(path, result(path, [HEADER, paid("P1-4", "40.00")])).text).text
        for after in (told, page(path).text):
            assert "1 payout waits for a second operator, ¥50.01. Review requests" in after
            assert "Download file" not in after
        batch = page(path)
        assert [row["Line"] for row in batch.rows] == ["P1-3", "P1-1", "P1-2", "P1-4"], "the refused ones first"
        assert batch.rows[1]["Result"] == "Needs a second operator"
        listed = second.see(batch.links["Review requests"].removeprefix("/console/"))
        to_do = {row["Order number"]: row["To do"] for row in listed.rows}
        assert "Needs a second operator" in to_do[numbers[0]]
        assert "Refused by the bank 户名不符" in to_do[numbers[2]]

    def test_the_button_says_that_nothing_but_a_request_is_made(self, out, result):
        _, path = out("50.01")
        text = Shown(result(path, self.ROWS).text).text
        assert ("Request approval" in text, "Record" in text) == (True, False)

    def test_another_operator_imports_the_result_too(self, requested, result, record, second, ended):
        order_no, path = requested
        assert ended(order_no) == ("confirmed", [None], "")
        own = result(path, self.ROWS)
        assert ("You requested this payout" in own.text, effects(own)) == (True, {"unclear": 1})
        for row in (paid("P1-1", amount="50.01", reference="BANK-2"), failed("P1-1", amount="50.01")):
            contradicting = result(path, [HEADER, row], client=second.client)
            assert effects(contradicting) == {"unclear": 1}
        shown = result(path, [HEADER, ["P1-1", ACCOUNT, "50.01", "成功", "", ""]], client=second.client)
        record(path, shown, client=second.client)
        assert ended(order_no) == ("completed", ["sent"], "BANK-1")

    def test_the_approval_on_the_orders_page_keeps_the_banks_number(self, requested, result, second, ended):
        order_no, path = requested
        second.act(order_no, "second-approval")
        assert ended(order_no) == ("completed", ["sent"], "BANK-1")
        assert effects(result(path, self.ROWS)) == {"recorded": 1}

    def test_the_banks_number_completes_a_request_without_one(self, out, desk, result, record, second, ended):
        (order_no,), path = out("50.01")
        desk.act(order_no, "paid", in_file="1")
        record(path, result(path, self.ROWS, client=second.client), client=second.client)
        assert ended(order_no) == ("completed", ["sent"], "BANK-1")

    def test_a_large_total_needs_the_password_again(self, out, result, record, sign_in, statuses):
        numbers, path = out("40.00", "40.00")
        shown = result(path, [HEADER, paid("P1-1", amount="40.00"), paid("P1-2", amount="40.00")])
        assert record(path, shown, client=sign_in("demo", confirmed=False)).status_code == 403
        assert statuses(numbers) == ["confirmed", "confirmed"]
