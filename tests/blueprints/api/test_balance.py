"""A merchant's balance over HTTP: available, held, and confirmed but not credited yet."""

import json

import pytest

from models.tables.ledger import LedgerAccount
from models.tables.merchant import Merchant
from services.ledger import accounts
from tests.plans import Heard
from tests.support import signed

START = 1_000_000  # fen that the merchant `demo` has
DAY = 86_400
SANDBOX, MANUAL = 2, 3


@pytest.fixture
def balance(api):
    """`balance()`: available, held and unsettled, in fen; the texts are the same amounts."""

    def read():
        data = api.call("balanceQuery").data
        for name in ("available", "held", "unsettled"):
            fen = data[f"{name}_amount"]
            assert data[f"{name}_cny_amount"] == f"{fen // 100}.{fen % 100:02d}"
        return data["available_amount"], data["held_amount"], data["unsettled_amount"]

    return read


@pytest.fixture
def delayed(flask):
    """The channel `SANDBOX` credits a day after the payment."""
    flask("channel", "set", SANDBOX, "--settlement-days", 1)


def test_the_response_has_each_amount_as_text_and_as_an_int(api):
    answer = api.call("balanceQuery")
    assert (answer.status, list(answer.json)) == (200, ["code", "msg", "data"])
    assert answer.data == {
        "available_cny_amount": "10000.00",
        "available_amount": START,
        "held_cny_amount": "0.00",
        "held_amount": 0,
        "unsettled_cny_amount": "0.00",
        "unsettled_amount": 0,
    }


def test_a_withdrawal_is_held_with_its_fees_and_then_spent_or_available_again(api, flask, balance):
    flask("channel", "set", MANUAL, "--deposit-rate", "1.00")
    order = api.sell(channel=MANUAL).data
    held = order["merchant_actual_amount"] + order["deposit_amount"]
    assert order["deposit_amount"] == 100
    assert balance() == (START - held, held, 0)
    flask("order", "accept", order["order_no"])
    flask("order", "paid", order["order_no"])
    spent = START - order["merchant_actual_amount"]
    assert balance() == (spent, 0, 0)
    flask("order", "reject", api.sell(channel=MANUAL).data["order_no"], "--reason", "no")
    assert balance() == (spent, 0, 0)


def test_deposits_are_unsettled_after_their_fees_until_they_are_credited(api, other, delayed, claimed, later, balance):
    claimed("88.00")  # counts nothing
    order_no = api.buy().data["order_no"]
    assert balance() == (START, 0, 0)
    api.play(order_no, "success")
    assert balance() == (START, 0, 9_940)
    api.play(api.buy("12.50").data["order_no"], "success")
    assert balance() == (START, 0, 9_940 + 1_242)
    assert other.call("balanceQuery").data["unsettled_amount"] == 0
    later(DAY)
    assert balance() == (START + 9_940 + 1_242, 0, 0)


def test_without_a_settlement_delay_nothing_is_unsettled(api, balance):
    api.play(api.buy().data["order_no"], "success")
    assert balance() == (START + 9_940, 0, 0)


def test_money_that_was_returned_before_its_credit_is_no_longer_unsettled(api, delayed, balance):
    order_no = api.buy().data["order_no"]
    api.play(order_no, "success")
    api.play(order_no, "fail")
    assert (api.status(order_no), balance()) == ("cancelled", (START, 0, 0))


def test_a_deposit_whose_payment_is_under_review_is_left_out_until_it_is_decided(api, flask, delayed, balance, later):
    api.play(api.buy("12.50").data["order_no"], "success")
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 10_000)
    api.notice(order_no, 8_000)  # a part of it was returned
    assert (api.status(order_no), balance()) == ("confirmed", (START, 0, 1_242))
    later(DAY)
    assert (api.status(order_no), balance()) == ("confirmed", (START + 1_242, 0, 0))
    flask("order", "resolve", order_no, "--credit")
    assert balance() == (START + 1_242 + 9_940, 0, 0)


def test_a_second_payment_does_not_leave_out_the_first(api, delayed, exceptions, balance):
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 10_000)
    api.notice(order_no, 10_000, reference="R-2")
    assert (exceptions(), balance()) == ({order_no: "paid_twice"}, (START, 0, 9_940))


def test_a_balance_that_no_float_can_hold_is_exact_and_of_one_moment(balance):
    accounts.adjust(Merchant.get(Merchant.key == "demo"), 9_007_199_254_740_993, "a large deposit")
    with Heard() as heard:
        assert balance()[0] == START + 9_007_199_254_740_993
    assert len([sql for sql in heard.statements if LedgerAccount._meta.table_name in sql]) == 1


def test_unknown_parameters_a_query_string_and_a_missing_body_are_refused(api):
    refused = api.call("balanceQuery", {"currency": "CNY"})
    assert (refused.code, refused.data) == (42200, {"currency": ["Unknown field."]})
    body = json.dumps(signed("balanceQuery", {})).encode()
    assert api.post("balanceQuery", body, query="?api_key=demo").code == 40102
    assert api.post("balanceQuery", b"").code == 40000
