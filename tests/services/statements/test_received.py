"""The received payments of statements as banks, Alipay and WeChat write them."""

import time

import pytest

from services.errors import OperatorError
from services.statements import received

ALIPAY = """支付宝（中国）网络技术有限公司  电子客户回单
起始时间：[2026-11-25 00:00:00]
------------------------
交易时间,交易分类,交易对方,对方账号,商品说明,收/支,金额,收/付款方式,交易状态,交易订单号,商家订单号,备注,
2026-11-25 10:00:01,转账红包,张三,a***@x.com,收钱码收款,收入,100.00,余额,交易成功,20261125220011\t,\t,订单 1001,
2026-11-25 10:05:00,日用百货,超市,s***@x.com,购物,支出,88.00,余额,交易成功,20261125220012\t,\t,,
2026-11-25 10:06:00,转账红包,李四,b***@x.com,转账,收入,50.00,余额,交易关闭,20261125220013\t,\t,,
2026-11-25 10:07:00,投资理财,余额宝,,收益,不计收支,0.10,余额宝,交易成功,20261125220014\t,\t,,
"""
WECHAT = """微信支付账单明细,,,,,,,,
微信昵称：[shop],,,,,,,,
交易时间,交易类型,交易对方,商品,收/支,金额(元),支付方式,当前状态,交易单号,商户单号,备注
2026-11-25 11:00:00,二维码收款,王五,"收款方备注:1002",收入,¥256.50,/,已收钱,`1000050001`,/,"/"
2026-11-25 11:01:00,转账,赵六,/,支出,¥10.00,零钱,对方已收钱,1000050002,/,/
"""
BANK = """户名,测试商户,,,,,,
交易日期,交易时间,收入金额（元）,支出金额（元）,账户余额,对方户名,交易流水号,附言
20261125,101233,"1,288.00",,"10,000.00",李四,CMB0001,SHOP-1004
20261125,101500,,5.00,"9,995.00",银行,CMB0002,手续费
合计,,"1,288.00",5.00,,,,
"""
ENGLISH = "Date,Description,Amount,Transaction ID\n2026-11-25,INV 7,+12.50,T1\n2026-11-25,fee,-1.00,T2\n"


def brief(lines):
    return [(line.reference, line.amount, line.note, bool(line.problem)) for line in lines]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gbk"])
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (ALIPAY, [("20261125220011", 10_000, "收钱码收款 订单 1001", False), ("20261125220013", 5_000, "转账", True)]),
        (WECHAT, [("1000050001", 25_650, "收款方备注:1002", False)]),
        (BANK, [("CMB0001", 128_800, "SHOP-1004", False)]),
        (ENGLISH, [("T1", 1_250, "INV 7", False)]),
    ],
    ids=["alipay", "wechat", "bank", "english"],
)
def test_received_payments_are_read(text, lines, encoding):
    if encoding == "gbk":
        text = text.replace("¥", "￥")
    assert brief(received.read(text.encode(encoding))) == lines


def test_a_bank_says_debit_or_credit_in_a_column():
    text = "流水号,借贷标志,交易金额,摘要\nA,贷,10.00,x\nB,借,20.00,y\n"
    assert brief(received.read(text.encode())) == [("A", 1_000, "x", False)]


def test_a_day_ends_with_its_last_second_in_china():
    (line,) = received.read("日期,流水号,金额\n2026-11-25,A,1.00\n".encode())
    assert line.until == 1_795_622_399
    (line,) = received.read("日期,流水号,金额\n2026-13-99,A,1.00\n".encode())
    assert line.until is None


def test_a_line_without_a_transaction_id_can_not_be_matched():
    first, second = received.read(f"流水号,金额\n,1.00\n{'9' * 201},2.00\n".encode())
    assert first.problem
    assert second.problem


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"PK\x03\x04" + bytes(100), "Excel workbook"),
        (b"\x1f\x8b" + bytes(100), "compressed"),
        (b"\xff\xfeA\x00", "neither UTF-8 nor GBK"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "neither UTF-8 nor GBK"),
        (bytes(5_000), "No line of the file names columns"),
        ("姓名,金额\n张三,1.00\n".encode(), "No line of the file names columns"),
        ('流水号,金额\n"A,1.00\n'.encode(), "line 2"),
        ("流水号,金额\n2.0261E+27,1.00\n".encode(), "a spreadsheet shortened"),
        (f"流水号,金额\n{'x' * 200_000},1.00\n".encode(), "line 2"),
    ],
    ids=["xlsx", "gzip", "utf-16", "image", "zeros", "no columns", "open quote", "shortened", "huge cell"],
)
def test_a_file_that_is_no_statement_is_refused(raw, words):
    with pytest.raises(OperatorError, match=words):
        received.read(raw)


def test_too_many_payments_are_refused(monkeypatch):
    monkeypatch.setattr(received, "MOST_LINES", 2)
    with pytest.raises(OperatorError, match="more than 2 received payments"):
        received.read("流水号,金额\nA,1.00\nB,1.00\nC,1.00\n".encode())


@pytest.mark.parametrize("amount", ["1e5", "１２", "12.345", "9" * 14, "NaN", "--1", ""])
def test_a_text_that_is_no_amount_is_no_payment(amount):
    assert received.read(f"流水号,金额\nA,{amount}\n".encode()) == []


@pytest.mark.parametrize("above", ["\n" * 3_000_000, "x\n" * 1_000_000], ids=["empty lines", "short lines"])
def test_a_long_file_without_a_header_is_refused_soon(above):
    begun = time.process_time()
    with pytest.raises(OperatorError, match="No line of the file names columns"):
        received.read(above.encode())
    assert time.process_time() - begun < 1


def test_only_the_beginning_of_a_long_note_is_read():
    (line,) = received.read(f"流水号,金额,备注\nA,1.00,{'x' * 10_000}\n".encode())
    assert len(line.note) == received.LONGEST_NOTE
