"""The service with one more driver, `slow`, whose upstream takes half a second: `python -m bench.slow COMMAND`."""

import sys
import time

from gateways import registry
from gateways.base import Driver, Opened, Payment, Report, State

SECONDS = 0.5


class SlowDriver(Driver):
    """Opens every deposit after half a second; no deposit is paid."""

    name = "slow"
    opens_locally = False

    def open_payment(self, payment: Payment) -> Opened:
        time.sleep(SECONDS)
        return Opened(qr=payment.pay_url)

    def query(self, payment: Payment) -> Report:
        return Report(State.OPEN)


registry.DRIVERS[SlowDriver.name] = SlowDriver

if __name__ == "__main__":
    from app import main  # importing the commands reads the list of drivers

    main(sys.argv[1:] or ["serve"])
