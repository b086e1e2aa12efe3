"""Listing the payment channels over HTTP."""

import json
from urllib.parse import urlencode

import pytest

from tests.support import signed, types_of


def listed(api, auth_in="body", headers=None, body=None, **query):
    """The list, requested with a filter in the query and the auth fields in either place."""
    fields = signed("getPayChannels", query | (body or {}), api.key)
    in_query = {name: fields.pop(name) for name in query}
    if auth_in == "query":
        in_query, fields = in_query | fields, {}
    raw = json.dumps(fields).encode() if fields else b""
    return api.post("getPayChannels", raw, headers, f"?{urlencode(in_query)}")


def ids(answer):
    assert answer.data["total"] == len(answer.data["list"])
    return [channel["id"] for channel in answer.data["list"]]


@pytest.mark.parametrize("auth_in", ["body", "query"])
def test_the_response_has_exactly_the_fields_of_the_contract(api, auth_in):
    answer = listed(api, auth_in)
    assert (answer.status, answer.json["msg"], list(answer.json)) == (200, "success", ["code", "msg", "data"])
    assert types_of(answer.data) == {"list": list, "total": int}
    assert ids(answer) == [1, 2, 3]
    first, *others = channels = answer.data["list"]
    for channel in channels:
        assert (type(channel.pop("createtime")), type(channel.pop("updatetime"))) == (int, int)
    assert first == {
        "id": 1,
        "category": "gateway_a",
        "name": "Sandbox A",
        "pay_method": "wxpay,alipay,bank",
        "category_text": "Gateway A",
        "pay_method_text": "WeChat Pay, Alipay, Bank transfer",
    }
    assert [types_of(channel) for channel in others] == [types_of(first)] * 2


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


def test_a_merchant_sees_its_linked_channels_only_and_changes_take_effect_immediately(api, other, flask):
    assert (ids(listed(api)), ids(listed(other))) == ([1, 2, 3], [2, 4])
    flask("channel", "unlink", 1, "demo")
    flask("channel", "link", 4, "demo")
    flask("channel", "set", 2, "--disabled")
    assert ids(listed(api)) == [3, 4]
    for channel in (3, 4):
        flask("channel", "unlink", channel, "demo")
    assert listed(api).data == {"list": [], "total": 0}


@pytest.mark.parametrize("auth_in", ["body", "query"])
def test_the_category_filters_with_the_auth_fields_in_either_place(api, other, auth_in):
    for category, found in (("gateway_a", [1]), ("gateway_b", [2]), ("gateway_c", [3])):
        assert ids(listed(api, auth_in, category=category)) == found
    assert listed(other, auth_in, category="gateway_c").data == {"list": [], "total": 0}


def test_an_invalid_filter_is_refused_with_all_errors_together(api):
    for category in ("gateway_d", "GATEWAY_A", "gateway_a,gateway_b", "1", "%"):
        answer = listed(api, category=category)
        assert (answer.status, answer.code, list(answer.data)) == (422, 42200, ["category"]), category
    assert set(listed(api, category="x", colour="red").data) == {"category", "colour"}


@pytest.mark.parametrize("where", [{"category": "gateway_a"}, {"colour": "red"}], ids=["category", "unknown"])
def test_a_field_in_the_body_is_unknown_except_the_auth_fields(api, where):
    answer = listed(api, body=where)
    assert (answer.status, answer.code, list(answer.data)) == (422, 42200, list(where))
