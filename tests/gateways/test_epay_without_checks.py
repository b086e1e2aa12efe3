"""epay, version 1: platforms without api.php (GMWallet epusdt, BEpusdt, Vmq), sent by the loopback platform."""

import re
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests
from werkzeug import Response

from services.orders import next_step
from tests.upstreams.epay import EpayPlatform

START = 1_000_000
NOTHING, PAID = (START, 0), (START + 9_940, 0)
LATE = "late_payment"


@pytest.fixture
def platform(web_server):
    platform = EpayPlatform(web_server)
    platform.has_query = False
    return platform


@pytest.fixture
def channel(platform, add_channel):
    return add_channel("epay", platform.config("1", no_status_checks="true"))


@pytest.fixture
def order_no(api, channel):
    """A new deposit of 100 yuan."""
    return api.buy(channel=channel).data["order_no"]


@pytest.fixture
def queried(platform):
    """`queried()`: the status checks that the platform received."""
    return lambda: [call.path for call in platform.calls if call.path.endswith("/api.php")]


# --- deposits that expire by time


def test_an_unpaid_deposit_expires_by_time_and_the_channel_is_never_asked(
    order_no, api, later, order_details, exceptions, queried
):
    later(60)
    later(835)
    assert (api.status(order_no), exceptions()) == ("pending", {})
    later(10)
    assert (api.status(order_no), exceptions()) == ("cancelled", {})
    last = order_details(order_no)["history"][-1]
    assert (last["who"], last["why"]) == ("service", "Expired. The channel has no status checks")
    later(100_000, times=3)
    assert queried() == []


def test_while_it_waits_its_next_step_is_its_expiry(order_no, api, due, later):
    later(60)
    assert due.orders() == 0
    assert next_step.missing(10) == []
    later(840)
    assert api.status(order_no) == "cancelled"


@pytest.mark.parametrize("sent", ["notice", "posted"])
def test_a_notice_by_either_method_credits_it(sent, order_no, api, platform, balances, queried):
    platform.pay(order_no)
    assert getattr(platform, sent)(order_no, money="100.0000").to(api.send, order_no).text == "success"
    assert (api.status(order_no), balances(), queried()) == ("completed", PAID, [])


def test_a_notice_after_its_expiry_opens_an_exception(order_no, api, platform, later, exceptions, balances):
    later(905)
    platform.pay(order_no)
    assert platform.notice(order_no).to(api.send, order_no).text == "success"
    assert (api.status(order_no), exceptions(), balances()) == ("cancelled", {order_no: LATE}, NOTHING)


@pytest.mark.parametrize("fault", ["unheard", "lost", "garbage"])
def test_a_deposit_whose_opening_failed_is_opened_again_and_then_waits(
    fault, platform, api, channel, later, exceptions, shown, queried
):
    platform.fails(fault)
    order_no = api.buy(channel=channel).data["order_no"]
    assert exceptions() == {order_no: "unknown_outcome"}
    later(1)
    assert 'class="qr"' in shown(order_no)
    assert exceptions() == {}
    later(905)
    assert (api.status(order_no), queried()) == ("cancelled", [])


def test_a_deposit_that_could_never_be_opened_expires_by_time(platform, api, channel, later, exceptions):
    platform.fails(*["broken"] * 20)
    order_no = api.buy(channel=channel).data["order_no"]
    later(100, times=8)
    assert exceptions() == {order_no: "unknown_outcome"}
    later(200)
    assert (api.status(order_no), exceptions()) == ("cancelled", {})


def test_without_the_option_such_a_deposit_waits_for_the_platform(platform, api, add_channel, flask, later, exceptions):
    channel = add_channel("epay", platform.config("1"))
    order_no = api.buy(channel=channel).data["order_no"]
    later(450, times=3)
    assert (api.status(order_no), exceptions()) == ("pending", {order_no: "unknown_outcome"})
    flask("channel", "set", channel, "--config", "no_status_checks=true")
    later(600)
    assert (api.status(order_no), exceptions()) == ("cancelled", {})


def test_after_a_restore_it_does_not_expire_until_payouts_resume(order_no, api, flask, later, exceptions):
    flask("db", "mark-restored")
    later(1_000, times=2)
    assert (api.status(order_no), exceptions()) == ("pending", {})
    flask("db", "resume")
    later(400)
    assert api.status(order_no) == "cancelled"


def test_an_operator_can_not_check_its_status(order_no, refuses):
    assert "has no status check" in refuses("order", "ask", order_no)


def test_an_operator_can_record_a_payment_whose_notice_was_lost(order_no, api, flask, platform, later, exceptions):
    later(905)
    flask("order", "paid", order_no, "--reference", "EP000000000000001")
    assert (api.status(order_no), exceptions()) == ("cancelled", {order_no: LATE})
    platform.pay(order_no)
    assert platform.notice(order_no).to(api.send, order_no).text == "success"
    assert exceptions() == {order_no: LATE}
    flask("order", "resolve", order_no, "--complete", "--yes")
    assert (api.status(order_no), exceptions()) == ("completed", {})


def test_checks_after_notices_need_status_checks(platform, channel, refuses):
    said = refuses("channel", "set", channel, "--config", "ask_again=true")
    assert "config: ask_again: Needs status checks" in said


def test_version_2_always_checks_the_status(platform, api, add_channel, later):
    platform.has_query = True
    order_no = api.buy(channel=add_channel("epay", platform.config("2", no_status_checks="true"))).data["order_no"]
    platform.pay(order_no)
    later(60)
    assert api.status(order_no) == "completed"


# --- what an operator reads

TEXT = (
    "This channel has no status checks. Unpaid deposits expire by time. If a notice is lost, its payment is not found. "
    "Compare your orders with the platform's regularly."
)


def test_the_channel_check_reports_it_and_is_passed(checked, queried, platform):
    found = checked()
    assert found["status"] == ("-", TEXT)
    assert found["wxpay"] == ("ok", "An order of 0.01 was accepted.")
    assert "keys" not in found
    assert "collect" not in found
    assert queried() == []


# --- "not there" with HTTP 404


NOT_THERE = ["订单不存在或已完成", "服务不存在或已完成"]


def answer(text, status):
    return Response(f'{{"code":-1,"msg":"{text}"}}', status, content_type="application/json; charset=utf-8")


@pytest.fixture
def asked(web_server, add_channel, api):
    """A platform with api.php, and a deposit that it does not know."""
    platform = EpayPlatform(web_server, "asked")
    order_no = api.buy(channel=add_channel("epay", platform.config("1"))).data["order_no"]
    platform.orders.clear()
    return platform, order_no


@pytest.mark.parametrize("text", NOT_THERE)
def test_with_404_not_there_or_completed_means_not_there(text, asked, api, later, exceptions):
    platform, order_no = asked
    platform.absent = answer(text, 404)
    later(450, times=2)
    assert (api.status(order_no), exceptions()) == ("cancelled", {})


@pytest.mark.parametrize("status", [200, 400, 500])
@pytest.mark.parametrize("text", NOT_THERE)
def test_with_another_status_it_may_be_completed(text, status, asked, api, later, exceptions):
    platform, order_no = asked
    platform.absent = answer(text, status)
    later(450, times=2)
    assert (api.status(order_no), exceptions()) == ("pending", {order_no: "unknown_outcome"})


@pytest.mark.parametrize("text", ["商户信息不存在", "订单不存在或已完成支付", "已完成", "系统错误：订单不存在或已完成"])
def test_another_text_with_404_proves_nothing(text, asked, api, later, exceptions):
    platform, order_no = asked
    platform.absent = answer(text, 404)
    later(450, times=2)
    assert (api.status(order_no), exceptions()) == ("pending", {order_no: "unknown_outcome"})


# --- names, addresses and forms of such platforms


def test_payment_methods_have_the_platforms_own_names(platform, add_channel, api):
    platform.kinds = ("usdt.trc20", "bank")
    types = "alipay=usdt.trc20, wxpay=usdt.trc20"
    channel = add_channel("epay", platform.config("1", no_status_checks="true", types=types))
    for method in ("alipay", "wxpay", "bank"):
        order_no = api.buy(channel=channel, paychannel_paymethod=method).data["order_no"]
        assert platform.orders[order_no]["type"] == ("bank" if method == "bank" else "usdt.trc20")
    platform.pay(order_no)
    platform.notice(order_no).to(api.send, order_no)
    assert api.status(order_no) == "completed"


@pytest.mark.parametrize(
    "wrong", ["usdt.trc20", "qqpay=usdt", "alipay=", "alipay=a,alipay=b", "alipay=a&b", "alipay=a=b"]
)
def test_types_that_can_not_be_read_are_refused(wrong, platform, channel, refuses):
    said = refuses("channel", "set", channel, "--config", f"types={wrong}")
    assert "config: types: Must look like alipay=usdt.trc20,wxpay=usdt.polygon" in said


def test_the_payer_is_sent_with_a_link_or_with_a_form(platform, add_channel, api, shown, http):
    config = platform.config("1", redirect="true", no_status_checks="true", sitename="My shop")
    link_channel = add_channel("epay", config)
    html = shown(api.buy(channel=link_channel).data["order_no"])
    link = next(part for part in html.split('"') if "submit.php" in part).replace("&amp;", "&")
    fields = dict(parse_qsl(urlsplit(link).query))
    assert fields["sitename"] == "My shop"
    assert platform._holds(fields)
    order_no = api.buy(channel=add_channel("epay", config | {"post": "true"})).data["order_no"]
    form = http("GET", f"/addons/paychannel/pay/go?order_no={order_no}").text
    assert f'action="{platform.url}/submit.php"' in form
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
    assert fields["sitename"] == "My shop"
    assert requests.post(f"{platform.url}/submit.php", data=fields, timeout=10).status_code == 200
    assert list(platform.orders) == [order_no]


def test_the_status_is_checked_at_an_address_of_its_own(web_server, add_channel, api, later, flask_json):
    platform = EpayPlatform(web_server)
    elsewhere = EpayPlatform(web_server, "query/epay")
    elsewhere.orders = platform.orders
    platform.has_query = False
    channel = add_channel("epay", platform.config("1", query_url=f"{elsewhere.url}/api.php"))
    order_no = api.buy(channel=channel).data["order_no"]
    platform.pay(order_no)
    later(60)
    assert api.status(order_no) == "completed"
    rows = {row["check"]: row["result"] for row in flask_json("channel", "check", channel)}
    assert (rows["keys"], rows["collect"], rows["clock"]) == ("ok", "ok", "ok")
    assert {call.path for call in elsewhere.calls} == {"/query/epay/api.php"}


@pytest.mark.parametrize(
    "wrong", ["/api.php", "ftp://pay.example.com/api.php", "https://pay.example.com/api.php?act=order"]
)
def test_an_address_that_is_none_is_refused(wrong, channel, refuses):
    assert "config: query_url: Must look like" in refuses("channel", "set", channel, "--config", f"query_url={wrong}")


def test_an_address_of_its_own_can_be_removed(channel, platform, flask):
    flask("channel", "set", channel, "--config", "query_url=https://pay.example.com/api.php")
    flask("channel", "set", channel, "--config", "query_url=")


def test_a_merchant_number_may_have_64_characters(platform, add_channel):
    add_channel("epay", platform.config("1") | {"pid": "0123456789abcdef" * 4})
