"""Listing the payment channels over HTTP."""

import json
from urllib.parse import urlencode

import pytest

from tests.support import signed, types_of

CHANNEL = {
    "id": int,
    "category": str,
    "name": str,
    "pay_method": str,
    "category_text": str,
    "pay_method_text": str,
    "createtime": int,
    "updatetime": int,
}


def listed(api, auth_in="body", headers=None, body=None, **query):
    """The list, requested with a filter in the query and the auth fields in either place."""
    fields = signed("getPayChannels", query | (body or {}), api.key)
    in_query = {name: fields.pop(name) for name in query}
    if auth_in == "query":
        in_query, fields = in_query | fields, {}
    raw = json.dumps(fields).encode() if fields else b""
    return api.post("getPayChannels", raw, headers, f"?{urlencode(in_query)}")


def ids(answer):
    return [channel["id"] for channel in answer.data["list"]]


@pytest.mark.parametrize("auth_in", ["body", "query"])
def test_the_response_has_exactly_the_fields_of_the_contract(api, auth_in):
    answer = listed(api, auth_in)
    assert (answer.status, answer.json["msg"]) == (200, "success")
    assert list(answer.json) == ["code", "msg", "data"]
    assert types_of(answer.data) == {"list": list, "total": int}
    assert [types_of(channel) for channel in answer.data["list"]] == [CHANNEL] * 3


def test_a_channel_is_shown_with_its_texts(api):
    channel = listed(api).data["list"][0]
    channel.pop("createtime")
    channel.pop("updatetime")
    assert channel == {
        "id": 1,
        "category": "gateway_a",
        "name": "Sandbox A",
        "pay_method": "wxpay,alipay,bank",
        "category_text": "Gateway A",
        "pay_method_text": "WeChat Pay, Alipay, Bank transfer",
    }


def test_the_texts_are_in_the_callers_language(api):
    english = listed(api).data["list"]
    chinese = listed(api, headers={"Accept-Language": "zh-CN"}).data["list"]
    assert "微信" in chinese[0]["pay_method_text"]
    for name in ("category", "name", "pay_method"):
        assert [channel[name] for channel in english] == [channel[name] for channel in chinese]


def test_a_channels_config_is_not_shown(api, flask):
    flask("channel", "set", 2, "--config", "secret=keep-this-to-yourself")
    text = listed(api).text
    for hidden in ("keep-this", "sandbox-notice-secret", "config", "driver", "rate", "Demo Bank"):
        assert hidden not in text


def test_a_merchant_sees_its_linked_channels_only(api, other):
    assert ids(listed(api)) == [1, 2, 3]
    assert ids(listed(other)) == [2, 4]
    assert listed(other).data["total"] == 2


def test_links_and_switches_take_effect_immediately(api, flask):
    flask("channel", "unlink", 1, "demo")
    flask("channel", "link", 4, "demo")
    flask("channel", "set", 2, "--disabled")
    assert ids(listed(api)) == [3, 4]


def test_without_channels_the_list_is_empty(api, flask):
    for channel in (1, 2, 3):
        flask("channel", "unlink", channel, "demo")
    assert listed(api).data == {"list": [], "total": 0}


@pytest.mark.parametrize("auth_in", ["body", "query"])
@pytest.mark.parametrize(("category", "found"), [("gateway_a", [1]), ("gateway_b", [2]), ("gateway_c", [3])])
def test_the_category_filters_with_the_auth_fields_in_either_place(api, auth_in, category, found):
    answer = listed(api, auth_in, category=category)
    assert ids(answer) == found
    assert answer.data["total"] == len(found)


def test_a_category_without_linked_channels_is_empty(other):
    assert listed(other, category="gateway_c").data == {"list": [], "total": 0}


@pytest.mark.parametrize("category", ["gateway_d", "GATEWAY_A", "gateway_a,gateway_b", "1", "%"])
def test_an_unknown_category_is_refused(api, category):
    answer = listed(api, category=category)
    assert (answer.status, answer.code, list(answer.data)) == (422, 42200, ["category"])


def test_the_filter_is_covered_by_the_signature(api):
    fields = signed("getPayChannels", {})
    answer = api.post("getPayChannels", json.dumps(fields).encode(), query="?category=gateway_a")
    assert (answer.status, answer.code) == (401, 40102)


@pytest.mark.parametrize("where", [{"category": "gateway_a"}, {"colour": "red"}], ids=["category", "unknown"])
def test_a_field_in_the_body_is_unknown_except_the_auth_fields(api, where):
    answer = listed(api, body=where)
    assert (answer.status, answer.code, list(answer.data)) == (422, 42200, list(where))


def test_all_errors_in_the_query_are_reported_together(api):
    assert set(listed(api, category="x", colour="red").data) == {"category", "colour"}
