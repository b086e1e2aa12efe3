"""`tillbook reconcile`: the files that it reads, and those that it refuses."""

import io
import json
from datetime import datetime

from openpyxl import Workbook

from gateways.base import Driver
from gateways.sandbox.driver import SandboxDriver
from gateways.statement import Layout
from models.tables.statement_layout import StatementLayout
from tests.cli.conftest import MANUAL
from tests.cli.reconcile.conftest import HEADER, NOW, csv_of, line
from tests.support import completed

WECHAT = Layout(
    number=("商户订单号",),
    reference=("微信订单号",),
    amount=("订单金额",),
    refund=("申请退款金额",),
    fee=("手续费",),
    status=("交易状态",),
    time=("交易时间",),
    paid=frozenset({"SUCCESS"}),
    refunded=frozenset({"REFUND"}),
)
SUMS = dict.fromkeys(("in", "out", "refunds", "fees", "unknown"), "0.00")


def test_a_file_of_wechats_shape(api, compared, monkeypatch):
    monkeypatch.setattr(SandboxDriver, "statement", WECHAT)
    first, second = completed(api), completed(api)
    header = "交易时间,微信订单号,商户订单号,交易状态,商品名称,手续费,订单金额,申请退款金额,费率备注"
    lines = [
        f"`{NOW},`SB{first},`{first},`SUCCESS,`Order {first},`0.60000,`100.00,`0.00,`",
        f'`{NOW},`SB{second},`{second},`SUCCESS,`a, b, "c",`0.60000,`100.00,`0.00,`',
        f"`{NOW},`SB{second},`{second},`REFUND,`a, b,`-0.24000,`0.00,`40.00,`",
        "总交易单数,应结订单总金额,退款总金额,充值券退款总金额,手续费总金额,订单总金额,申请退款总金额",
        "`3,`160.00,`40.00,`0.00,`0.96000,`200.00,`40.00",
    ]
    found = compared("\ufeff" + "\r\n".join((header, *lines, "")))
    assert (found["lines"], found["matched"]) == (3, 3)
    assert found["sums"]["there"] == SUMS | {"in": "200.00", "refunds": "40.00", "fees": "0.96"}
    (refund,) = found["differences"]
    assert (refund["kind"], refund["there"]) == ("status", {"status": "refunded", "amount": "40.00"})


def test_a_file_of_alipays_shape(api, compared):
    first, second = completed(api), completed(api)
    lines = [
        "#支付宝业务明细查询",
        "#账号：[20880000000000000156]",
        "#-----------------------------------------业务明细列表----------------------------------------",
        "支付宝交易号,商户订单号,业务类型,商品名称,创建时间,完成时间,订单金额（元）,服务费（元）,备注",
        f"SB{first}\t,{first}\t,交易\t,付款,{NOW},{NOW},100.00,-0.60,",
        f"SB{second}\t,{second}\t,交易\t,付款,{NOW},{NOW},100.00,-0.60,",
        f"SB{second}\t,{second}\t,退款\t,付款,{NOW},{NOW},-100.00,0.60,",
        "#-----------------------------------------业务明细列表结束------------------------------------",
        "#交易合计：2笔，商家实收共200.00元",
        "#退款合计：1笔",
    ]
    columns = (
        *("number=商户订单号", "reference=支付宝交易号", "amount=订单金额（元）", "fee=服务费（元）"),
        *("status=业务类型", "time=完成时间", "paid=交易", "refunded=退款"),
    )
    options = [option for column in columns for option in ("--column", column)]
    found = compared("\r\n".join(lines).encode("gb18030"), *options)
    assert (found["lines"], found["matched"]) == (3, 3)
    assert found["sums"]["there"] == SUMS | {"in": "200.00", "refunds": "100.00", "fees": "0.60"}
    assert [(each["kind"], each["order_no"]) for each in found["differences"]] == [("status", second)]


def test_another_drivers_layout_can_be_chosen(api, compared, monkeypatch):
    monkeypatch.setattr(SandboxDriver, "statement", Layout(number=("mine",)))
    order_no = completed(api)
    assert Driver.statement.number != ("mine",)
    assert compared(csv_of(line(order_no), header=HEADER.replace("order_no", "mine")))["differences"] == []


# Account statements of manual channels


def test_an_account_statement_is_compared_by_its_own_columns(claimed, flask, world, compared):
    """As the bank lists it: by the transaction ID, otherwise by the order number in the note."""
    by_reference, by_note = claimed("100.00"), claimed("50.00")
    for order_no, reference in ((by_reference, "B1"), (by_note, "")):
        flask("order", "paid", order_no, *(("--reference", reference) if reference else ()))
    payout = world.api.sell("20.00", MANUAL).data["order_no"]
    flask("order", "approve", payout)
    flask("order", "paid", payout, "--reference", "B4")
    rows = [
        f"{NOW},B1,100.00,,",
        f"{NOW},B2,50.00,,{by_note}",
        f"{NOW},B3,7.00,,",
        f"{NOW},B4,,20.00,",
        f"{NOW},,,0.50,手续费",
    ]
    head = "交易时间,流水号,收入金额,支出金额,附言"
    StatementLayout.insert(
        channel=MANUAL,
        header=json.dumps(head.split(","), ensure_ascii=False),
        roles='["time", "reference", "income", "expense", "note"]',
        who="anna",
        createtime=1,
    ).execute()
    found = compared(csv_of(*rows, header=head), channel=MANUAL)
    assert (found["lines"], found["matched"]) == (5, 3)
    assert [(each["kind"], each["line"]) for each in found["differences"]] == [("missing_here", 4), ("missing_here", 6)]
    assert found["sums"]["there"] == SUMS | {"in": "150.00", "out": "20.00", "unknown": "6.50"}


def test_a_reversed_payment_is_a_difference_and_an_unclear_row_ends_the_comparison(claimed, flask, compared, run):
    flask("order", "paid", claimed("100.00"), "--reference", "B1")
    header, paid = "交易时间,流水号,收入金额,附言", f"{NOW},B1,100.00,"
    found = compared(csv_of(paid, f"{NOW},B1,-100.00,冲正", header=header), channel=MANUAL)
    assert [(each["kind"], each["line"]) for each in found["differences"]] == [("status", 3)]
    unclear = csv_of(f"{NOW},B1,x,", header=header)
    assert run(unclear, channel=MANUAL).stderr == "Error: line 2 is unclear: not an amount in yuan: 'x'\n"


# Files without a column for the status


def test_a_file_without_a_status_column_needs_a_confirmation(api, refused, compared, paid_out):
    deposit, withdrawal = completed(api), paid_out()
    lines = [f"{deposit},100.00,{NOW}", f"{deposit},-100.00,{NOW}", f"{withdrawal},-100.00,{NOW}"]
    content = csv_of(*lines, header="order_no,amount,time")
    assert "no status column, so each line would count as a completed payment" in refused(content)
    found = compared(content, "--all-paid")  # a negative amount is a refund, or a payout
    assert [(each["kind"], each["order_no"], each["line"]) for each in found["differences"]] == [("status", deposit, 3)]
    assert found["sums"]["there"] == SUMS | {"in": "100.00", "out": "100.00", "refunds": "100.00"}


def test_the_lines_end_at_their_sums(api, compared, refused):
    order_no = completed(api)
    for sums in ("合计,2", "总计,,200.00", "总笔数,总金额,退款", "#,1,2"):
        content = csv_of(f"{NOW},{order_no},100", sums, "2,200.00", header="time,order_no,amount")
        found = compared(content, "--all-paid")
        assert (found["lines"], found["differences"]) == (1, []), sums
        assert "line 5 is below the totals" in refused(content + f"{NOW},1,1\n", "--all-paid")


def test_a_column_that_changes_what_a_line_means_is_never_ignored(run):
    for column, value, words in (
        ("币种", "USD", "line 2, column 币种: another currency than the yuan"),
        ("货币", "人民币", "Column 货币 looks like a currency"),
        ("收/支", "支出", "Column 收/支 looks like a direction"),
        ("x", "支出", "Column x looks like a direction"),
    ):
        content = csv_of(f"{NOW},1,100,{value}", header=f"time,order_no,amount,{column}")
        assert words in run(content, "--all-paid", channel=MANUAL).stderr, column


# What is read


def test_a_statement_is_read_in_each_encoding_with_each_separator_and_as_a_workbook(api, compared):
    order_no = completed(api)
    content = csv_of(line(order_no))
    for encoding, separator in (("utf-8-sig", ","), ("utf-16", ";"), ("gb18030", "\t")):
        assert compared(content.replace(",", separator).encode(encoding))["matched"] == 1, encoding
    book = Workbook()
    book.active.append(["order_no", "amount", "status", "time"])
    book.active.append([order_no, 100, "paid", datetime(2026, 5, 1, 12)])
    raw = io.BytesIO()
    book.save(raw)
    found = compared(raw.getvalue())
    assert (found["matched"], found["differences"]) == (1, [])


def test_text_around_the_lines_is_ignored(api, compared):
    first, second = completed(api), completed(api)
    for before, after, encoding in (
        ("", "", "utf-8-sig"),
        ("platform,export\n\n", "\n\n合计,200.00,,,,\n", "utf-8"),
        ("平台,导出\n", "合计,200.00\n", "gbk"),
        ("", "总计,,\n一,二,三\n", "utf-8"),
    ):
        found = compared(f"{before}{csv_of(line(first), line(second))}{after}".encode(encoding))
        assert (found["matched"], found["differences"]) == (2, []), (before, after)


def test_numbers_amounts_and_times_are_read_as_they_are_written(api, compared):
    order_no = api.buy("1234.50").data["order_no"]
    api.play(order_no, "success")
    for number in ("{}", "\t{}\t", "'{}", '"=""{}"""', "`{}", " {} "):  # padding against spreadsheets
        assert compared(csv_of(f"{number.format(order_no)},1234.50,0,paid,{NOW},"))["differences"] == [], number
    for amount in ("1,234.50", "1234.5", "1234.5000", "+1,234.50"):
        assert compared(csv_of(line(order_no, amount)))["differences"] == [], amount
    for time in ("2026-05-01 12:00:00", "2026/5/1 12:00", "2026-05-01T12:00:00", "2026-05-01"):
        assert compared(csv_of(line(order_no, "1234.50", time=time)))["since"] == "2026-05-01", time


# What is refused


def test_a_line_that_cannot_be_read_ends_it_and_is_named(refused):
    for damaged, words in (
        ("1,12.345,0,paid,2026-05-01 12:00,", "column amount: not an amount in yuan: '12.345'"),
        ('1,"12,50",0,paid,2026-05-01 12:00,', "column amount: not an amount in yuan: '12,50'"),
        ("1,,0,paid,2026-05-01 12:00,", "column amount: not an amount in yuan: ''"),
        ("1,1e3,0,paid,2026-05-01 12:00,", "column amount: not an amount in yuan: '1e3'"),
        ("1,12,free,paid,2026-05-01 12:00,", "column fee: not an amount in yuan: 'free'"),
        ("1,12,0,maybe,2026-05-01 12:00,", "column status: 'maybe' is none of 0, 1, 2, cancelled, "),
        ("1,12,0,paid,yesterday,", "column time: no time such as 2026-05-01 12:00:00: 'yesterday'"),
        ("1,12,0,paid,2026-02-30 12:00,", "column time: no time such as 2026-05-01 12:00:00: '2026-02-30 12:00'"),
        ("1,12,0", "column status: the line ends before it"),
        ("2.02605E+23,12,0,paid,2026-05-01 12:00,", "column order_no: a spreadsheet shortened it"),
        ("1�,12,0,paid,2026-05-01 12:00,", "column order_no: damaged characters: 1�"),
    ):
        assert f"line 3, {words}" in refused(csv_of(line("1"), damaged)), damaged


def test_a_file_that_cannot_be_read_or_dated_is_refused(refused):
    for content, words in (
        (b"", "the statement has no line with the columns"),
        (b"a,b\n1,2\n", "order_no or out_trade_no and amount or money: specify them with --column"),
        (b"order_no,amount,status\n\xff\xff,1,paid\n", "line 2, column order_no: damaged characters"),
        (b"PK\x03\x04....", "The Excel workbook is damaged."),
        (b"\x1f\x8b....", "compressed"),
        (b"order_no,amount,status\n1,2,paid\n", "with --since"),
        (csv_of().encode(), "with --since"),
    ):
        assert words in refused(content), content


def test_a_file_that_would_fill_the_memory_or_has_values_beside_its_columns_is_refused(refused, monkeypatch):
    beside = csv_of(f"{NOW},1,100,0", header="time,order_no,amount")
    assert "line 2 has more values than the file has columns" in refused(beside, "--all-paid")
    monkeypatch.setattr("services.statements.tables.MOST_BYTES", 100)
    assert "larger than" in refused(csv_of(line("1"), line("2")))


def test_options_that_make_no_sense_are_refused(refused):
    for options, status, words in (
        (("--column", "colour=red"), 1, "unknown column colour: choose from number, "),
        (("--column", "status=state"), 1, "has no column state"),
        (("--column", "number"), 2, "NAME=VALUE"),
        (("--since", "2026-05-02"), 1, "the last day (2026-05-01) is before the first (2026-05-02)"),
        (("--fee-rate", "101"), 2, "a percentage from 0 to 100"),
    ):
        assert words in refused(csv_of(line("1")), *options, status=status), options


def test_a_rate_needs_a_column_for_the_fee_and_the_channel_must_be_known(refused, run):
    assert "has no column fee" in refused(f"order_no,amount,time\n1,2,{NOW}\n", "--fee-rate", "0.6")
    result = run(csv_of(), channel=99)
    assert (result.exit_code, result.stderr) == (1, "Error: no channel 99\n")
