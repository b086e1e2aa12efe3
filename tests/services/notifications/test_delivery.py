"""Delivery: retries, the end of retries, claims, and addresses that are never called."""

import threading
import time

import pytest

from models.tables.notification import Destination
from services.errors import OperatorError
from services.notifications import delivery, destinations, sending, watch
from services.platform.worker_pool import WorkerPool
from tests.services.notifications.receiving import FACTS
from tests.support import CrashedPool, InlinePool, until


def test_a_failed_message_is_retried_until_it_is_delivered_whatever_the_clock_does(
    group, robot, look, low, ahead, outbox
):
    robot.status, robot.answer = 500, {}
    low()
    assert look() == 1
    (row,) = outbox()
    assert (row.state, row.attempts, row.problem) == ("pending", 1, "The server failed to process the message.")
    assert row.detail == "HTTP 500"
    assert look() == 0
    ahead(61)
    assert look() == 1
    ahead(-3 * 86_400)
    robot.status, robot.answer = 200, {"errcode": 0}
    assert delivery.sweep(InlinePool()) == 1, "a clock that was set back delays no retry"
    (row,) = outbox()
    assert (row.state, row.attempts, row.problem, row.detail) == ("delivered", 3, "", "")
    assert Destination.get().failures == 0


def test_retries_end(group, robot, look, low, ahead, outbox):
    robot.answer = {"errcode": 93000, "errmsg": "invalid webhook url"}
    low()
    look()
    for seconds in delivery.RETRY_SECONDS:
        assert outbox()[0].state == "pending"
        ahead(seconds + 1)
        look()
    (row, *_) = outbox()
    assert (row.state, row.attempts, row.due_at) == ("failed", 5, None)
    assert "webhook URL is not valid" in row.problem


def test_two_hosts_send_a_message_once(group, robot, low):
    """The second host finds the message due before the first has claimed it, and claims it later."""
    low()
    watch.evaluate()

    class Overtaken(InlinePool):
        def choose(self, tenants, rows_of):
            rows = super().choose(tenants, rows_of)
            assert delivery.sweep(InlinePool()) == 1
            return rows

    assert delivery.sweep(Overtaken()) == 0
    assert len(robot.got) == 1


def test_a_claimed_message_of_a_killed_process_is_sent_later(group, low, ahead, outbox):
    low()
    watch.evaluate()
    assert delivery.sweep(CrashedPool()) == 1
    assert delivery.sweep(InlinePool()) == 0
    ahead(delivery.LEASE + 1)
    assert delivery.sweep(InlinePool()) == 1
    assert outbox()[0].state == "delivered"


def test_a_changed_address_gets_no_messages_that_were_meant_for_another(group, robot, look, low, ahead, outbox):
    robot.status, robot.answer = 500, {}
    low()
    look()
    destinations.change(group, {"url": f"{robot.url}?key=other"}, name="Operations", **FACTS)
    ahead(61)
    assert look() == 0
    (row,) = outbox()
    assert (row.state, row.problem) == ("failed", "The destination was disabled or changed.")
    assert Destination.get().failures == 0


def test_a_deleted_destination_leaves_nothing(group, look, low, outbox):
    low()
    look()
    destinations.delete(group)
    assert outbox() == [] == destinations.every()
    with pytest.raises(OperatorError, match="deleted"):
        destinations.change(group, {}, name="Operations", **FACTS)


def test_a_dead_destination_does_not_delay_another(group, add, robot, web_server, low):
    """Its server accepts connections and never responds."""
    hangs = threading.Event()
    web_server.expect_request("/hangs").respond_with_handler(lambda request: hangs.wait(20) or "")
    add("webhook", "Hanging", url=web_server.url_for("/hangs"), secret="whsec_" + "A" * 40)
    low()
    watch.evaluate()
    pool = WorkerPool(delivery.WORKERS, "notification")
    try:
        began = time.monotonic()
        assert delivery.sweep(pool) == 2
        until(lambda: robot.got, seconds=5)
        assert time.monotonic() - began < sending.TIMEOUT / 2
    finally:
        hangs.set()
        pool.stop()


@pytest.mark.parametrize("settings_of_app", [{"private_callbacks": False}])
def test_private_addresses_are_refused_as_for_callbacks(add, robot, mailbox, by_mail):
    server = mailbox(tls=False)
    rows = [
        add("wecom", url=f"http://{host}:{robot.server.port}/robot") for host in ("127.0.0.1", "localhost", "[::1]")
    ]
    for row in (*rows, by_mail(server)):
        assert destinations.test(row).problem.startswith("The address is in a private network")
    assert (robot.got, server.seen) == ([], [])


def test_secrets_are_encrypted(add, robot, rows):
    add("dingtalk", url=f"{robot.url}?access_token=very-secret", secret="SECvery-secret")
    assert "very-secret" not in repr(rows())
