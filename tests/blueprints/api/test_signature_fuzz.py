"""A request whose meaning differs from the signed one is never accepted, however it is changed."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.forgery import AUTH, CHANGES, JOINTS, Number, Sent, joined, leaves_of
from tests.support import CARD, PERSON, signature, signed

SECRET = "demo-secret"
REFUSED = {40000, 40101, 40102, 40103, 40104, 40404}
BUY = {"order_type": 1, "cny_amount": "1.00", "paychannel_id": 2, "paychannel_paymethod": "wxpay"}
SELL = BUY | {"order_type": 2, "paychannel_id": 1, "gatewaya_personal_data": PERSON, "gatewaya_card_info": CARD}
TEXTS = {"customer_name": "Zoé Å=1 ﬁ", "merchant_order_no": "订单 1=2&a=b"}
FILTERS = {"page": 1, "limit": 20, "status": "pending", "order_type": 1, "start_time": 0}

# name: endpoint, body, query string. The auth fields go into the body, if there is one.
GOOD = {
    "a deposit": ("createOrder", BUY, {}),
    "a deposit with texts": ("createOrder", BUY | TEXTS, {}),
    "a withdrawal": ("createOrder", SELL, {}),
    "a list": ("orderQueryList", FILTERS | {"merchant_order_no": "1"}, {}),
    "channels, signed in the body": ("getPayChannels", {}, {"category": "gateway_b"}),
    "channels, signed in the query": ("getPayChannels", None, {"category": "gateway_b"}),
    "channels, signed in both": ("getPayChannels", {}, {"category": "gateway_b", "nonce": "0-nonce", "timestamp": "9"}),
}


def numbered(value):
    """The value with its ints as they are written."""
    if isinstance(value, dict):
        return {name: numbered(item) for name, item in value.items()}
    return Number(value) if type(value) is int else value


def good(name):
    """A signed request that is accepted unchanged; each has a nonce of its own."""
    endpoint, body, query = GOOD[name]
    auth = numbered({name: signed(endpoint, {})[name] for name in AUTH[:3]})
    if body is None:
        query = query | {name: str(value) for name, value in auth.items()}
        return Sent(endpoint, {}, query | {"signature": signature(endpoint, {}, SECRET, query)})
    body = numbered(body | auth)
    return Sent(endpoint, body | {"signature": signature(endpoint, body, SECRET, query)}, query)


def lines(sent):
    """The signature by an integrator's implementation."""
    return signature(sent.endpoint, sent.body, SECRET, sent.query)


@pytest.fixture
def settings_of_app():
    return dict.fromkeys(("requests_per_second", "refused_per_minute", "short_searches"), 1_000_000)


FUZZ = settings(
    max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize("name", GOOD)
def test_only_requests_with_the_meaning_of_the_signed_one_are_accepted(http, name):
    passed = []
    assert good(name).go(http).code == 1

    @FUZZ
    @given(data=st.data(), changes=st.lists(st.sampled_from(CHANGES), min_size=1, max_size=2))
    def fuzz(data, changes):
        sent = changed = good(name)
        for change in changes:
            changed = change(data.draw, changed)
        answer = changed.go(http)
        if answer.code == 1:
            assert changed.meaning() == sent.meaning()
            passed.append(changed)
        elif changed.endpoint == sent.endpoint and lines(changed) == lines(sent):
            assert answer.code in REFUSED | {42200}  # the same lines in another structure, which no schema accepts
        else:
            assert answer.code in REFUSED

    fuzz()
    assert passed  # some changed only the order of names


@pytest.mark.parametrize("name", ["a deposit with texts", "a withdrawal", "a list"])
def test_no_two_lines_are_accepted_as_one(http, name):
    sent = good(name)
    for first, second in itertools.pairwise(leaves_of(sent.body)):
        for joint, in_name in itertools.product(JOINTS, (False, True)):
            answer = replace(sent, body=joined(sent.body, first, second, joint, in_name)).go(http)
            assert answer.code in REFUSED, (first, second, joint)
