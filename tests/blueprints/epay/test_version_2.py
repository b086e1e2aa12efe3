"""Version 2 of the protocol: RSA signatures, and addresses below /api/."""

import time

import pytest

from tests.epay_shop import number_in

TRANSFERS = ("submit", "query", "balance", "proof")


def test_a_payment_is_created_paid_and_reported(rsa_shop, api, due):
    made = rsa_shop.v2("pay/create", **rsa_shop.fields(method="web", clientip="1.2.3.4", device="mobile"))
    assert (made["code"], made["pay_type"]) == (0, "jump")
    number = number_in(made["pay_info"])
    assert made["trade_no"] == number
    assert rsa_shop.v2("pay/query", out_trade_no="SHOP-1")["status"] == 0
    api.play(number, "success")
    due()
    (notice,) = rsa_shop.notices
    assert rsa_shop.is_ours(notice)
    assert (notice["sign_type"], notice["money"], notice["trade_status"]) == ("RSA", "12.50", "TRADE_SUCCESS")
    assert abs(int(notice["timestamp"]) - time.time()) < 60
    found = rsa_shop.v2("pay/query", trade_no=number)
    assert (found["status"], found["money"], found["out_trade_no"]) == (1, "12.50", "SHOP-1")
    assert "" not in found.values()


@pytest.mark.parametrize("wanted", [{}, {"device": "pc"}, {"device": "mobile"}, {"method": "jump"}], ids=str)
def test_a_code_is_returned_for_a_desktop_only(wanted, rsa_shop):
    is_shown = wanted in ({}, {"device": "pc"})
    made = rsa_shop.v2("pay/create", **rsa_shop.fields(), **wanted)
    assert made["pay_type"] == ("qrcode" if is_shown else "jump")
    assert ("qrcode" in rsa_shop.mapi(**wanted)) is (is_shown or "method" in wanted)


def test_the_code_of_a_manual_channel_is_shown_on_the_page_only(rsa_shop, flask):
    flask("channel", "set", 3, "--pay-method", "alipay", "--config", "qr_alipay=https://qr.example/static")
    flask("epay", "set", "demo", "--type", "alipay=3")
    assert "qrcode" not in rsa_shop.mapi()
    assert rsa_shop.v2("pay/create", **rsa_shop.fields())["pay_type"] == "jump"


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_payer_is_sent_to_the_page_of_the_same_payment_in_both_versions(method, rsa_shop):
    sent = getattr(rsa_shop, method)("/api/pay/submit", rsa_shop.signed(2))
    assert sent.status == 303
    first = rsa_shop.mapi()["trade_no"]
    assert number_in(sent.headers["Location"]) == first
    assert rsa_shop.v2("pay/create", **rsa_shop.fields())["trade_no"] == first


def test_only_an_unpaid_order_that_no_money_can_reach_is_closed(rsa_shop, api, flask, due):
    def placed(number, **changed):
        return rsa_shop.v2("pay/create", **rsa_shop.fields(out_trade_no=number, **changed))["trade_no"]

    flask("epay", "set", "demo", "--type", "alipay=2", "--type", "bank=3:bank")
    unpaid, paid, manual, without_a_channel = placed("A"), placed("B"), placed("C", type="bank"), placed("D", type=None)
    assert rsa_shop.v2("pay/close", trade_no=unpaid)["code"] == 0
    api.play(paid, "success")
    assert rsa_shop.v2("pay/close", trade_no=paid) == {"code": -1, "msg": "This order is paid already"}
    due()
    assert [notice["trade_no"] for notice in rsa_shop.notices] == [paid]
    assert [rsa_shop.v2("pay/close", trade_no=number)["code"] for number in (manual, without_a_channel)] == [-1, -1]
    assert [api.status(number) for number in (unpaid, paid, manual)] == ["cancelled", "completed", "pending"]


def test_the_merchant_and_its_orders_are_queried(rsa_shop):
    rsa_shop.mapi()
    info = rsa_shop.v2("merchant/info")
    assert (info["pid"], info["pay_status"], info["order_num"]) == (int(rsa_shop.pid), 1, 1)
    (order,) = rsa_shop.v2("merchant/orders")["data"]
    assert order["out_trade_no"] == "SHOP-1"


def test_transfers_are_refused(rsa_shop, nothing_changes):
    for path in (f"transfer/{name}" for name in TRANSFERS):
        refused = rsa_shop.v2(path, trade_no="1", money="1.00", out_biz_no="1")
        assert (refused["code"], "not supported" in refused["msg"]) == (-1, True), path


def test_a_request_without_a_time_near_the_servers_is_refused(rsa_shop, nothing_changes):
    now = int(time.time())
    for timestamp in (str(now - 310), str(now + 310), "", "x", "١٢٣", "1e9", "9" * 30):
        assert rsa_shop.v2("pay/create", **rsa_shop.fields(timestamp=timestamp))["code"] == -3, timestamp


def test_the_addresses_of_version_2_take_rsa_of_a_merchant_with_keys_only(shop, rsa_shop, flask_json):
    refused = rsa_shop.post("/api/pay/create", rsa_shop.signed(1)).json
    assert refused == {"code": -3, "msg": "sign_type must be RSA at this address"}
    theirs = flask_json("epay", "enable", "other", "--host", "localhost")
    shop.pid, shop.key = theirs["pid"], theirs["key"]
    refused = shop.post("/api/pay/create", shop.signed() | {"sign_type": "RSA"}).json
    assert refused["msg"] == "The merchant has no RSA keys"


def test_replaced_rsa_keys_stay_valid_for_the_hours_given(rsa_shop, flask_json, ahead):
    old, new = rsa_shop.private_key, flask_json("epay", "rotate", "demo", "--rsa", "--keep-hours", "1")
    assert new["platform_public_key"] == rsa_shop.platform_key
    assert rsa_shop.v2("merchant/info")["code"] == 0
    rsa_shop.private_key = new["private_key"]
    assert rsa_shop.v2("merchant/info")["code"] == 0
    ahead(3601)
    rsa_shop.private_key = old
    assert rsa_shop.v2("merchant/info")["code"] == -3
