"""What the cells of banks' files say, in every spelling; and what is not understood."""

from datetime import datetime

import pytest

from runtime.clock import CHINA
from services.channels.payment_numbers import transaction_id
from services.statements import values
from services.statements.values import Direction, Meaning, Unreadable

AMOUNTS = {  # by fen, in yuan
    6_014: ["60.14"],
    6_000: ["60"],
    6_010: ["60.1", "60.1000"],
    50: [".50"],
    0: ["0.00"],
    -1: ["-0.01"],
    6_008: ["６０.０８", "６０．０８"],
    6_009: ["60.090"],
    106_014: ["1,060.14", "1，060.14", "1 060.14"],
    1_234_567_890: ["12,345,678.90"],
    6_025: ["+60.25"],
    -6_025: ["60.25-", "-60.25", "－60.25", "−60.25", "(60.25)", "（60.25）", "- 60.25"],
    6_011: [
        *("¥60.11", "￥60.11", "¥ 60.11", "CNY60.11", "cny 60.11", "RMB60.11", "人民币60.11"),
        *("60.11元", "60.11 元", "60.11CNY"),
    ],
    -6_011: ["-¥60.11", "¥-60.11"],
}


def test_an_amount_is_read_in_every_spelling():
    assert {fen: [text for text in texts if values.amount(text) == fen] for fen, texts in AMOUNTS.items()} == AMOUNTS


def refused(read, texts):
    """The texts that are not understood."""
    found = []
    for text in texts:
        try:
            read(text)
        except Unreadable:
            found.append(text)
    return found


def test_a_text_that_is_no_amount_is_never_guessed():
    texts = [
        *("", " ", "-", "+", ".", "1e5", "6.1E+3", "60.125", "60.1001", "NaN", "Infinity", "--1", "-60-", "(-60)"),
        *("(60", "60)", "60,14", "1,06014", "10,60.14", "1.060,14", "1'060.14", "12 34", "60.14 60.14", "60.1.4"),
        *("6²", "٦٠", "①", "60.14.", "60.1O", "60.14?", "60.14%", "60.14万", "0x10", "=60.14*1", "#VALUE!", "1_000"),
        *("USD60.11", "$60.11", "60.11€", "60.11 美元", "60.11贷", "60.11CR", "9" * 14, "\ufffd60.11", "6\ufffd"),
    ]
    assert refused(values.amount, texts) == texts


MINUTE, DAY = 60, 86_400


@pytest.mark.parametrize(
    ("text", "first", "seconds"),
    [
        ("2026-11-02 09:05:07", "2026-11-02 09:05:07", 1),
        ("2026-11-02T09:05:07", "2026-11-02 09:05:07", 1),
        ("2026-11-02 09:05:07.123", "2026-11-02 09:05:07", 1),
        ("2026/11/2 9:05", "2026-11-02 09:05:00", MINUTE),
        ("2026/11/2　９：０５", "2026-11-02 09:05:00", MINUTE),
        ("2026.11.02", "2026-11-02 00:00:00", DAY),
        ("2026年11月2日", "2026-11-02 00:00:00", DAY),
        ("2026年11月2日9时5分7秒", "2026-11-02 09:05:07", 1),
        ("2026年11月2日 9:05", "2026-11-02 09:05:00", MINUTE),
        ("2026/11/2 下午3:05:09", "2026-11-02 15:05:09", 1),
        ("2026/11/2 3:05:09 PM", "2026-11-02 15:05:09", 1),
        ("2026/11/2 12:05 AM", "2026-11-02 00:05:00", MINUTE),
        ("20261102", "2026-11-02 00:00:00", DAY),
        ("20261102090507", "2026-11-02 09:05:07", 1),
        ("20261102 090507", "2026-11-02 09:05:07", 1),
        ("20261102 09:05:07", "2026-11-02 09:05:07", 1),
        ("2026-11-02T01:05:07Z", "2026-11-02 09:05:07", 1),
        ("2026-11-02 10:05:07+09:00", "2026-11-02 09:05:07", 1),
        ("46328", "2026-11-02 00:00:00", DAY),
        ("46328.378553241", "2026-11-02 09:05:07", 1),
    ],
)
def test_a_time_is_read_in_every_spelling(text, first, seconds):
    begin, last = values.moment(text)
    assert (f"{datetime.fromtimestamp(begin, CHINA):%Y-%m-%d %H:%M:%S}", last - begin + 1) == (first, seconds)


def test_a_text_that_is_no_time_is_never_guessed():
    texts = [
        *("", "-", "2026", "2026-11", "2026-13-99", "2026-02-30", "0000-00-00 00:00:00", "02/11/2026", "11/2/2026"),
        *("26/11/02", "03/02/26", "2026-11-02 25:00", "2026-11-02 9", "20261102 9", "20261102 930", "20261102 1530"),
        *("2026-11-02 1530", "2026-11-02 13:05 PM", "yesterday", "1", "12345", "99999", "2026-11-0\ufffd"),
        *("2.02611E+13", "2026-11-02 09:05:07 x", "########"),
    ]
    assert refused(values.moment, texts) == texts


def test_a_transaction_id_is_as_the_bank_wrote_it_but_placeholders_and_shortened_numbers_are_none():
    ids = ["T1", "4200002471202611021234567890", "CMB0001", "2026110222001403", "B-1", "A_1/2"]
    assert [transaction_id(text) for text in ids] == ids
    for text in (
        *("", "0", "-", "/", "--", "00000000", "----", "N/A", "n/a", "null", "无", "空", "None", "*", "9999999999"),
        *("#REF!", "#N/A", "#VALUE!", "#DIV/0!", "2.02611E+27", "2e+27", "2.0261E27", "202611021234567000000000"),
        *("订单1", "a\ufffdb", "a\nb", "x" * 65),
    ):
        assert transaction_id(text) == "", text


@pytest.mark.parametrize(
    ("meaning", "texts"),
    [
        (Meaning.PAID, "成功 交易成功 支付成功 已收钱 对方已收钱 已存入零钱 已完成 处理成功。 SUCCESS Completed"),
        (
            Meaning.RETURNED,
            "退款成功 冲正成功 退回成功 退票 已退汇 已全额退款 部分退款 已退款(￥5.00) 已退款￥5.00 Refunded "
            "支付成功，已退回 成功(已退汇) 成功/退票",
        ),
        (Meaning.IN_PROGRESS, "提交成功 受理成功 处理中 银行处理中 待审核 等待付款 待对方收款 pending"),
        (Meaning.FAILED, "失败 交易失败 代发失败 交易关闭 已拒绝 已作废 failed Rejected"),
        (
            Meaning.UNCLEAR,
            "成功0 成功(0.00) 已完成¥0 失败1 "
            "完成 未成功 成功率 部分成功 不成功 成功? 已完成审核 支付成功，未知 提交成功/失败 x 1 \ufffd成功",
        ),
    ],
)
def test_a_status_is_known_by_whole_words(meaning, texts):
    assert {text: values.status(text) for text in texts.split()} == dict.fromkeys(texts.split(), meaning)
    assert values.status("") is values.status(" ") is Meaning.UNCLEAR


@pytest.mark.parametrize(
    ("direction", "texts"),
    [
        (Direction.IN, "收入 收 贷 贷方 来账 转入 存入 入账 进账 C CR Credit in +"),
        (Direction.OUT, "支出 支 借 借方 往账 转出 支取 D DR debit out -"),
        (Direction.NEUTRAL, "不计收支 / 中性交易"),
        (Direction.UNKNOWN, "其他 收支 收入/支出 贷款 x 1"),
    ],
)
def test_a_direction_is_known_by_whole_words(direction, texts):
    assert {text: values.direction(text) for text in texts.split()} == dict.fromkeys(texts.split(), direction)


def test_only_the_yuan_is_the_yuan():
    assert all(map(values.is_yuan, ("CNY", "RMB", "人民币", "156", "¥", "元", "人民币(CNY)", "rmb")))
    assert not any(map(values.is_yuan, ("", "USD", "HKD", "美元", "日元", "JPY¥", "01", "CNH", "欧元", "$")))
