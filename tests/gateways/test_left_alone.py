"""A withdrawal that an operator wants to reject is left alone for the promised time, whatever the clock does."""

import time
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from models.tables.order import Order
from runtime import clock
from runtime.state import current
from services.jobs import job_table, sweep
from services.withdrawals import send
from tests.support import until

START = 1_000_000
HELD, SPENT, BACK = (START - 10_030, 10_030), (START - 10_030, 0), (START, 0)
HOUR, DAY = 3_600, 86_400
REASON = ("--reason", "no money at the platform")
# Seconds after the promise: the channel shows payouts after 600, and the operator has an hour from then.
SHOWN, OVER = 600, 600 + HOUR


@pytest.fixture
def handed_over(platform):
    """`handed_over()`: the number of payout requests to the platform."""
    return lambda: [call.path for call in platform.calls].count("/epay/api/transfer/submit")


@pytest.fixture
def stuck(api, add_channel, platform, later):
    """The number of a withdrawal that was sent seconds ago to a platform without money."""
    platform.balance -= platform.balance
    channel = add_channel("epay", platform.config("2"), "--auto-accept-max", "1000")
    order_no = api.sell(channel=channel, paychannel_paymethod="alipay").data["order_no"]
    later(1, times=2)
    later(700)
    platform.balance += 1_000
    return order_no


@pytest.fixture
def promised(stuck, refuses, later, handed_over, ahead):
    """The same, after an operator got the promise that it is left alone."""
    ahead(sweep.LEASE)
    assert "recently" in refuses("order", "reject", stuck, *REASON)
    assert handed_over() == 2
    return stuck


def restart():
    """Do what a service does when it starts, or when the clock was set back."""
    sweep.release()


def wake(order_no):
    """Make the order due now."""
    Order.update(due_at=int(time.time())).where(Order.order_no == order_no).execute()


def test_a_promise_survives_restarts(promised, api, later, handed_over, balances):
    for _ in range(6):
        restart()
        later(OVER // 6 - 50)
        wake(promised)
        later(0)
    assert (handed_over(), balances()) == (2, HELD)
    later(300, times=2)
    later(30, times=3)
    assert (handed_over(), api.status(promised), balances()) == (3, "completed", SPENT)


@pytest.mark.parametrize("back", [0, DAY, 30 * DAY], ids=["as it is", "a day back", "a month back"])
def test_after_a_restart_with_any_clock_the_operator_can_reject_in_that_hour(
    promised, later, ahead, flask, platform, back, outcome
):
    ahead(-back)
    restart()
    later(sweep.LEASE + 1)
    later(SHOWN)
    flask("order", "reject", promised, *REASON)
    assert outcome(promised) == ("cancelled", BACK, {})
    later(OVER)
    assert platform.payouts == {}


def test_sending_the_payout_checks_the_promised_time_itself(promised, handed_over, ahead):
    order = Order.get(Order.order_no == promised)
    assert order.claim(int(time.time()))
    send.hand_over(order)
    assert handed_over() == 2
    ahead(OVER + 60)
    Order.update(left_alone_until=int(time.time()) + 60).where(Order.id == order.id).execute()
    send.hand_over(order)
    assert handed_over() == 2, "this worker read the order before the promise"
    ahead(61)
    send.hand_over(order)
    assert handed_over() == 3


def set_clock(ahead, by):
    """Set the clock ahead or back, as the service's watch notices it."""
    ahead(by)
    sweep.release(max(by, 0))


@pytest.mark.parametrize("by", [-600, -30 * DAY, 60, DAY])
def test_a_promise_keeps_its_real_length_when_the_clock_is_set(promised, api, later, ahead, handed_over, balances, by):
    later(HOUR)  # ten minutes are left
    set_clock(ahead, by)
    wake(promised)
    later(0)
    later(500)
    assert (handed_over(), balances()) == (2, HELD)
    later(OVER - 500 if by < 0 else 150)
    later(30, times=3)
    assert (handed_over(), api.status(promised), balances()) == (3, "completed", SPENT)


@pytest.mark.parametrize("by", [-DAY, HOUR])
def test_the_time_until_a_payout_is_shown_keeps_its_real_length_too(stuck, api, later, ahead, handed_over, by):
    set_clock(ahead, by)
    later(sweep.LEASE + 1)
    assert handed_over() == 2  # it may be in progress
    later(SHOWN)
    later(30, times=3)
    assert (handed_over(), api.status(stuck)) == (3, "completed")


def test_an_expired_promise_is_not_renewed_when_the_clock_is_set(promised, ahead, handed_over, later):
    ahead(OVER + 1)
    set_clock(ahead, DAY)
    later(0)
    assert handed_over() == 3


# --- a running service


@contextmanager
def _watched(then):
    watch = clock.Watch(then)
    watch.start()
    try:
        until(lambda: clock.seen().handled is not None)
        yield
    finally:
        watch.stop()


def test_nothing_is_sent_between_a_jump_and_its_handling(promised, ahead, handed_over):
    """The watch checks each second; a sweep in between would consider every promise expired."""
    noticed = []

    def fails_at_first(by):
        noticed.append(by)
        if len(noticed) == 2:
            order = Order.get(Order.order_no == promised)
            assert order.claim(int(time.time()))
            send.hand_over(order)
            raise RuntimeError("this once")
        sweep.release(round(max(by, 0)))

    with _watched(fails_at_first):
        ahead(DAY)
        until(lambda: len(noticed) == 3)
    assert [round(by) for by in noticed] == [0, DAY, DAY]
    assert handed_over() == 2


@pytest.mark.usefixtures("slow")
def test_a_running_service_keeps_its_promise_when_the_clock_is_set_ahead(promised, time_machine, handed_over):
    def kept():
        return Order.get(Order.order_no == promised).left_alone_until

    told, beginning = kept(), datetime.now(UTC)
    time_machine.move_to(beginning)
    stop = job_table.start(current().settings)
    try:
        until(lambda: clock.seen().handled is not None)
        time_machine.shift(2 * HOUR)
        until(lambda: kept() > told)
        wake(promised)
        until(lambda: Order.get(Order.order_no == promised).due_at == kept())
    finally:
        stop()
    assert abs(kept() - told - 2 * HOUR) <= 2
    assert handed_over() == 2
