"""A channel's possible events with a payout, in the same form for every driver that pays out."""

from __future__ import annotations

from typing import Any

from gateways.sandbox import records
from models.tables.order import Order
from services.channels.order_numbers import payout_number
from tests.upstreams.alipay import Alipay
from tests.upstreams.epay import EpayPlatform


class SandboxPayouts:
    """The simulator; its payouts stay in progress until the test ends them."""

    driver, method, faulty = "trial", "wxpay", False

    def __init__(self, server: Any):
        pass

    def config(self) -> dict[str, str]:
        return {"secret": "a-secret-of-a-test", "payout": "silent"}

    def take(self, order_no: str) -> None:
        """Let the channel have the payout now."""
        records.books().request_payout(order_no, Order.get(Order.order_no == order_no).amount, "silent")

    def has(self, order_no: str) -> bool:
        """Return whether the channel has it."""
        play = records.books().find(order_no)
        return play is not None and play.payout_at is not None

    def end(self, order_no: str, paid: bool) -> None:
        """Pay it out, or let it fail or bounce."""
        amount = Order.get(Order.order_no == order_no).amount
        records.books().set_outcome(order_no, amount, "success" if paid else "fail")

    def fail(self, *faults: str) -> None:
        """Set the faults of the next calls."""


class _Platform(EpayPlatform):
    def __init__(self, server: Any):
        super().__init__(server, prefix="epaypayouts")
        self.ends: dict[str, str] = {}

    def _ask_transfer(self, fields: dict[str, str]) -> dict[str, Any]:
        self.transfers_end = self.ends.get(fields.get("out_biz_no", ""), "0")
        return super()._ask_transfer(fields)


class EpayPayouts(SandboxPayouts):
    """An epay platform, version 2; it may not show a new payout yet."""

    driver, method, faulty = "epay", "alipay", True

    def __init__(self, server: Any):
        self.platform = _Platform(server)

    def config(self) -> dict[str, str]:
        return self.platform.config("2")

    def _number(self, order_no: str) -> str:
        return payout_number(Order.get(Order.order_no == order_no))

    def take(self, order_no: str) -> None:
        amount = Order.get(Order.order_no == order_no).amount
        number = self._number(order_no)
        made = {"type": "alipay", "account": "1", "name": "1", "money": f"{amount / 100:.2f}", "errmsg": ""}
        self.platform.payouts.setdefault(number, {**made, "biz_no": f"BZ{number}", "status": "0"})

    def has(self, order_no: str) -> bool:
        return self._number(order_no) in self.platform.payouts

    def lose(self, order_no: str) -> Any:
        """The platform's staff delete the record; return it."""
        return self.platform.payouts.pop(self._number(order_no))

    def restore(self, order_no: str, record: Any) -> None:
        """They restore it."""
        self.platform.payouts[self._number(order_no)] = record

    def handed_over(self) -> int:
        """The number of payout requests to the platform."""
        return sum(call.path.endswith("transfer/submit") for call in self.platform.calls)

    def end(self, order_no: str, paid: bool) -> None:
        self.platform.ends[self._number(order_no)] = "1" if paid else "2"

    def fail(self, *faults: str) -> None:
        self.platform.fails(*faults)


class AlipayPayouts(SandboxPayouts):
    """Alipay, with certificates."""

    driver, method, faulty = "alipay", "alipay", True

    def __init__(self, server: Any):
        self.platform = Alipay(server, prefix="alipaypayouts")
        self.platform.transfers_end = "DEALING"

    def config(self) -> dict[str, str]:
        return self.platform.config("certificate")

    def take(self, order_no: str) -> None:
        amount = f"{Order.get(Order.order_no == order_no).amount / 100:.2f}"
        made = {"out_biz_no": order_no, "trans_amount": amount, "order_id": f"TR{order_no}", "status": "DEALING"}
        self.platform.transfers.setdefault(order_no, made)

    def has(self, order_no: str) -> bool:
        return order_no in self.platform.transfers

    def lose(self, order_no: str) -> Any:
        """The upstream no longer shows it; return the record."""
        return self.platform.transfers.pop(order_no)

    def restore(self, order_no: str, record: Any) -> None:
        """It shows the payout again."""
        self.platform.transfers[order_no] = record

    def handed_over(self) -> int:
        """The number of payout requests."""
        return sum(b"trans.uni.transfer" in call.query_string for call in self.platform.calls)

    def end(self, order_no: str, paid: bool) -> None:
        self.platform.transfers[order_no]["status"] = "SUCCESS" if paid else "FAIL"

    def fail(self, *faults: str) -> None:
        self.platform.fails(*faults)


PAYOUTS = {"trial": SandboxPayouts, "epay": EpayPayouts, "alipay": AlipayPayouts}
