"""The service with one more driver, `bench`: `python -m bench.channel COMMAND`.

Its upstream takes half a second to open a deposit, and pays out at once.
"""

import sys
import time

from gateways import registry
from gateways.base import Driver, Opened, Payment, Payout, Report, State

SECONDS = 0.5


class BenchDriver(Driver):
    """No deposit is paid; a payout is paid before its first status check."""

    name = "bench"
    opens_locally = False
    payout_methods = ("bank",)
    shows_payouts_after = 0

    def __init__(self, *arguments: object):
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._payouts: set[str] = set()

    def open_payment(self, payment: Payment) -> Opened:
        time.sleep(SECONDS)
        return Opened(qr=payment.pay_url)

    def query(self, payment: Payment) -> Report:
        return Report(State.OPEN)

    def pay_out(self, payout: Payout) -> Report:
        self._payouts.add(payout.order_no)
        return Report(State.OPEN)

    def query_payout(self, payout: Payout) -> Report:
        if payout.order_no not in self._payouts:
            return Report(State.ABSENT)
        return Report(State.PAID, payout.amount, f"R{payout.order_no}")


registry.DRIVERS[BenchDriver.name] = BenchDriver

if __name__ == "__main__":
    from app import main  # importing the commands reads the list of drivers

    main(sys.argv[1:] or ["serve"])
