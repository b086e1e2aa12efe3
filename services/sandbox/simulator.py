"""Playing the payer and the upstream in the sandbox: what a tester chose becomes notices."""

from __future__ import annotations

import logging

import business_clock
from gateways.sandbox.driver import SandboxDriver
from gateways.sandbox.simulator import OUTCOMES, Plan, books
from models.tables.channel import Channel
from models.tables.merchant import Merchant
from models.tables.order import CONFIRMED, PAID, PENDING, Order
from services.channels.calls import driver_of
from services.orders import due, settle

log = logging.getLogger(__name__)


def play(order: Order, driver: SandboxDriver, outcome: str) -> None:
    """Let the simulator do `outcome` (one of OUTCOMES) with an order.

    A deposit is paid, or not, at once, and the notices for that are taken in; `late` lets the
    order expire first. A withdrawal is only told what to become once it is handed in.
    """
    if outcome not in OUTCOMES:
        raise ValueError(outcome)
    if order.is_buy and outcome == "late":
        due.expire(order)
    books().set_outcome(order.order_no, order.amount, outcome)
    if order.is_buy:
        for incoming in driver.notices(order.order_no):
            settle.take_notice(order, incoming)


def channels() -> list[Channel]:
    """The sandbox channels, by id."""
    return list(Channel.select().where(Channel.driver == SandboxDriver.name).order_by(Channel.id))


def merchants() -> list[Merchant]:
    """The demo's merchants, by id."""
    return list(Merchant.select().where(Merchant.demo).order_by(Merchant.id))


def open_orders(limit: int) -> list[Order]:
    """The newest orders on sandbox channels that are under way."""
    under_way = Order.status.in_((PENDING, PAID, CONFIRMED))
    return list(Order.select().where(under_way, Order.channel.in_(channels())).order_by(Order.id.desc()).limit(limit))


def plan(order: Order, outcome: str, seconds: int) -> None:
    """Have the simulator do `outcome` once so many seconds have passed on the demo's clock."""
    books().plan(order.order_no, outcome, business_clock.now() + seconds)


def planned() -> list[Plan]:
    """What it is to do later, the soonest first."""
    return books().planned()


def play_planned() -> None:
    """Do what is due of that."""
    for each in planned():
        if each.at > business_clock.now():
            break
        order = Order.get_or_none(Order.order_no == each.order_no)
        driver = sandbox_driver(order) if order else None
        if order and driver:
            play(order, driver, each.outcome)  # before it is struck off, so that nobody takes it for done
        else:
            log.warning("order %s, which was to be %s, is not the sandbox's", each.order_no, each.outcome)
        books().remove(each)


def sandbox_driver(order: Order) -> SandboxDriver | None:
    """The driver of an order on a sandbox channel, None on any other."""
    driver = driver_of(order.channel)
    return driver if isinstance(driver, SandboxDriver) else None
