"""The messages of 42200: in the caller's language, each with its values."""

import re

import pytest

from tests.support import CARD, PERSON, Api

CHINESE = re.compile(r"[\u4e00-\u9fff]")
MESSAGES = [
    ({"cny_amount": None}, "Missing data for required field.", "必填。"),
    ({"colour": "red"}, "Unknown field.", "未知字段。"),
    ({"cny_amount": "x"}, "Must be a decimal number.", "必须是小数形式的数字。"),
    ({"cny_amount": "1.001"}, "Must have at most two decimals.", "最多两位小数。"),
    ({"cny_amount": "0"}, "Must be greater than 0.", "必须大于 0。"),
    (
        {"cny_amount": "1000000.01"},
        "This channel accepts 0.01 to 1000000.00 yuan.",
        "该渠道的金额范围为 0.01 至 1000000.00 元。",
    ),
    ({"paychannel_id": "x"}, "Must be an integer.", "必须是整数。"),
    ({"order_type": 3}, "Must be from 1 to 2.", "必须在 1 到 2 之间。"),
    ({"customer_name": 1}, "Must be a string.", "必须是字符串。"),
    ({"customer_name": "x" * 101}, "Must have at most 100 characters.", "最多 100 个字符。"),
    ({"paychannel_paymethod": "cash"}, "Must be one of: wxpay, alipay, bank.", "必须是以下之一：wxpay, alipay, bank。"),
]


@pytest.fixture
def in_chinese(http):
    """The merchant `demo` as a client that prefers Chinese."""
    return Api(
        lambda method, path, body=b"", headers=None: http(
            method, path, body, (headers or {}) | {"Accept-Language": "zh"}
        )
    )


@pytest.mark.parametrize(
    ("fields", "english", "chinese"),
    MESSAGES,
    ids=lambda value: value if isinstance(value, str) and value.isascii() else "",
)
def test_a_field_message_is_in_the_callers_language(api, in_chinese, fields, english, chinese):
    (name,) = fields
    assert english in api.buy(**fields).data[name]
    assert chinese in in_chinese.buy(**fields).data[name]


def test_every_message_about_a_withdrawal_is_translated(in_chinese):
    person = PERSON | {
        "name": " ",
        "cert_type": "0",
        "cert_validity_type": "0",
        "cert_begin_date": "x",
        "cert_end_date": "",
        "mobile_no": "x",
        "email": "x",
        "nickname": "x",
    }
    card = CARD | {"card_type": "9", "card_no": "1", "prov_id": "0", "area_id": "0"}
    answer = in_chinese.sell("50.00", 1, gatewaya_personal_data=person, gatewaya_card_info=card)
    texts = re.findall(r'"([^"]+)"\]', answer.text)
    assert len(texts) >= 10
    assert [text for text in texts if not CHINESE.search(text)] == []
