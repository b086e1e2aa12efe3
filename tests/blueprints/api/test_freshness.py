"""Freshness and replay: the window of the timestamp, and a nonce that counts once."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from app import create_app
from models.db.base import database
from services.security import replay
from tests.databases import settings_of
from tests.support import NOON, Api, signed, through_flask

BUY = {"order_type": 1, "cny_amount": "100.00", "paychannel_id": 2, "paychannel_paymethod": "wxpay"}


@pytest.fixture
def restarted(instance):
    """Call it for the merchant `demo` as a client of the service, restarted on the same instance."""

    def restart():
        database.close()
        return Api(through_flask(create_app(settings_of(instance)).test_client()))

    return restart


def order_bytes(**fields):
    return json.dumps(signed("createOrder", BUY | fields)).encode()


def test_a_timestamp_is_fresh_within_300_seconds_of_the_server(clock, api):
    for stamp in (NOON, NOON - 300, NOON + 300, str(NOON)):
        assert api.call("orderQueryList", {"timestamp": stamp}).code == 1, stamp
    outside = (NOON - 301, NOON + 301, 0, NOON + 10**10, 10**30, -5)
    malformed = (None, "", "now", "-5", True, 1.5, f"{NOON}.0", " 1", "１２３", [NOON])
    for stamp in (*outside, *malformed):
        refused = api.call("orderQueryList", {"timestamp": stamp})
        assert (refused.status, refused.code, refused.data) == (401, 40103, None), stamp


def test_a_nonce_has_8_to_64_plain_characters(api):
    for nonce in ("a" * 8, "a" * 64, "A-z_0.9-", "12345678"):
        assert api.call("orderQueryList", {"nonce": nonce}).code == 1, nonce
    wrong = (None, "", "a" * 7, "a" * 65, "with space", "slash/slash", "eight=eight", "订单订单订单订单", 12345678)
    for nonce in (*wrong, ["a" * 8]):
        refused = api.call("orderQueryList", {"nonce": nonce})
        assert (refused.status, refused.code, refused.data) == (401, 40104, None), nonce


def test_a_nonce_counts_once_for_a_merchant_whatever_the_endpoints(api, other):
    fields = {"createOrder": BUY, "orderQueryDetail": {"order_no": api.buy().data["order_no"]}}
    fields |= {"orderQueryList": {}, "getPayChannels": {}, "balanceQuery": {}, "refundQueryList": {}}
    fields |= {"statementQuery": {"month": "2026-05"}}
    for first in fields:
        nonce = {"nonce": f"nonce-{first}"}
        assert api.call(first, fields[first] | nonce).code == 1
        assert [api.call(second, fields[second] | nonce).code for second in fields] == [40104] * 7, first
        assert other.call("orderQueryList", nonce).code == 1


def test_a_request_with_an_invalid_signature_uses_no_nonce(api, http):
    stranger = Api(http, "demo", "guessed-secret")
    assert stranger.buy(nonce="the-nonce").code == 40102
    assert api.buy(nonce="the-nonce").code == 1


def test_a_request_with_a_valid_signature_uses_its_nonce_although_its_fields_are_invalid(api):
    assert api.buy("0", nonce="the-nonce").code == 42200
    assert api.buy(nonce="the-nonce").code == 40104


def test_a_replayed_order_is_refused_and_its_nonce_stays_used_across_a_restart(api, restarted):
    body = order_bytes(nonce="the-nonce")
    assert [api.post("createOrder", body).code for _ in range(2)] == [1, 40104]
    again = restarted()
    assert again.post("createOrder", body).code == 40104
    assert again.call("orderQueryList", {"nonce": "the-nonce"}).code == 40104
    assert again.listed().data["total"] == 1


def test_an_order_dated_ahead_can_not_be_replayed_while_its_timestamp_is_valid(clock, api, restarted):
    body = order_bytes(timestamp=NOON + 300)
    assert api.post("createOrder", body).code == 1
    clock(600)
    replay.purge()
    assert restarted().post("createOrder", body).code == 40104


def test_a_query_dated_ahead_can_not_be_replayed_while_its_timestamp_is_valid(clock, api):
    body = json.dumps(signed("orderQueryList", {"timestamp": NOON + 300})).encode()
    assert api.post("orderQueryList", body).code == 1
    for seconds in (1, 299, 301, 599, 600):
        clock(seconds)
        assert api.post("orderQueryList", body).code == 40104
    clock(601)
    assert api.post("orderQueryList", body).code == 40103


def test_a_query_dated_ahead_can_not_be_replayed_in_the_last_second_of_its_timestamp(clock, api):
    clock(0.5)
    assert api.listed().code == 1  # nonces are sorted out so long after this, not on the full second
    clock(replay.GOOD_FOR)
    body = json.dumps(signed("orderQueryList", {"timestamp": NOON + replay.GOOD_FOR + 300})).encode()
    assert api.post("orderQueryList", body).code == 1
    clock(replay.GOOD_FOR + 0.5)
    assert api.listed().code == 1
    clock(replay.GOOD_FOR + 600.6)
    assert api.post("orderQueryList", body).code == 40104


def test_a_nonce_counts_once_in_a_race_and_after_kill_9(service):
    body = order_bytes(timestamp=int(time.time()))
    with ThreadPoolExecutor(6) as pool:
        codes = sorted(pool.map(lambda _: service.api.post("createOrder", body).code, range(6)))
    assert codes == [1] + [40104] * 5
    service.kill()
    service.start()
    assert service.api.post("createOrder", body).code == 40104
    assert service.api.listed().data["total"] == 1
