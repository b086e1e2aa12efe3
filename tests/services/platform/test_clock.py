"""The clock is set back or ahead: no request counts twice, orders keep their sequence, and nothing waits longer."""

import json
import time
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from models.tables.order import Order
from models.tables.outbox import Callback
from models.tables.replay import IdempotencyKey
from runtime import clock as service_clock
from runtime.state import current
from services.callbacks import delivery
from services.jobs import job_table
from services.jobs import sweep as reconciliation
from services.security import replay
from tests.services.walks import buy_confirmed, sell_accepted
from tests.support import NOON, CrashedPool, completed, signed, until

HOUR = 3600
DAY = 24 * HOUR
YEAR = 365 * DAY
BUY = {"order_type": 1, "cny_amount": "100.00", "paychannel_id": 2, "paychannel_paymethod": "wxpay"}


@pytest.fixture
def times(time_machine, monkeypatch):
    """`times(60, off=-3600)`: a minute has passed since the start, at noon, and the clock is an hour slow."""

    def at(passed, off=0.0):
        time_machine.move_to(NOON + passed + off, tick=False)
        monkeypatch.setattr(service_clock, "steady", lambda: float(passed))

    at(0)
    service_clock.seen.forget()
    replay.memory.forget()
    return at


@pytest.fixture
def pass_time(times, api):
    """Let time pass in steps with requests and purges; the clock is `off`."""

    def until_then(since, then, off=0.0):
        for passed in range(since, then + 1, 330):
            times(passed, off)
            api.listed()
            replay.purge()

    return until_then


def order_sent(at, endpoint="createOrder"):
    return json.dumps(signed(endpoint, (BUY if endpoint == "createOrder" else {}) | {"timestamp": at})).encode()


@pytest.mark.parametrize("endpoint", ["createOrder", "orderQueryList"])
@pytest.mark.parametrize("back", [30, 299, 900, HOUR])
def test_a_request_does_not_count_again_when_the_clock_is_set_back(app, times, api, pass_time, endpoint, back):
    body = order_sent(NOON, endpoint)
    assert api.post(endpoint, body).code == 1
    pass_time(0, back)
    times(back, off=-back)  # the clock shows noon again
    assert api.post(endpoint, body).code in (40103, 40104)


def test_requests_are_accepted_again_once_the_clock_has_passed_the_dropped_nonces(app, times, api, pass_time, caplog):
    pass_time(0, HOUR)
    times(HOUR, off=-HOUR)
    assert api.buy().code == 40103
    assert "set back by 3600 seconds" in caplog.text
    times(2 * HOUR, off=-HOUR)
    assert api.buy().code == 40103  # it may be dated five minutes ahead
    times(2 * HOUR + 302, off=-HOUR)
    assert api.buy().code == 1


@pytest.mark.parametrize("back", [1, 300])
def test_setting_it_back_by_minutes_refuses_no_request(app, times, api, pass_time, back):
    pass_time(0, HOUR)
    times(HOUR, off=-back)
    assert api.buy().code == 1


def test_a_clock_that_was_a_day_ahead_for_an_hour_forgets_nothing_and_refuses_nothing_once_it_is_right(
    app, times, api, pass_time
):
    assert api.buy().code == 1
    for passed in range(60, HOUR, 300):
        times(passed, off=24 * HOUR)
        assert api.call("orderQueryList", {"timestamp": NOON + passed}).code == 40103
        replay.purge()
    times(HOUR)
    assert api.buy().code == 1


def test_a_clock_that_was_ahead_for_a_minute_makes_no_nonce_valid_again(app, times, api):
    times(700)
    body = order_sent(NOON + 700)
    assert api.post("createOrder", body).code == 1
    for passed, off in ((710, 10 * HOUR), (720, 20 * HOUR), (730, 30 * HOUR)):
        times(passed, off)
        api.listed()
        replay.purge()
    times(760)
    assert api.post("createOrder", body).code == 40104


def test_orders_keep_their_sequence_and_time_ranges_have_all_of_them(app, times, api):
    first = api.buy().data["order_no"]
    times(100, off=-400)  # within the tolerance for callers
    second = api.buy().data["order_no"]
    listed = api.listed().data["list"]
    assert [order["order_no"] for order in listed] == [second, first]
    created = {order["createtime"] for order in listed}
    assert created == {NOON}
    assert api.listed(start_time=NOON, end_time=NOON).data["total"] == 2


def test_a_key_whose_request_failed_does_not_count_as_running_for_longer(app, api):
    placed = api.buy(headers={"Idempotency-Key": "k"})
    IdempotencyKey.update(outcome=None, createtime=IdempotencyKey.createtime + HOUR).execute()
    assert api.buy(headers={"Idempotency-Key": "k"}).data == placed.data


@contextmanager
def _jobs():
    stop = job_table.start(current().settings)
    try:
        yield
    finally:
        stop()


@pytest.mark.parametrize("off", [-YEAR, -HOUR, HOUR, YEAR])
@pytest.mark.usefixtures("slow")
def test_jobs_continue_immediately_when_the_clock_is_set_and_orders_in_flight_end(
    api, shop, flask, balances, time_machine, off
):
    """A callback that waits for a retry, a payment whose notice was lost, and a payout at the channel; each once."""

    def approved_payout():
        order_no = api.sell("10.00").data["order_no"]
        flask("order", "accept", order_no)
        return order_no

    time_machine.move_to(datetime.now(UTC))
    shop.answers(500)
    with _jobs():
        completed(api)
        until(lambda: len(shop.got) == 1)
        deposit, payout = api.buy().data["order_no"], approved_payout()
        api.play(deposit, "silent")
        until(lambda: Order.get(Order.order_no == payout).asks)
        shop.answers(200)
        time_machine.shift(off)
        completed(api)
        newer = approved_payout()
        until(lambda: api.status(newer) == "completed")
        until(lambda: len(shop.got) >= 4)
        time_machine.shift(reconciliation.LEASE)
        until(lambda: (api.status(deposit), api.status(payout)) == ("completed", "completed"))
        until(lambda: len(shop.got) == 6)
    assert len({got.webhook_id for got in shop.got}) == 5
    assert balances() == (1_000_000 + 3 * 9_940 - 2 * 1_002, 0)


def test_a_deposit_from_a_clock_that_was_ahead_is_checked_before_it_expires(api, later, time_machine):
    time_machine.move_to(datetime.now(UTC))
    time_machine.shift(YEAR)
    order_no = api.buy().data["order_no"]
    api.play(order_no, "silent")
    Order.update(due_at=Order.expires_at).where(Order.order_no == order_no).execute()  # the last check before
    time_machine.shift(-YEAR)
    reconciliation.release()
    later(reconciliation.LEASE)
    assert api.status(order_no) == "completed"


@pytest.mark.usefixtures("slow")
def test_work_delayed_by_a_clock_that_was_ahead_continues_after_a_restart(api, shop, flask, balances, time_machine):
    time_machine.move_to(datetime.now(UTC))
    time_machine.shift(10 * HOUR)
    completed(api)
    payout = api.sell("10.00").data["order_no"]
    flask("order", "accept", payout)
    time_machine.shift(-10 * HOUR)
    with _jobs():
        until(lambda: len(shop.got) == 1)
        until(lambda: Order.get(Order.order_no == payout).due_at <= time.time() + reconciliation.LEASE)
        time_machine.shift(reconciliation.LEASE)
        until(lambda: api.status(payout) == "completed")
    assert balances() == (1_000_000 + 9_940 - 1_002, 0)


def test_credits_and_late_checks_that_a_clock_ahead_has_dated_are_due_in_time(world, api, order_details, time_machine):
    time_machine.move_to(datetime.now(UTC))
    time_machine.shift(400 * DAY)
    credited, rejected = buy_confirmed(world), sell_accepted(world)
    world.flask("order", "reject", rejected, "--reason", "no")
    time_machine.shift(-400 * DAY)
    now, found = time.time(), []
    for _ in range(3):  # each start adjusts times
        reconciliation.release()
        found.append([order_details(each)["due_at"] - now for each in (credited, rejected)])
        time_machine.shift(60)
    assert found[0] == found[1] == found[2] == [pytest.approx(24 * HOUR, abs=5), pytest.approx(600, abs=5)]
    checked = []
    for _ in range(4):
        world.later(12 * HOUR)
        checked.append((order_details(rejected)["due_at"] or now) - time.time() <= 24 * HOUR)
    assert (api.status(credited), api.status(rejected), checked) == ("completed", "cancelled", [True] * 4)


def test_possible_waits_and_dates_are_unchanged(world, api, shop, due):
    shop.answers(500)
    for make in (buy_confirmed, lambda w: w.api.buy(channel=3), lambda w: w.api.buy()):
        make(world)
    due.callbacks()

    def waiting():
        return [list(table.select(table.id, table.due_at).tuples()) for table in (Order, Callback)]

    due_before = waiting()
    assert (delivery.release(), reconciliation.release()) == (0, 0)
    assert waiting() == due_before


def test_a_starting_host_does_not_touch_the_callbacks_of_one_whose_clock_is_slightly_ahead(api, shop, due, clock):
    completed(api)
    clock(3)
    assert delivery.sweep(CrashedPool()) == 1
    clock(0)
    assert delivery.release() == 0
    clock(-10)
    assert delivery.release() == 1
