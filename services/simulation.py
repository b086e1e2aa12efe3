"""Playing the payer and the upstream in the sandbox: what a tester chose becomes notices."""

from __future__ import annotations

from gateways.sandbox import SandboxDriver
from gateways.simulator import OUTCOMES
from models.channel import Channel
from models.order import Order
from services import reconciliation, settlement
from services.channels import driver_of


def is_there() -> bool:
    """Is there any sandbox channel?"""
    return Channel.select().where(Channel.driver == SandboxDriver.name).exists()


def play(order: Order, driver: SandboxDriver, outcome: str) -> None:
    """Let the simulator do `outcome` (one of OUTCOMES) with an order.

    A deposit is paid, or not, at once, and the notices for that are taken in; `late` lets the
    order expire first. A withdrawal is only told what to become once it is handed in.
    """
    if outcome not in OUTCOMES:
        raise ValueError(outcome)
    if order.is_buy and outcome == "late":
        reconciliation.expire(order)
    driver.simulator.tell(order.order_no, order.amount, outcome)
    if order.is_buy:
        for incoming in driver.notices(order.order_no):
            settlement.take_notice(order, incoming)


def sandbox_driver(order: Order) -> SandboxDriver | None:
    """The driver of an order on a sandbox channel, None on any other."""
    driver = driver_of(order.channel)
    return driver if isinstance(driver, SandboxDriver) else None
