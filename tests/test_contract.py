"""The contract check of the other tests finds and names every deviation from the OpenAPI document."""

import json

import pytest

from app import create_app
from tests import contract, databases

GOOD = {"X-Service-Version": "1", "X-Request-Id": "1-1", "Cache-Control": "no-store"}
GOOD |= {"X-Content-Type-Options": "nosniff"}
KIND = {"Content-Type": "application/json"}
REGION = {"name": "广东省", "code": "440000"}
ORDER = {"order_no": "0" * 24, "merchant_order_no": "", "order_type": 1, "status": "completed"}
ORDER |= {"cny_amount": "1.00", "merchant_actual_amount": 100, "service_rate": "0.00", "service_amount": 0}
ORDER |= {"createtime": 1, "updatetime": 1}
REFUND = {"refund_no": "0" * 24, "order_no": "0" * 24, "merchant_refund_no": "", "status": "completed", "reason": ""}
REFUND |= {"cny_amount": "1.00", "service_amount": 0, "merchant_actual_amount": 100, "createtime": 1, "updatetime": 1}
CALLBACK = {"webhook-id": f"msg_{'0' * 32}", "webhook-timestamp": "1", "webhook-signature": f"v1,{'A' * 43}="}


def success(data):
    return json.dumps({"code": 1, "msg": "success", "data": data}).encode()


def failure(code):
    return json.dumps({"code": code, "msg": "no", "data": None}).encode()


def faults(method="GET", operation="provinceList", status=200, headers=GOOD | KIND, body=None):
    path = f"/addons/paychannel/channel.gatewaya/{operation}?x=1"
    return contract.faults_of_answer(method, path, status, headers, success([REGION]) if body is None else body)


def test_a_documented_response_is_not_a_fault():
    assert faults() == []
    assert faults(status=304, body=b"", headers=GOOD) == []
    assert faults(method="HEAD", body=b"") == []
    assert faults(operation="nothing", status=404, body=failure(40404)) == []
    assert faults(method="POST", status=405, body=failure(40500), headers=GOOD | KIND | {"Allow": "GET, HEAD"}) == []


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        ({"status": 418}, "no 418"),
        ({"status": 404, "body": failure(40402)}, "no 404"),
        ({"operation": "cityList", "status": 404, "body": failure(40401)}, "40401"),
        ({"body": success([REGION | {"code": 440000}])}, "data.0.code"),
        ({"body": success([REGION | {"secret": "x"}])}, "secret"),
        ({"body": success([{"name": "广东省"}])}, "code"),
        ({"body": success([REGION | {"code": "44"}])}, "data.0.code"),
        ({"body": b"<p>", "headers": GOOD | {"Content-Type": "text/html"}}, "text/html"),
        ({"status": 304, "headers": GOOD}, "a body"),
        ({"headers": KIND | {name: GOOD[name] for name in [*GOOD][:-1]}}, "X-Content-Type-Options"),
        ({"headers": GOOD | KIND | {"X-New": "1"}}, "x-new"),
        ({"status": 429, "body": failure(42900), "headers": GOOD | KIND | {"Retry-After": "soon"}}, "retry-after"),
        ({"operation": "nothing", "body": success(None)}, "no 200"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_any_other_response_is_a_named_fault(answer, named):
    (fault,) = faults(**answer)
    assert named in fault


@pytest.mark.parametrize(
    ("headers", "event", "named"),
    [
        ({}, {}, None),
        ({}, {"type": "test"}, None),
        ({}, {"type": "refund.completed", "data": REFUND}, None),
        ({}, {"type": "refund.confirmed", "data": REFUND | {"status": "confirmed"}}, None),
        ({}, {"type": "refund.cancelled", "data": REFUND}, "cancelled"),
        ({}, {"type": "refund.completed", "data": REFUND | {"service_amount": -1}}, "data.service_amount"),
        ({}, {"type": "order.pending"}, "order.pending"),
        ({}, {"type": "order.cancelled"}, "cancelled"),
        ({}, {"timestamp": "today"}, "timestamp"),
        ({}, {"data": {**ORDER, "service_amount": "0"}}, "data.service_amount"),
        ({}, {"more": 1}, "more"),
        ({"webhook-timestamp": "now"}, {}, "webhook-timestamp"),
        ({"webhook-signature": "v1,"}, {}, "webhook-signature"),
    ],
)
def test_a_callback_is_compared_with_it_too(headers, event, named):
    body = {"type": "order.completed", "timestamp": "2026-01-01T00:00:00Z", "data": ORDER} | event
    found = contract.faults_of_callback(CALLBACK | headers, json.dumps(body).encode())
    assert [named in fault for fault in found] == [True] * (named is not None)


def test_the_responses_of_the_test_client_are_compared_with_it(instance):
    app = create_app(databases.settings_of(instance))
    app.after_request(lambda response: (response.headers.add("X-New", "1"), response)[1])
    app.test_client().get("/healthz")
    assert "GET /healthz answered 200" in contract.drift.pop()
    assert contract.drift == []


def test_the_responses_of_a_running_service_are_compared_with_it(service, monkeypatch):
    monkeypatch.setattr(contract, "faults_of_answer", lambda *answer: [f"{answer[:3]}"])
    service.api.send("GET", "/healthz")
    assert "('GET', '/healthz', 200)" in contract.drift.pop()
