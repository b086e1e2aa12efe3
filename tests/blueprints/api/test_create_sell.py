"""Creating withdrawals over HTTP, without the additional fields of gateway_a."""

import pytest

from tests.support import CARD, PERSON, types_of

ACCOUNT = {"bank": "Demo Bank", "sub_bank": "Main Street", "card_number": "6222020000000000017", "real_name": "张三"}
GATEWAY_A = {"gatewaya_personal_data": PERSON, "gatewaya_card_info": CARD}
EXTRA = {1: GATEWAY_A, 2: {}, 3: {}}


def test_the_response_has_the_sent_values_and_the_amounts_and_its_id_finds_the_order(api, flask_json):
    answer = api.sell("50.00", merchant_order_no="W-1")
    assert (answer.status, answer.code, answer.json["msg"]) == (200, 1, "order created")
    assert list(answer.json) == ["code", "msg", "data", "time"]
    placed = answer.data
    assert answer.json["time"] == str(placed.pop("createtime"))
    assert api.detail(id=int(placed.pop("order_id"))).data["order_no"] == placed.pop("order_no")
    full_info = placed["customer_payment_method"].pop("full_info")
    assert all(part in full_info for part in ACCOUNT.values())
    assert placed == {
        "merchant_order_no": "W-1",
        "status": "pending",
        "order_type": 2,
        "cny_amount": "50.00",
        "payment_method_id": flask_json("account", "list", "demo")[0]["id"],
        "payment_method_snapshot": ACCOUNT,
        "merchant_amount": "50.00",
        "passage_rate": "-0.10",
        "passage_amount": -5,
        "deposit_rate": 0,
        "deposit_amount": 0,
        "service_amount": 15,
        "channel_amount": 0,
        "merchant_actual_amount": 5_010,
        "base_rate": 30,
        "customer_payment_method": ACCOUNT,
    }


def test_the_response_has_the_same_fields_on_every_channel(api):
    expected = api.sell("50.00").data
    for channel in (1, 3):
        placed = api.sell("50.00", channel, **EXTRA[channel]).data
        assert types_of(placed) == types_of(expected)
        for name in ("payment_method_snapshot", "customer_payment_method"):
            assert types_of(placed[name]) == types_of(expected[name])


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        (("--passage-rate", "0.10"), {"passage_rate": "0.10", "passage_amount": 10, "merchant_actual_amount": 10_040}),
        (("--passage-rate", "-1.5"), {"passage_rate": "-1.50", "passage_amount": -150}),
        (("--commission-rate", "0.05"), {"channel_amount": 5, "merchant_actual_amount": 10_020}),
        (
            ("--deposit-rate", "12.5"),
            {"deposit_rate": 1_250, "deposit_amount": 1_250, "merchant_actual_amount": 10_020},
        ),
    ],
)
def test_each_rate_of_the_channel_is_in_its_own_fields(api, flask, balances, rates, expected):
    flask("channel", "set", 2, *rates)
    placed = api.sell("100.00").data
    assert {name: placed[name] for name in expected} == expected
    held = placed["merchant_actual_amount"] + placed["deposit_amount"]
    assert balances() == (1_000_000 - held, held)


def test_an_order_keeps_the_rates_that_it_was_created_with(api, flask, balances):
    number = api.sell("100.00").data["order_no"]
    flask("merchant", "set", "demo", "--sell-rate", "5")
    flask("channel", "set", 2, "--passage-rate", "5", "--deposit-rate", "5")
    shown = api.detail(order_no=number).data
    assert (shown["service_rate"], shown["service_amount"], shown["merchant_actual_amount"]) == ("0.30", 30, 10_020)
    assert balances() == (1_000_000 - 10_020, 10_020)
    flask("order", "reject", number, "--reason", "no")
    assert balances() == (1_000_000, 0)


def test_the_newest_account_on_file_is_paid(api, flask):
    flask("account", "add", "demo", "--card-number", "6222777", "--real-name", "李四")
    newest = {"bank": "", "sub_bank": "", "card_number": "6222777", "real_name": "李四"}
    assert api.sell(channel=3).data["payment_method_snapshot"] == newest


@pytest.mark.usefixtures("nothing_changes")
def test_a_withdrawal_that_cannot_be_paid_or_whose_channel_is_not_available_is_refused(api, other):
    refused = [
        *((api.sell(amount), 409, 40901) for amount in ("10000.00", "9980.05", "1000000.00")),
        (other.sell(), 409, 40903),  # no account on file
        *((api.sell(channel=channel, **GATEWAY_A), 404, 40403) for channel in (4, 999)),
    ]
    for answer, status, code in refused:
        assert (answer.status, answer.code, answer.data) == (status, code, None)


def test_a_withdrawal_may_use_the_whole_balance(api, flask, balances):
    flask("merchant", "set", "demo", "--sell-rate", "0")
    flask("channel", "set", 2, "--passage-rate", "0")
    assert api.sell("10000.00").code == 1
    assert balances() == (0, 1_000_000)
    assert api.sell("0.01").code == 40901


@pytest.mark.usefixtures("nothing_changes")
def test_a_field_of_another_kind_of_order_or_channel_is_refused(api):
    for channel in (2, 3):
        for sent in (GATEWAY_A, *({name: value} for name, value in GATEWAY_A.items())):
            answer = api.sell(channel=channel, **sent)
            assert (answer.code, answer.data.keys()) == (42200, sent.keys())
    for channel, extra in EXTRA.items():
        answer = api.sell(channel=channel, customer_name="李四", **extra)
        assert (answer.code, list(answer.data)) == (42200, ["customer_name"])
    answer = api.sell("0", paychannel_paymethod=7, merchant_order_no="x" * 256, colour="red")
    assert set(answer.data) == {"cny_amount", "paychannel_paymethod", "merchant_order_no", "colour"}
