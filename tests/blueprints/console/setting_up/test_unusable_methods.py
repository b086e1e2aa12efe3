"""Payment methods of a manual channel by which no payer can pay: refused, and shown wherever an operator looks."""

import pytest

from runtime.clock import CHINA
from services.operations import alerts
from tests.blueprints.console.setting_up.filling import Page
from tests.blueprints.console.setting_up.test_pictures import png
from tests.epay_shop import Shop

NO_CODE = "WeChat Pay cannot be used. No QR code. Upload its image."
ALERT = "Codes has no QR code for WeChat Pay. Payers cannot pay that way."


@pytest.fixture
def add(fill):
    """`add(pay_method=["wxpay"])`: the page of a new manual channel."""

    def new(**typed):
        facts = {"name": "Codes", "category": "gateway_b", "merchants": ["1"]}
        answer = fill("channel/new?driver=manual", **facts | typed)
        assert answer.status_code == 303
        return answer.headers["Location"].removeprefix("/console/")

    return new


def buys(api, path, method="wxpay"):
    return api.buy("10.00", channel=int(path.rsplit("/", 1)[1]), paychannel_paymethod=method)


def test_wechat_without_a_qr_code_is_warned_about_until_an_image_is_uploaded(add, page, api, console, flask):
    path = add(pay_method=["wxpay"], config_account="6222 0000")
    assert NO_CODE in page(path).text
    assert "WeChat Pay (cannot be used)" in page("channels/").text
    overview = page("")
    assert ALERT in overview.text
    assert f'href="/console/{path}#pictures"' in overview.html
    assert "No QR code. Upload its image." in flask("channel", "check", path.rsplit("/", 1)[1], fails=True).output

    (form,) = [each for each in Page(page(path).html).forms if each.action.endswith("wxpay/upload")]
    console.post(form.action, data=form.fill({"picture": png()}))
    assert not [path for path in (path, "", "channels/") if "cannot be used" in page(path).text]
    assert ALERT not in page("").text
    assert buys(api, path).code == 1


def test_the_channels_of_a_merchant_are_marked_as_in_their_list(add, page, fill):
    path = add(pay_method=["wxpay", "bank"], config_account="6222 0000")
    marked = "Codes WeChat Pay (cannot be used)"
    for form in ("merchant/new", "merchant/demo"):
        assert marked in page(form).text
    fill(path, enabled=False)
    for form in ("merchant/new", "merchant/demo"):
        assert marked.replace("Codes", "Codes Disabled") in page(form).text
        assert "Sandbox Disabled" not in page(form).text


def test_a_deposit_that_no_payer_can_pay_is_refused_and_a_withdrawal_is_not(add, api):
    path = add(pay_method=["wxpay", "bank"], config_account="6222 0000")
    refused = buys(api, path)
    assert (refused.code, refused.data) == (42200, {"paychannel_paymethod": ["This channel accepts: bank."]})
    assert buys(api, path, "bank").code == 1
    sold = api.sell("10.00", channel=int(path.rsplit("/", 1)[1]), paychannel_paymethod="wxpay")
    assert sold.code == 1


CASES = [
    ({}, ["wxpay", "alipay", "bank"]),
    ({"qr_wxpay": "wxp://static"}, ["alipay", "bank"]),
    ({"qr_alipay": "https://qr.example"}, ["wxpay", "bank"]),
    ({"account": "6222 0000"}, ["wxpay"]),
    ({"payee": "Somebody", "bank": "A bank", "note": "{order_no}"}, ["wxpay", "alipay", "bank"]),
]


@pytest.mark.parametrize(("config", "unusable"), CASES)
def test_a_method_needs_a_qr_code_or_an_account_number_as_payers_use_it(config, unusable, flask, flask_json):
    new = ("--category", "gateway_b", "--driver", "manual", "--name", "Codes")
    pairs = [part for pair in config.items() for part in ("--config", "=".join(pair))]
    made = flask_json("channel", "add", *new, *pairs)
    assert made["unusable"] == ",".join(unusable)
    found = [each.facts["methods"] for each in alerts.now(CHINA) if each.kind == "unusable"]
    alerted = [method for method in unusable if method != "bank"]
    assert found == ([alerted] if alerted else [])


def test_the_alert_is_urgent_if_a_merchants_channel_has_no_other_method(add, flask):
    path = add(pay_method=["wxpay", "alipay"], config_account="6222 0000")
    flask("channel", "add", "--category", "gateway_b", "--driver", "manual", "--name", "Not linked")

    def severities():
        return [each.severity for each in alerts.now(CHINA) if each.kind == "unusable"]

    assert severities() == ["soon", "soon"]
    flask("channel", "set", path.rsplit("/", 1)[1], "--pay-method", "wxpay")
    assert severities() == ["urgent", "soon"]


def test_a_new_manual_channel_tells_which_methods_need_a_qr_code(page):
    hint = "WeChat Pay needs a QR code"
    assert hint in page("channel/new?driver=manual").text
    assert hint not in page("channel/new?driver=epay").text


def test_a_disabled_channel_is_no_alert(add, page, fill):
    path = add(pay_method=["wxpay"])
    fill(path, enabled=False)
    assert (ALERT in page("").text, NO_CODE in page(path).text) == (False, True)


def test_payment_links_and_the_epay_gateway_do_not_use_such_a_method(add, fill, http, web_server, flask_json):
    number = add(pay_method=["wxpay"]).rsplit("/", 1)[1]
    answer = fill("new-order/?merchant=demo", amount="10.00", way=f"{number}:wxpay")
    assert (answer.status_code, "This channel accepts: -." in answer.text) == (422, True)
    opened = flask_json("epay", "enable", "demo", "--host", "localhost", "--type", f"wxpay={number}")
    said = Shop(http, web_server, opened).mapi(type="wxpay", return_url=None)
    assert (said["code"], "No payment method is available for this type" in said["msg"]) == (-1, True)
