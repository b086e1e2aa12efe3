"""Play the payer and the upstream in the sandbox: a tester's choice becomes notices."""

from __future__ import annotations

import logging
from dataclasses import replace

from gateways.sandbox.driver import SandboxDriver
from gateways.sandbox.records import OUTCOMES, REFUND_OUTCOMES, Plan, RefundPlay, books
from models.tables.channel import Channel
from models.tables.merchant import Merchant
from models.tables.order import CONFIRMED, PAID, PENDING, Order
from runtime import clock
from services import kinds
from services.channels.calls import driver_of
from services.deposits import attempts
from services.errors import N_, OperatorError

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
    number = _payment_no(order) if order.is_buy else order.order_no
    books().set_outcome(number, order.amount, outcome)
    if order.is_buy:
        for incoming in driver.notices(number):
            kinds.take_notice(order, incoming)


def _payment_no(order: Order) -> str:
    """Return the channel's number of a deposit: a group may have passed it on to this channel."""
    return attempts.payment_now(order).order_no


def play_refund(order: Order, outcome: str) -> None:
    """Choose an outcome (one of REFUND_OUTCOMES) of a deposit's open refund; if it has none, of its next one.

    Raises:
        OperatorError: the order is a withdrawal.
    """
    if outcome not in REFUND_OUTCOMES:
        raise ValueError(outcome)
    if not order.is_buy:
        raise OperatorError(N_("Only deposits are refunded."), "order_no")
    refunds = [each for each in books().refunds(order.order_no) if each.is_open]
    for each in refunds:
        books().set_refund_outcome(each.refund_no, outcome)
    if not refunds:
        books().set_next_refund(order.order_no, outcome)


def refunds(limit: int) -> list[RefundPlay]:
    """Return the newest refunds that sandbox channels received."""
    return books().newest_refunds(limit)


def next_refunds() -> dict[str, str]:
    """Return the chosen outcomes of next refunds, by order number."""
    return books().next_refunds()


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
    """Perform the planned outcomes that are due, and send the notices of refunds that have ended."""
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
    _send_refund_notices()


def _send_refund_notices() -> None:
    for each in books().untold_refunds():
        order = Order.find(each.order_no)
        driver = driver_of(order.channel) if order else None
        if order and isinstance(driver, SandboxDriver):
            notice = driver.notice_of_refund(replace(each, order_no=_payment_no(order)))
            kinds.take_notice(order, notice)  # before it counts as sent
        else:
            log.warning("Order %s is not on a sandbox channel: no notice of its refund is sent", each.order_no)
        books().set_told(each)
