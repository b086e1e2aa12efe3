"""Shops that pay by an epay plug-in: each row of what such software sends, and what it expects."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from gateways.sandbox.driver import SandboxDriver
from tests.epay_shop import FORM, md5, number_in
from tests.pages import BACK, CASHIER, CHOOSE

ENDED = {"code": -1, "msg": "This order has ended. Use a new out_trade_no"}


def paid(shop, api, due, **changed):
    """The number of a payment that the shop asked for, the payer paid and the shop was notified of."""
    number = number_in(shop.mapi(**changed)["payurl"])
    api.play(number, "success")
    due()
    return number


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_payment_is_placed_by_the_payers_browser_and_by_the_shops_server(method, shop, api):
    sent = getattr(shop, method)("/submit.php", shop.signed())
    page = sent.headers["Location"]
    number = number_in(page)
    assert (sent.status, page) == (303, f"http://127.0.0.1:8000{CASHIER}?order_no={number}")
    order = api.detail(order_no=number).data
    assert (order["merchant_order_no"], order["cny_amount"], order["status"]) == ("SHOP-1", "12.50", "pending")
    # The same request means the same payment, also with its amount in other digits.
    for changed in ({}, {"money": "12.50"}, {"money": "12.5000"}, {"clientip": "1.2.3.4", "device": "pc"}):
        answer = getattr(shop, method)("/mapi.php", shop.signed(**changed)).json
        assert (answer["code"], answer["payurl"], answer["trade_no"]) == (1, page, number)
    assert api.listed(merchant_order_no="SHOP-1").data["total"] == 1


def test_a_form_with_parts_is_accepted_as_php_sends_it(shop, app):
    answer = app.test_client().post("/mapi.php", data=shop.signed(), content_type="multipart/form-data")
    assert answer.get_json()["code"] == 1


def test_the_act_is_read_from_the_query_or_the_form(shop):
    shop.mapi()
    asked = {"pid": shop.pid, "key": shop.key, "out_trade_no": "SHOP-1"}
    for answer in (
        shop.get("/api.php", {"act": "order"} | asked),
        shop.post("/api.php", {"act": "order"} | asked),
        shop.post("/api.php?act=order", asked),
    ):
        assert (answer.json["code"], answer.json["status"]) == (1, 0)


def test_every_received_field_is_signed_and_empty_ones_are_not(shop):
    more = {"sitename": "My shop", "cid": "7", "device": "", "param": "user-9", "unknown": "a&b=c +中"}
    assert shop.mapi(**more)["code"] == 1
    fields = shop.signed(out_trade_no="SHOP-2")
    assert shop.post("/mapi.php", fields | {"cid": "7"}).json["code"] == -3
    assert shop.post("/mapi.php", fields | {"sign": fields["sign"].upper()}).json["code"] == 1


def test_the_notice_is_a_signed_get_with_the_original_values(shop, api, due):
    number = paid(shop, api, due, param="user-9")
    (notice,) = shop.notices
    assert shop.methods == ["GET"]
    assert shop.is_ours(notice)
    assert {name: notice[name] for name in notice if name not in ("sign", "sign_type")} == {
        "pid": shop.pid,
        "trade_no": number,
        "out_trade_no": "SHOP-1",
        "type": "alipay",
        "name": "会员 1 month",
        "money": "12.50",
        "trade_status": "TRADE_SUCCESS",
        "param": "user-9",
    }


def test_a_notice_has_no_empty_field_and_keeps_the_query_of_the_shops_address(shop, api, due):
    paid(shop, api, due, notify_url=f"{shop.notify_url}?plugin=epay")
    (notice,) = shop.notices
    assert "" not in notice.values()
    assert "param" not in notice
    assert notice.pop("plugin") == "epay"
    assert notice["sign"] == md5(notice, shop.key)


FAILURES = [("fail", 200), ("", 200), ("<html>success</html>", 200), ("unsuccessful", 200), ("success", 500)]
SUCCESSES = [("SUCCESS", 200), (" success\n", 200), ("\ufeffsuccess", 200)]


@pytest.mark.parametrize(("answer", "status"), FAILURES + SUCCESSES)
def test_a_notice_is_repeated_until_the_shop_answers_success_with_status_200(answer, status, shop, api, due, ahead):
    shop.answers, shop.status = [answer, "success"], status
    paid(shop, api, due)
    shop.status = 200
    for seconds in (6, 400):
        ahead(seconds)
        due()
    assert len(shop.notices) == (1 if (answer, status) in SUCCESSES else 2)
    assert len({notice["trade_no"] for notice in shop.notices}) == 1


def test_a_settlement_delay_delays_the_notice(shop, api, due, flask, ahead):
    flask("channel", "set", 2, "--settlement-days", 1)
    number = paid(shop, api, due)
    assert (api.status(number), shop.notices) == ("confirmed", [])
    assert shop.api("order", trade_no=number)["status"] == 0
    ahead(86_401)
    due()
    due()
    assert len(shop.notices) == 1
    assert shop.api("order", trade_no=number)["status"] == 1


def test_an_operator_can_send_a_notice_again(shop, api, due, flask, order_details):
    number = paid(shop, api, due)
    (callback,) = order_details(number)["callbacks"]
    flask("callback", "redeliver", callback["id"])
    due()
    assert len(shop.notices) == 2
    (callback,) = order_details(number)["callbacks"]
    assert (callback["type"], callback["state"]) == ("epay.notify", "delivered")


def test_an_epay_order_sends_no_callback_unless_the_merchant_wants_both(shop, api, due, flask, receiver):
    flask("merchant", "set", "demo", "--callback-url", receiver.url)
    paid(shop, api, due)
    assert (len(shop.notices), receiver.got) == (1, [])
    api.play(api.buy(merchant_order_no="SHOP-1").data["order_no"], "success")  # an order of the API
    due()
    assert (len(shop.notices), [each.event["type"] for each in receiver.got]) == (1, ["order.completed"])
    flask("epay", "set", "demo", "--webhooks")
    paid(shop, api, due, out_trade_no="SHOP-2")
    assert (len(shop.notices), [each.event["type"] for each in receiver.got]) == (2, ["order.completed"] * 2)


def test_a_wrong_amount_is_never_reported_as_success_but_as_completed_by_an_operator(shop, api, due, flask):
    made = shop.mapi()
    assert made["qrcode"]
    api.play(made["trade_no"], "wrong_amount")
    due()
    assert shop.notices == []
    assert shop.api("order", out_trade_no="SHOP-1")["status"] == 0
    again = shop.mapi()
    assert (again["code"], again["payurl"], "qrcode" in again) == (1, made["payurl"], False)
    flask("order", "resolve", made["trade_no"], "--complete", "--yes")
    due()
    assert [notice["money"] for notice in shop.notices] == ["12.50"]


def test_a_received_payment_is_queried_by_either_number_and_not_asked_for_again(shop, api, due):
    number = paid(shop, api, due)
    for by in ({"trade_no": number}, {"out_trade_no": "SHOP-1"}):
        answer = shop.api("order", **by)
        assert {name: answer[name] for name in ("code", "status", "money", "type", "out_trade_no", "trade_no")} == {
            "code": 1,
            "status": 1,
            "money": "12.50",
            "type": "alipay",
            "out_trade_no": "SHOP-1",
            "trade_no": number,
        }
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", answer["endtime"])
    assert shop.mapi() == {"code": -1, "msg": "This order is paid already"}
    assert len(shop.notices) == 1


def test_an_unknown_order_or_another_merchants_is_not_found_and_each_has_its_own_numbers(shop, api, flask_json):
    api.buy(merchant_order_no="SHOP-9")
    assert shop.api("order", out_trade_no="SHOP-9") == {"code": -1, "msg": "Order not found"}
    assert shop.api("order") == {"code": -4, "msg": "trade_no or out_trade_no is required"}
    ours = shop.mapi()["trade_no"]
    theirs = flask_json("epay", "enable", "other", "--host", "127.0.0.1", "--host", "localhost")
    shop.pid, shop.key = theirs["pid"], theirs["key"]
    assert shop.api("order", trade_no=ours)["code"] == -1
    assert shop.mapi()["trade_no"] != ours


def test_payments_are_listed_newest_first(shop):
    for number in ("A", "B", "C"):
        shop.mapi(out_trade_no=number)
    assert [each["out_trade_no"] for each in shop.api("orders", limit="2")["data"]] == ["C", "B"]
    assert [each["out_trade_no"] for each in shop.api("orders", limit="2", offset="2")["data"]] == ["A"]


def test_the_query_of_the_merchant_shows_the_balance_and_other_acts_are_refused(shop, api, due):
    before = shop.api("query")
    paid(shop, api, due)
    after = shop.api("query")
    assert (before["code"], before["active"], before["pid"]) == (1, 1, int(shop.pid))
    assert float(after["money"]) > float(before["money"])
    assert after["order_today"] == before["order_today"] + 1
    assert shop.key not in str(after)
    for act in ("settle", "transfer", "unknown", ""):
        assert shop.api(act, trade_no="1", money="1")["code"] in (-1, -5), act


def test_changed_data_under_the_same_number_is_refused(shop):
    first = shop.mapi()
    elsewhere = "http://127.0.0.1/other"
    changed = {"money": "12.51", "name": "Other", "param": "x", "return_url": elsewhere, "notify_url": elsewhere}
    for name, value in changed.items():
        refused = shop.mapi(**{name: value})
        assert (refused["code"], "other parameters" in refused["msg"]) == (-1, True), name
    assert shop.mapi(type="wxpay")["code"] == -1  # it has begun
    page = shop.submit(type="wxpay")
    assert (page.status, first["payurl"] in page.text) == (400, True)
    assert shop.mapi()["trade_no"] == first["trade_no"]


# The payer chooses


def choices(page):
    """The choices on a page."""
    return re.findall(r'name="choice" value="([^"]+)"', page.text)


def choose(http, number, choice):
    return http("POST", CHOOSE, f"order_no={number}&choice={choice}".encode(), FORM)


@pytest.mark.parametrize(
    ("kind", "expected"), [(None, ["2-alipay", "2-wxpay", "1-wxpay"]), ("wxpay", ["2-wxpay", "1-wxpay"])]
)
def test_without_one_channel_the_payer_chooses(kind, expected, shop, http, api, due, visit):
    created = shop.mapi(type=kind)
    number = created["trade_no"]
    assert choices(visit(number)) == expected
    assert shop.api("order", out_trade_no="SHOP-1")["status"] == 0
    assert api.listed(merchant_order_no="SHOP-1").data["total"] == 0
    assert number_in(choose(http, number, "1-wxpay").headers["Location"]) == number
    assert api.detail(order_no=number).data["status"] == "pending"
    api.play(number, "success")
    due()
    assert [(notice["type"], notice["trade_no"]) for notice in shop.notices] == [("wxpay", number)]
    assert shop.api("order", out_trade_no="SHOP-1")["type"] == "wxpay"


@pytest.mark.parametrize(
    ("agent", "expected", "named"),
    [
        ("iPhone Mobile MicroMessenger/8.0", ["2-wxpay", "1-wxpay", "2-alipay"], "WeChat"),
        ("iPhone Mobile AlipayClient/10", ["2-alipay", "2-wxpay", "1-wxpay"], "Alipay"),
        ("iPhone Mobile", ["2-alipay", "2-wxpay", "1-wxpay"], ""),
    ],
)
def test_what_does_not_work_in_the_payers_app_is_offered_last(agent, expected, named, shop, http):
    number = shop.mapi(type=None)["trade_no"]
    page = http("GET", f"{CASHIER}?order_no={number}", headers={"User-Agent": agent, "Accept-Language": "en"})
    assert choices(page) == expected
    assert (f"does not work inside {named}." in page.text) is bool(named)


def test_a_choice_counts_once(shop, http, api, visit):
    number = shop.mapi(type=None)["trade_no"]
    for choice in ("2-alipay", "1-wxpay"):
        assert number_in(choose(http, number, choice).headers["Location"]) == number
    assert api.listed(merchant_order_no="SHOP-1").data["total"] == 1
    assert choices(visit(number)) == []
    assert shop.mapi(type=None)["trade_no"] == number


def test_a_choice_that_was_not_offered_creates_no_order(shop, http, api):
    number = shop.mapi(type=None)["trade_no"]
    for choice in ("3-alipay", "2-bank", "x", "", "9999999999999999999999-alipay"):
        choose(http, number, choice)
    assert api.listed(merchant_order_no="SHOP-1").data["total"] == 0


def test_the_choice_expires_and_the_shops_next_request_renews_it(shop, http, api, flask, visit, ahead):
    flask("merchant", "page", "demo", "--new-order-url", "https://shop.example/{merchant_order_no}/{order_no}")
    number = shop.mapi(type=None)["trade_no"]
    assert "shop.example/SHOP-1" not in visit(number).text
    ahead(901)
    assert "Payment time expired" in visit(number).text
    assert f'href="https://shop.example/SHOP-1/{number}"' in visit(number).text
    choose(http, number, "2-alipay")
    assert api.listed(merchant_order_no="SHOP-1").data["total"] == 0
    assert shop.mapi(type=None)["trade_no"] == number
    assert len(choices(visit(number))) == 3


def test_channels_outside_the_amount_are_not_offered(shop, flask, visit):
    flask("channel", "set", 2, "--min", "50")
    assert choices(visit(shop.mapi(type=None)["trade_no"])) == ["1-wxpay"]
    assert "limits" in shop.mapi(out_trade_no="SHOP-2")["msg"]


def test_without_types_the_payment_methods_lead_to_the_channels(shop, flask, visit):
    assert shop.mapi(type="qqpay")["code"] == -1
    flask("epay", "set", "demo", "--by-method")
    for kind in ("alipay", "wxpay", "bank"):
        number = shop.mapi(type=kind, out_trade_no=kind)["trade_no"]
        assert {choice.partition("-")[2] for choice in choices(visit(number))} == {kind}


# Orders that end


def test_an_expired_payment_gets_a_new_order_to_which_its_page_leads(shop, api, ahead, due, visit):
    made = shop.mapi()
    first = made["trade_no"]
    ahead(901)
    again = shop.mapi()  # no code asks for money after the time to pay
    assert (again["code"], again["payurl"], "qrcode" in again) == (1, made["payurl"], False)
    due.orders()
    assert api.status(first) == "cancelled"
    again = shop.mapi()
    assert (again["code"], again["trade_no"]) == (1, first)
    second = number_in(again["payurl"])
    assert second != first
    assert number_in(visit(first).headers["Location"]) == second
    api.play(second, "success")
    due()
    assert [notice["trade_no"] for notice in shop.notices] == [first]


def test_an_expired_order_that_its_channel_did_not_close_is_not_replaced(shop, later, monkeypatch):
    monkeypatch.setattr(SandboxDriver, "close", lambda self, payment: False)
    assert shop.mapi()["code"] == 1
    later(901)
    assert shop.mapi() == ENDED


def test_without_status_checks_an_expired_order_is_neither_replaced_nor_closed(rsa_shop, api, later, monkeypatch):
    monkeypatch.setattr(SandboxDriver, "checks_status", False)
    number = rsa_shop.mapi()["trade_no"]
    assert rsa_shop.v2("pay/close", out_trade_no="SHOP-1")["code"] == -1
    later(60)
    later(841)
    assert api.status(number) == "cancelled"
    assert rsa_shop.v2("pay/close", out_trade_no="SHOP-1")["code"] == -1
    assert rsa_shop.mapi() == ENDED


def test_an_order_whose_money_may_have_arrived_is_not_replaced_after_its_end(shop, api, flask, later):
    late, other_amount = shop.mapi()["trade_no"], shop.mapi(out_trade_no="SHOP-2")["trade_no"]
    api.play(late, "late")
    api.play(other_amount, "wrong_amount")
    flask("order", "resolve", other_amount, "--refund")
    flask("epay", "set", "demo", "--type", "alipay=2", "--type", "bank=3:bank")
    manual = shop.mapi(type="bank", out_trade_no="SHOP-3")["trade_no"]
    later(901)
    assert [api.status(number) for number in (late, other_amount, manual)] == ["cancelled"] * 3
    assert shop.mapi() == shop.mapi(out_trade_no="SHOP-2") == ENDED
    assert shop.mapi(type="bank", out_trade_no="SHOP-3") == ENDED


@pytest.mark.parametrize("checks_status", [True, False])
def test_an_order_that_its_channel_refused_can_be_repeated(checks_status, shop, api, flask, monkeypatch):
    monkeypatch.setattr(SandboxDriver, "checks_status", checks_status)
    flask("channel", "set", 2, "--config", "open=refuse")
    assert "rejected the payment" in shop.mapi()["msg"]
    assert shop.submit().status == 400
    flask("channel", "set", 2, "--config", "open=accept")
    answer = shop.mapi()
    assert answer["code"] == 1
    assert api.status(number_in(answer["payurl"])) == "pending"
    assert api.listed(merchant_order_no="SHOP-1").data["total"] == 3


def test_a_payer_whose_choice_was_refused_chooses_again(shop, http, flask, visit, api, due):
    number = shop.mapi(type="wxpay")["trade_no"]
    flask("channel", "set", 1, "--config", "open=refuse")
    page = http("GET", choose(http, number, "1-wxpay").headers["Location"])
    assert "could not be started" in page.text
    assert choices(page) == ["2-wxpay", "1-wxpay"]
    second = number_in(choose(http, number, "2-wxpay").headers["Location"])
    api.play(second, "success")
    due()
    assert [notice["trade_no"] for notice in shop.notices] == [number]


def test_a_few_orders_of_one_payment_are_possible(shop, later):
    for _ in range(5):
        assert shop.mapi()["code"] == 1
        later(901)
    assert shop.mapi()["code"] == -1


def test_the_payer_returns_to_the_shop_with_a_signature(shop, api, due, visit, http):
    number = number_in(shop.mapi()["payurl"])
    back = f"{BACK}?order_no={number}"
    assert number_in(http("GET", back).headers["Location"]) == number
    api.play(number, "success")
    assert back in visit(number).text
    address = urlsplit(http("GET", back).headers["Location"])
    fields = {name: value[0] for name, value in parse_qs(address.query).items()}
    assert (address.netloc, fields.pop("page")) == ("127.0.0.1", "1")
    assert shop.is_ours(fields)
    assert fields["trade_status"] == "TRADE_SUCCESS"


def test_an_order_of_the_api_has_no_way_back(shop, api, visit, http):
    number = api.buy().data["order_no"]
    api.play(number, "success")
    assert "/pay/return" not in visit(number).text
    assert number_in(http("GET", f"{BACK}?order_no={number}").headers["Location"]) == number


def test_a_failed_notice_is_something_to_do(shop, api, due, ahead, flask, flask_json):
    flask("merchant", "set", "demo", "--callback-url", "")
    shop.answers = ["fail"]
    paid(shop, api, due)
    for _ in range(8):
        ahead(40_000)
        due.callbacks()
    assert len(shop.notices) == 8
    (failed,) = [row for row in flask_json("to-do") if "callback" in row["to do"]]
    assert failed["count"] == 1
