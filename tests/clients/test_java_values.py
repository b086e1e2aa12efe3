"""The Java client's reader of single values, which replaces a JSON library."""

import json

import pytest


def value(client, answer, name):
    """The value that the client reads from the response under that name."""
    done = client.run("java Value", name, given=json.dumps(answer, ensure_ascii=False).encode())
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@pytest.mark.parametrize("number", ["A-1", "A-1, second part", 'a "quoted" {A} [1]', "C:\\orders", "订单，一", ""])
def test_a_text_is_read_to_its_end(clients_by_name, live, number):
    created = live.api.buy(merchant_order_no=number).json
    assert value(clients_by_name("Java"), created, "merchant_order_no") == number


def test_a_nested_list_is_read_as_one_text_and_a_number_unchanged(clients_by_name, live):
    channels = live.api.call("getPayChannels").json
    assert value(clients_by_name("Java"), channels, "pay_method") == "wxpay,alipay,bank"
    assert value(clients_by_name("Java"), channels, "code") == "1"
    assert value(clients_by_name("Java"), channels, "no_such_name") == ""
