"""Payouts are sent once, whatever the channel responds, and after a crash between any two steps."""

import json

import pytest

from gateways.sandbox.driver import SandboxDriver
from services.jobs import sweep
from services.withdrawals import approve, send
from tests.services.walks import SANDBOX, sell_accepted
from tests.support import InlinePool, until

START = 1_000_000
HELD, SPENT, BACK = (START - 5_010, 5_010), (START - 5_010, 0), (START, 0)

# outcome in the sandbox; status, balances and exception after five seconds, and in the end
OUTCOMES = [
    ("success", ("completed", SPENT, ""), ("completed", SPENT, "")),
    ("duplicate", ("completed", SPENT, ""), ("completed", SPENT, "")),
    ("fail", ("cancelled", BACK, ""), ("cancelled", BACK, "")),
    ("silent", ("confirmed", HELD, ""), ("confirmed", HELD, "")),
    ("late", ("confirmed", HELD, ""), ("completed", SPENT, "")),
    ("timeout", ("confirmed", HELD, "unknown_outcome"), ("completed", SPENT, "")),
    ("wrong_amount", ("confirmed", HELD, "payout_conflict"), ("confirmed", HELD, "payout_conflict")),
]


@pytest.mark.parametrize(
    ("chosen_by", "outcome", "soon", "finally_"),
    [("its page", *case) for case in OUTCOMES] + [("the channel", *case) for case in OUTCOMES if case[0] == "fail"],
)
def test_each_outcome_of_the_sandbox_has_its_final_status(
    api, flask, later, balances, exceptions, now, chosen_by, outcome, soon, finally_
):
    if chosen_by == "the channel":
        flask("channel", "set", SANDBOX, "--config", f"payout={outcome}")
    order_no = api.sell("50.00").data["order_no"]
    if chosen_by == "its page":
        api.play(order_no, outcome)
    flask("order", "accept", order_no)
    later(0)
    later(5)
    assert (api.status(order_no), balances(), exceptions().get(order_no, "")) == soon
    later(400, times=4)
    assert (api.status(order_no), balances(), exceptions().get(order_no, "")) == finally_
    if outcome == "silent":  # its status is still checked
        api.play(order_no, "success")
        later(400)
        assert now(order_no) == ("completed", SPENT, {})


class CrashesBefore(InlinePool):
    """A worker that dies with a claimed order, before it calls the channel."""

    def submit(self, tenant, work, item):
        self.died = item


class CrashesAfter(InlinePool):
    """A worker that dies when the channel has the payout, before the service stores that."""

    def submit(self, tenant, work, item):
        send.hand_over(item)


class CrashesOnceSent(InlinePool):
    """A worker that dies when it has approved and sent a payout, before the service stores that it was sent."""

    def submit(self, tenant, work, item):
        approve.advance(item)


def test_after_a_crash_the_channel_is_asked_before_an_auto_approved_payout_is_sent_again(
    api, flask, ahead, later, now, monkeypatch
):
    calls = []
    for name in ("pay_out", "query_payout"):
        call = getattr(SandboxDriver, name)
        monkeypatch.setattr(
            SandboxDriver, name, lambda *given, name=name, call=call: calls.append(name) or call(*given)
        )
    flask("channel", "set", SANDBOX, "--auto-accept-max", "50.00")
    order_no = api.sell("50.00").data["order_no"]
    assert sweep.sweep(CrashesOnceSent()) == 1
    assert sweep.sweep(CrashesOnceSent()) == 0  # the dead worker has it until its lease ends
    assert calls == ["pay_out"]
    ahead(sweep.LEASE + 1)
    later(0)
    assert calls == ["pay_out", "query_payout"]
    later(10, times=3)
    assert (now(order_no), calls.count("pay_out")) == (("completed", SPENT, {}), 1)


@pytest.mark.parametrize("pool", [CrashesBefore, CrashesAfter])
@pytest.mark.parametrize("crashes", [1, 3])
def test_a_crash_while_sending_a_payout_loses_nothing_and_pays_once(world, ahead, now, pool, crashes):
    order_no = sell_accepted(world)
    for _ in range(crashes):
        assert sweep.sweep(pool()) == 1
        assert sweep.sweep(pool()) == 0  # the dead worker has it until its lease ends
        ahead(sweep.LEASE + 1)
    world.later(10, times=3)
    assert now(order_no) == ("completed", SPENT, {})


def test_a_withdrawal_approved_while_the_service_was_dead_is_paid_out(service):
    order_no = service.api.sell("50.00").data["order_no"]
    service.kill()
    service.flask("order", "accept", order_no)
    service.start()
    until(lambda: service.api.status(order_no) == "completed")
    money = json.loads(service.flask("ledger", "balances", "--json").stdout)["demo"]
    assert (money["available"], money["held"]) == SPENT
