"""The fields of a deposit: all invalid ones are named in one response."""

import json

import pytest

from tests.support import CARD, PERSON, signed

REFUSED_ALONE = {
    "order_type": [None, "", 0, 3, "buy", True, [1]],
    "cny_amount": [None, "", "0", 0, "-1", "1.005", True, ["1"], {"yuan": 1}],
    "paychannel_id": [None, "", 0, "2.0", 2.5, True, {}],
    "paychannel_paymethod": [None, "", "cash", "WXPAY", "wxpay,alipay", 1, ["wxpay"]],
    "merchant_order_no": ["x" * 256, 1, True, ["A"], {}],
    "customer_name": [1, True, ["李四"], {}],
}


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize(("field", "value"), [(name, bad) for name, values in REFUSED_ALONE.items() for bad in values])
def test_an_invalid_field_is_named(api, field, value):
    names = {"cny_amount": "amount", "paychannel_id": "channel"}
    answer = api.buy(**{names.get(field, field): value})
    assert (answer.status, answer.code) == (422, 42200)
    assert list(answer.data) == [field]
    assert all(type(message) is str for message in answer.data[field])


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize("field", ["order_type", "cny_amount", "paychannel_id", "paychannel_paymethod"])
def test_a_required_field_that_is_missing_is_named_alone(api, field):
    fields = {"order_type": 1, "cny_amount": "1", "paychannel_id": 2, "paychannel_paymethod": "wxpay"}
    fields.pop(field)
    answer = api.call("createOrder", fields)
    assert answer.code == 42200
    assert list(answer.data) == [field]


def test_all_errors_are_reported_together(api):
    answer = api.buy("1.005", paychannel_paymethod="cash", merchant_order_no="x" * 256, customer_name=1, colour="red")
    assert set(answer.data) == {
        "cny_amount",
        "paychannel_paymethod",
        "merchant_order_no",
        "customer_name",
        "colour",
    }


def test_an_empty_order_misses_all_four_required_fields(api):
    answer = api.call("createOrder", {})
    assert set(answer.data) == {"order_type", "cny_amount", "paychannel_id", "paychannel_paymethod"}


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize("channel", [1, 2, 3])
def test_a_deposit_accepts_no_gateway_a_objects_on_any_channel(api, channel):
    answer = api.buy(channel=channel, gatewaya_personal_data=PERSON, gatewaya_card_info=CARD)
    assert answer.code == 42200
    assert set(answer.data) == {"gatewaya_personal_data", "gatewaya_card_info"}


@pytest.mark.usefixtures("nothing_changes")
def test_a_parameter_in_the_query_is_an_unknown_field(api):
    fields = {"order_type": 1, "cny_amount": "1", "paychannel_id": 2, "paychannel_paymethod": "wxpay"}
    body = signed("createOrder", fields | {"debug": "1"})
    body.pop("debug")
    answer = api.post("createOrder", json.dumps(body).encode(), query="?debug=1")
    assert (answer.code, list(answer.data)) == (42200, ["debug"])


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize("order_type", [None, 3, "buy"])
def test_an_invalid_order_type_blames_no_other_field(api, order_type):
    answer = api.buy(channel=1, order_type=order_type, customer_name="李四")
    assert (answer.code, list(answer.data)) == (42200, ["order_type"])


def test_an_unsupported_method_of_the_channel_is_refused(other):
    assert other.buy(channel=4, paychannel_paymethod="alipay").code == 1
    answer = other.buy(channel=4, paychannel_paymethod="wxpay")
    assert (answer.code, list(answer.data)) == (42200, ["paychannel_paymethod"])


@pytest.mark.parametrize(("amount", "code"), [("9.99", 42200), ("10.00", 1), ("20.00", 1), ("20.01", 42200)])
def test_an_amount_must_be_within_the_channels_limits(api, flask, amount, code):
    flask("channel", "set", 2, "--min", "10", "--max", "20.00")
    answer = api.buy(amount)
    assert answer.code == code
    if code != 1:
        assert list(answer.data) == ["cny_amount"]


def test_a_channels_limits_are_reported_with_all_other_errors(api, flask):
    flask("channel", "set", 2, "--min", "10", "--pay-method", "bank")
    answer = api.buy("1", merchant_order_no="x" * 256)
    assert set(answer.data) == {"cny_amount", "paychannel_paymethod", "merchant_order_no"}


@pytest.mark.parametrize(("amount", "code"), [("0.01", 1), ("1000000.00", 1), ("1000000.01", 42200)])
def test_by_default_a_channel_accepts_a_fen_to_a_million_yuan(api, amount, code):
    assert api.buy(amount).code == code
