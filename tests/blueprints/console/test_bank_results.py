"""The bank's result of a file: which payout a row is about, what it does to it, whatever happened before."""

import html
import io
import re

import pytest
from openpyxl import Workbook

from models.tables.payout_batch import PayoutBatchLine
from services.security import operators
from tests.blueprints.console.acting import Desk, flashed
from tests.blueprints.console.conftest import ACCOUNT, MANUAL
from tests.blueprints.console.reading import Shown

HEADER = ["编号", "收款账号", "金额", "状态", "流水号", "失败原因"]
EFFECTS = {
    "Will be recorded: paid out": "paid",
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
    found = re.findall(r'"Effect"><div>(.*?)</div></td>\s*<td data-label="Rows"><div>(\d+)</div>', shown.text)
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
    assert effects(shown) == {"paid": 1, "failed": 1, "unclear": 2, "foreign": 2}
    assert "6 rows in the file · ¥300.02" in text
    for why in ("It has a different amount.", "The bank has it in progress.", "It is about batch 9."):
        assert why in text
    assert set(statuses(numbers)) == {"confirmed"}
    assert "2 results recorded." in record(path, shown).text
    assert statuses(numbers) == ["completed", *["confirmed"] * 4]
    assert order_details(numbers[0])["channel_reference"] == "ICBC-1"
    assert results() == ["sent", "failed", None, None, None]
    assert PayoutBatchLine.get(line=2).reason == "户名不符 ***"
    assert create([numbers[1]]) == "batch/2", "a failed payout can be exported again"


def test_a_workbook_is_read_too(out, upload):
    _, path = out("10.00")
    book, file = Workbook(), io.BytesIO()
    for row in (HEADER, paid("P1-1")):
        book.active.append(row)
    book.save(file)
    assert effects(upload(path, file.getvalue())) == {"paid": 1}


def test_importing_the_result_again_changes_nothing(out, result, record, imports, balances, exceptions):
    _, path = out("10.00", "10.00")
    rows = [paid("P1-1"), failed("P1-2")]
    shown = result(path, [HEADER, *rows])
    record(path, shown)
    after = balances()
    assert "2 payouts were not changed" in record(path, shown).text, "the same form"
    assert imports(path, *rows) == {"recorded": 2}
    assert (balances(), exceptions()) == (after, {})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xd0\xcf\x11\xe0", "The file is an old Excel workbook"),
        (b"", "The file is empty."),
    ],
)
def test_a_file_that_is_no_table_is_refused(out, upload, console, content, message):
    _, path = out("10.00")
    assert message in flashed(console.get(upload(path, content).location).text)[1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("编号,金额\r\nP1-1,10.00", "The file has no known column for: 状态 / "),
        ("金额,状态\r\n10.00,成功", "The file has no known column for: 编号 / "),
        ("编号,状态\r\nP1-1,成功", "The file has no known column for: 付款金额 / "),
        ("编号,金额,状态,退票标志\r\nP1-1,10.00,成功,是", "Column 退票标志 is not known"),
        ("编号,金额,状态,二次处理状态\r\nP1-1,10.00,成功,失败", "Column 二次处理状态 is not known"),
        ("编号,金额,状态,核对\r\nP1-1,10.00,成功,已退票", "Column 核对 is not known"),
        ("编号,金额,状态,网银流水号\r\nP1-1,10.00,成功,B-1", "Column 网银流水号 is not known"),
        ("编号,金额,状态,成功金额\r\nP1-1,10.00,已完成,0.00", "Column 成功金额 is not known"),
        ("编号,金额,状态,入账账号\r\nP1-1,10.00,成功,6222", "Column 入账账号 is not known"),
    ],
)
def test_unknown_columns_are_asked_for(out, upload, content, message):
    _, path = out("10.00")
    asked = upload(path, content.encode())
    assert (asked.status_code, message in html.unescape(asked.text)) == (422, True)


def test_a_second_table_with_other_columns_is_refused(out, result, console):
    _, path = out("10.00", "20.00")
    rows = [HEADER, paid("P1-1"), [*HEADER[:3], "提交状态", "流水号"], ["P1-2", ACCOUNT, "20.00", "成功", "B-2"]]
    assert "Line 3 names other columns." in flashed(console.get(result(path, rows).location).text)[1]


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

    @pytest.mark.parametrize(
        ("roles", "message"),
        [
            (("code", "ignored", "amount", "ignored", "reference"), "Choose the columns of the payout's number"),
            (("code", "code", "amount", "status", "reference"), "Choose one column at most for the number"),
            (("code", "time", "amount", "status", "reference"), "Choose one column at most for the number"),
            (("code", "x", "amount", "status", "reference"), "Choose the content of each column"),
            (("code",), "Choose the content of each column"),
        ],
    )
    def test_roles_that_are_not_enough_are_asked_for_again(self, roles, message, out, choose):
        _, path = out("10.00")
        asked = choose(path, roles)
        assert (asked.status_code, message in html.unescape(asked.text)) == (422, True)

    def test_roles_of_other_columns_are_asked_for_again(self, out, choose):
        _, path = out("10.00")
        assert choose(path, self.ROLES, [*self.NAMES[:4], "别的"]).status_code == 422

    def test_they_are_not_used_for_account_statements(self, out, choose, upload):
        _, path = out("10.00")
        choose(path, self.ROLES)
        assert upload("claims", self.FILE.format(1, 1).encode(), channel=MANUAL).status_code == 422


def test_only_what_the_page_showed_can_be_recorded(out, result, send, statuses):
    numbers, path = out("10.00")
    _, other = out("20.00")
    shown = result(path, [HEADER, paid("P1-1")])
    row = re.search(r'name="row" value="([^"]*)"', shown.text)[1]
    for wrong in ("", "x", "1:paid:R-1", "[1,true]", f"{row}x", "[" * 20_000):
        assert send(f"{path}/result/upload", row=wrong).status_code == 400
    assert send(f"{other}/result/upload", row=row).status_code == 400
    assert statuses(numbers) == ["confirmed"]


def test_a_row_is_refused_if_the_payout_changed_since_the_page(out, result, record, flask, statuses):
    numbers, path = out("10.00")
    shown = result(path, [HEADER, paid("P1-1")])
    flask("order", "reject", numbers[0], "--reason", "no", "--in-bank-file")
    assert "The order changed since this page was loaded." in record(path, shown).text
    assert (statuses(numbers), results()) == (["cancelled"], [None])


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


@pytest.mark.parametrize(
    ("row", "effect"),
    [
        (paid("P1-1 货款"), "paid"),
        (paid("p1-1"), "paid"),
        (paid("P1-1", account="6222 0200 0000 0000 017"), "paid"),
        (paid("P1-1", account="622202*********0017"), "paid"),
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
    ],
)
def test_number_amount_and_account_must_match(row, effect, out, imports, statuses):
    numbers, path = out("10.00", "20.00")
    assert imports(path, row) == {effect: 1}
    assert statuses(numbers)[0] == ("completed" if effect == "paid" else "confirmed")


def test_the_order_number_alone_names_no_line_of_a_file(out, result):
    numbers, path = out("10.00", template="icbc")
    rows = [["汇款用途", "备注", "金额", "状态"], ["", numbers[0], "10.00", "成功"]]
    assert effects(result(path, rows)) == {"foreign": 1}


def test_a_payout_or_a_transaction_id_in_several_rows_is_unclear(out, imports):
    _, path = out("10.00", "10.00", "10.00")
    rows = [failed("P1-1"), paid("P1-1"), paid("P1-2", reference="B-1"), paid("P1-3", reference="B-1")]
    assert imports(path, *rows) == {"unclear": 4}


@pytest.mark.parametrize(
    ("status", "effect"),
    [
        ("交易成功", "paid"),
        ("success", "paid"),
        ("退票", "failed"),
        *((text, "unclear") for text in ("退回成功", "退款成功", "支付成功，已退回")),
        ("拒绝", "failed"),
        *(
            (text, "unclear")
            for text in ("提交成功", "受理成功", "未成功", "部分成功", "待成功", "unsuccessful", "", "0000")
        ),
    ],
)
def test_a_result_is_a_whole_known_word(status, effect, out, imports):
    _, path = out("10.00")
    assert imports(path, failed("P1-1", status=status)) == {effect: 1}


def test_all_columns_with_a_result_or_an_amount_must_agree(out, result):
    _, path = out("10.00", "10.00", "10.00")
    header = ["编号", "金额", "实付金额", "处理状态", "交易结果"]
    rows = [
        ["P1-1", "10.00", "10.00", "处理成功", "失败"],
        ["P1-2", "10.00", "9.00", "成功", "成功"],
        ["P1-3", "10", "10.00", "成功", "交易成功"],
    ]
    assert effects(result(path, [header, *rows])) == {"unclear": 2, "paid": 1}


@pytest.mark.parametrize("note", ["已退票", "户名不符，退汇", "失败"])
@pytest.mark.parametrize("column", ["备注", "失败原因"])
def test_a_success_next_to_a_failure_is_unclear(note, column, out, result):
    _, path = out("10.00", "10.00")
    header = ["编号", "金额", "状态", column]
    rows = [["P1-1", "10.00", "成功", note], ["P1-2", "10.00", "成功", "处理成功"]]
    assert effects(result(path, [header, *rows])) == {"unclear": 1, "paid": 1}


@pytest.mark.parametrize("reference", ["", "-", "0", "00000000", "/"])
def test_a_placeholder_is_not_a_transaction_id(reference, out, result, record, order_details):
    numbers, path = out("10.00")
    rows = [HEADER, ["P1-1", ACCOUNT, "10.00", "成功", reference, ""]]
    record(path, result(path, rows))
    assert order_details(numbers[0])["channel_reference"] == ""
    assert effects(result(path, rows)) == {"recorded": 1}


# --- results are reports, whatever happened before


def test_a_payout_rejected_while_its_file_was_out_is_a_conflict_once_paid(out, imports, flask, exceptions, steps):
    (order_no,), path = out("10.00")
    flask("order", "reject", order_no, "--reason", "no", "--in-bank-file")
    assert imports(path, paid("P1-1")) == {"contradicts": 1}
    assert exceptions() == {order_no: "payout_conflict"}
    assert results() == ["sent"]
    assert imports(path, paid("P1-1")) == {"recorded": 1}
    flask("order", "resolve", order_no, "--complete")
    assert imports(path, paid("P1-1")) == {"recorded": 1}


def test_a_rejected_payout_that_failed_at_the_bank_needs_nobody(out, imports, flask, exceptions, flask_json):
    (order_no,), path = out("10.00")
    flask("order", "reject", order_no, "--reason", "no", "--in-bank-file")
    assert imports(path, failed("P1-1")) == {"noted": 1}
    assert (results(), exceptions(), flask_json("to-do")) == (["failed"], {}, [])


def test_a_conflict_whose_transfer_was_returned_is_closed(out, imports, flask, exceptions, balances):
    before = balances()
    (order_no,), path = out("10.00")
    flask("order", "reject", order_no, "--reason", "no", "--in-bank-file")
    imports(path, paid("P1-1"))
    assert imports(path, failed("P1-1", status="退票")) == {"contradicts": 1}
    assert (exceptions(), balances()) == ({}, before)


def test_a_payout_that_failed_and_was_exported_again_is_paid_once(out, again, imports, statuses, exceptions, result):
    numbers, path = out("10.00")
    imports(path, failed("P1-1"))
    second = again(numbers)
    shown = result(path, [HEADER, paid("P1-1")])
    assert "It is also in batch 2: make sure that the bank does not send it again." in shown.text
    assert imports(path, paid("P1-1")) == {"paid": 1}
    assert (statuses(numbers), exceptions()) == (["completed"], {})
    assert results() == ["sent", None], "the second file waits for its result"
    assert imports(second, failed("P2-1")) == {"noted": 1}
    assert exceptions() == {}


def test_a_payout_that_two_files_paid_is_a_conflict(out, again, imports, exceptions):
    numbers, path = out("10.00")
    imports(path, failed("P1-1"))
    second = again(numbers)
    assert imports(second, paid("P2-1")) == {"paid": 1}
    assert imports(path, paid("P1-1")) == {"contradicts": 1}
    assert exceptions() == {numbers[0]: "payout_conflict"}


def test_two_files_without_transaction_ids_are_two_transfers(out, again, result, record, exceptions):
    numbers, path = out("10.00")
    header = ["编号", "金额", "状态"]
    record(path, result(path, [header, ["P1-1", "10.00", "失败"]]))
    second = again(numbers)
    record(second, result(second, [header, ["P2-1", "10.00", "成功"]]))
    record(path, result(path, [header, ["P1-1", "10.00", "成功"]]))
    assert exceptions() == {numbers[0]: "payout_conflict"}


def test_two_files_with_the_same_transaction_id_agree(out, again, imports, exceptions):
    numbers, path = out("10.00")
    imports(path, failed("P1-1"))
    second = again(numbers)
    imports(second, paid("P2-1", reference="BANK-7"))
    assert imports(path, paid("P1-1", reference="BANK-7")) == {"noted": 1}
    assert exceptions() == {}


def test_the_failure_of_one_file_leaves_the_conflict_about_another(out, again, imports, flask, exceptions):
    numbers, path = out("10.00")
    imports(path, failed("P1-1"))
    second = again(numbers)
    flask("order", "reject", numbers[0], "--reason", "no", "--in-bank-file")
    imports(path, paid("P1-1"))
    imports(second, paid("P2-1"))
    assert exceptions() == {numbers[0]: "payout_conflict,payout_conflict"}
    imports(second, failed("P2-1", status="退票"))
    assert exceptions() == {numbers[0]: "payout_conflict"}


def test_a_discarded_file_that_the_bank_paid_is_recorded(out, send, imports, statuses):
    numbers, path = out("10.00")
    send(f"{path}/discard", not_given="1")
    assert imports(path, failed("P1-1")) == {"recorded": 1}
    assert imports(path, paid("P1-1")) == {"paid": 1}
    assert (statuses(numbers), results()) == (["completed"], ["sent"])


def test_a_payout_marked_manually_under_another_number_was_sent_twice(out, flask, imports, exceptions):
    (order_no,), path = out("10.00")
    flask("order", "paid", order_no, "--reference", "HAND-1", "--in-bank-file")
    assert imports(path, paid("P1-1")) == {"contradicts": 1}
    assert exceptions() == {order_no: "payout_conflict"}


def test_a_payout_marked_manually_under_the_same_number_agrees(out, flask, imports, exceptions):
    (order_no,), path = out("10.00")
    flask("order", "paid", order_no, "--reference", "BANK-P1-1", "--in-bank-file")
    assert imports(path, paid("P1-1")) == {"noted": 1}
    assert (exceptions(), results()) == ({}, ["sent"])


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


def test_a_file_that_the_bank_paid_twice_is_a_conflict_and_each_return_counts(out, imports, exceptions):
    (order_no,), path = out("10.00")
    imports(path, paid("P1-1"))
    assert imports(path, paid("P1-1", reference="BANK-2")) == {"contradicts": 1}
    assert exceptions() == {order_no: "payout_conflict"}
    bounced = ["P1-1", ACCOUNT, "10.00", "退票", "BANK-2", ""]
    assert imports(path, bounced) == {"contradicts": 1}
    assert exceptions() == {}
    bounced[4] = "BANK-P1-1"
    assert imports(path, bounced) == {"contradicts": 1}
    assert exceptions() == {order_no: "reversed"}
    assert imports(path, bounced) == {"recorded": 1}


def test_a_payout_marked_manually_that_failed_at_the_bank_is_reversed(out, flask, imports, exceptions):
    (order_no,), path = out("10.00")
    flask("order", "paid", order_no, "--reference", "HAND-1", "--in-bank-file")
    assert imports(path, failed("P1-1")) == {"contradicts": 1}
    assert exceptions() == {order_no: "reversed"}


def test_a_transaction_id_of_another_order_is_a_conflict(out, flask, imports, exceptions, statuses, accepted):
    (first,) = accepted("10.00")
    flask("order", "paid", first, "--reference", "BANK-7")
    (order_no,), path = out("10.00")
    assert imports(path, paid("P1-1", reference="BANK-7")) == {"contradicts": 1}
    assert exceptions() == {order_no: "payout_conflict"}
    assert imports(path, failed("P1-1")) == {"contradicts": 1}
    assert (exceptions(), statuses([order_no])) == ({}, ["confirmed"])


def test_a_result_is_recorded_by_the_operator_in_the_timeline(out, imports, order_details):
    (order_no,), path = out("10.00")
    imports(path, paid("P1-1"))
    lines = [(line["who"], line["why"]) for line in order_details(order_no)["history"]]
    assert ("operator demo", "Bank's result of payout P1-1") in lines


# --- two operators


class TestOfTwo:
    """`second_operator_above`: a large payout in the bank's result is only requested."""

    @pytest.fixture
    def settings_of_app(self):
        return {"second_operator_above": 5_000, "confirm_above": 6_000}

    @pytest.fixture
    def second(self, sign_in):
        operators.add("second", "second-password")
        return Desk(sign_in, "second")

    def test_another_operator_imports_the_result_too(
        self, out, result, record, statuses, second, order_details, upload
    ):
        numbers, path = out("50.01")
        rows = [HEADER, paid("P1-1", amount="50.01", reference="BANK-1")]
        shown = result(path, rows)
        assert "Large payouts wait for a second operator: 1." in record(path, shown).text
        assert statuses(numbers) == ["confirmed"]
        again = result(path, rows)
        assert "You requested this payout" in again.text
        assert effects(again) == {"unclear": 1}
        shown = result(path, [HEADER, ["P1-1", ACCOUNT, "50.01", "成功", "", ""]], client=second.client)
        record(path, shown, client=second.client)
        assert statuses(numbers) == ["completed"]
        assert order_details(numbers[0])["channel_reference"] == "BANK-1"
        assert results() == ["sent"]

    def test_the_approval_on_the_orders_page_keeps_the_banks_number(
        self, out, result, record, statuses, second, order_details
    ):
        numbers, path = out("50.01")
        rows = [HEADER, paid("P1-1", amount="50.01", reference="BANK-1")]
        record(path, result(path, rows))
        second.act(numbers[0], "second-approval")
        assert (statuses(numbers), results()) == (["completed"], ["sent"])
        assert order_details(numbers[0])["channel_reference"] == "BANK-1"
        assert effects(result(path, rows)) == {"recorded": 1}

    def test_the_banks_number_completes_a_request_without_one(self, out, desk, result, record, second, order_details):
        numbers, path = out("50.01")
        desk.act(numbers[0], "paid", in_file="1")
        shown = result(path, [HEADER, paid("P1-1", amount="50.01", reference="BANK-1")], client=second.client)
        record(path, shown, client=second.client)
        assert order_details(numbers[0])["channel_reference"] == "BANK-1"

    @pytest.mark.parametrize("row", [paid("P1-1", amount="50.01", reference="BANK-2"), failed("P1-1", amount="50.01")])
    def test_a_result_that_contradicts_the_request_is_unclear(self, row, out, result, record, second, statuses):
        numbers, path = out("50.01")
        record(path, result(path, [HEADER, paid("P1-1", amount="50.01", reference="BANK-1")]))
        shown = result(path, [HEADER, row], client=second.client)
        assert effects(shown) == {"unclear": 1}
        assert statuses(numbers) == ["confirmed"]

    def test_a_large_total_needs_the_password_again(self, out, result, record, sign_in, statuses):
        numbers, path = out("40.00", "40.00")
        shown = result(path, [HEADER, paid("P1-1", amount="40.00"), paid("P1-2", amount="40.00")])
        assert record(path, shown, client=sign_in("demo", confirmed=False)).status_code == 403
        assert statuses(numbers) == ["confirmed", "confirmed"]
