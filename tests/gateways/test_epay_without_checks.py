"""epay, version 1: platforms without api.php (GMWallet epusdt, BEpusdt, Vmq), sent by the loopback platform."""

import re
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests

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
    order_no, api, due, later, order_details, exceptions, queried, refuses
):
    assert "has no status check" in refuses("order", "ask", order_no)
    later(60)
    assert (due.orders(), next_step.missing(10)) == (0, [])
    later(835)
    assert (api.status(order_no), exceptions()) == ("pending", {})
    later(10)
    assert (api.status(order_no), exceptions()) == ("cancelled", {})
    last = order_details(order_no)["history"][-1]
    assert (last["who"], last["why"]) == ("service", "Expired. The channel has no status checks")
    later(100_000, times=3)
    assert queried() == []


@pytest.mark.parametrize("sent", ["notice", "posted"])
def test_a_notice_by_either_method_credits_it(sent, order_no, api, platform, balances, queried):
    platform.pay(order_no)
    assert getattr(platform, sent)(order_no, money="100.0000").to(api.send, order_no).text == "success"
    assert (api.status(order_no), balances(), queried()) == ("completed", PAID, [])


def test_deposits_whose_opening_failed_are_opened_again_and_expire_in_any_case(
    platform, api, channel, later, exceptions, shown, queried
):
    faults = ("unheard", "lost", "garbage")
    platform.fails(*faults)
    orders = [api.buy(channel=channel).data["order_no"] for _ in faults]
    assert exceptions() == dict.fromkeys(orders, "unknown_outcome")
    later(1)
    assert all('class="qr"' in shown(order_no) for order_no in orders)
    platform.fails(*["broken"] * 20)
    never_opened = api.buy(channel=channel).data["order_no"]
    later(100, times=8)
    assert exceptions() == {never_opened: "unknown_outcome"}
    later(200)
    assert {api.status(order_no) for order_no in (*orders, never_opened)} == {"cancelled"}
    assert (exceptions(), queried()) == ({}, [])


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


@pytest.mark.parametrize("first", ["the operator", "a notice"])
def test_money_for_an_expired_deposit_is_late_whoever_reports_it_first(
    first, order_no, api, flask, platform, later, exceptions, outcome
):
    later(905)
    if first == "the operator":
        flask("order", "paid", order_no, "--reference", "EP000000000000001")
        assert (api.status(order_no), exceptions()) == ("cancelled", {order_no: LATE})
    platform.pay(order_no)
    assert platform.notice(order_no).to(api.send, order_no).text == "success"
    assert outcome(order_no) == ("cancelled", NOTHING, {order_no: LATE})
    flask("order", "resolve", order_no, "--complete", "--yes")
    assert (api.status(order_no), exceptions()) == ("completed", {})


def test_an_old_notice_sent_again_after_the_money_was_taken_back_is_ignored(
    order_no, api, platform, channel, flask, order_details, balances, exceptions
):
    flask("channel", "set", channel, "--settlement-days", 1)
    platform.pay(order_no)
    notice = platform.notice(order_no)
    assert notice.to(api.send, order_no).text == "success"
    reference = order_details(order_no)["channel_reference"]
    flask("order", "paid", order_no, "--reference", reference, "--amount", 0)
    assert (api.status(order_no), balances(), exceptions()) == ("cancelled", NOTHING, {})
    assert notice.to(api.send, order_no).text == "success"
    assert (api.status(order_no), balances(), exceptions()) == ("cancelled", NOTHING, {})


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


def test_the_channel_check_reports_it_and_is_passed(checked, queried):
    found = checked()
    assert found["status"] == ("-", TEXT)
    assert found["wxpay"] == ("ok", "An order of 0.01 was accepted.")
    assert "keys" not in found
    assert "collect" not in found
    assert queried() == []


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


WRONG = [
    *(
        ("types", given, "Must look like alipay=usdt.trc20,wxpay=usdt.polygon")
        for given in ("usdt.trc20", "qqpay=usdt", "alipay=", "alipay=a,alipay=b", "alipay=a&b", "alipay=a=b")
    ),
    *(
        ("query_url", given, "Must look like")
        for given in ("/api.php", "ftp://pay.example.com/api.php", "https://pay.example.com/api.php?act=order")
    ),
    ("ask_again", "true", "Needs status checks"),
]


def test_what_can_not_be_read_in_a_config_is_refused(channel, platform, add_channel, flask, refuses):
    for field, given, why in WRONG:
        assert f"config: {field}: {why}" in refuses("channel", "set", channel, "--config", f"{field}={given}")
    for address in ("https://pay.example.com/api.php", ""):  # it can be removed
        flask("channel", "set", channel, "--config", f"query_url={address}")
    add_channel("epay", platform.config("1") | {"pid": "0123456789abcdef" * 4})


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
