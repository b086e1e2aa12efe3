"""Verification of the fields with which payers return."""

import base64
import hashlib
import hmac
from datetime import datetime, timezone

import flask
import pytest

from tillbook_client import BadSignature, Return, verify_return

SECRET, NEW = ("whsec_" + base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2))
ORDER = "202611218899480685472049"
NOW = 1795232400


def signed(number="A-1001", secret=SECRET, at=NOW):
    content = f"{ORDER}.{at}.completed.{number}".encode()
    mac = hmac.new(base64.b64decode(secret[6:]), content, hashlib.sha256).digest()
    signature = "v1," + base64.b64encode(mac).decode()
    fields = {"order_no": ORDER, "merchant_order_no": number, "status": "completed"}
    return fields | {"timestamp": str(at), "signature": signature}


def without(name):
    return {each: value for each, value in signed().items() if each != name}


@pytest.mark.parametrize("number", ["A-1001", "", "商户 1&2"])
def test_a_genuine_return_names_the_order(number):
    found = verify_return(signed(number), SECRET, now=NOW)
    assert found == Return(ORDER, number, "completed", datetime(2026, 11, 21, 3, 40, tzinfo=timezone.utc))


def test_the_fields_of_a_web_framework_are_accepted():
    with flask.Flask(__name__).test_request_context("/", query_string=signed("商户 1+2&3")):
        assert verify_return(flask.request.args, SECRET, now=NOW).merchant_order_no == "商户 1+2&3"


def test_during_a_rotation_any_pair_of_secrets_matches():
    both = signed() | {"signature": f"{signed(secret=NEW)['signature']} {signed()['signature']}"}
    assert verify_return(both, SECRET, now=NOW)
    assert verify_return(both, NEW, now=NOW)
    assert verify_return(signed(), [NEW, SECRET], now=NOW)


@pytest.mark.parametrize(
    "fields",
    [
        signed() | {"status": "confirmed"},
        signed() | {"merchant_order_no": "A-1002"},
        signed() | {"order_no": "202611218899480685472050"},
        signed() | {"timestamp": str(NOW + 1)},
        signed() | {"timestamp": "１"},
        signed() | {"signature": ""},
        signed(secret=NEW),
        *(without(name) for name in signed()),
        {},
    ],
)
def test_changed_fields_are_refused(fields):
    with pytest.raises(BadSignature):
        verify_return(fields, SECRET, now=NOW)


@pytest.mark.parametrize("late", [-301, 301])
def test_an_old_timestamp_is_refused(late):
    assert verify_return(signed(), SECRET, now=NOW + 300 * (1 if late > 0 else -1))
    with pytest.raises(BadSignature, match="300 s from this machine's clock"):
        verify_return(signed(), SECRET, now=NOW + late)


def test_the_api_secret_is_recognized_as_the_wrong_one():
    with pytest.raises(ValueError, match="this may be the API secret"):
        verify_return(signed(), "demo-secret", now=NOW)
