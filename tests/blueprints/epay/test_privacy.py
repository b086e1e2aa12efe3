"""What a shop sends about its customer: shown to operators, never logged, erased with the order's personal data."""

import logging

import pytest

from services.console import privacy
from tests.epay_shop import number_in

DAY = 86_400


@pytest.fixture
def number(shop, api, due):
    """A completed payment of a customer whom name and param identify."""
    number = number_in(shop.mapi(name="VIP 王小明", param="customer-77")["payurl"])
    api.play(number, "success")
    due()
    return number


def test_name_and_param_are_erased_from_the_order_and_its_notice(number, shop, flask, rows, due, order_details):
    assert "王小明" in flask("privacy", "export", number).output
    flask("privacy", "erase", number, "--yes")
    stored = str([rows()[name] for name in ("EpayOrder", "Callback", "OrderNote")])
    assert "customer-77" not in stored
    assert "VIP" not in stored
    (callback,) = order_details(number)["callbacks"]
    flask("callback", "redeliver", callback["id"])
    due()
    assert shop.is_ours(shop.notices[-1])
    assert {"name", "param"}.isdisjoint(shop.notices[-1])


def test_operators_see_them_masked(number, flask):
    shown = flask("order", "show", number).output
    assert "customer-77" not in shown
    assert "customer-77" in flask("order", "show", number, "--reveal").output


def test_a_payment_without_an_order_is_deleted_some_days_after_its_last_request(shop, ahead, rows):
    shop.mapi(type="wxpay", param="customer-77")  # the payer never chooses one of two channels
    ahead(29 * DAY)
    shop.mapi(type="wxpay", out_trade_no="SHOP-2", param="customer-78")
    assert "customer-77" in str(rows()["EpayOrder"])
    ahead(1 * DAY)
    privacy.run(30)
    assert ("customer-77" in str(rows()), "customer-78" in str(rows())) == (False, True)
    assert shop.api("order", out_trade_no="SHOP-1")["code"] == -1
    assert shop.mapi(type="alipay", param="customer-77")["code"] == 1


@pytest.fixture
def settings_of_app(settings_of_app):
    return settings_of_app | {"access_log": True, "log_level": "INFO"}


def test_neither_the_key_nor_a_query_is_logged(shop, api, due, caplog, monkeypatch):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(logging.getLogger("werkzeug"), "disabled", True)  # the shop's own server
    number = number_in(shop.mapi(param="customer-77")["payurl"])
    shop.submit(param="customer-77")
    for act in ("order", "query", "refund", "nothing"):
        shop.api(act, trade_no=number)
    shop.get("/api.php", {"act": "order", "pid": shop.pid, "key": "wrong-key-1234"})
    api.play(number, "success")
    shop.answers = ["fail"]
    due()
    assert "endpoint=epay.api" in caplog.text
    for secret in (shop.key, "wrong-key-1234", "customer-77", shop.notices[0]["sign"]):
        assert secret not in caplog.text


def test_a_failed_notice_keeps_no_fields_in_its_error(shop, api, due, rows):
    over_tls = shop.notify_url.replace("http:", "https:")  # which the shop's server does not speak
    number = number_in(shop.mapi(param="customer-77", notify_url=over_tls)["payurl"])
    api.play(number, "success")
    due()
    (attempt,) = rows()["CallbackAttempt"]
    assert "SSLError" in attempt[-1]
    assert "customer-77" not in attempt[-1]
