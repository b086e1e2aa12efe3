"""The refund endpoints over HTTP: requests, the merchant's own number, refusals, and queries."""

import json

import pytest

from models.tables.merchant import APPROVAL, AUTOMATIC, OFF, Merchant
from models.tables.order import Order
from models.tables.refund import Refund
from models.tables.replay import IdempotencyKey
from services.callbacks import outbox
from services.merchants import cache
from services.refunds import approve, place
from tests.support import completed, signed

BALANCE = 1_009_940  # of the merchant `demo`: 10,000.00 and the deposit of 100.00 less a fee of 0.60


@pytest.fixture
def permitted(app):
    """`permitted(mode, most, fees=...)` sets which refunds the merchant `demo` may request."""

    def change(mode=APPROVAL, most=0, fees="keep", key="demo"):
        facts = {"refund_mode": mode, "refund_auto_max": most, "refund_fees": fees}
        Merchant.update(facts).where(Merchant.key == key).execute()
        cache.forget()

    return change


@pytest.fixture
def paid(api, permitted):
    """The number of a completed deposit of 100.00 of a merchant whose refunds need approval."""
    permitted()
    return completed(api)


def asked(api, order_no, amount="30.00", number="R-1", headers=None, **more):
    """Send createRefund."""
    fields = {"order_no": order_no, "cny_amount": amount, "merchant_refund_no": number}
    return api.call("createRefund", fields | more, headers)


def is_replay(answer):
    return answer.headers.get("Idempotency-Replayed") == "true"


def test_a_refund_that_needs_approval_is_pending_and_reserves_what_it_deducts(api, paid, balances):
    answer = asked(api, paid, reason="退货")
    assert (answer.status, answer.code, is_replay(answer)) == (200, 1, False)
    found = answer.data
    assert found["createtime"] == found["updatetime"] > 0
    times = {name: found.pop(name) for name in ("createtime", "updatetime")}
    refund_no = found.pop("refund_no")
    assert (len(refund_no), refund_no.isdigit(), found) == (
        24,
        True,
        {
            "order_no": paid,
            "merchant_refund_no": "R-1",
            "cny_amount": "30.00",
            "service_amount": 0,
            "merchant_actual_amount": 3_000,
            "status": "pending",
            "reason": "退货",
        },
    )
    assert balances() == (BALANCE - 3_000, 3_000)
    own = {"refund_no": refund_no}
    for by in (own, {"merchant_refund_no": "R-1"}, own | {"merchant_refund_no": "another"}):
        assert api.call("refundQueryDetail", by).data == found | own | times
    assert api.detail(order_no=paid).data["status"] == "completed"


def test_an_automatic_refund_is_at_the_channel_before_the_response(api, paid, permitted, balances):
    permitted(AUTOMATIC, 3_000)
    assert asked(api, paid, "30.00").data["status"] == "completed"
    assert balances() == (BALANCE - 3_000, 0)
    assert asked(api, paid, "30.01", "R-2").data["status"] == "pending"  # above the limit: needs approval


@pytest.mark.parametrize(
    ("fees", "expected"),
    [("keep", [0, 0]), ("proportional", [20, 40]), ("full_only", [0, 60])],
)
def test_the_response_has_the_fee_that_goes_back(api, paid, permitted, fees, expected):
    permitted(fees=fees)
    parts = [asked(api, paid, amount, number).data for amount, number in (("33.33", "R-1"), ("66.67", "R-2"))]
    assert [part["service_amount"] for part in parts] == expected
    assert [part["merchant_actual_amount"] for part in parts] == [3_333 - expected[0], 6_667 - expected[1]]


BAD = [
    ({"order_no": None}, {"order_no"}),
    ({"order_no": "x" * 65}, {"order_no"}),
    ({"order_no": 1}, {"order_no"}),
    ({"cny_amount": None}, {"cny_amount"}),
    ({"cny_amount": "0"}, {"cny_amount"}),
    ({"cny_amount": "-1"}, {"cny_amount"}),
    ({"cny_amount": "1.001"}, {"cny_amount"}),
    ({"cny_amount": "1e9999"}, {"cny_amount"}),
    ({"merchant_refund_no": ""}, {"merchant_refund_no"}),
    ({"merchant_refund_no": "x" * 65}, {"merchant_refund_no"}),
    ({"merchant_refund_no": 1}, {"merchant_refund_no"}),
    ({"reason": "退" * 27}, {"reason"}),
    ({"reason": ["x"]}, {"reason"}),
    ({"refund_no": "1"}, {"refund_no"}),
    (
        {"order_no": None, "cny_amount": "x", "merchant_refund_no": None},
        {"order_no", "cny_amount", "merchant_refund_no"},
    ),
]


@pytest.mark.parametrize(("changed", "paths"), BAD, ids=range(len(BAD)))
def test_every_invalid_field_is_named_by_its_path(api, paid, kept, changed, paths):
    before = kept()
    fields = {"order_no": paid, "cny_amount": "1.00", "merchant_refund_no": "R-2"} | changed
    answer = api.call("createRefund", fields)
    assert (answer.status, answer.code, {*answer.data}) == (422, 42200, paths)
    assert all(messages and all(messages) for messages in answer.data.values())
    assert kept() == before


def test_a_reason_of_80_bytes_and_a_number_of_64_characters_are_accepted(api, paid):
    answer = asked(api, paid, number="退" * 64, reason="退" * 26 + "ab")
    assert (answer.code, answer.data["merchant_refund_no"], len(answer.data["reason"])) == (1, "退" * 64, 28)


def test_the_same_number_with_the_same_data_is_the_same_refund_as_it_is_now(api, paid, due, rows):
    first = asked(api, paid, "30.00", reason="x")
    before = rows()
    for same in ({}, {"cny_amount": 30}, {"cny_amount": "30"}):
        again = api.call("createRefund", {**_fields(paid), "reason": "x"} | same)
        assert (again.code, is_replay(again), again.data) == (1, True, first.data)
    after = rows()
    assert after["Refund"] == before["Refund"]
    assert after["Entry"] == before["Entry"]
    approve.approve(Refund.get(), "operator")
    due.orders()
    now = asked(api, paid, "30.00", reason="x")
    assert (is_replay(now), now.data["status"], now.data["refund_no"]) == (True, "completed", first.data["refund_no"])


def _fields(order_no):
    return {"order_no": order_no, "cny_amount": "30.00", "merchant_refund_no": "R-1"}


@pytest.mark.parametrize("other_data", [{"cny_amount": "30.01"}, {"reason": "x"}, {"order_no": "1" * 24}], ids=str)
def test_the_same_number_with_other_data_is_refused(api, paid, kept, other_data):
    assert asked(api, paid).code == 1
    before = kept()
    refused = api.call("createRefund", _fields(paid) | other_data)
    assert (refused.status, refused.code, refused.data, is_replay(refused)) == (422, 42201, None, False)
    assert "merchant_refund_no" in refused.json["msg"]
    assert kept() == before


def test_a_number_belongs_to_one_merchant(api, other, paid, permitted):
    permitted(key="other")
    own, others = asked(api, paid), asked(other, completed(other))
    assert (own.code, others.code) == (1, 1)
    assert own.data["refund_no"] != others.data["refund_no"]
    for by in ({"refund_no": others.data["refund_no"]}, {"refund_no": "1" * 24}, {"merchant_refund_no": "R-2"}):
        refused = api.call("refundQueryDetail", by)
        assert (refused.status, refused.code, refused.data) == (404, 40405, None)
    listed = api.call("refundQueryList", {}).data
    assert (listed["total"], [each["refund_no"] for each in listed["list"]]) == (1, [own.data["refund_no"]])
    stranger = {"before": others.data["refund_no"]}
    assert api.call("refundQueryList", stranger).code == 40405


def test_another_merchants_order_and_an_unknown_one_are_not_found(api, other, paid, permitted):
    permitted(key="other")
    for client, order_no in ((other, paid), (api, "1" * 24), (api, "x")):
        refused = asked(client, order_no)
        assert (refused.status, refused.code, refused.data) == (404, 40401, None)


def refusal(answer):
    """What a 40904 says."""
    assert (answer.status, answer.code, {*answer.data}) == (409, 40904, {"reason", "left"}), answer
    return answer.data["reason"], answer.data["left"]


def test_refunds_are_disabled_by_default_and_then_refused(api, flask, permitted):
    flask("merchant", "add", "shop", "--name", "Shop")
    assert Merchant.get(Merchant.key == "shop").refund_mode == OFF
    permitted(OFF)
    assert refusal(asked(api, completed(api))) == ("disabled", "0.00")
    assert Refund.select().count() == 0


def test_an_order_that_is_no_received_deposit_is_not_refundable(api, paid):
    withdrawal, unpaid = api.sell("1.00").data["order_no"], api.buy().data["order_no"]
    for number, order_no in enumerate((withdrawal, unpaid)):
        assert refusal(asked(api, order_no, "1.00", f"S-{number}")) == ("state", "0.00")


def test_an_old_payment_is_not_refundable(api, paid, ahead):
    ahead(365 * 86_400 - 60)
    assert asked(api, paid, "1.00").code == 1
    ahead(120)
    assert refusal(asked(api, paid, "1.00", "R-2")) == ("window", "0.00")


def test_a_channel_without_refunds_refuses(api, paid, monkeypatch):
    driver = type(place.driver_of(Order.get(Order.order_no == paid).channel))
    monkeypatch.setattr(driver, "refunds", False)
    assert refusal(asked(api, paid)) == ("driver", "0.00")


def test_a_payment_under_review_is_not_refundable(api, paid):
    order = Order.get(Order.order_no == paid)
    api.notice(paid, 12_000, reference=order.channel_reference)  # the channel corrects the amount
    assert refusal(asked(api, paid))[0] == "exception"


def test_more_than_what_is_left_is_refused_with_what_is_left(api, paid):
    assert refusal(asked(api, paid, "100.01")) == ("amount", "100.00")
    assert asked(api, paid, "30.00", "R-1").code == 1
    assert refusal(asked(api, paid, "70.01", "R-2")) == ("amount", "70.00")
    assert asked(api, paid, "70.00", "R-2").code == 1  # a refusal does not use the number
    assert refusal(asked(api, paid, "0.01", "R-3")) == ("amount", "0.00")


def test_a_balance_that_does_not_cover_it_refuses_without_using_the_number(api, paid, flask, balances):
    flask("ledger", "adjust", "demo", "--reason", "test", "--", "-10000.00")
    available, _ = balances()
    refused = asked(api, paid, "100.00")
    assert (refused.status, refused.code, refused.data) == (409, 40901, None)
    assert (balances(), Refund.select().count()) == ((available, 0), 0)
    flask("ledger", "adjust", "demo", "10000.00", "--reason", "test")
    again = asked(api, paid, "100.00")
    assert (again.code, is_replay(again)) == (1, False)


def test_a_channels_refusal_names_the_cancelled_refund_and_returns_the_money(
    api, paid, permitted, flask, balances, later
):
    permitted(AUTOMATIC, 10_000)
    flask("channel", "set", "2", "--config", "refund=fail")
    refused = asked(api, paid)
    assert (refused.status, refused.code, {*refused.data}) == (502, 50201, {"refund_no"})
    assert balances() == (BALANCE, 0)
    again = asked(api, paid)
    assert (again.code, is_replay(again), again.data["status"]) == (1, True, "cancelled")
    assert again.data["refund_no"] == refused.data["refund_no"]
    # A new number is a new attempt, which waits because the first was less than a minute ago.
    assert asked(api, paid, number="R-2").data["status"] == "pending"
    later(61)
    assert api.call("refundQueryDetail", {"merchant_refund_no": "R-2"}).data["status"] == "cancelled"


def test_two_requests_at_once_with_one_number_are_one_refund(api, paid, monkeypatch):
    """The second has looked for the number before the first was committed, and there is nothing left."""
    before = place.placed_before
    seen = []

    def looks_too_early(merchant, wanted):
        seen.append(wanted)
        return None if len(seen) == 2 else before(merchant, wanted)

    monkeypatch.setattr(place, "placed_before", looks_too_early)
    first, second = (asked(api, paid, "100.00") for _ in range(2))
    assert (first.code, second.code, len(seen)) == (1, 1, 3)
    assert (is_replay(second), second.data) == (True, first.data)


def test_an_idempotency_key_has_no_effect(api, paid):
    headers = {"Idempotency-Key": "A-1"}
    order_no = api.buy(headers=headers).data["order_no"]
    first = asked(api, paid, "1.00", "R-1", headers)
    second = asked(api, paid, "2.00", "R-2", headers)
    assert [(each.code, is_replay(each)) for each in (first, second)] == [(1, False)] * 2
    assert [key.order.order_no for key in IdempotencyKey.select()] == [order_no]


def test_a_nonce_is_used_once_also_by_a_repeated_refund(api, paid):
    body = json.dumps(signed("createRefund", _fields(paid))).encode()
    assert [api.post("createRefund", body).code for _ in range(2)] == [1, 40104]
    repeated = json.dumps(signed("createRefund", _fields(paid))).encode()
    assert [api.post("createRefund", repeated).code for _ in range(2)] == [1, 40104]
    assert Refund.select().count() == 1


@pytest.fixture
def placed(api, paid):
    """The numbers of seven refunds of two orders, the newest first; the third is cancelled."""
    second = completed(api)
    numbers = [asked(api, (paid, second)[count % 2], "1.00", f"R-{count}").data["refund_no"] for count in range(7)]
    approve.reject(Refund.get(Refund.refund_no == numbers[2]), "no")
    return numbers[::-1]


def listed(api, **filters):
    """The numbers on a page, and its other fields."""
    data = api.call("refundQueryList", filters).data
    return [each["refund_no"] for each in data.pop("list")], data


def test_the_list_has_pages_newest_first_and_each_its_total(api, placed):
    assert listed(api) == (placed, {"total": 7, "page": 1, "limit": 20})
    assert listed(api, page=2, limit=3) == (placed[3:6], {"total": 7, "page": 2, "limit": 3})
    assert listed(api, page=9, limit=3) == ([], {"total": 7, "page": 9, "limit": 3})


def test_new_refunds_do_not_shift_pages_by_before(api, paid, placed):
    first, _ = listed(api, limit=3)
    asked(api, paid, "1.00", "R-8")
    second, page = listed(api, limit=3, before=first[-1], page=1)
    assert (first + second, page) == (placed[:6], {"total": 8, "page": 1, "limit": 3})
    assert listed(api, before=placed[-1])[0] == []


def test_the_list_is_filtered_by_status_order_and_time(api, paid, placed, ahead):
    assert listed(api, status="cancelled")[0] == [placed[4]]
    assert listed(api, status="confirmed") == ([], {"total": 0, "page": 1, "limit": 20})
    assert listed(api, order_no=paid)[0] == placed[::2]
    assert listed(api, order_no="1" * 24)[0] == []
    ahead(100)
    late = asked(api, paid, "1.00", "R-9").data
    assert listed(api, start_time=late["createtime"])[0] == [late["refund_no"]]
    assert listed(api, end_time=late["createtime"] - 1)[0] == placed
    assert listed(api, status="pending", order_no=paid, limit=2)[1]["total"] == 4


BAD_QUERIES = [
    ("refundQueryDetail", {}, {"refund_no", "merchant_refund_no"}),
    ("refundQueryDetail", {"refund_no": None, "merchant_refund_no": ""}, {"refund_no", "merchant_refund_no"}),
    ("refundQueryDetail", {"order_no": "1"}, {"order_no"}),
    ("refundQueryList", {"before": "1" * 24, "page": 2}, {"page"}),
    ("refundQueryList", {"status": "paid"}, {"status"}),
    ("refundQueryList", {"limit": 101}, {"limit"}),
    ("refundQueryList", {"page": 0}, {"page"}),
    ("refundQueryList", {"merchant_refund_no": "R-1"}, {"merchant_refund_no"}),
]


@pytest.mark.parametrize(("endpoint", "fields", "paths"), BAD_QUERIES, ids=range(len(BAD_QUERIES)))
def test_an_invalid_query_names_its_fields(api, endpoint, fields, paths):
    refused = api.call(endpoint, fields)
    assert (refused.status, refused.code, {*refused.data}) == (422, 42200, paths)


def test_an_unknown_refund_to_continue_after_is_not_found(api, paid):
    assert api.call("refundQueryList", {"before": "1" * 24}).code == 40405


@pytest.mark.parametrize(
    ("events", "expected"), [("", ["refund.completed"]), ("refund.confirmed", ["refund.confirmed", "refund.completed"])]
)
def test_the_callbacks_have_the_refund_as_the_queries_return_it(
    api, paid, permitted, due, receiver, events, expected, flask
):
    flask("merchant", "set", "demo", "--callback-url", receiver.url, "--events", events)
    permitted(AUTOMATIC, 10_000)
    found = asked(api, paid).data
    due()
    got = [each.event for each in receiver.got if each.event["type"].startswith("refund.")]
    assert [event["type"] for event in got] == expected
    assert got[-1]["data"] == found == api.call("refundQueryDetail", {"merchant_refund_no": "R-1"}).data
    assert {*outbox.REFUND_RESULTS} >= {expected[-1]}
    assert len({each.webhook_id for each in receiver.got}) == len(receiver.got)


def test_a_rejected_refund_is_reported_to_every_merchant(api, paid, due, receiver, flask):
    flask("merchant", "set", "demo", "--callback-url", receiver.url)
    refund_no = asked(api, paid).data["refund_no"]
    approve.reject(Refund.get(Refund.refund_no == refund_no), "not now")
    due()
    (event,) = (each.event for each in receiver.got if each.event["type"].startswith("refund."))
    assert (event["type"], event["data"]["status"], event["data"]["refund_no"]) == (
        "refund.cancelled",
        "cancelled",
        refund_no,
    )
