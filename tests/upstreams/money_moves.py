"""A channel's possible events with a deposit's money, in the same form for every driver."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

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
        self.platform.orders[order_no] |= {"status": "2"}

    def fail(self, order_no: str) -> None:
        self.platform.orders.pop(order_no)  # such platforms delete unpaid orders

    def notice(self, order_no: str, **facts: str) -> Sent:
        return self.platform.notice(order_no, self.version, **facts)


class Epay2(Epay1):
    """Version 2 reports the amount of a refund, in responses only."""

    sized, version = True, "2"

    def give_back(self, order_no: str, fen: int, left: int) -> None:
        order = self.platform.orders[order_no]
        back = Decimal(order.get("refundmoney") or 0) + Decimal(yuan(fen))
        order |= {"status": "2", "refundmoney": str(back)}


class Wechat(Moves):
    """Reports a partial or full refund, without its amount."""

    driver, sized = "wechatpay", False

    def __init__(self, server: Any):
        super().__init__(server)
        self.platform = WechatPay(server)

    def config(self, **more: str) -> dict[str, str]:
        return self.platform.config(**more)

    def pay(self, order_no: str, fen: int) -> None:
        self.platform.pay(order_no, fen)

    def give_back(self, order_no: str, fen: int, left: int) -> None:
        self.platform.orders[order_no]["trade_state"] = "REFUND"

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
        if not left:
            self.platform.trades[order_no]["trade_status"] = "TRADE_CLOSED"

    def fail(self, order_no: str) -> None:
        self.platform.scan(order_no)
        self.platform.trades[order_no]["trade_status"] = "TRADE_CLOSED"

    def notice(self, order_no: str, **facts: str) -> Sent:
        back = {"refund_fee": str(self.back[order_no])} if order_no in self.back else {}
        return self.platform.notice(order_no, **back | facts)


class SandboxMoves(Moves):
    """The simulator's own records; it reports the remaining amount."""

    driver = "trial"

    def config(self, **more: str) -> dict[str, str]:
        return {"secret": "a-secret-of-a-test", **more}

    def pay(self, order_no: str, fen: int) -> None:
        records.books().set_outcome(order_no, fen, "success")

    def give_back(self, order_no: str, fen: int, left: int) -> None:
        records.books().set_outcome(order_no, left or fen, "success" if left else "fail")

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
