"""Fees: the table over HTTP, rounding half up to the fen, and rates that stay with their order."""

from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.tables.channel import Channel
from models.tables.merchant import Merchant
from services.ledger import fees

START = 1_000_000
FEN = st.integers(1, 100_000_000)
RATE = st.integers(0, 10_000)
SURCHARGE = st.integers(-10_000, 10_000)


def half_up(fen, basis_points):
    """The rule as an accountant would write it."""
    return int((Decimal(fen) * basis_points / 10_000).quantize(Decimal(1), ROUND_HALF_UP))


@pytest.mark.parametrize(
    ("amount", "rate", "fee", "credited"),
    [
        ("100.00", "0.60", 60, 9_940),
        ("100.00", "0", 0, 10_000),
        ("100.00", "100", 10_000, 0),
        ("0.01", "0.60", 0, 1),
        ("0.01", "50", 1, 0),  # 0.5 fen
        ("0.83", "0.60", 0, 83),  # 0.498
        ("0.84", "0.60", 1, 83),  # 0.504
        ("1.50", "1.00", 2, 148),  # 1.5
        ("2.50", "1.00", 3, 247),  # 2.5: not to the even fen
        ("123.45", "0.01", 1, 12_344),  # 1.2345
        ("999999.99", "0.60", 600_000, 99_399_999),  # 599999.994
    ],
)
def test_a_deposit_is_credited_less_its_fee(api, flask, amount, rate, fee, credited):
    flask("merchant", "set", "demo", "--buy-rate", rate)
    made = api.buy(amount).data
    assert (made["service_amount"], made["merchant_actual_amount"]) == (fee, credited)
    assert (made["cny_amount"], made["merchant_amount"]) == (amount, amount)
    assert made["deposit_amount"] == fee + credited
    seen = api.detail(order_no=made["order_no"]).data
    assert (seen["service_amount"], seen["merchant_actual_amount"]) == (fee, credited)
    assert seen["service_rate"] == f"{Decimal(rate):.2f}"


@pytest.mark.parametrize(
    ("amount", "rate", "fee", "surcharge"),
    [
        ("100.00", "0.10", 30, 10),
        ("100.00", "-0.10", 30, -10),
        ("100.00", "0", 30, 0),
        ("5.00", "0.10", 2, 1),  # fee 1.5, channel fee 0.5
        ("5.00", "-0.10", 2, -1),  # a rebate of half a fen
        ("4.99", "-0.10", 1, 0),
        ("15.00", "-0.10", 5, -2),  # fee 4.5, rebate 1.5
        ("14.99", "-0.10", 4, -1),
        ("33.33", "-3.21", 10, -107),  # 106.99
        ("10.00", "-100", 3, -1_000),
    ],
)
def test_a_withdrawal_costs_its_fee_and_the_channel_fee(api, flask, balances, amount, rate, fee, surcharge):
    flask("channel", "set", 2, f"--passage-rate={rate}")
    made = api.sell(amount).data
    fen = int(Decimal(amount) * 100)
    assert (made["service_amount"], made["passage_amount"]) == (fee, surcharge)
    assert made["merchant_actual_amount"] == fen + fee + surcharge
    assert made["passage_rate"] == f"{Decimal(rate):.2f}"
    assert (made["cny_amount"], made["merchant_amount"]) == (amount, amount)
    assert made["base_rate"] == 30
    assert api.detail(order_no=made["order_no"]).data["service_rate"] == "0.30"
    assert balances() == (START - made["merchant_actual_amount"], made["merchant_actual_amount"])


def test_the_channel_cost_is_the_operators_and_not_the_merchants(api, flask, balances):
    flask("channel", "set", 3, "--commission-rate", "0.25")
    made = api.sell("100.00", 3).data
    assert (made["channel_amount"], made["merchant_actual_amount"]) == (25, 10_030)
    flask("order", "accept", made["order_no"])
    flask("order", "paid", made["order_no"])
    assert balances() == (START - 10_030, 0)


@pytest.mark.parametrize("ending", ["paid", "reject"])
def test_a_security_deposit_is_reserved_while_the_order_is_open_and_returned_in_full(api, flask, balances, ending):
    flask("channel", "set", 3, "--deposit-rate", "10")
    made = api.sell("100.00", 3).data
    assert (made["deposit_rate"], made["deposit_amount"], made["merchant_actual_amount"]) == (1_000, 1_000, 10_030)
    assert balances() == (START - 11_030, 11_030)
    flask("order", "accept", made["order_no"])
    flask("order", ending, made["order_no"], *(["--reason", "no"] if ending == "reject" else []))
    assert balances() == (START - (10_030 if ending == "paid" else 0), 0)


def test_the_balance_must_cover_the_security_deposit_too(api, flask):
    flask("channel", "set", 2, "--deposit-rate", "100")
    assert api.sell("5000.00").code == 40901
    assert api.sell("4990.00").code == 1


@pytest.mark.parametrize(("kind", "moved", "fee"), [("buy", 9_940, 500), ("sell", -10_030, 600)])
def test_a_later_change_of_a_rate_applies_to_the_next_order_only(api, flask, balances, kind, moved, fee):
    place = getattr(api, kind)
    order_no = place("100.00", channel=3).data["order_no"]
    told = api.detail(order_no=order_no).data
    flask("merchant", "set", "demo", "--buy-rate", "5", "--sell-rate", "6")
    flask("channel", "set", 3, "--passage-rate", "7", "--commission-rate", "8", "--deposit-rate", "9")
    assert api.detail(order_no=order_no).data == told
    if kind == "sell":
        flask("order", "accept", order_no)
    flask("order", "paid", order_no)
    ended = api.detail(order_no=order_no).data
    assert ended | {name: told[name] for name in ("status", "updatetime")} == told
    assert balances() == (START + moved, 0)
    new = place("100.00", channel=3).data
    assert new["service_amount"] == fee
    assert kind == "buy" or new["merchant_actual_amount"] == 10_000 + 600 + 700


@given(fen=FEN, rate=SURCHARGE)
def test_a_fee_is_rounded_half_up_to_the_fen(fen, rate):
    assert fees.apply_rate(fen, rate) == half_up(fen, rate)


@given(fen=FEN, rate=RATE)
def test_a_deposits_credit_and_fee_sum_to_the_payment(fen, rate):
    quote = fees.quote_buy(fen, Merchant(buy_rate=rate), Channel(), "wxpay")
    assert quote.merchant_actual_amount + quote.service_amount == fen == quote.deposit_amount
    assert 0 <= quote.merchant_actual_amount <= fen


@given(fen=FEN, rate=RATE, passage=SURCHARGE, commission=RATE, deposit=RATE)
def test_a_withdrawals_cost_is_the_sum_of_its_parts(fen, rate, passage, commission, deposit):
    channel = Channel(passage_rate=passage, commission_rate=commission, deposit_rate=deposit)
    quote = fees.quote_sell(fen, Merchant(sell_rate=rate), channel)
    assert quote.merchant_actual_amount == fen + half_up(fen, rate) + half_up(fen, passage) >= 0
    assert quote.channel_amount == half_up(fen, commission)
    assert quote.deposit_amount == half_up(fen, deposit)
