"""Creating withdrawals over HTTP, without the additional fields of gateway_a."""

import pytest

from tests.support import CARD, PERSON, types_of

CREATED_SELL = {
    "order_id": str,
    "order_no": str,
    "merchant_order_no": str,
    "status": str,
    "order_type": int,
    "cny_amount": str,
    "payment_method_id": int,
    "payment_method_snapshot": dict,
    "merchant_amount": str,
    "passage_rate": str,
    "passage_amount": int,
    "deposit_rate": int,
    "deposit_amount": int,
    "service_amount": int,
    "channel_amount": int,
    "merchant_actual_amount": int,
    "base_rate": int,
    "customer_payment_method": dict,
    "createtime": int,
}
ACCOUNT = {"bank": "Demo Bank", "sub_bank": "Main Street", "card_number": "6222020000000000017", "real_name": "张三"}
GATEWAY_A = {"gatewaya_personal_data": PERSON, "gatewaya_card_info": CARD}
EXTRA = {1: GATEWAY_A, 2: {}, 3: {}}


@pytest.mark.parametrize("channel", [1, 2, 3])
def test_the_response_has_exactly_the_fields_of_the_contract(api, channel):
    answer = api.sell("50.00", channel, **EXTRA[channel])
    assert (answer.status, answer.code, answer.json["msg"]) == (200, 1, "order created")
    assert list(answer.json) == ["code", "msg", "data", "time"]
    assert answer.json["time"] == str(answer.data["createtime"])
    assert types_of(answer.data) == CREATED_SELL
    account = dict.fromkeys(ACCOUNT, str)
    assert types_of(answer.data["payment_method_snapshot"]) == account
    assert types_of(answer.data["customer_payment_method"]) == account | {"full_info": str}


def test_the_sent_values_are_returned_with_the_amounts(api, flask_json):
    placed = api.sell("50.00", merchant_order_no="W-1").data
    full_info = placed["customer_payment_method"].pop("full_info")
    assert all(part in full_info for part in ACCOUNT.values())
    for generated in ("order_id", "order_no", "createtime"):
        placed.pop(generated)
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


def test_the_order_id_finds_the_order(api):
    placed = api.sell().data
    assert api.detail(id=int(placed["order_id"])).data["order_no"] == placed["order_no"]


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
    placed = api.sell(channel=3).data
    assert placed["payment_method_snapshot"] == {
        "bank": "",
        "sub_bank": "",
        "card_number": "6222777",
        "real_name": "李四",
    }


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize("amount", ["10000.00", "9980.05", "1000000.00"])
def test_a_withdrawal_that_the_balance_does_not_cover_is_refused(api, amount):
    answer = api.sell(amount)
    assert (answer.status, answer.code, answer.data) == (409, 40901, None)


def test_a_withdrawal_may_use_the_whole_balance(api, flask, balances):
    flask("merchant", "set", "demo", "--sell-rate", "0")
    flask("channel", "set", 2, "--passage-rate", "0")
    assert api.sell("10000.00").code == 1
    assert balances() == (0, 1_000_000)
    assert api.sell("0.01").code == 40901


@pytest.mark.usefixtures("nothing_changes")
def test_without_an_account_on_file_a_withdrawal_is_refused(other):
    answer = other.sell()
    assert (answer.status, answer.code, answer.data) == (409, 40903, None)


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize("channel", [2, 3])
@pytest.mark.parametrize("sent", [list(GATEWAY_A), *([name] for name in GATEWAY_A)], ids="+".join)
def test_gateway_b_and_c_accept_no_extra_objects(api, channel, sent):
    answer = api.sell(channel=channel, **{name: GATEWAY_A[name] for name in sent})
    assert answer.code == 42200
    assert sorted(answer.data) == sorted(sent)


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize("channel", [1, 2, 3])
def test_a_withdrawal_accepts_no_customer_name(api, channel):
    answer = api.sell(channel=channel, customer_name="李四", **EXTRA[channel])
    assert (answer.code, list(answer.data)) == (42200, ["customer_name"])


REFUSED_ALONE = {
    "order_type": [None, 0, "sell", True],
    "amount": [None, "", "0", "-0.01", "1.005", False, []],
    "channel": [None, 0, "two", 2.5, {}],
    "paychannel_paymethod": [None, "cash", 1, ["bank"]],
    "merchant_order_no": ["x" * 256, 1, {}],
}


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize(("field", "value"), [(name, bad) for name, values in REFUSED_ALONE.items() for bad in values])
def test_an_invalid_field_is_named(api, field, value):
    names = {"amount": "cny_amount", "channel": "paychannel_id"}
    answer = api.sell(**{field: value})
    assert (answer.status, answer.code) == (422, 42200)
    assert list(answer.data) == [names.get(field, field)]


def test_all_errors_are_reported_together(api):
    answer = api.sell("0", paychannel_paymethod=7, merchant_order_no="x" * 256, colour="red")
    assert set(answer.data) == {"cny_amount", "paychannel_paymethod", "merchant_order_no", "colour"}


@pytest.mark.parametrize("number", ["", "W-1", "x" * 255, "订" * 255])
def test_the_merchants_own_number_is_returned_unchanged(api, number):
    assert api.sell(merchant_order_no=number).data["merchant_order_no"] == number


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize("channel", [4, 999])
def test_an_absent_or_foreign_channel_has_the_same_response(api, channel):
    answer = api.sell(channel=channel, **GATEWAY_A)
    assert (answer.status, answer.code, answer.data) == (404, 40403, None)
