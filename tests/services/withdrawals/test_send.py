"""A crash between any two steps of a payout: nothing is lost, and it is paid once."""

import json

import pytest

from services.jobs import sweep
from services.withdrawals import send
from tests.services.walks import sell_accepted
from tests.support import InlinePool, until

SPENT = (994_990, 0)


class CrashesBefore(InlinePool):
    """A worker that dies with a claimed order, before it calls the channel."""

    def submit(self, tenant, work, item):
        self.died = item


class CrashesAfter(InlinePool):
    """A worker that dies when the channel has the payout, before the service stores that."""

    def submit(self, tenant, work, item):
        send.hand_over(item)


@pytest.mark.parametrize("pool", [CrashesBefore, CrashesAfter])
@pytest.mark.parametrize("crashes", [1, 3])
def test_a_crash_while_sending_a_payout_loses_nothing_and_pays_once(
    world, api, ahead, balances, exceptions, pool, crashes
):
    order_no = sell_accepted(world)
    for _ in range(crashes):
        assert sweep.sweep(pool()) == 1
        assert sweep.sweep(pool()) == 0  # the dead worker has it until its lease ends
        ahead(sweep.LEASE + 1)
    world.later(10, times=3)
    assert (api.status(order_no), balances(), exceptions()) == ("completed", SPENT, {})


def test_a_withdrawal_approved_while_the_service_was_dead_is_paid_out(service):
    order_no = service.api.sell("50.00").data["order_no"]
    service.kill()
    service.flask("order", "accept", order_no)
    service.start()
    until(lambda: service.api.status(order_no) == "completed")
    money = json.loads(service.flask("ledger", "balances", "--json").stdout)["demo"]
    assert (money["available"], money["held"]) == SPENT
