"""Accounts at the loopback WeChat Pay and Alipay that write each day's bill and flow of funds from their own records.

They know nothing of this service's orders: a record is made when a payer pays and when a refund begins or ends there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from tests.upstreams.alipay import Alipay
from tests.upstreams.bills import Move, Row, alipay_flow, alipay_trade, wechat_fundflow, wechat_tradebill, yuan
from tests.upstreams.loopback import Sent
from tests.upstreams.wechatpay import WechatPay

CHINA = timezone(timedelta(hours=8))
BASIS = 10_000


def now() -> str:
    """The time in China, as bills write it."""
    return f"{datetime.now(CHINA):%Y-%m-%d %H:%M:%S}"


@dataclass
class _Back:
    """A refund: its line, and what it has become since, with the time."""

    row: Row
    end: str = ""
    ended: str = ""


class Records:
    """What an account has received, refunded and paid out. Money in fen; `rate`: the fee in basis points.

    A bill lists a refund on the day on which it begins, with its state at the end of that day, and is never corrected.
    """

    driver, method, rate = "", "", 60

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.channel = 0  # the number of the channel for this account
        self.came: dict[str, Row] = {}  # the payments, by order number
        self.backs: dict[str, _Back] = {}  # by the number of the refund
        self.moves: list[Move] = []

    @property
    def funds(self) -> int:
        """The balance of the account, which began with nothing."""
        return self.moves[-1].balance if self.moves else 0

    def _move(self, change: int, kind: str) -> None:
        if change:
            self.moves.append(Move(now(), change, self.funds + change, kind))

    def _came(self, order_no: str, reference: str, fen: int) -> None:
        fee = (fen * self.rate + BASIS // 2) // BASIS
        self.came[order_no] = Row(order_no, reference, fen, now(), fee)
        self._move(fen, "交易")
        self._move(-fee, "扣除交易手续费")

    def _goes_back(self, order_no: str, fen: int, refund_no: str, refund_id: str, end: str) -> None:
        paid = self.came[order_no]
        earlier = [each.row for each in self.backs.values() if each.row.order_no == order_no and each.end != "FAIL"]
        so_far = sum(row.amount for row in earlier)
        shares = [paid.fee * each // paid.amount for each in (so_far, so_far + fen)]
        row = Row(order_no, paid.reference, fen, now(), shares[1] - shares[0], refund_no, refund_id, "PROCESSING")
        self.backs[refund_no] = _Back(row)
        self._move(-fen, "退款")
        self._move(row.fee, "退还交易手续费")
        if end:
            self._ends(refund_no, end)

    def _ends(self, refund_no: str, end: str) -> None:
        back = self.backs[refund_no]
        back.end, back.ended = end, now()
        if end == "FAIL":
            self._move(back.row.amount, "退款失败")
            self._move(-back.row.fee, "扣除交易手续费")

    def rows(self, day: date) -> list[Row]:
        """The lines of a day's bill, oldest first."""
        found = list(self.came.values())
        for back in self.backs.values():
            known = back.end if back.ended and back.ended[:10] <= str(day) else "PROCESSING"
            found.append(replace(back.row, state=known, fee=0 if known == "FAIL" else back.row.fee))
        return sorted((row for row in found if row.time[:10] == str(day)), key=lambda row: row.time)

    def fees(self, until: date) -> int:
        """What the account has kept of the payments until the end of a day, less what it returned with refunds."""
        backs = [back.row for back in self.backs.values() if back.end != "FAIL"]
        known = [row for row in (*self.came.values(), *backs) if row.time[:10] <= str(until)]
        return sum(-row.fee if row.refund_no else row.fee for row in known)

    def publish(self, day: date, rows: Iterable[Row] | None = None) -> None:
        """Offer the bill and the flow of a day; `rows` instead of its own lines."""
        moves = [move for move in self.moves if move.time[:10] == str(day)]
        self.offer(str(day), self.rows(day) if rows is None else list(rows), moves)

    def offer(self, day: str, rows: list[Row], moves: list[Move]) -> None:
        """Offer these lines as the bill and the flow of a day."""
        raise NotImplementedError

    def receives(self, order_no: str, fen: int | None = None) -> None:
        """The payer pays the order's amount or another one now."""
        raise NotImplementedError

    def gives_back(self, order_no: str, fen: int, number: str) -> None:
        """The operator makes a refund in the console, under this number."""
        raise NotImplementedError

    def ends(self, refund_no: str, paid: bool) -> None:
        """A refund of this service ends."""
        raise NotImplementedError

    def notice_of_refund(self, refund_no: str) -> Sent:
        """The notice about a refund."""
        raise NotImplementedError


class WechatAccount(Records, WechatPay):
    """A merchant's account at WeChat Pay. Its refunds begin as PROCESSING."""

    driver, method = "wechatpay", "wxpay"

    def offer(self, day: str, rows: list[Row], moves: list[Move]) -> None:
        self.bills[day], self.flows[day] = wechat_tradebill(rows), wechat_fundflow(moves)

    def receives(self, order_no: str, fen: int | None = None) -> None:
        self.pay(order_no, fen)
        told = self.told(order_no)
        self._came(order_no, told["transaction_id"], told["amount"]["total"])

    def gives_back(self, order_no: str, fen: int, number: str) -> None:
        self.refund_in_console(order_no, fen, number)

    def _accept(self, order_no: str, refund_no: str, fen: int, status: str) -> None:
        super()._accept(order_no, refund_no, fen, status)
        end = "SUCCESS" if status == "SUCCESS" else ""
        self._goes_back(order_no, fen, refund_no, self.refunds[refund_no]["refund_id"], end)

    def ends(self, refund_no: str, paid: bool) -> None:
        self.end_refund(refund_no, "SUCCESS" if paid else "CLOSED")
        self._ends(refund_no, "SUCCESS" if paid else "FAIL")
        order_no = self.refunds[refund_no]["order_no"]
        if not self._refunded(order_no):
            self.orders[order_no]["trade_state"] = "SUCCESS"

    def notice_of_refund(self, refund_no: str) -> Sent:
        return self.refund_notice(refund_no)


class AlipayAccount(Records, Alipay):
    """An application and its account at Alipay. Its refunds succeed at once."""

    driver, method = "alipay", "alipay"

    def scan(self, order_no: str) -> None:
        is_new = order_no not in self.trades
        super().scan(order_no)
        if is_new:  # a number that ends in zeros would look like one that a spreadsheet shortened
            self.trades[order_no]["trade_no"] = f"20260501220014{4_100 + len(self.trades):014d}"

    def offer(self, day: str, rows: list[Row], moves: list[Move]) -> None:
        self.bills[day] = alipay_trade(rows, day=day.replace("-", ""))
        self.flows[day] = alipay_flow(moves, day=day.replace("-", ""))

    def receives(self, order_no: str, fen: int | None = None) -> None:
        self.pay(order_no, "" if fen is None else yuan(fen))
        trade = self.trades[order_no]
        self._came(order_no, trade["trade_no"], int(100 * Decimal(trade["total_amount"])))

    def gives_back(self, order_no: str, fen: int, number: str) -> None:
        self.refund_in_console(order_no, yuan(fen), number)

    def _accept(self, trade: dict[str, str], number: str, amount: Decimal, status: str) -> None:
        super()._accept(trade, number, amount, status)
        self._goes_back(trade["out_trade_no"], int(100 * amount), number, "", "SUCCESS")

    def ends(self, refund_no: str, paid: bool) -> None:
        raise AssertionError("its refunds succeed at once")

    def notice_of_refund(self, refund_no: str) -> Sent:
        return self.refund_notice(self.backs[refund_no].row.order_no, refund_no)

    def _transfer(self, content: dict[str, Any]) -> dict[str, str]:
        is_new = content["out_biz_no"] not in self.transfers
        told = super()._transfer(content)
        if is_new and content["out_biz_no"] in self.transfers:
            self._move(-int(100 * Decimal(content["trans_amount"])), "转账")
        return told
