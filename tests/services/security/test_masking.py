"""The visible parts of sensitive values."""

import pytest

from services.console import timeline
from services.orders import due
from services.security import masking


@pytest.mark.parametrize(
    ("text", "seen"),
    [("6222020000000000017", "***************0017"), ("123456", "***456"), ("12", "*2"), ("1", "*"), ("", "")],
)
def test_of_a_number_the_end_is_seen_and_never_more_than_half(text, seen):
    assert masking.ending(text) == seen


def test_nothing_is_seen_of_a_field_that_nobody_knows():
    assert masking.masked({"new_field": "secret", "bank": "My Bank", "sub_bank": ""}) == {
        "new_field": "***",
        "bank": "My Bank",
        "sub_bank": "",
    }


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("https://shop.example/hook", "https://shop.example/hook"),
        ("https://shop.example/hook?key=abc&k=", "https://shop.example/hook?key=***&k=***"),
        ("https://shop.example/hook?abc", "https://shop.example/hook?***"),
        ("https://me:abc@shop.example:8443/hook#abc", "https://***@shop.example:8443/hook"),
        ("", ""),
        ("http://[abc", "***"),
        ("/hook?key=abc", "/hook?key=***"),
        ("https://shop.example/v1/hook:paid", "https://shop.example/v1/hook:paid"),
        ("htps//me:abc@shop.example", "***"),
        ("https:/me:abc@shop.example", "***"),
        ("https:///me:abc@shop.example", "***"),
        ("//me:abc@shop.example", "***"),
        ("https://me:a/bc@shop.example", "***"),
        ("https://me:12/abc@shop.example", "***"),
        ("ftp://me:abc@shop.example", "***"),
        ("me:abc@shop.example/hook", "***"),
        ("https://shop.example/ hook me:abc", "***"),
        ("abc", "***"),
    ],
)
def test_no_key_in_an_address_is_seen(url, seen):
    assert masking.address(url) == seen


def test_of_what_is_no_address_of_a_network_nothing_is_seen():
    assert masking.networks("10.0.0.1/8, 2001:db8::,999.1.1.1,sk-secret,") == "10.0.0.1/8, 2001:db8::,999.1.1.1,***,"


def test_no_key_is_seen_in_what_a_failed_call_says():
    said = "ConnectionError: HTTPConnectionPool(host='a', port=1): url: /hook?key=abc&b=c (Caused by 'refused')"
    assert masking.error(said) == said.replace("abc", "***").replace("b=c", "b=***")


def test_the_story_has_a_word_for_everything_that_the_service_does_by_itself():
    assert set(timeline.ACTS) == set(due.ACTS)
