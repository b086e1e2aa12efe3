"""epay, version 1 and 2: deposits, against the loopback platform. No independent code has checked version 2."""

from urllib.parse import parse_qs, urlsplit

import pytest
from epay_sdk import CreateOrderRequest, EPayClient, EPayConfig
from werkzeug import Response

from gateways.epay_protocol import md5_signature, signed_text
from services.jobs import sweep as reconciliation
from tests.pages import Seen
from tests.upstreams.epay import KEY, PID

START = 1_000_000
NOTHING, PAID = (START, 0), (START + 9_940, 0)


@pytest.fixture
def sdk(platform):
    """A third party's SDK for version 1."""
    return EPayClient(EPayConfig(pid=PID, key=KEY, base_url=platform.url, environment="sandbox"))


# --- signatures


def test_the_published_vector_of_version_1_is_valid():
    fields = {"money": "moneyv", "device": "devicev", "empty": "", "sign": "x", "sign_type": "MD5"}
    assert signed_text(fields) == "device=devicev&money=moneyv"
    assert md5_signature(fields, "1234567") == "3854cc9f022e0fb821bd2e002260245d"


def test_an_independent_sdk_signs_as_we_do(sdk):
    fields = {"pid": PID, "name": "商品 & 服务=1", "money": "1.00", "param": "", "Z": "1", "a": "2", "B": "%20"}
    assert md5_signature(fields, KEY) == sdk.sign(fields)


def test_an_independent_sdk_makes_the_same_link_to_the_platforms_page(api, platform, add_channel, sdk, shown):
    channel = add_channel("epay", platform.config("1", redirect="true"))
    placed = api.buy(channel=channel).data
    link = next(part for part in shown(placed["order_no"]).split('"') if "submit.php" in part).replace("&amp;", "&")
    ours = {name: values[0] for name, values in parse_qs(urlsplit(link).query).items()}
    asked = {name: value for name, value in ours.items() if name not in ("pid", "type", "sign", "sign_type")}
    assert ours == sdk.build_create_order_params(CreateOrderRequest(pay_type=ours["type"], **asked))
    assert platform.calls == []


def test_an_independent_sdk_accepts_the_loopback_platforms_notice(placed, platform, sdk):
    order_no = placed()
    platform.pay(order_no)
    query = {name: values[0] for name, values in parse_qs(platform.notice(order_no).query).items()}
    assert sdk.verify_callback(query).out_trade_no == order_no


# --- deposits


def test_the_payer_gets_an_address_or_a_link_to_an_app(placed, api, version, platform, add_channel, shown):
    platform.gives = "jump"
    assert 'href="https://pay.example.com/pay/EP' in shown(placed())
    platform.gives = "urlscheme"
    page = shown(placed())
    assert 'href="weixin://dl/business/?t=EP' in page
    # On a computer, a code opens the page on the phone.
    assert "Scan this code with your phone's camera to continue there." in Seen(page).text
    assert 'class="qr"' in page
    order_no = api.buy(channel=add_channel("epay", platform.config(version, redirect="true"))).data["order_no"]
    assert "Continue to payment" in shown(order_no)


# --- notices


def test_with_ask_again_a_notice_creates_no_late_money_and_no_second_payment(
    api, version, platform, add_channel, later, due, balances, exceptions, notify
):
    platform.can_close = False
    channel = add_channel("epay", platform.config(version, ask_again="true"))
    cancelled, completed = (api.buy(channel=channel).data["order_no"] for _ in range(2))
    platform.pay(completed)
    later(60)
    later(450, times=2)
    assert [api.status(order_no) for order_no in (cancelled, completed)] == ["cancelled", "completed"]
    for order_no in (cancelled, completed):
        forged = platform.notice(order_no, version, trade_no="EP-FORGED")
        assert forged.to(api.send, order_no).text == "success"
    due.orders()
    assert (balances(), exceptions()) == (PAID, {})
    platform.pay(cancelled)
    notify(cancelled)
    due.orders()
    assert exceptions() == {cancelled: "late_payment"}


# --- the end of a deposit


def test_a_check_for_late_money_without_a_response_is_repeated(placed, api, platform, later, exceptions):
    platform.can_close = False
    order_no = placed()
    later(450, times=2)
    platform.pay(order_no)
    platform.fails(*["broken"] * 5)
    for seconds in (600, 3_600, 90_000, 3_600, 3_600):
        later(seconds)
    assert exceptions() == {}
    later(3_600)
    assert (api.status(order_no), exceptions()) == ("cancelled", {order_no: "late_payment"})


def test_a_clock_that_is_set_back_uses_up_no_check_for_late_money(placed, platform, later, ahead):
    platform.can_close = False
    placed()
    later(450, times=2)
    later(601)
    later(3_001)
    asked = len(platform.calls)
    ahead(-7_200)
    reconciliation.release()
    later(60)
    assert len(platform.calls) == asked
    later(100_000)
    assert len(platform.calls) == asked + 1


def test_a_platform_that_can_not_close_keeps_no_deposit_open(api, platform, add_channel, later, monkeypatch):
    order_no = api.buy(channel=add_channel("epay", platform.config("2"))).data["order_no"]
    later(450)
    monkeypatch.setattr(platform, "_close_v2", lambda fields: {"code": 404})
    platform.fails("", "garbage")  # the status check, and then the closing
    later(450)
    assert api.status(order_no) == "cancelled"


def test_a_refunded_payment_credits_nothing(placed, api, platform, later, balances, exceptions):
    orders = [placed() for _ in range(3)]
    for order_no, back in zip(orders, ("", "40.00", "100.00"), strict=True):
        platform.pay(order_no)
        platform.orders[order_no] |= {"status": "2"} | ({"refundmoney": back} if back else {})
    later(60)
    assert [api.status(order_no) for order_no in orders] == ["pending", "pending", "cancelled"]
    assert (balances(), exceptions()) == (NOTHING, dict.fromkeys(orders[:2], "wrong_amount"))


def test_a_deposit_at_an_unreachable_platform_is_cancelled_by_an_operator_after_a_day(
    placed, platform, later, flask, refuses, monkeypatch, outcome
):
    order_no = placed()
    monkeypatch.setattr(platform, "answer", lambda path, request: Response("gone", 410))
    later(900, times=3)
    assert "after a day" in refuses("order", "settle", order_no, "--cancel")
    later(86_400)
    assert "nothing can be credited" in refuses("order", "settle", order_no, "--credit")
    flask("order", "settle", order_no, "--cancel")
    assert outcome(order_no) == ("cancelled", NOTHING, {})


def test_an_operators_status_check_of_a_cancelled_deposit_finds_its_payment(
    placed, platform, later, flask, refuses, outcome
):
    platform.can_close = False
    order_no = placed()
    later(450, times=2)
    later(90_000, times=6)
    assert "status at the channel: open" in flask("order", "ask", order_no).output
    platform.pay(order_no)
    told = flask("order", "ask", order_no).output
    assert "status at the channel: paid 100.00" in told
    assert "(late_payment)" in told
    flask("order", "settle", order_no, "--credit")
    assert outcome(order_no) == ("cancelled", PAID, {})
    platform.fails("broken")
    assert "No valid response" in refuses("order", "ask", order_no)


# --- the config


def test_a_key_is_read_from_a_file_and_a_missing_file_is_named(platform, add_channel, flask, refuses, tmp_path):
    (tmp_path / "key.txt").write_text(f"{KEY}\r\n")
    channel = add_channel("epay", platform.config("1", key=f"@{tmp_path / 'key.txt'}"))
    assert "accepts your keys" in flask("channel", "check", channel).output, "the line end is not part of the key"
    missing = f"private_key=@{tmp_path / 'nowhere.pem'}"
    said = refuses("channel", "set", str(channel), "--config", missing)
    assert "the file for private_key cannot be read: No such file" in said


def test_the_account_is_not_replaced_while_orders_are_open(channel, placed, flask, refuses, later):
    flask("channel", "set", channel, "--config", "pid=1001")  # no order is open, and nothing changes
    placed()
    for changed in ("pid=1002", "base_url=https://elsewhere.example.com"):
        said = refuses("channel", "set", str(channel), "--config", changed)
        assert f"the present {changed.partition('=')[0]}. Add another channel" in said
    flask("channel", "set", channel, "--config", "device=mobile", "--name", "Renamed")
    later(450, times=2)
    for seconds in (600, 3_600, 90_000):
        later(seconds)
    flask("channel", "set", channel, "--config", "pid=1002")  # again, no order is open
    placed()
    flask("channel", "set", channel, "--config", "base_url=https://elsewhere.example.com", "--same-account")
