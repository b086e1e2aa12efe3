"""The messages of 42200: in the caller's language, each with its values."""

import json
import re

import pytest

from schemas.gateway_a import CardInfo, PersonalData
from schemas.messages import flat
from schemas.new_order import BuyOrder
from schemas.signature_fields import AUTH
from tests.support import CARD, PERSON, Api, signature, signed

FIELDS = {"order_type": 1, "cny_amount": "1.00", "paychannel_id": 2, "paychannel_paymethod": "wxpay"}
CHINESE = re.compile(r"[\u4e00-\u9fff]")
MESSAGES = [
    ("cny_amount", None, "Missing data for required field.", "必填。"),
    ("colour", "red", "Unknown field.", "未知字段。"),
    ("cny_amount", "x", "Must be a decimal number.", "必须是小数形式的数字。"),
    ("cny_amount", "1.001", "Must have at most two decimals.", "最多两位小数。"),
    ("cny_amount", "0", "Must be greater than 0.", "必须大于 0。"),
    (
        "cny_amount",
        "1000000.01",
        "This channel accepts 0.01 to 1000000.00 yuan.",
        "该渠道的金额范围为 0.01 至 1000000.00 元。",
    ),
    ("paychannel_id", "x", "Must be an integer.", "必须是整数。"),
    ("order_type", 3, "Must be from 1 to 2.", "必须在 1 到 2 之间。"),
    ("customer_name", 1, "Must be a string.", "必须是字符串。"),
    ("customer_name", "x" * 101, "Must have at most 100 characters.", "最多 100 个字符。"),
    ("paychannel_paymethod", "cash", "Must be one of: wxpay, alipay, bank.", "必须是以下之一：wxpay, alipay, bank。"),
]


@pytest.fixture
def in_chinese(http):
    """The merchant `demo` as a client that prefers Chinese."""
    return Api(lambda *sent: http(*sent[:3], (sent[3] or {}) | {"Accept-Language": "zh"}))


def test_a_field_message_is_in_the_callers_language(api, in_chinese):
    for name, value, english, chinese in MESSAGES:
        assert english in api.call("createOrder", FIELDS | {name: value}).data[name]
        assert chinese in in_chinese.call("createOrder", FIELDS | {name: value}).data[name]


def test_every_message_about_a_withdrawal_is_translated(in_chinese):
    person = PERSON | {"name": " ", "cert_type": "0", "cert_validity_type": "0", "cert_begin_date": "x"}
    person |= {"cert_end_date": "", "mobile_no": "x", "email": "x", "nickname": "x"}
    card = CARD | {"card_type": "9", "card_no": "1", "prov_id": "0", "area_id": "0"}
    answer = in_chinese.sell("50.00", 1, gatewaya_personal_data=person, gatewaya_card_info=card)
    texts = re.findall(r'"([^"]+)"\]', answer.text)
    assert len(texts) >= 10
    assert [text for text in texts if not CHINESE.search(text)] == []


PERSONAL, CARD_INFO = "gatewaya_personal_data", "gatewaya_card_info"
GATEWAY_A, TOP = "Only for withdrawals through a gateway_a channel.", "Belongs at the top level of the body."
MISPLACED = [  # order type, channel, fields, path, message
    (2, 1, {"card_no": "1"}, "card_no", f"Belongs in {CARD_INFO}."),
    (2, 1, {"mobile_no": "1"}, "mobile_no", f"Belongs in {PERSONAL}."),
    (2, 1, {PERSONAL: PERSON | {"card_no": "1"}}, f"{PERSONAL}.card_no", f"Belongs in {CARD_INFO}."),
    (2, 1, {CARD_INFO: CARD | {"name": "张三"}}, f"{CARD_INFO}.name", f"Belongs in {PERSONAL}."),
    (2, 1, {CARD_INFO: CARD | {"cny_amount": "1"}}, f"{CARD_INFO}.cny_amount", TOP),
    (2, 1, {PERSONAL: PERSON | {CARD_INFO: CARD}}, f"{PERSONAL}.{CARD_INFO}", TOP),
    (2, 1, {PERSONAL: PERSON | {"nonce": "x"}}, f"{PERSONAL}.nonce", TOP),
    (2, 2, {CARD_INFO: CARD}, CARD_INFO, GATEWAY_A),
    (2, 2, {"card_no": "1"}, "card_no", GATEWAY_A),
    (2, 2, {"customer_name": "x"}, "customer_name", "Only for deposits."),
    (1, 1, {PERSONAL: PERSON}, PERSONAL, GATEWAY_A),
    (1, 2, {"idempotency_key": "x"}, "idempotency_key", "Belongs in the header Idempotency-Key."),
    (1, 2, {"card": "1"}, "card", "Unknown field."),
]


@pytest.mark.usefixtures("nothing_changes")
def test_a_misplaced_field_is_reported_with_its_place(api):
    for order_type, channel, fields, path, message in MISPLACED:
        complete = {PERSONAL: PERSON, CARD_INFO: CARD} if (order_type, channel) == (2, 1) else {}
        answer = api.buy("50.00", channel, order_type=order_type, paychannel_paymethod="bank", **complete | fields)
        assert (answer.code, answer.data) == (42200, {path: [message]})


def test_no_field_of_create_order_belongs_in_two_places():
    assert not PersonalData().fields.keys() & CardInfo().fields.keys()
    assert not {*PersonalData().fields, *CardInfo().fields} & {*BuyOrder().fields, *AUTH}


def test_a_field_in_the_body_instead_of_the_query_string_or_the_reverse_is_reported(api):
    body = signed("createOrder", FIELDS)
    body["signature"] = signature("createOrder", body, "demo-secret", {"customer_name": "x"})
    answer = api.post("createOrder", json.dumps(body).encode(), query="?customer_name=x")
    assert (answer.code, answer.data) == (42200, {"customer_name": ["Belongs in the JSON body."]})
    answer = api.call("getPayChannels", {"category": "gateway_b"})
    assert (answer.code, answer.data) == (42200, {"category": ["Belongs in the query string."]})


def test_messages_are_flat_with_dotted_paths_and_array_items_by_index():
    nested = {"a": {"b": ["x"], "_schema": ["y"]}, "list": {1: {"c": ["z"]}}, "_schema": ["whole"]}
    assert flat(nested) == {"a.b": ["x"], "a": ["y"], "list.1.c": ["z"], "": ["whole"]}
    assert flat(["whole"]) == {"": ["whole"]}
