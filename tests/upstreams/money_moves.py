"""A channel's possible events with a deposit's money, in the same form for every driver."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from gateways.base import State
from gateways.sandbox import records
from tests.upstreams.alipay import Alipay
from tests.upstreams.epay import EpayPlatform
from tests.upstreams.loopback import Sent
from tests.upstreams.wechatpay import WechatPay


def yuan(fen: int) -> str:
    return f"{fen // 100}.{fen % 100:02d}"


class Moves:
    """Base class: `told_by_notice` means that a notice reports a refund, `sized` that its amount is reported at all.

    `methods` are arguments of `api.buy`.
    """

    driver = ""
    told_by_notice = True
    sized = True
    method = "wxpay"

    def __init__(self, server: Any):
        self.server = server

    def config(self, **more: str) -> dict[str, str]:
        """The config of a channel."""
        raise NotImplementedError

    def pay(self, order_no: str, fen: int) -> None:
        """The payer pays this amount."""
        raise NotImplementedError

    def give_back(self, order_no: str, fen: int, left: int) -> None:
        """Refund this amount to the payer; `left` remains."""
        raise NotImplementedError

    def refunded(self, order_no: str) -> int:
        """What was refunded to the payer so far, in fen: by this service, or at the channel."""
        raise NotImplementedError

    def fail(self, order_no: str) -> None:
        """The channel closes the deposit unpaid."""
        raise NotImplementedError

    def notice(self, order_no: str, **facts: Any) -> Sent:
        """The channel's present notice about it, genuine even with other facts."""
        raise NotImplementedError


class Epay1(Moves):
    """Version 1 reports a refund without its amount, in responses only."""

    driver, told_by_notice, sized, version = "epay", False, False, "1"

    def __init__(self, server: Any):
        super().__init__(server)
        self.platform = EpayPlatform(server, prefix=f"epay{self.version}")

    def config(self, **more: str) -> dict[str, str]:
        return self.platform.config(self.version, **more)

    def pay(self, order_no: str, fen: int) -> None:
        self.platform.pay(order_no, yuan(fen))

    def give_back(self, order_no: str, fen: int, left: int) -> None:
        order, money = self.platform.orders[order_no], Decimal(yuan(fen))
        order["status"] = "2"
        for sums in (self.platform.refunded, self.platform.at_upstream):
            sums[order["trade_no"]] = sums.get(order["trade_no"], Decimal(0)) + money

    def refunded(self, order_no: str) -> int:
        order = self.platform.orders.get(order_no)
        return int(100 * self.platform.at_upstream.get(order["trade_no"], 0)) if order else 0

    def fail(self, order_no: str) -> None:
        self.platform.orders.pop(order_no)  # such platforms delete unpaid orders

    def notice(self, order_no: str, **facts: str) -> Sent:
        return self.platform.notice(order_no, self.version, **facts)


class Epay2(Epay1):
    """Version 2 reports the amount of a refund, in responses only."""

    sized, version = True, "2"


class Wechat(Moves):
    """Reports a partial or full refund, without its amount."""

    driver, sized = "wechatpay", False

    def __init__(self, server: Any):
        super().__init__(server)
        self.platform = WechatPay(server)
        self.platform.refunds_begin = "SUCCESS"

    def config(self, **more: str) -> dict[str, str]:
        return self.platform.config(**more)

    def pay(self, order_no: str, fen: int) -> None:
        self.platform.pay(order_no, fen)

    def give_back(self, order_no: str, fen: int, left: int) -> None:
        self.platform.refund_in_console(order_no, fen, f"CONSOLE-{len(self.platform.refunds)}")

    def refunded(self, order_no: str) -> int:
        counting = (each for each in self.platform.refunds.values() if each["order_no"] == order_no)
        return sum(each["refund"] for each in counting if each["status"] != "CLOSED")

    def fail(self, order_no: str) -> None:
        self.platform.orders[order_no]["trade_state"] = "CLOSED"

    def notice(self, order_no: str, **facts: Any) -> Sent:
        return self.platform.notice(order_no, **facts)


class AlipayMoves(Moves):
    """Reports the amount of a refund in notices; responses report only a full refund, as a closed trade."""

    driver, method, mode = "alipay", "alipay", "key"

    def __init__(self, server: Any):
        super().__init__(server)
        self.platform = Alipay(server)
        self.back: dict[str, Decimal] = {}

    def config(self, **more: str) -> dict[str, str]:
        return self.platform.config(self.mode, **more)

    def pay(self, order_no: str, fen: int) -> None:
        self.platform.pay(order_no, yuan(fen))

    def give_back(self, order_no: str, fen: int, left: int) -> None:
        self.back[order_no] = self.back.get(order_no, Decimal(0)) + Decimal(yuan(fen))
        self.platform.refund_in_console(order_no, yuan(fen), f"CONSOLE-{len(self.platform.refunds)}")

    def refunded(self, order_no: str) -> int:
        trade_no = self.platform.trades.get(order_no, {}).get("trade_no")
        counting = (each["amount"] for each in self.platform.refunds.values() if each["trade_no"] == trade_no)
        return int(100 * sum(counting, Decimal(0)))

    def fail(self, order_no: str) -> None:
        self.platform.scan(order_no)
        self.platform.trades[order_no]["trade_status"] = "TRADE_CLOSED"

    def notice(self, order_no: str, **facts: str) -> Sent:
        back = {"refund_fee": str(self.back[order_no])} if order_no in self.back else {}
        return self.platform.notice(order_no, **back | facts)


class SandboxMoves(Moves):
    """The simulator's own records; it reports the remaining amount."""

    driver = "trial"

    def __init__(self, server: Any):
        super().__init__(server)
        self.back: dict[str, int] = {}

    def config(self, **more: str) -> dict[str, str]:
        return {"secret": "a-secret-of-a-test", **more}

    def pay(self, order_no: str, fen: int) -> None:
        records.books().set_outcome(order_no, fen, "success")

    def give_back(self, order_no: str, fen: int, left: int) -> None:
        play = records.books().find(order_no)
        assert play is not None
        rest = play.amount - fen  # this service's own refunds have records, and reduce it in reports
        records.books().set_outcome(order_no, rest or fen, "success" if rest else "fail")
        self.back[order_no] = self.back.get(order_no, 0) + fen

    def refunded(self, order_no: str) -> int:
        own = sum(each.amount for each in records.books().refunds(order_no) if each.state is State.PAID)
        return self.back.get(order_no, 0) + own

    def fail(self, order_no: str) -> None:
        records.books().set_outcome(order_no, 1, "fail")

    def notice(self, order_no: str, **facts: Any) -> Sent:
        play = records.books().find(order_no)
        assert play is not None
        body, _ = records.notice(play, "")
        return self.signed(json.dumps(json.loads(body) | facts).encode())

    def signed(self, body: bytes, secret: str = "") -> Sent:
        """These bytes as a notice."""
        signature = records.sign(body, secret or self.config()["secret"])
        return Sent("POST", body, {records.SIGNATURE_HEADER: signature})


DRIVERS = (SandboxMoves, Epay1, Epay2, Wechat, AlipayMoves)
