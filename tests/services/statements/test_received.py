"""What each row of an account statement says, in the layouts of Alipay, WeChat and banks."""

import io

import pytest
from openpyxl import Workbook

from services.errors import OperatorError
from services.statements import layouts, received
from services.statements.layouts import Role, UnknownLayout
from services.statements.received import Kind

RECEIVED, TAKEN_BACK, NOT_MONEY_IN, UNCLEAR = Kind.RECEIVED, Kind.TAKEN_BACK, Kind.NOT_MONEY_IN, Kind.UNCLEAR
ALIPAY = """支付宝（中国）网络技术有限公司  电子客户回单
起始时间：[2026-11-25 00:00:00]
------------------------
交易时间,交易分类,交易对方,对方账号,商品说明,收/支,金额,收/付款方式,交易状态,交易订单号,商家订单号,备注,
2026-11-25 10:00:01,转账红包,张三,a***@x.com,收钱码收款,收入,100.00,余额,交易成功,20261125220011\t,\t,订单 1001,
2026-11-25 10:05:00,日用百货,超市,s***@x.com,购物,支出,88.00,余额,交易成功,20261125220012\t,\t,,
2026-11-25 10:06:00,转账红包,李四,b***@x.com,转账,收入,50.00,余额,交易关闭,20261125220013\t,\t,,
2026-11-25 10:07:00,投资理财,余额宝,,收益,不计收支,0.10,余额宝,交易成功,20261125220014\t,\t,,
2026-11-25 10:08:00,转账红包,王五,c***@x.com,转账,收入,60.00,余额,交易成功,20261125220015\t,\t,退款,
"""
WECHAT = """微信支付账单明细,,,,,,,,
微信昵称：[shop],,,,,,,,
交易时间,交易类型,交易对方,商品,收/支,金额(元),支付方式,当前状态,交易单号,商户单号,备注
2026-11-25 11:00:00,二维码收款,王五,"收款方备注:1002",收入,¥256.50,/,已收钱,`1000050001`,/,"/"
2026-11-25 11:01:00,转账,赵六,/,支出,¥10.00,零钱,对方已收钱,1000050002,/,/
2026-11-25 11:02:00,二维码收款,钱七,/,收入,¥20.00,/,已全额退款,1000050003,/,/
2026-11-25 11:03:00,商户消费-退款,超市,/,收入,¥30.00,/,支付成功,1000050004,/,/
"""
CMB = """账号,12345
账号,账号名称,币种,交易日,交易时间,起息日,交易类型,借方金额,贷方金额,余额,摘要,流水号,用途,业务摘要,其它摘要,收/付方名称,收/付方帐号,冲帐标志
1,商户,人民币,20261125,101233,20261125,转账,,"1,288.00","10,000.00",SHOP-1004,CMB0001,,,,李四,6222,
1,商户,人民币,20261125,101500,20261125,费用,5.00,,"9,995.00",手续费,CMB0002,,,,银行,,
1,商户,美元,20261125,101600,20261125,转账,,60.00,60.00,,CMB0003,,,,李四,6222,
1,商户,人民币,20261125,101700,20261125,转账,,-70.00,60.00,,CMB0004,,,,李四,6222,
1,商户,人民币,20261125,101800,20261125,转账,,80.00,60.00,,CMB0005,,,,李四,6222,Y
1,商户,,20261125,101900,20261125,转账,,90.00,60.00,,CMB0006,,,,李四,6222,
合计,,,,,,,5.00,"1,288.00",,,,,,,,,
共7笔
"""
ICBC = """凭证号,本方账号,对方账号,交易时间,借/贷,借方发生额,贷方发生额,对方行号,摘要,用途,对方单位名称,余额,个性化信息
7001,1,2,2026-11-25 10:00:00,贷,,100.00,3,转账,货款,张三,100.00,
0,1,2,2026-11-25 10:01:00,贷,,50.00,3,转账,货款,张三,150.00,
7003,1,2,2026-11-25 10:02:00,贷,40.00,,3,转账,货款,张三,150.00,
7004,1,2,2026-11-25 10:03:00,往,,40.00,3,转账,货款,张三,150.00,
"""
PLAIN = "交易时间,流水号,收入金额,附言\n"


def brief(text):
    return [(row.at, row.kind, row.amount) for row in received.read(text.encode()).rows]


def kinds(text):
    return [row.kind for row in received.read(text.encode()).rows]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (
            ALIPAY,
            [
                (5, RECEIVED, 10_000),
                (6, NOT_MONEY_IN, -8_800),
                (7, NOT_MONEY_IN, 5_000),
                (8, NOT_MONEY_IN, 10),
                (9, UNCLEAR, 6_000),
            ],
        ),
        (WECHAT, [(4, RECEIVED, 25_650), (5, NOT_MONEY_IN, -1_000), (6, TAKEN_BACK, 2_000), (7, UNCLEAR, 3_000)]),
        (
            CMB,
            [
                (3, RECEIVED, 128_800),
                (4, NOT_MONEY_IN, -500),
                (5, NOT_MONEY_IN, None),
                (6, TAKEN_BACK, -7_000),
                (7, UNCLEAR, 8_000),
                (8, UNCLEAR, None),
                (9, NOT_MONEY_IN, None),
                (10, NOT_MONEY_IN, None),
            ],
        ),
        (ICBC, [(2, RECEIVED, 10_000), (3, UNCLEAR, 5_000), (4, UNCLEAR, -4_000), (5, UNCLEAR, 4_000)]),
    ],
    ids=["alipay", "wechat", "cmb", "icbc"],
)
def test_each_row_of_a_known_layout_says_one_thing(text, rows):
    assert brief(text) == rows


def test_a_payment_has_its_facts():
    row = received.read(CMB.encode("gb18030")).rows[0]
    assert (row.reference, row.note, row.payer, row.account) == ("CMB0001", "SHOP-1004", "李四", "6222")
    assert (row.since, row.until) == (1_795_572_753, 1_795_572_753)


def test_a_workbook_is_read_like_its_csv_file():
    book = Workbook()
    for line in WECHAT.replace("¥", "").splitlines()[2:4]:
        book.active.append([cell.strip('`"') for cell in line.split(",")])
    raw = io.BytesIO()
    book.save(raw)
    [row] = received.read(raw.getvalue()).rows
    assert (row.kind, row.amount, row.reference, row.note) == (RECEIVED, 25_650, "1000050001", "收款方备注:1002")


# One row


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        *[
            (f"2026-11-25,B1,{amount},x", RECEIVED)
            for amount in (".50", "６０.０８", '"1，060.14"', "CNY60.11", "¥60.11")
        ],
        *[(f"2026-11-25,B1,{amount},x", UNCLEAR) for amount in ("1e5", "12.345", "USD60", "x", "", "6\ufffd")],
        *[(f"2026-11-25,B1,{amount},x", TAKEN_BACK) for amount in ("60.25-", "-60.25", "(60.25)")],
        ("2026-11-25,B1,0.00,x", NOT_MONEY_IN),
        *[(f"{time},B1,1.00,x", UNCLEAR) for time in ("2026-13-99", "", "11/25/2026", "2026-11-2\ufffd")],
        *[(f"2026-11-25,{number},1.00,x", UNCLEAR) for number in ("", "0", "-", "2.02611E+27", "9" * 65)],
        *[
            (f"2026-11-25,B1,1.00,{note}", UNCLEAR)
            for note in ("冲正", "退款 1001", "跨行退汇", "退还货款", "原路返回", "错账更正", "Return of payment")
        ],
        ("2026-11-25,B1,1.00,a,b", UNCLEAR),
        ("2026-11-25,B1,1.00,\ufffd", RECEIVED),
        ("2026-11-25,B1,1.00", RECEIVED),
        ("交易时间,流水号,收入金额,附言", NOT_MONEY_IN),
        ("合计,,1.00,", NOT_MONEY_IN),
        ("导出人：张三", NOT_MONEY_IN),
    ],
)
def test_a_row_that_is_not_understood_is_never_a_payment(row, kind):
    assert kinds(PLAIN + row + "\n") == [kind]


def test_a_damaged_note_is_kept_as_such_and_of_a_long_one_the_beginning():
    damaged, long = received.read(
        f"{PLAIN}2026-11-25,A,1.00,10\ufffd1\n2026-11-25,B,1.00,{'x' * 9_999}\n".encode()
    ).rows
    assert "\ufffd" in damaged.note
    assert len(long.note) == received.LONGEST_NOTE


# Reversals and refunds


def test_a_reversal_cancels_the_payment_that_it_names_or_makes_its_amount_unclear():
    payments = f"{PLAIN}2026-11-25,B1,60.25,\n2026-11-25,B2,60.25,\n"
    for reversal, found in (
        ("B1,-60.25,", [NOT_MONEY_IN, RECEIVED, NOT_MONEY_IN]),
        ("B9,-60.25,冲正", [UNCLEAR, UNCLEAR, TAKEN_BACK]),
        ("B1,-10.00,", [UNCLEAR, RECEIVED, TAKEN_BACK]),
        ("B9,-9.00,冲正", [RECEIVED, RECEIVED, TAKEN_BACK]),
    ):
        assert kinds(f"{payments}2026-11-25,{reversal}\n") == found, reversal


APP = "交易时间,交易分类,交易对方,对方账号,商品说明,收/支,金额,收/付款方式,交易状态,交易订单号,商家订单号,备注\n"
PAYMENT = "2026-11-25 10:00:01,转账,张三,a,收款,收入,60.25,余额,交易成功,A1,,\n"


def test_a_refund_that_is_no_expense_takes_a_payment_back_too():
    for refund, found in (
        ("张三,a,收款,不计收支,60.25,余额,退款成功,A1", [NOT_MONEY_IN, NOT_MONEY_IN]),
        ("张三,a,退款-收款,不计收支,60.25,余额,交易成功,A1", [NOT_MONEY_IN, NOT_MONEY_IN]),
        ("张三,a,收款,不计收支,60.25,余额,退款成功,A2", [UNCLEAR, TAKEN_BACK]),
        ("张三,a,收款,支出,60.25,余额,退款成功,A2", [UNCLEAR, TAKEN_BACK]),
        ("张三,a,收款,不计收支,60.25,余额,交易成功,A2", [RECEIVED, NOT_MONEY_IN]),
    ):
        assert kinds(f"{APP}{PAYMENT}2026-11-25 11:00:01,其他,{refund},,\n") == found, refund


def test_money_sent_with_a_mark_of_a_reversal_takes_a_payment_back():
    lines = CMB.splitlines()[:3]
    lines.append('1,商户,人民币,20261125,111233,20261125,转账,"1,288.00",,1.00,,CMB0009,,,,李四,6222,*')
    assert kinds("\n".join(lines)) == [UNCLEAR, TAKEN_BACK]


WEB = (
    "交易号,付款时间,交易创建时间,最近修改时间,交易来源地,服务费（元）,成功退款（元）,资金状态,类型,交易对方,金额（元）,"
    "收/支,交易状态,商家订单号,商品名称,备注\n"
)


def test_a_payment_with_a_refunded_amount_is_unclear():
    times = "2026-11-25 10:00:00," * 3
    for refunded, kind in (("0.00", RECEIVED), ("", RECEIVED), ("0.01", UNCLEAR), ("x", UNCLEAR)):
        row = f"A1,{times}其他,0.00,{refunded},已收入,转账,张三,60.25,收入,交易成功,,,\n"
        assert kinds(WEB + row) == [kind], refunded


def test_the_account_of_a_file_must_be_in_yuan():
    payment = f"{PLAIN}2026-11-25,B1,1.00,x\n"
    for above in ("币种：美元", "账号:123  币种：HKD  户名:x", "账号,123,币种,美元", "Currency: USD"):
        with pytest.raises(OperatorError, match="another currency"):
            kinds(f"{above}\n{payment}")
    for above in ("币种：人民币", "账号:123  币种：人民币(元)  户名:x", "币种,人民币", "Currency: CNY"):
        assert kinds(f"{above}\n{payment}") == [RECEIVED], above


def test_a_further_column_may_not_speak_against_the_payment():
    for name, cells, what in (
        ("退款金额", ["60.25", ""], "a status"),
        ("是否撤销", ["是", "否"], "a status"),
        ("标记", ["成功", "挂账"], "a status"),
        ("标记", ["收入", "其他"], "a direction"),
        ("标记", ["CNY", "XAU"], "a currency"),
        ("标记", ["156", "840"], "a currency"),
        ("交易币种", ["USD"], "a currency"),
    ):
        rows = "".join(f"2026-11-25,B{at},1.00,x,{cell}\n" for at, cell in enumerate(cells))
        with pytest.raises(UnknownLayout, match=f"looks like {what}"):
            kinds(f"{PLAIN.strip()},{name}\n{rows}")
    assert kinds(f"{PLAIN.strip()},网点\n2026-11-25,B1,1.00,x,7\n") == [RECEIVED]


def test_many_reversals_of_one_amount_make_each_of_its_payments_unclear():
    rows = "".join(f"2026-11-25,A{at}x,1.00,\n2026-11-25,B{at}x,-1.00,\n" for at in range(1_000))
    assert kinds(PLAIN + rows) == [UNCLEAR, TAKEN_BACK] * 1_000


@pytest.mark.parametrize(
    ("note", "kind"), [("", UNCLEAR), ("货款", UNCLEAR), ("手续费", RECEIVED), ("service fee", RECEIVED)]
)
def test_money_sent_under_the_id_of_a_payment_may_be_a_part_of_it_unless_it_is_a_fee(note, kind):
    columns = ["交易时间", "流水号", "收入金额", "支出金额", "附言"]
    roles = [Role.TIME, Role.REFERENCE, Role.INCOME, Role.EXPENSE, Role.NOTE]
    text = f"{','.join(columns)}\n2026-11-25,B1,60.25,,\n2026-11-25,B1,,10.00,{note}\n"
    assert [row.kind for row in other(text, columns, roles)] == [kind, NOT_MONEY_IN]


# Columns that an operator confirms

HEADER = ["日期", "凭证", "金额", "收/支", "币种", "结果", "说明"]
ROLES = [Role.TIME, Role.REFERENCE, Role.AMOUNT, Role.DIRECTION, Role.CURRENCY, Role.STATUS, Role.NOTE]
ROW = "2026-11-25,A1,1.00,收入,CNY,成功,x"


def other(text, header=tuple(HEADER), roles=ROLES):
    return received.read(text.encode(), [layouts.confirmed([layouts.bare(each) for each in header], roles)]).rows


def test_an_unknown_header_asks_for_its_columns():
    with pytest.raises(UnknownLayout) as asked:
        received.read(f"银行,,\n{','.join(HEADER)}\n{ROW}\n".encode())
    assert [at for at, _ in asked.value.rows] == [1, 2, 3]


def test_confirmed_columns_read_files_with_the_same_header_only():
    text = f"{','.join(HEADER)}\n{ROW}\n2026-11-25,A2,1.00,支出,CNY,成功,x\n"
    assert [row.kind for row in other(text)] == [RECEIVED, NOT_MONEY_IN]
    with pytest.raises(UnknownLayout):
        other(text.replace("说明", "备注"))


@pytest.mark.parametrize(
    ("place", "value", "what"),
    [(3, "收入", "a direction"), (4, "CNY", "a currency"), (5, "成功", "a status")],
)
@pytest.mark.parametrize("is_named", [True, False])
def test_a_column_that_may_change_the_meaning_of_a_row_is_not_ignored(place, value, what, is_named):
    header = [*HEADER[:place], HEADER[place] if is_named else "x", *HEADER[place + 1 :]]
    roles = [*ROLES[:place], Role.IGNORED, *ROLES[place + 1 :]]
    if place == 3:
        roles[2] = Role.SIGNED
    with pytest.raises(UnknownLayout, match=f"Column {header[place]} looks like {what}"):
        other(f"{','.join(header)}\n{ROW}\n", header, roles)


def test_roles_that_leave_money_or_time_open_are_refused():
    for change, words in (
        ({3: Role.NOTE}, "received or sent"),
        ({2: Role.NOTE}, "one column of amounts"),
        ({2: Role.SIGNED, 6: Role.INCOME}, "one column of amounts"),
        ({2: Role.EXPENSE}, "one column of amounts"),
        ({0: Role.NOTE}, "No column has the time"),
        ({1: Role.NOTE}, "No column has the transaction ID"),
        ({6: Role.TIME}, "same content"),
    ):
        roles = [change.get(place, role) for place, role in enumerate(ROLES)]
        with pytest.raises(OperatorError, match=words):
            layouts.check(layouts.confirmed(HEADER, roles))


def test_amounts_in_another_unit_than_yuan_are_refused():
    for name in ("金额（美元）", "金额(USD)", "金额（分）", "交易金额[万元]", "Amount (HKD)"):
        header = [layouts.bare(each) for each in (*HEADER[:2], name, *HEADER[3:])]
        with pytest.raises(OperatorError, match="not in yuan"):
            layouts.check(layouts.confirmed(header, ROLES))


def test_the_suggested_roles_of_a_bank_are_those_of_its_names():
    names = ("交易日期", "交易时间", "收入金额（元）", "支出金额（元）", "流水号", "附言", "余额")
    suggested = [Role.TIME, Role.CLOCK, Role.INCOME, Role.EXPENSE, Role.REFERENCE, Role.NOTE, Role.IGNORED]
    assert layouts.suggested([layouts.bare(each) for each in names]) == suggested


# Files as a whole


def test_another_table_below_the_first_one_is_refused():
    for again in (
        *("流水号,交易时间,收入金额,附言", "交易时间,流水号,支出金额,附言", "交易时间,流水号,支出金额,用途"),
        "记账日期,交易单号,支出,用途",
    ):
        with pytest.raises(OperatorError, match="Line 3 names other columns"):
            kinds(f"{PLAIN}2026-11-25,B1,1.00,x\n{again}\n2026-11-25,B2,1.00,x\n")


def test_too_many_rows_are_refused(monkeypatch):
    monkeypatch.setattr(received, "MOST_ROWS", 2)
    with pytest.raises(OperatorError, match="more than 2 rows"):
        received.read((PLAIN + "2026-11-25,B1,1.00,\n" * 3).encode())
