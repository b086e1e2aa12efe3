"""What the cells of a bank's, Alipay's or WeChat's file say. A text that is not understood is never guessed."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from enum import Enum

from runtime import money
from runtime.clock import CHINA
from services.errors import N_
from services.statements.tables import DAMAGED

DAY = timedelta(days=1)
EXCEL_BEGINS = datetime(1899, 12, 30, tzinfo=CHINA)  # the day 0 of Excel's serial numbers
EXCEL_DAYS = (36_526, 73_051)  # the years 2000 to 2099


class Unreadable(ValueError):
    """A value that can't be read: a text for operators, and its values."""

    def __init__(self, text: str, /, **values: str):
        super().__init__(text)
        self.text, self.values = text, values


class Direction(Enum):
    """The direction of money, as the owner of the account sees it. NEUTRAL moves within the owner's own money."""

    IN, OUT, NEUTRAL, UNKNOWN = "in", "out", "neutral", "unknown"


class Meaning(Enum):
    """What a status says about the money."""

    PAID, RETURNED, IN_PROGRESS, FAILED, UNCLEAR = "paid", "returned", "in progress", "failed", "unclear"


# Full-width characters, minus signs and the blank of Chinese texts, as ASCII. NFKC would also read 6² as 62.
_ASCII = str.maketrans(
    {chr(0xFEE0 + at): chr(at) for at in range(0x21, 0x7F)} | {"\u3000": " ", "￥": "¥"} | dict.fromkeys("−–—﹣", "-")
)


def half_width(text: str) -> str:
    """Return a text with full-width characters as ASCII, and single blanks."""
    return " ".join(text.translate(_ASCII).split())


def plain(text: str) -> str:
    """Return a text in lower case and half width, without blanks."""
    return half_width(text).casefold().replace(" ", "")


def is_damaged(text: str) -> bool:
    """Return whether bytes of the cell were no characters."""
    return DAMAGED in text


# --- amounts

_AMOUNT = re.compile(
    r"(?P<open>\()? ?(?P<before>[+-])? ?(?:cny|rmb|人民币|¥)? ?(?P<within>[+-])? ?"
    r"(?P<whole>\d{1,13}|\d{1,3}(?:[, ]\d{3}){1,4})?(?P<point>\.\d{1,8})? ?"
    r"(?:元|cny|rmb)? ?(?P<behind>[+-])?(?P<close>\))?",
    re.ASCII | re.IGNORECASE,
)


def amount(text: str) -> int:
    """Return an amount of yuan in fen, with its sign. Raises Unreadable, also for fractions of a fen."""
    found = _AMOUNT.fullmatch(half_width(text))
    if found and (found["whole"] or found["point"]):
        whole, part = re.sub("[, ]", "", found["whole"] or "0"), (found["point"] or ".0").rstrip("0")
        signs = [sign for sign in (found["before"], found["within"], found["behind"], found["open"]) if sign]
        if len(part) <= len(".00") and len(signs) <= 1 and bool(found["open"]) == bool(found["close"]):
            fen = money.fen(f"{whole}{part}".removesuffix("."))
            return -fen if signs in (["-"], ["("]) else fen
    raise Unreadable(N_("not an amount in yuan: %(value)s"), value=repr(text[:40]))


_YUAN = {"cny", "rmb", "¥", "元", "人民币", "人民币元", "156", "cny人民币", "人民币cny", "人民币rmb", "renminbi"}


def is_yuan(text: str) -> bool:
    """Return whether a currency is certainly the yuan."""
    return re.sub(r"[()\-_/]", "", plain(text)) in _YUAN


# --- times

_TIME = re.compile(
    r"([12]\d{3})(?:[-/.年](\d{1,2})[-/.月](\d{1,2})日?|(\d{2})(\d{2}))"
    r"(?:[t ]*(上午|下午|am|pm)?[t ]*(\d{1,2})(?:[:时](\d{1,2})(?:[:分](\d{1,2})?秒?(?:\.\d+)?)?|(\d{2})(\d{2})?)"
    r" ?(am|pm)?)?(z|[+-]\d{2}:?\d{2})?",
    re.ASCII,
)
_SERIAL = re.compile(r"\d{5}(\.\d+)?", re.ASCII)


def moment(text: str) -> tuple[int, int]:
    """Return the first and the last second of a time or day in China (Unix). Raises Unreadable."""
    given = half_width(text).casefold()
    if _SERIAL.fullmatch(given) and EXCEL_DAYS[0] <= float(given) < EXCEL_DAYS[1]:
        start = EXCEL_BEGINS + timedelta(days=float(given))
        length = DAY if "." not in given else timedelta(seconds=1)
        return _span(start + timedelta(milliseconds=500), length)
    if found := _TIME.fullmatch(given):
        year, month, day, month_2, day_2, half, hour, minute, second, minute_2, second_2, half_2, zone = found.groups()
        minute, second = minute or minute_2, second or second_2
        noon = {"上午": 0, "am": 0, "下午": 12, "pm": 12}.get(half or half_2 or "")
        hours = int(hour or 0) if noon is None else int(hour or 0) % 12 + noon
        length = timedelta(seconds=1) if second else timedelta(minutes=1) if minute else DAY
        try:
            offset = CHINA if zone is None else timezone(_offset(zone))
            date = (int(year), int(month or month_2), int(day or day_2))
            start = datetime(*date, hours, int(minute or 0), int(second or 0), tzinfo=offset)
        except ValueError:  # there is no such day, which each version of Python says in other words
            pass
        else:
            # A clock column in a spreadsheet loses zeros: 930 may be 9:30 or 0:09:30.
            is_short = bool(minute_2 and not second_2 and " " in given)
            if not is_short and not (hour and not minute) and not (noon is not None and int(hour or 0) > 12):
                return _span(start, length)
    raise Unreadable(N_("not a time such as 2026-05-01 12:00:00: %(value)s"), value=repr(text[:40]))


def is_moment(text: str) -> bool:
    """Return whether the text is a time or a day."""
    try:
        moment(text)
    except Unreadable:
        return False
    return True


def _offset(zone: str) -> timedelta:
    if zone == "z":
        return timedelta(0)
    sign = -1 if zone[0] == "-" else 1
    return sign * timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))


def _span(start: datetime, length: timedelta) -> tuple[int, int]:
    first = int(start.timestamp())
    return first, first + int(length.total_seconds()) - 1


# --- words

_DIRECTIONS = {
    Direction.IN: "收入 收 收款 贷 贷方 贷记 转入 存入 来账 入账 进账 汇入 入 + c cr credit in income incoming",
    Direction.OUT: "支出 支 付 付款 借 借方 借记 转出 支取 取出 往账 出账 汇出 出 - d dr debit out expense outgoing",
    Direction.NEUTRAL: "不计收支 中性交易 中性 / neutral",
}
_DIRECTION_OF = {word: direction for direction, words in _DIRECTIONS.items() for word in words.split()}


def direction(text: str) -> Direction:
    """Return the direction of a row's money."""
    return _DIRECTION_OF.get(plain(text), Direction.UNKNOWN)


_STATUSES = {
    Meaning.PAID: (
        "成功 交易成功 支付成功 付款成功 收款成功 转账成功 汇款成功 代发成功 代付成功 入账成功 到账成功 处理成功 "
        "划款成功 出款成功 已成功 已收钱 对方已收钱 朋友已收钱 已收款 对方已收款 已存入零钱 已入账 已到账 "
        "提现已到账 已支付 已付款 已转账 已完成 交易完成 支付完成 success successful succeeded completed paid "
        "settled trade_success trade_finished"
    ),
    Meaning.RETURNED: (
        "退款成功 已退款 已全额退款 全额退款 部分退款 已部分退款 转入退款 退款 退回成功 已退回 退回 退票 已退票 "
        "退汇 已退汇 退汇成功 冲正 冲正成功 已冲正 冲销 已冲销 红冲 refund refunded returned reversed chargeback "
        "chargedback"
    ),
    Meaning.IN_PROGRESS: (
        "提交成功 受理成功 已提交 已受理 受理中 处理中 银行处理中 交易处理中 支付处理中 进行中 付款中 支付中 转账中 "
        "退款中 待处理 待审核 待审批 审核中 待复核 待授权 待确认 待付款 待支付 待收款 待对方收款 等待付款 等待处理 "
        "未处理 未支付 未付款 待入账 未入账 已申请 pending processing inprogress accepted submitted waiting"
    ),
    Meaning.FAILED: (
        "失败 交易失败 支付失败 付款失败 收款失败 转账失败 汇款失败 代发失败 代付失败 处理失败 提交失败 受理失败 "
        "提现失败 交易关闭 已关闭 关闭 已取消 取消 交易取消 已撤销 已作废 作废 拒绝 已拒绝 审核拒绝 审批拒绝 "
        "银行拒绝 failed fail failure rejected cancelled canceled closed declined expired"
    ),
}
_MEANING_OF = {word: meaning for meaning, words in _STATUSES.items() for word in words.split()}
_SUM = re.compile(r"[(]?[¥]?\d[\d,]*(\.\d+)?元?[)]?$", re.ASCII)  # 已退款(￥5.00)


def status(text: str) -> Meaning:
    """Return what a status says, by whole known words. Of several, such as 支付成功，已退回, a return counts.

    A return may state its amount.
    """
    given = plain(text)
    without_sum = _SUM.sub("", given)
    parts = [part for part in re.split(r"[,;:。、/|()\[\]]+", without_sum) if part]
    found = {_MEANING_OF.get(part, Meaning.UNCLEAR) for part in parts}
    if Meaning.RETURNED in found and Meaning.UNCLEAR not in found:
        return Meaning.RETURNED
    if without_sum != given:
        return Meaning.UNCLEAR
    return found.pop() if len(found) == 1 else Meaning.UNCLEAR


# Words in a row's summary or type by which the bank says that money was returned, or that it is a fee.
_RETURN = re.compile(
    "退款|退回|退还|退汇|退票|返还|原路|拒付|冲正|冲销|冲账|红冲|红字|抹账|错账|撤销|撤回|revers|refund|return|chargeback"
)
_FEE = re.compile("手续费|服务费|管理费|工本费|fee|commission")


def speaks_of_return(text: str) -> bool:
    """Return whether a note or type has a word for returned money."""
    return bool(_RETURN.search(plain(text)))


def speaks_of_fee(text: str) -> bool:
    """Return whether a note or type has a word for a fee of the bank or wallet."""
    return bool(_FEE.search(plain(text)))
