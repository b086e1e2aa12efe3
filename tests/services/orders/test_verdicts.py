"""The table of verdicts has one for each position in the ledger and each proof of a channel."""

import itertools
import json

import pytest

from models.tables.order import TRANSITIONS
from services.deposits.money import TABLE as DEPOSITS
from services.deposits.money import DepositMoney
from services.orders.reasons import Why
from services.orders.verdict import Proof, Verdict
from services.withdrawals.money import TABLE as WITHDRAWALS
from services.withdrawals.money import WithdrawalMoney
from tests.services import walks

TABLE = DEPOSITS | WITHDRAWALS
STATES = (*DepositMoney, *WithdrawalMoney)
STATUS_OF = {
    DepositMoney.AWAITED: (1, ("pending", "paid")),
    DepositMoney.QUESTIONED: (1, ("pending", "paid")),
    DepositMoney.TO_CREDIT: (1, ("confirmed",)),
    WithdrawalMoney.IN_FLIGHT: (2, ("confirmed",)),
}


@pytest.mark.parametrize(("state", "proof"), list(itertools.product(STATES, Proof)), ids=lambda each: each.name)
def test_each_combination_has_a_verdict_that_the_order_can_follow(state, proof):
    verdict = TABLE[state][proof]
    assert isinstance(verdict, Verdict)
    if not verdict.status:
        return
    kind, statuses = STATUS_OF[state]
    for before in statuses:
        reachable = {before, *TRANSITIONS[kind][before]}
        reachable |= {after for step in list(reachable) for after in TRANSITIONS[kind].get(step, ())}
        assert verdict.status in reachable


@pytest.mark.parametrize("state", STATES, ids=lambda each: each.name)
def test_a_recorded_report_changes_nothing(state):
    assert TABLE[state][Proof.AS_BOOKED] == Verdict()


def test_new_history_and_exceptions_have_codes(world, order_details):
    order_no = walks.deposit_too_small(world)
    told = order_details(order_no)
    lines = [*told["history"], *told["exceptions"]]
    assert {line["code"] for line in lines} == {"created", "paid_other_amount"}
    assert all(line["code"] in set(Why) for line in lines)
    assert json.dumps(told["history"]).count("Paid a different amount") == 1
