"""Payments that open when their page is viewed: for the payer's address and browser, with a number per attempt."""

import re
from urllib.parse import parse_qs

import pytest
import requests

from tests.backups import Backup
from tests.pages import CASHIER, Seen
from tests.payers import AGENTS
from tests.upstreams.wechatpay import WechatPay

START = 1_000_000
PAID = START + 9_940


@pytest.fixture
def backup(app, instance, tmp_path):
    """`backup()` makes a backup of the present database."""
    return lambda: Backup(instance, tmp_path)


@pytest.fixture
def channel(version, platform, add_channel):
    return add_channel("epay", platform.config(version, open_on_view="true"))


@pytest.fixture
def received_forms(platform):
    """`received_forms("create")`: the platform's received forms to create or close a payment."""

    def forms(what):
        paths = {"create": ("mapi.php", "api/pay/create"), "close": ("api/pay/close",)}[what]
        calls = [call for call in platform.calls if call.path.endswith(paths)]
        return [{name: values[0] for name, values in parse_qs(call.get_data(as_text=True)).items()} for call in calls]

    return forms


@pytest.fixture
def two_attempts(placed, payer):
    """A deposit with two attempts: its own number, and that with `_2`."""
    order_no = placed()
    payer("pc").opens(order_no)
    payer("mobile").opens(order_no)
    return order_no


def test_nothing_is_opened_before_a_payer_views_the_page_or_after_the_expiry(placed, platform, payer, api, ahead, due):
    order_no = placed()
    page = payer().views(order_no)
    assert 'id="open"' in page
    assert "Preparing your payment" in page
    assert not payer().is_ready(order_no)
    ahead(901)
    payer().opens(order_no)
    assert platform.calls == []
    due.orders()
    assert (api.status(order_no), platform.orders) == ("cancelled", {})


def test_the_platform_gets_the_payers_own_address_and_browser(placed, received_forms, payer):
    orders = {placed(): browser for browser in AGENTS}
    for order_no, browser in orders.items():
        assert 'class="qr"' in payer(browser, "2001:db8::7").opens(order_no)
    forms = received_forms("create")
    assert {form["out_trade_no"]: form["device"] for form in forms} == orders
    assert {form["clientip"] for form in forms} == {"2001:db8::7"}


@pytest.mark.parametrize("settings_of_app", [{"trusted_proxies": 1}])
@pytest.mark.parametrize("version", ["2"], indirect=True)
def test_the_platform_gets_a_plain_address_whatever_a_proxy_adds_to_it(placed, received_forms, payer):
    for forwarded in ("203.0.113.7:50123", "[2001:db8::1]:443", "unknown"):
        payer(address="198.51.100.9", forwarded=forwarded).opens(placed())
    addresses = [form["clientip"] for form in received_forms("create")]
    assert addresses == ["203.0.113.7", "2001:db8::1", "198.51.100.9"]


def test_it_is_opened_once_for_a_browser_and_completed_by_the_notice(
    placed, platform, payer, received_forms, api, notify
):
    order_no = placed()
    for _ in range(3):
        assert 'class="qr"' in payer().opens(order_no)
    assert payer().is_ready(order_no)
    assert len(received_forms("create")) == 1
    platform.pay(order_no)
    assert notify(order_no).text == "success"
    assert api.status(order_no) == "completed"


def test_another_browser_gets_an_attempt_with_a_number_of_its_own(
    two_attempts, payer, received_forms, version, order_details
):
    assert not payer("qq").is_ready(two_attempts)
    assert 'class="qr"' in payer("qq").opens(two_attempts)
    numbers = [two_attempts, f"{two_attempts}_2", f"{two_attempts}_3"]
    assert [form["out_trade_no"] for form in received_forms("create")] == numbers
    # Version 1 can't close a payment, so each browser continues with its own.
    assert [form["out_trade_no"] for form in received_forms("close")] == (numbers[:2] if version == "2" else [])
    told = [line["why"] for line in order_details(two_attempts)["history"]]
    assert f"Payment {two_attempts}_2 created at the channel for a browser: mobile" in told
    for browser in ("pc", "mobile", "qq"):
        assert 'class="qr"' in payer(browser).opens(two_attempts)
    assert len(received_forms("create")) == (3 if version == "1" else 6)


@pytest.mark.parametrize(("number", "by"), [("", "question"), ("_2", "question"), ("_2", "notice")])
def test_whichever_attempt_is_paid_completes_the_order(number, by, two_attempts, platform, later, due, outcome, notify):
    platform.pay(two_attempts + number)
    if by == "notice":
        notify(two_attempts + number)
        due.orders()
    else:
        later(61)
    assert outcome(two_attempts) == ("completed", (PAID, 0), {})


@pytest.mark.parametrize("by", ["notice", "question"])
def test_two_paid_attempts_are_a_second_payment(by, two_attempts, platform, later, outcome, notify):
    order_no = two_attempts
    for number in (order_no, f"{order_no}_2"):
        platform.pay(number)
        if by == "notice":
            notify(number)
    later(61)
    assert outcome(order_no) == ("completed", (PAID, 0), {order_no: "paid_twice"})


@pytest.mark.parametrize("version", ["1"], indirect=True)
def test_money_of_another_attempt_is_found_after_an_operator_ended_the_order(
    two_attempts, version, platform, api, flask, later, due, exceptions, notify
):
    order_no = two_attempts
    platform.pay(order_no, "90.00")
    notify(order_no)
    due.orders()
    assert exceptions() == {order_no: "wrong_amount"}
    flask("order", "settle", order_no, "--refund")
    due.orders()
    assert (api.status(order_no), exceptions()) == ("cancelled", {})
    platform.pay(f"{order_no}_2")
    later(601)
    assert exceptions() == {order_no: "late_payment"}


def test_an_unpaid_attempt_proves_nothing_about_the_paid_one(two_attempts, platform, flask, later, exceptions, api):
    order_no = two_attempts
    platform.pay(order_no)
    later(61)
    assert "status at the channel: paid 100.00\n" in flask("order", "ask", order_no).output
    assert (api.status(order_no), exceptions()) == ("completed", {})
    platform.orders[order_no]["status"] = "0"
    flask("order", "ask", order_no)
    assert exceptions() == {order_no: "reversed"}


def test_no_new_attempt_is_made_once_the_last_one_is_paid(placed, platform, payer, received_forms, due, api):
    order_no = placed()
    payer("pc").opens(order_no)
    platform.pay(order_no)
    payer("mobile").opens(order_no)
    due()
    assert (len(received_forms("create")), api.status(order_no)) == (1, "completed")


def test_a_refusal_is_shown_to_the_payer_who_may_try_again_under_a_new_number(
    placed, platform, payer, received_forms, api, order_details
):
    order_no, barred = placed(), payer(address="203.0.113.66")
    platform.barred.add("203.0.113.66")
    page = Seen(barred.opens(order_no))
    assert "Payment could not be started" in page.text
    assert "你今天已无法再发起支付，请明天再试" in page.text
    assert "Try again" in page.text
    assert barred.is_ready(order_no)
    assert api.status(order_no) == "pending"
    assert any("你今天已无法再发起支付" in line["why"] for line in order_details(order_no)["history"])
    barred.opens(order_no)
    assert len(received_forms("create")) == 1
    assert 'class="qr"' in payer().opens(order_no, "again=1")
    assert [form["out_trade_no"] for form in received_forms("create")] == [order_no, f"{order_no}_2"]


def test_one_payer_who_tries_often_has_to_wait_and_keeps_no_other_from_paying(
    placed, platform, payer, received_forms, clock
):
    order_no, eager = placed(), payer()
    platform.barred.add("203.0.113.7")
    for second in range(10):
        clock(second)
        assert "Try again" in eager.opens(order_no, "again=1")
    busy = eager.presses(order_no, "again=1")
    assert (busy.status, len(received_forms("create"))) == (429, 10)
    assert f'href="{CASHIER}?order_no={order_no}"' in busy.text
    assert f"try again in {busy.headers['Retry-After']} seconds" in Seen(busy.text).text
    assert 'class="qr"' in payer(address="203.0.113.8").opens(order_no, "again=1")
    platform.barred.clear()
    clock(120)
    assert 'class="qr"' in payer("mobile").opens(order_no)


def test_refused_attempts_are_not_checked_at_each_new_one(placed, platform, payer):
    order_no, others = placed(), [payer(address=f"203.0.113.{number}") for number in range(5)]
    payer("mobile").opens(order_no)
    platform.barred |= {f"203.0.113.{number}" for number in range(5)}
    platform.calls.clear()
    for each in others:
        assert "Try again" in each.opens(order_no, "again=1")
    checks = [call for call in platform.calls if call.path.endswith(("/api.php", "/pay/query"))]
    assert len(checks) == len(others), "of the one that was not refused"


def test_an_attempt_without_a_response_is_repeated_under_the_same_number(
    placed, platform, payer, received_forms, ahead, exceptions
):
    faults = ("unheard", "lost", "half", "broken")
    orders = [placed() for _ in faults]
    for order_no, fault in zip(orders, faults, strict=True):
        platform.fails(fault)
        assert 'id="open"' in payer().opens(order_no), fault
        payer().opens(order_no)
    assert exceptions() == dict.fromkeys(orders, "unknown_outcome")
    assert [form["out_trade_no"] for form in received_forms("create")] == orders, "another request may be at it"
    ahead(21)
    assert all('class="qr"' in payer().opens(order_no) for order_no in orders)
    assert [form["out_trade_no"] for form in received_forms("create")] == orders * 2


def test_all_attempts_are_closed_when_the_order_expires_and_a_late_payment_is_an_exception(
    two_attempts, later, due, api, platform, version, received_forms, exceptions, notify
):
    later(901)
    assert api.status(two_attempts) == "cancelled"
    if version == "2":
        assert {form["out_trade_no"] for form in received_forms("close")} == {two_attempts, f"{two_attempts}_2"}
    platform.pay(two_attempts)
    notify(two_attempts)
    due.orders()
    assert exceptions() == {two_attempts: "late_payment"}


def test_a_frozen_attempt_delays_no_money_of_another_and_does_not_expire(
    two_attempts, platform, api, later, exceptions
):
    platform.orders[two_attempts]["status"] = "3"
    later(61)
    for _ in range(3):
        assert (api.status(two_attempts), exceptions()) == ("pending", {two_attempts: "unknown_outcome"})
        later(901)
    platform.pay(f"{two_attempts}_2")
    later(601)
    assert (api.status(two_attempts), exceptions()) == ("completed", {})


@pytest.mark.parametrize("version", ["2"], indirect=True)
@pytest.mark.parametrize(
    ("other", "wait", "status"), [("open", 61, "pending"), ("open", 901, "cancelled"), ("paid", 61, "completed")]
)
def test_the_notice_of_a_refunded_attempt_is_not_credited_next_to_another_attempt(
    other, wait, status, placed, platform, version, payer, api, later, due, balances, exceptions
):
    order_no = placed()
    payer("pc").opens(order_no)
    platform.pay(order_no)
    notice = platform.notice(order_no, version)
    platform.orders[order_no] |= {"status": "2", "refundmoney": "100.00"}
    payer("mobile").opens(order_no)
    if other == "paid":
        platform.pay(f"{order_no}_2")
    later(wait)
    assert notice.to(api.send, order_no).text == "success"
    due.orders()
    money = PAID if other == "paid" else START
    assert (api.status(order_no), balances()[0], exceptions()) == (status, money, {})


def test_earlier_attempts_are_checked_and_closed_before_a_new_one(placed, platform, version, payer, received_forms):
    order_no = placed()
    payer("pc").opens(order_no)
    platform.fails("unheard")
    payer("mobile").opens(order_no)  # not opened, because the first one may be paid
    payer("wechat").opens(order_no)
    if version == "2":
        assert order_no in [form["out_trade_no"] for form in received_forms("close")]
    platform.pay(order_no)
    payer("alipay").opens(order_no)
    assert [form["out_trade_no"] for form in received_forms("create")] == [order_no, f"{order_no}_3"]


def test_with_redirect_version_2_sends_the_browser_to_the_platform_by_a_signed_form(
    api, platform, add_channel, payer, http, flask
):
    channel = add_channel("epay", platform.config("2", redirect="true"))
    order_no = api.buy(channel=channel).data["order_no"]
    assert f'href="/addons/paychannel/pay/go?order_no={order_no}"' in payer().views(order_no)
    page = http("GET", f"/addons/paychannel/pay/go?order_no={order_no}")
    assert f'action="{platform.url}/api/pay/submit"' in page.text
    assert "form-action https: http:" in page.headers["Content-Security-Policy"]
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', page.text))
    assert platform.calls == []
    answer = requests.post(f"{platform.url}/api/pay/submit", data=fields, timeout=10)
    assert (answer.status_code, list(platform.orders)) == (200, [order_no])
    flask("channel", "set", channel, "--config", "redirect=false")
    back = http("GET", f"/addons/paychannel/pay/go?order_no={order_no}").headers["Location"]
    assert back.endswith(order_no), "without a way to the platform, the payer returns to the page"


@pytest.fixture
def lacking(placed, platform, payer, backup):
    """An order whose second attempt is paid, in a database that was restored from before both attempts."""
    order_no = placed()
    before = backup()
    payer("pc").opens(order_no)
    payer("mobile").opens(order_no)
    platform.pay(f"{order_no}_2")
    before.restore()
    return order_no


@pytest.mark.parametrize("by", ["the sweep, paused", "the sweep, resumed", "its notice"])
def test_an_attempt_that_a_restored_database_lacks_is_checked_and_not_a_reversal(
    by, lacking, platform, later, due, api, flask, exceptions, notify
):
    if by == "the sweep, resumed":
        flask("db", "resume")
    if by == "its notice":
        notify(f"{lacking}_2")
        due.orders()
    else:
        later(901)
    assert api.status(lacking) == "completed"
    if by != "the sweep, resumed":
        flask("db", "resume")
    flask("order", "ask", lacking)
    assert exceptions() == {}


def test_the_notice_of_any_attempt_that_a_restored_database_lacks_is_checked(
    web_server, add_channel, api, payer, backup, due, balances, exceptions
):
    wechat = WechatPay(web_server)
    channel = add_channel("wechatpay", wechat.config("key", h5="true"))
    order_no = api.buy(channel=channel).data["order_no"]
    before = backup()
    for browser in ("pc", "mobile") * 4:
        payer(browser).opens(order_no)
    wechat.pay(f"{order_no}_8")
    before.restore()
    wechat.notice(f"{order_no}_8").to(api.send, order_no)
    due.orders()
    assert (api.status(order_no), balances()[0], exceptions()) == ("completed", PAID, {})


def test_a_notice_of_a_later_attempt_of_an_unknown_order_is_listed(platform, placed, payer, flask_json, notify):
    order_no = placed()
    payer("pc").opens(order_no)
    number = "202611240000000000000000"
    platform.orders[f"{number}_2"] = platform.orders[order_no] | {"out_trade_no": f"{number}_2"}
    notify(f"{number}_2")
    assert [row["order_no"] for row in flask_json("order", "unknown")] == [number]


def test_without_status_checks_the_notice_of_any_attempt_credits_the_deposit(
    api, platform, add_channel, payer, balances, exceptions
):
    channel = add_channel("epay", platform.config("1", no_status_checks="true", open_on_view="true"))
    order_no = api.buy(channel=channel).data["order_no"]
    payer("pc").opens(order_no)
    payer("mobile").opens(order_no)
    first, second = platform.orders
    for paid in (second, first):
        platform.pay(paid)
        assert platform.notice(paid).to(api.send, order_no).text == "success"
    assert (api.status(order_no), exceptions(), balances()) == ("completed", {order_no: "paid_twice"}, (PAID, 0))
    assert [call.path for call in platform.calls if call.path.endswith("/api.php")] == []


def test_a_payment_opened_at_creation_is_not_opened_again(
    api, platform, version, add_channel, flask, payer, received_forms
):
    channel = add_channel("epay", platform.config(version))
    order_no = api.buy(channel=channel).data["order_no"]
    assert 'class="qr"' in payer("mobile").opens(order_no)
    flask("channel", "set", channel, "--config", "open_on_view=true")
    assert 'class="qr"' in payer("mobile").opens(order_no)
    assert [form["out_trade_no"] for form in received_forms("create")] == [order_no]
