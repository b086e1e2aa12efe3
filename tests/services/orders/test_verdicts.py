"""The tables of verdicts are complete, and each reason has a code and a text."""

import pytest

from models.tables.order import TRANSITIONS, History, PaymentException
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


@pytest.mark.parametrize("state", STATES, ids=lambda each: each.name)
def test_each_combination_has_a_verdict_that_the_order_can_follow(state):
    assert TABLE[state][Proof.AS_BOOKED] == Verdict(), "a recorded report changes nothing"
    for proof in Proof:
        verdict = TABLE[state][proof]
        assert isinstance(verdict, Verdict), proof
        if not verdict.status:
            continue
        kind, statuses = STATUS_OF[state]
        for before in statuses:
            reachable = {before, *TRANSITIONS[kind][before]}
            reachable |= {after for step in list(reachable) for after in TRANSITIONS[kind].get(step, ())}
            assert verdict.status in reachable, proof


def test_every_code_has_its_own_name_and_a_text():
    assert [why.value for why in Why] == [why.name.lower() for why in Why]
    assert all(why.template for why in Why)


def test_new_history_and_exceptions_have_codes_and_an_exception_names_the_line_that_opened_it(world, order_details):
    told = order_details(walks.deposit_too_small(world))
    assert [line["code"] for line in told["history"]] == ["created", "paid_other_amount"]
    assert told["history"][-1]["why"] == "Exception wrong_amount: Paid a different amount"
    assert [each["code"] for each in told["exceptions"]] == ["paid_other_amount"]
    (opened,) = PaymentException.select(PaymentException, History).join(History)
    assert (opened.history.code, opened.history.args) == (opened.code, opened.args) == ("paid_other_amount", None)
