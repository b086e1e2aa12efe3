"""Play the payer and the upstream in the sandbox: a tester's choice becomes notices."""

from __future__ import annotations

import logging

from gateways.sandbox.driver import SandboxDriver
from gateways.sandbox.records import OUTCOMES, Plan, books
from models.tables.channel import Channel
from models.tables.merchant import Merchant
from models.tables.order import CONFIRMED, PAID, PENDING, Order
from runtime import clock
from services import kinds
from services.channels.calls import driver_of

log = logging.getLogger(__name__)


def play(order: Order, driver: SandboxDriver, outcome: str) -> None:
    """Let the simulator perform `outcome` (one of OUTCOMES) for an order.

    A deposit is paid, or not, immediately, and its notices are processed; `late` lets the order expire first. A
    withdrawal gets the outcome once its payout is requested.
    """
    if outcome not in OUTCOMES:
        raise ValueError(outcome)
    if order.is_buy and outcome == "late":
        kinds.expire(order)
    books().set_outcome(order.order_no, order.amount, outcome)
    if order.is_buy:
        for incoming in driver.notices(order.order_no):
            kinds.take_notice(order, incoming)


def channels() -> list[Channel]:
    """Return the sandbox channels, by id."""
    return list(Channel.select().where(Channel.driver == SandboxDriver.name).order_by(Channel.id))


def merchants() -> list[Merchant]:
    """Return the demo's merchants, by id."""
    return list(Merchant.select().where(Merchant.demo).order_by(Merchant.id))


def open_orders(limit: int) -> list[Order]:
    """Return the newest open orders on sandbox channels."""
    under_way = Order.status.in_((PENDING, PAID, CONFIRMED))
    return list(Order.select().where(under_way, Order.channel.in_(channels())).order_by(Order.id.desc()).limit(limit))


def plan(order: Order, outcome: str, seconds: int) -> None:
    """Plan an outcome for so many seconds from now on the demo's clock."""
    books().plan(order.order_no, outcome, clock.now() + seconds)


def planned() -> list[Plan]:
    """Return the planned outcomes, the soonest first."""
    return books().planned()


def play_planned() -> None:
    """Perform the planned outcomes that are due."""
    for each in planned():
        if each.at > clock.now():
            break
        order = Order.find(each.order_no)
        driver = driver_of(order.channel) if order else None
        if order and isinstance(driver, SandboxDriver):
            play(order, driver, each.outcome)  # before the plan is removed, so that it does not count as done too early
        else:
            log.warning(
                "Order %s is not on a sandbox channel: the planned outcome %s is ignored", each.order_no, each.outcome
            )
        books().remove(each)
