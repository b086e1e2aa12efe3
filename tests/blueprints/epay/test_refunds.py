"""Refunds that shops request through the epay gateway: placed once, queried, and refused with their reason."""

from concurrent.futures import ThreadPoolExecutor
from copy import copy
from threading import Barrier

import pytest

from gateways.base import ChannelUnknown
from models.tables.merchant import Merchant
from models.tables.order import Order
from models.tables.outbox import Callback
from models.tables.refund import Refund, RefundHistory
from services.merchants import cache
from services.orders import next_step
from services.refunds import approve, place
from services.refunds.place import NotRefundable, Wanted
from tests.epay_shop import md5
from tests.support import Api, through_flask
from tests.trial_service import Trial

BEFORE, WHOLE = 1_001_242, 1250  # the balance with a payment of 12.50 and a fee of 0.08


@pytest.fixture(autouse=True)
def refunds_on(app):
    """`refunds_on("approval")` sets the refunds of the shop's merchant; automatic ones up to 1,000 yuan before."""

    def change(mode="automatic", most=100_000):
        Merchant.update(refund_mode=mode, refund_auto_max=most).where(Merchant.key == "demo").execute()
        cache.forget()

    change()
    return change


@pytest.fixture(autouse=True)
def _every_refund_has_a_next_step(app):
    yield
    assert (next_step.missing(5), next_step.missing_refunds(5)) == ([], [])


@pytest.fixture
def paid(rsa_shop, api):
    """`paid("SHOP-1")`: the number of a completed payment of 12.50 yuan."""

    def pay(number="SHOP-1", **changed):
        trade_no = rsa_shop.mapi(out_trade_no=number, **changed)["trade_no"]
        api.play(trade_no, "success")
        return trade_no

    return pay


@pytest.fixture
def plays(flask):
    """`plays("processing")` sets the outcome of refunds at the shop's channel."""
    return lambda outcome: flask("channel", "set", "2", "--config", f"refund={outcome}")


def all_refunds():
    return list(Refund.select().order_by(Refund.id))


# --- A refund


def test_version_1_refunds_with_the_key_and_success_is_code_1(rsa_shop, paid, balances):
    number = paid()
    refunded = rsa_shop.refund("12.50", trade_no=number)
    (refund,) = all_refunds()
    facts = {"refund_no": refund.refund_no, "out_refund_no": "", "trade_no": number, "out_trade_no": "SHOP-1"}
    facts |= {"money": "12.50", "reducemoney": "12.50", "status": 1}
    assert refunded == {"code": 1, "msg": "success"} | facts
    assert (refund.who, refund.merchant_refund_no, refund.approved_by) == ("shop", None, "service")
    assert balances() == (BEFORE - WHOLE, 0)


def test_version_2_refunds_by_a_number_and_its_query_shows_the_result(rsa_shop, paid):
    number = paid()
    refunded = rsa_shop.v2("pay/refund", trade_no=number, money="5", out_refund_no="R-1")
    assert (refunded["code"], refunded["money"], refunded["reducemoney"]) == (0, "5.00", "5.00")
    assert (refunded["out_refund_no"], refunded["trade_no"]) == ("R-1", number)
    for named in ({"out_refund_no": "R-1"}, {"refund_no": refunded["refund_no"]}):
        found = rsa_shop.v2("pay/refundquery", **named)
        same = ("refund_no", "out_refund_no", "trade_no", "out_trade_no", "money", "reducemoney")
        assert {name: found[name] for name in same} == {name: refunded[name] for name in same}
        assert (found["code"], found["status"], len(found["addtime"]), len(found["endtime"])) == (0, 1, 19, 19)


def test_the_merchant_sees_the_shops_number_in_the_api_and_the_other_way_round(rsa_shop, paid, api):
    number = paid()
    rsa_shop.v2("pay/refund", trade_no=number, money="5.00", out_refund_no="R-1")
    assert api.call("refundQueryDetail", {"merchant_refund_no": "R-1"}).data["cny_amount"] == "5.00"
    wanted = {"order_no": number, "cny_amount": "3.00", "merchant_refund_no": "R-2", "reason": "sold out"}
    made = api.call("createRefund", wanted).data
    repeated = rsa_shop.v2("pay/refund", trade_no=number, money="3.00", out_refund_no="R-2")
    assert (repeated["code"], repeated["refund_no"]) == (0, made["refund_no"])
    assert len(all_refunds()) == 2


def test_a_shop_learns_the_result_by_the_query_and_gets_no_callback(rsa_shop, paid):
    paid()
    rsa_shop.refund("12.50", out_trade_no="SHOP-1")
    assert [row.type for row in Callback.select()] == ["epay.notify"]


# --- In progress


@pytest.mark.parametrize("outcome", ["processing", "timeout"])
def test_a_refund_in_progress_is_accepted_and_not_reported_as_done(outcome, rsa_shop, paid, plays, later, ahead):
    number = paid()
    plays(outcome)
    accepted = rsa_shop.v2("pay/refund", trade_no=number, money="12.50", out_refund_no="R-1")
    assert (accepted["code"], accepted["msg"], accepted["status"]) == (0, "Refund accepted. In progress", 2)
    assert rsa_shop.refund("12.50", trade_no=number)["code"] == 1
    found = rsa_shop.v2("pay/refundquery", out_refund_no="R-1")
    assert (found["code"], found["status"], "endtime" in found) == (0, 2, False)
    order = rsa_shop.api("order", trade_no=number)
    assert (order["status"], order["refundmoney"]) == (1, "0.00")
    later(600, 4)
    assert rsa_shop.v2("pay/refundquery", out_refund_no="R-1")["status"] == 1
    assert rsa_shop.v2("pay/refund", trade_no=number, money="12.50", out_refund_no="R-1")["msg"] == "success"
    assert len(all_refunds()) == 1


@pytest.mark.parametrize("mode", [("approval", 0), ("automatic", WHOLE - 1)], ids=str)
def test_a_refund_that_needs_approval_is_accepted_and_completed_after_it(mode, rsa_shop, paid, refunds_on, later):
    number = paid()
    refunds_on(*mode)
    accepted = rsa_shop.v2("pay/refund", trade_no=number, money="12.50", out_refund_no="R-1")
    assert (accepted["code"], accepted["msg"]) == (0, "Refund accepted. It awaits approval")
    assert rsa_shop.refund("12.50", trade_no=number)["code"] == 1
    assert rsa_shop.v2("pay/refundquery", out_refund_no="R-1")["status"] == 2
    (refund,) = all_refunds()
    approve.approve(refund)
    later(1)
    assert rsa_shop.v2("pay/refundquery", out_refund_no="R-1")["status"] == 1


def test_a_rejected_refund_has_status_0_and_its_number_is_spent(rsa_shop, paid, refunds_on, balances):
    number = paid()
    refunds_on("approval")
    wanted = {"trade_no": number, "money": "12.50"}
    rsa_shop.v2("pay/refund", **wanted, out_refund_no="R-1")
    (refund,) = all_refunds()
    approve.reject(refund, "not agreed")
    assert balances() == (BEFORE, 0)
    assert rsa_shop.v2("pay/refundquery", out_refund_no="R-1")["status"] == 0
    refused = rsa_shop.v2("pay/refund", **wanted, out_refund_no="R-1")
    assert (refused["code"], "was rejected" in refused["msg"]) == (-1, True)
    assert rsa_shop.v2("pay/refund", **wanted, out_refund_no="R-2")["code"] == 0
    assert len(all_refunds()) == 2


def test_a_refund_that_the_channel_refuses_is_refused_and_can_be_tried_again(rsa_shop, paid, plays, balances, ahead):
    paid()
    plays("fail")
    refused = rsa_shop.refund("12.50", out_trade_no="SHOP-1")
    assert (refused["code"], "was rejected" in refused["msg"]) == (-1, True)
    assert balances() == (BEFORE, 0)
    plays("success")
    ahead(60)  # a channel gets the refunds of a payment a minute apart
    assert rsa_shop.refund("12.50", out_trade_no="SHOP-1")["msg"] == "success"
    assert [refund.status for refund in all_refunds()] == ["cancelled", "completed"]


# --- Repeated


def test_a_full_refund_without_a_number_is_the_same_for_ever(rsa_shop, paid, ahead, refunds_on):
    paid()
    first = rsa_shop.refund("12.50", out_trade_no="SHOP-1")
    ahead(86_400)
    refunds_on("off")
    assert rsa_shop.refund("12.5", out_trade_no="SHOP-1") == first
    assert len(all_refunds()) == 1


def test_a_part_without_a_number_is_the_same_for_ten_minutes(rsa_shop, paid, ahead):
    paid()
    first = rsa_shop.refund("5.00", out_trade_no="SHOP-1")
    ahead(590)
    assert rsa_shop.refund("5.00", out_trade_no="SHOP-1") == first
    other = rsa_shop.refund("4.00", out_trade_no="SHOP-1")
    ahead(20)
    again = rsa_shop.refund("5.00", out_trade_no="SHOP-1")
    assert (again["code"], "3.50" in again["msg"]) == (-1, True)
    third = rsa_shop.refund("3.50", out_trade_no="SHOP-1")
    assert len({each["refund_no"] for each in (first, other, third)}) == len(all_refunds()) == 3


def test_a_part_without_a_number_is_the_same_while_it_is_open(rsa_shop, paid, refunds_on, ahead):
    paid()
    refunds_on("approval")
    first = rsa_shop.refund("5.00", out_trade_no="SHOP-1")
    ahead(86_400)
    assert rsa_shop.refund("5.00", out_trade_no="SHOP-1") == first


def test_an_equal_part_with_a_number_or_by_the_operator_is_another_refund(rsa_shop, paid):
    number = paid()
    order = Refund.order.rel_model.find(number)
    rsa_shop.v2("pay/refund", trade_no=number, money="2.00", out_refund_no="R-1")
    place.place(order, Wanted(200, "operator demo", "operator demo"))
    rsa_shop.refund("2.00", trade_no=number)
    rsa_shop.refund("2.00", trade_no=number, out_refund_no="R-2")
    rsa_shop.refund("2.00", trade_no=number, refund_no="R-2")
    assert [refund.merchant_refund_no for refund in all_refunds()] == ["R-1", None, None, "R-2"]


def test_a_payment_that_the_operator_has_refunded_in_full_counts_as_refunded(rsa_shop, paid, due):
    number = paid()
    place.place(Refund.order.rel_model.find(number), Wanted(None, "operator demo", "operator demo"))
    accepted = rsa_shop.refund("12.50", trade_no=number)
    assert (accepted["code"], accepted["status"]) == (1, 2)
    due.orders()
    assert rsa_shop.refund("12.50", trade_no=number)["msg"] == "success"
    assert len(all_refunds()) == 1


def test_a_number_that_was_used_for_another_refund_is_refused(rsa_shop, paid):
    paid("A")
    paid("B")
    assert rsa_shop.refund("5.00", out_trade_no="A", out_refund_no="R-1")["code"] == 1
    for other in ({"out_trade_no": "A", "money": "5.01"}, {"out_trade_no": "B", "money": "5.00"}):
        refused = rsa_shop.refund(out_refund_no="R-1", **other)
        assert refused == {"code": -1, "msg": "out_refund_no was used for another refund. Use a new one"}


def at_once(app, shop, *requests):
    """The results of requests at the same time, each by a connection of its own: `requests` take the shop."""
    start = Barrier(len(requests))

    def sent(request):
        own = copy(shop)
        own.send = through_flask(app.test_client())
        start.wait()
        return request(own)

    with ThreadPoolExecutor(len(requests)) as pool:
        return list(pool.map(sent, requests))


@pytest.mark.parametrize("money", ["12.50", "5.00"])
@pytest.mark.parametrize("number", ["", "R-1"])
def test_equal_requests_at_once_are_one_refund(money, number, rsa_shop, paid, app, balances):
    paid()
    ask = [lambda own: own.refund(money, out_trade_no="SHOP-1", out_refund_no=number)] * 6
    answers = at_once(app, rsa_shop, *ask)
    assert {answer["code"] for answer in answers} == {1}
    assert len({answer["refund_no"] for answer in answers}) == len(all_refunds()) == 1
    assert balances() == (BEFORE - all_refunds()[0].amount, 0)


def test_the_same_number_at_once_from_the_shop_and_the_api_is_one_refund(rsa_shop, paid, app):
    number = paid()
    wanted = {"order_no": number, "cny_amount": "5.00", "merchant_refund_no": "R-1"}

    def by_api(own):
        return Api(own.send).call("createRefund", wanted).data["refund_no"]

    def by_shop(own):
        return own.refund("5.00", out_trade_no="SHOP-1", out_refund_no="R-1")["refund_no"]

    made = at_once(app, rsa_shop, by_api, by_shop, by_api, by_shop)
    assert set(made) == {refund.refund_no for refund in all_refunds()}
    assert len(all_refunds()) == 1


def test_the_whole_refund_at_once_from_the_shop_the_api_and_an_operator_is_one_refund(
    rsa_shop, paid, app, due, balances
):
    number = paid()
    wanted = {"order_no": number, "cny_amount": "12.50", "merchant_refund_no": "R-1"}

    def by_api(own):
        return Api(own.send).call("createRefund", wanted).code

    def by_shop(own):
        return own.refund("12.50", out_trade_no="SHOP-1")["code"]

    def by_operator(own):
        try:
            return place.place(Order.find(number), Wanted(None, "operator ann", "operator ann")) and 1
        except NotRefundable as refusal:
            return refusal.reason

    made = at_once(app, rsa_shop, by_api, by_shop, by_operator, by_shop)
    assert set(made) <= {1, 40904, "amount"}
    due.orders()
    [refund] = all_refunds()
    assert (refund.status, balances()) == ("completed", (BEFORE - WHOLE, 0))


def test_one_number_at_once_for_two_payments_refunds_one(rsa_shop, paid, app):
    paid("A")
    paid("B")

    def refund_of(payment):
        return lambda own: own.refund("12.50", out_trade_no=payment, out_refund_no="R-1")["code"]

    assert sorted(at_once(app, rsa_shop, refund_of("A"), refund_of("B"))) == [-1, 1]
    assert len(all_refunds()) == 1


def test_a_request_whose_response_was_lost_is_sent_to_the_channel_once(rsa_shop, paid, monkeypatch, later):
    sent = []

    def silent(self, request):
        sent.append(request.refund_no)
        raise ChannelUnknown("no response")

    paid()
    monkeypatch.setattr(Trial, "refund", silent)
    answers = [rsa_shop.refund("12.50", out_trade_no="SHOP-1") for _ in range(3)]
    assert [(answer["code"], answer["status"]) for answer in answers] == [(1, 2)] * 3
    assert sent == [all_refunds()[0].refund_no]
    monkeypatch.undo()
    later(120, 2)
    assert rsa_shop.refund("12.50", out_trade_no="SHOP-1")["msg"] == "success"


# --- Queries of payments


def test_queries_report_what_was_refunded_and_status_2_after_all_of_it(rsa_shop, paid, ahead):
    number = paid()
    rsa_shop.mapi(out_trade_no="UNPAID")
    rsa_shop.mapi(out_trade_no="NO-ORDER", type="wxpay")

    def shown():
        by_query = rsa_shop.v2("pay/query", trade_no=number)
        by_act = rsa_shop.api("order", out_trade_no="SHOP-1")
        in_lists = [rsa_shop.api("orders")["data"][-1], rsa_shop.v2("merchant/orders")["data"][-1]]
        facts = {
            (each["status"], each["refundmoney"], each.get("trade_status")) for each in (by_query, by_act, *in_lists)
        }
        assert len(facts) == 1
        assert by_act["endtime"]
        return facts.pop()

    assert shown() == (1, "0.00", "TRADE_SUCCESS")
    rsa_shop.refund("5.00", trade_no=number)
    assert shown() == (1, "5.00", "TRADE_SUCCESS")
    ahead(60)
    rsa_shop.refund("7.50", trade_no=number)
    assert shown() == (2, "12.50", None)
    others = [(each["status"], each["refundmoney"]) for each in rsa_shop.api("orders")["data"][:2]]
    assert others == [(0, "0.00")] * 2


# --- Refused


def test_a_payment_without_money_is_not_refunded(rsa_shop, paid, nothing_changes_after):
    unpaid = rsa_shop.mapi(out_trade_no="UNPAID")["trade_no"]
    no_order = rsa_shop.mapi(out_trade_no="NO-ORDER", type="wxpay")["trade_no"]
    nothing_changes_after()
    said = {"code": -1, "msg": "This order is not paid and cannot be refunded"}
    for number in (unpaid, no_order):
        assert rsa_shop.refund("12.50", trade_no=number) == said
        assert rsa_shop.v2("pay/refund", trade_no=number, money="12.50", out_refund_no="R-1") == said


@pytest.fixture
def nothing_changes_after(rows):
    """Call it when the payments are placed: the rest of the test leaves the database unchanged."""
    before = []

    def business():
        return {name: found for name, found in rows().items() if name not in ("Nonce", "SetupVersion")}

    yield lambda: before.append(business())
    now = business()
    assert [name for name in now if now[name] != before[0][name]] == []


def test_each_reason_is_told(rsa_shop, paid, api, refunds_on, flask, monkeypatch, nothing_changes_after):
    paid()
    nothing_changes_after()
    whole = {"out_trade_no": "SHOP-1", "money": "12.50"}
    assert rsa_shop.refund("12.51", out_trade_no="SHOP-1")["msg"] == "money is more than what can be refunded: 12.50"
    assert rsa_shop.refund(**whole | {"out_trade_no": "NONE"}) == {"code": -1, "msg": "Order not found"}
    assert rsa_shop.refund(**whole, trade_no="2" * 24) == {"code": -1, "msg": "Order not found"}
    assert rsa_shop.refund("12.50") == {"code": -4, "msg": "trade_no or out_trade_no is required"}
    for wrong in ("", "0", "-1", "1.001", "x", "１"):
        refused = rsa_shop.refund(wrong, out_trade_no="SHOP-1")
        assert (refused["code"], refused["msg"].startswith("money: ")) == (-1, True), wrong
    assert rsa_shop.refund(**whole, out_refund_no="R" * 65)["msg"].startswith("out_refund_no: ")
    assert rsa_shop.api("refund", **whole) == {"code": -1, "msg": "Send refunds by POST"}
    refunds_on("off")
    said = {"code": -1, "msg": "Refunds are not enabled for this merchant"}
    assert rsa_shop.refund(**whole) == rsa_shop.v2("pay/refund", **whole) == said
    refunds_on()
    monkeypatch.setattr(Trial, "refunds", False)
    assert rsa_shop.refund(**whole)["msg"] == "The payment channel of this order does not support refunds"
    monkeypatch.setattr(Trial, "refunds", True)
    monkeypatch.setattr(Trial, "refund_days", -1)
    assert rsa_shop.refund(**whole)["msg"] == "The payment is too old to be refunded"


def test_numbers_of_two_payments_are_refused(rsa_shop, paid):
    first = paid("A")
    paid("B")
    assert rsa_shop.refund("12.50", trade_no=first, out_trade_no="B") == {"code": -1, "msg": "Order not found"}
    assert rsa_shop.refund("12.50", trade_no=first, out_trade_no="A")["code"] == 1


def test_more_than_the_balance_is_refused(rsa_shop, paid, api):
    paid()
    assert api.sell("9980.00").code == 1
    refused = rsa_shop.refund("12.50", out_trade_no="SHOP-1")
    assert refused == {"code": -1, "msg": "The merchant's balance is too low for this refund"}
    assert all_refunds() == []


def test_a_refund_of_another_merchant_or_of_the_api_only_is_not_found(rsa_shop, paid, api, flask_json):
    order_no = api.buy().data["order_no"]
    api.play(order_no, "success")
    wanted = {"order_no": order_no, "cny_amount": "1.00", "merchant_refund_no": "API-1"}
    by_api = api.call("createRefund", wanted).data["refund_no"]
    assert rsa_shop.refund("1.00", trade_no=order_no)["msg"] == "Order not found"
    refund_no = rsa_shop.refund("1.00", trade_no=paid())["refund_no"]
    said = {"code": -1, "msg": "Refund not found"}
    for named in ({"refund_no": by_api}, {"out_refund_no": "API-1"}, {"out_refund_no": "x"}):
        assert rsa_shop.v2("pay/refundquery", **named) == said
    assert rsa_shop.v2("pay/refundquery", refund_no=refund_no, out_refund_no="x") == said
    assert rsa_shop.v2("pay/refundquery") == {"code": -4, "msg": "refund_no or out_refund_no is required"}
    keys = flask_json("epay", "enable", "other", "--host", "localhost")
    other = copy(rsa_shop)
    other.pid, other.key = keys["pid"], keys["key"]
    other.private_key = flask_json("epay", "rotate", "other", "--rsa")["private_key"]
    assert other.post("/api/pay/refundquery", other.with_rsa({"pid": other.pid, "refund_no": refund_no})).json == said


def test_the_signature_of_version_1_needs_a_number_because_it_has_no_time(rsa_shop, paid):
    paid()
    fields = {"act": "refund", "pid": rsa_shop.pid, "out_trade_no": "SHOP-1", "money": "5.00"}

    def signed(**more):
        whole = fields | more
        return rsa_shop.post("/api.php", whole | {"sign": md5(whole, rsa_shop.key), "sign_type": "MD5"}).json

    assert signed()["code"] == signed(timestamp="1700000000")["code"] == -4
    first = signed(out_refund_no="R-1")
    assert (first["code"], signed(out_refund_no="R-1")) == (1, first)
    assert rsa_shop.post("/api.php", rsa_shop.with_rsa(fields)).json["code"] == 1
    query = rsa_shop.with_rsa({"pid": rsa_shop.pid, "out_trade_no": "SHOP-1"})
    assert rsa_shop.post("/api/pay/query", query).json["code"] == 0
    assert rsa_shop.post("/api/pay/refund", query).json["code"] == -1  # money is missing
    assert len(all_refunds()) == 2


def test_the_history_names_the_shop(rsa_shop, paid):
    rsa_shop.refund("5.00", trade_no=paid())
    steps = [(line.who, line.after) for line in RefundHistory.select().order_by(RefundHistory.id)]
    assert steps[0] == ("shop", "pending")
    assert steps[-1] == ("channel", "completed")


# --- Shops' own requests


def test_the_panel_sub2api_refunds_by_its_number_and_then_by_ours(rsa_shop, paid):
    """Wei-Shaw/sub2api backend/internal/payment/provider/easypay.go: it tests for code 1 only.

    If the text of a refusal contains `order not found`, it tries the other number.
    """
    number = paid()
    refused = rsa_shop.refund("12.50", out_trade_no="unknown")
    assert (refused["code"] == 1, "order not found" in refused["msg"].lower()) == (False, True)
    assert type(rsa_shop.refund("12.50", trade_no=number)["code"]) is int
    assert rsa_shop.refund("12.50", trade_no=number)["code"] == 1


def test_the_panel_sub2apipay_sends_both_numbers(rsa_shop, paid):
    """touwaeriol/sub2apipay src/lib/easy-pay/client.ts @ 014f984."""
    assert rsa_shop.refund("12.50", trade_no=paid(), out_trade_no="SHOP-1")["code"] == 1


def test_the_fork_of_sub2api_accepts_the_responses_of_version_2(rsa_shop, paid, refunds_on, later):
    """zhibeigg/sub2api backend/internal/payment/provider/easypay_v2.go @ 3778970: each field that it compares.

    It takes status 0 for failed and 1 for refunded. With any other, the refund stays pending there.
    """
    number = paid()
    refunds_on("approval")
    sent = {"money": "12.50", "out_refund_no": "sub2_refund_0123456789abcdef", "trade_no": number}
    made = rsa_shop.v2("pay/refund", **sent)
    assert {name: made[name] for name in sent} == sent
    assert (made["code"], made["out_trade_no"]) == (0, "SHOP-1")
    asked = {"refund_no": made["refund_no"], "out_refund_no": sent["out_refund_no"]}
    for status in (2, 1):
        found = rsa_shop.v2("pay/refundquery", **asked)
        assert {name: found[name] for name in asked | sent} == asked | sent
        assert (found["out_trade_no"], found["status"]) == ("SHOP-1", status)
        if status == 2:
            approve.approve(all_refunds()[0])
            later(1)
    assert rsa_shop.v2("pay/query", trade_no=number)["status"] == 2
