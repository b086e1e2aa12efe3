"""Hostile bodies: each gets a documented refusal and no 5xx, and nothing changes."""

import json
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support import CARD, ENDPOINTS, PERSON, signature, signed, signed_text

BUY = {"order_type": 1, "cny_amount": "1.00", "paychannel_id": 2, "paychannel_paymethod": "wxpay"}
SELL = BUY | {"order_type": 2, "paychannel_id": 1, "gatewaya_personal_data": PERSON, "gatewaya_card_info": CARD}
FILTERS = {"page": 1, "limit": 20, "status": "paid", "order_type": 1, "merchant_order_no": "x", "start_time": 1}
WHOLE = {
    "buy": ("createOrder", BUY | {"customer_name": "x", "merchant_order_no": "x"}),
    "sell": ("createOrder", SELL | {"merchant_order_no": "x"}),
    "detail": ("orderQueryDetail", {"id": 1, "order_no": "1", "merchant_order_no": "x"}),
    "list": ("orderQueryList", FILTERS | {"end_time": 2}),
    "balance": ("balanceQuery", {}),
    "statement": ("statementQuery", {"month": "2026-10", "format": "json", "limit": 1, "after": "x"}),
    "refund": ("createRefund", {"order_no": "1", "cny_amount": "1.00", "merchant_refund_no": "x", "reason": "x"}),
    "refund detail": ("refundQueryDetail", {"refund_no": "1", "merchant_refund_no": "x"}),
    "refund list": (
        "refundQueryList",
        {"page": 1, "limit": 20, "status": "completed", "order_no": "1", "start_time": 1},
    ),
}

# In addition to those of `test_errors.py`, whose messages name the place.
MALFORMED = {
    "nothing": b"",
    "blank": b" \n\t ",
    "UTF-16": '{"api_key": "demo"}'.encode("utf-16"),
    "an overlong form": b'{"api_key": "\xc0\x80"}',
    "a raw surrogate": b'{"api_key": "\xed\xa0\x80"}',
    "a comment": b'{"api_key": "demo" /* me */}',
    "single quotes": b"{'api_key': 'demo'}",
    "a string": b'"demo"',
    "a number": b"1",
    "null": b"null",
    "true": b"true",
    "a name twice, escaped": b'{"api_key": "demo", "api\\u005fkey": "other"}',
    "a name twice, in an array": b'{"a": [{"b": 1, "b": 1}]}',
    "an empty name": b'{"": 1}',
    "a dotted name": b'{"gatewaya_card_info.card_no": "1"}',
    "a name with a line break": b'{"a\\nb": 1}',
    "a Chinese name": '{"金额": 1}'.encode(),
    "a raw control character": b'{"api_key": "de\x00mo"}',
    "an escaped NUL": b'{"api_key": "de\\u0000mo"}',
    "an escaped line break": b'{"api_key": "demo\\napi_key=other"}',
    "DEL": b'{"api_key": "demo\\u007f"}',
    "C1": b'{"api_key": "demo\\u0085"}',
    "-Infinity": b'{"cny_amount": -Infinity}',
    "30,000 arrays deep": b'{"a":' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    "10,000 objects deep": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "60,000 brackets that stay open": b"[" * 60_000,
}

# Values that no field of any endpoint accepts.
HOSTILE_VALUES = [
    *("true", "-0.5", "1e999", "-1e99999999", "9" * 5_000, "0." + "0" * 5_000 + "1"),
    *("[]", "[null]", "[[[]]]", '["1"]', '{"a": {}}', '{"$ne": null}', '[{"a": 1}]'),
    *('"\\u0000"', '"1\\n2"', f'"{"1" * 5_000}"', f'"{"好" * 10_000}"', '"\\ud83e\\udde7' + "x" * 255 + '"'),
]


@pytest.fixture
def settings_of_app():
    return {"requests_per_second": 1_000_000, "refused_per_minute": 1_000_000}


def paths(fields, before=()):
    """Each field, including nested ones."""
    for name, value in fields.items():
        yield (*before, name)
        if isinstance(value, dict):
            yield from paths(value, (*before, name))


def with_literal(fields, path, literal):
    """The JSON text of `fields` with the text `literal` for the value at `path`."""
    name, *rest = path
    inner = with_literal(fields[name], rest, literal) if rest else literal
    texts = {other: json.dumps(value, ensure_ascii=False) for other, value in fields.items()} | {name: inner}
    return "{" + ", ".join(f'"{other}": {text}' for other, text in texts.items()) + "}"


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_malformed_body_is_refused_before_anything_else(api, endpoint):
    for what, body in MALFORMED.items():
        answer = api.post(endpoint, body)
        # The query can have all values of getPayChannels.
        expected = (400, 40000) if body or endpoint != "getPayChannels" else (401, 40101)
        assert (answer.status, answer.code, answer.data) == (*expected, None), what


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize(("request_of", "path"), [(name, path) for name in WHOLE for path in paths(WHOLE[name][1])])
def test_a_hostile_value_in_any_field_is_refused_by_that_field(api, request_of, path):
    endpoint, fields = WHOLE[request_of]
    for literal in HOSTILE_VALUES:
        answer = api.post(endpoint, signed_text(endpoint, with_literal(fields, path, literal)))
        assert answer.code in (40000, 42200), literal
        if answer.code == 42200:
            own = ".".join(path)
            assert answer.data, literal
            assert all(f"{field}.".startswith(f"{own}.") for field in answer.data), literal


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize("endpoint", ["createOrder", "getPayChannels"])
def test_a_hostile_value_in_an_auth_field_is_no_authentication(api, endpoint):
    for field in ("api_key", "timestamp", "nonce", "signature"):
        for literal in [*HOSTILE_VALUES, "null", '""', "{}", "0", '"demo\'--"']:
            answer = api.post(endpoint, with_literal(signed(endpoint, {}), [field], literal).encode())
            assert answer.code in (40000, 40101, 40102), (field, literal)


@pytest.mark.usefixtures("nothing_changes")
def test_a_signed_hostile_value_in_an_auth_field_is_refused(api):
    auth = {"api_key": "demo", "timestamp": int(time.time()), "nonce": "nonce-1234"}
    for field, code in (("api_key", 40101), ("timestamp", 40103), ("nonce", 40104)):
        for literal in HOSTILE_VALUES:
            text = with_literal(BUY | auth, [field], literal)
            own = signature("createOrder", json.loads(text, parse_int=str, parse_float=str), "demo-secret")
            answer = api.post("createOrder", f'{text[:-1]}, "signature": "{own}"}}'.encode())
            assert answer.code in (40000, code), (field, literal)


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_hostile_query_is_refused(api, endpoint):
    names = ("category=%00", "category=%ff", "category[]=1", "category=a&category=b", "%ff=1", "=1", "a.b=1")
    for query in (*names, "x=" + "x" * 50_000):
        answer = api.post(endpoint, json.dumps(signed(endpoint, {})).encode(), query=f"?{query}")
        assert answer.code in (40000, 40102), query[:30]


def test_a_hostile_header_never_breaks_the_service(api):
    hostile = {
        "Content-Type": ["application/json; charset=utf-16", "application/json; charset=nonsense"],
        "Content-Encoding": ["gzip"],
        "Accept-Language": ["zh;q=x, ,;;, en;q=1e999, " + "a-" * 2_000],
        "Accept": ["text/html;q=nan"],
        "X-Forwarded-For": ["not an address"],
        "Range": ["bytes=0-0"],
        "If-None-Match": ["*"],
        "Idempotency-Key": ["x" * 60_000, "\x7f"],
    }
    for header, values in hostile.items():
        for value in values:
            answer = api.buy(headers={header: value})
            assert answer.status < 500, header
            assert set(answer.json) <= {"code", "msg", "data", "time"}


def test_an_address_can_not_write_lines_of_its_own_into_the_log(http, caplog, monkeypatch):
    def fail(*_):
        raise RuntimeError("an error of ours")

    monkeypatch.setattr("blueprints.api.notices.Order.find", fail)
    assert http("GET", "/addons/paychannel/notify/1%0a2026-11-22%20ERROR%20forged%1b[2J").code == 50000
    (record,) = (record for record in caplog.records if record.name == "blueprints.api.envelope")
    assert "forged" in record.message
    assert record.message.isprintable()


@settings(
    max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(endpoint=st.sampled_from(ENDPOINTS), body=st.binary(max_size=200))
def test_no_bytes_break_the_service(api, endpoint, body):
    assert api.post(endpoint, body).status in (400, 401)
