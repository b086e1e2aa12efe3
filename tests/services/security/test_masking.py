"""The visible parts of sensitive values."""

from itertools import product

from models.tables.order import BUY, PAID, SELL, STATUSES
from services.console import timeline
from services.security import masking

ENDINGS = {"6222020000000000017": "***************0017", "123456": "***456", "12": "*2", "1": "*", "": ""}
ADDRESSES = {
    "https://shop.example/hook": "https://shop.example/hook",
    "https://shop.example/hook?key=abc&k=": "https://shop.example/hook?key=***&k=***",
    "https://shop.example/hook?abc": "https://shop.example/hook?***",
    "https://me:abc@shop.example:8443/hook#abc": "https://***@shop.example:8443/hook",
    "https://shop.example/v1/hook:paid": "https://shop.example/v1/hook:paid",
    "/hook?key=abc": "/hook?key=***",
    "": "",
}
NO_ADDRESSES = """
http://[abc
htps//me:abc@shop.example
https:/me:abc@shop.example
https:///me:abc@shop.example
//me:abc@shop.example
https://me:a/bc@shop.example
https://me:12/abc@shop.example
ftp://me:abc@shop.example
me:abc@shop.example/hook
https://shop.example/ hook me:abc
abc
""".strip().splitlines()


def test_only_the_end_of_a_number_is_visible_and_never_more_than_half():
    assert {text: masking.ending(text) for text in ENDINGS} == ENDINGS


def test_an_unknown_field_is_hidden():
    assert masking.masked({"new_field": "secret", "bank": "My Bank", "sub_bank": ""}) == {
        "new_field": "***",
        "bank": "My Bank",
        "sub_bank": "",
    }


def test_a_key_in_an_address_is_hidden():
    assert {url: masking.address(url) for url in ADDRESSES} == ADDRESSES
    assert [url for url in NO_ADDRESSES if masking.address(url) != "***"] == []


def test_a_text_that_is_not_a_network_is_hidden():
    assert masking.networks("10.0.0.1/8, 2001:db8::,999.1.1.1,sk-secret,") == "10.0.0.1/8, 2001:db8::,999.1.1.1,***,"


def test_a_key_in_the_message_of_a_failed_call_is_hidden():
    said = "ConnectionError: HTTPConnectionPool(host='a', port=1): url: /hook?key=abc&b=c (Caused by 'refused')"
    assert masking.error(said) == said.replace("abc", "***").replace("b=c", "b=***")


def test_the_history_has_a_text_for_every_automatic_step():
    paid_out = (SELL, PAID)  # passed within one commit
    assert set(timeline.NEXT_STEPS) == set(product((BUY, SELL), STATUSES)) - {paid_out}
