"""epay, version 1 and 2: deposits, against the loopback platform. No independent code has checked version 2."""

import json
import logging
import threading
from urllib.parse import parse_qs, urlsplit

import pytest
from epay_sdk import CreateOrderRequest, EPayClient, EPayConfig
from werkzeug import Response

from gateways.base import Payment, State
from gateways.epay_protocol import md5_signature, signed_text
from gateways.registry import build
from services.jobs import sweep as reconciliation
from tests.pages import Seen
from tests.support import heard, through_http
from tests.upstreams.epay import KEY, PID, EpayPlatform
from tests.upstreams.loopback import key_pair

START = 1_000_000
NOTHING, PAID = (START, 0), (START + 9_940, 0)
VERSIONS = ("1", "2")
FAULTS = ("slow", "unheard", "lost", "half", "garbage", "broken")


@pytest.fixture
def platform(web_server):
    return EpayPlatform(web_server)


@pytest.fixture(params=VERSIONS)
def version(request):
    return request.param


@pytest.fixture
def channel(version, platform, add_channel):
    """A channel of either version on the loopback platform."""
    return add_channel("epay", platform.config(version))


@pytest.fixture
def placed(api, channel):
    """`placed()`: the number of a new deposit of 100 yuan."""
    return lambda: api.buy(channel=channel).data["order_no"]


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


def test_an_independent_sdk_accepts_the_loopback_platforms_notice(placed, platform, sdk, api):
    order_no = placed()
    platform.pay(order_no)
    query = {name: values[0] for name, values in parse_qs(platform.notice(order_no).query).items()}
    assert sdk.verify_callback(query).out_trade_no == order_no


# --- deposits


def test_the_payer_sees_a_code_pays_and_is_credited(placed, version, api, platform, shown, balances, steps):
    order_no = placed()
    assert 'class="qr"' in shown(order_no)
    platform.pay(order_no)
    answer = platform.notice(order_no, version).to(api.send, order_no)
    assert (answer.status, answer.text) == (200, "success")
    assert (api.status(order_no), balances()) == ("completed", PAID)
    assert steps(order_no)[1:] == [
        ("channel", "pending", "paid"),
        ("channel", "paid", "confirmed"),
        ("service", "confirmed", "completed"),
    ]


@pytest.mark.parametrize(
    ("gives", "shows"),
    [("jump", 'href="https://pay.example.com/pay/EP'), ("urlscheme", 'href="weixin://dl/business/?t=EP')],
)
def test_an_address_becomes_a_redirect_and_a_scheme_opens_the_app(placed, platform, shown, gives, shows):
    platform.gives = gives
    assert shows in shown(placed())


def test_on_a_computer_a_scheme_is_a_code_that_opens_the_page_on_the_phone(placed, platform, shown):
    platform.gives = "urlscheme"
    html = shown(placed())
    assert "Scan this code with your phone's camera to continue there." in Seen(html).text
    assert 'class="qr"' in html


def test_the_page_does_not_claim_that_no_real_money_moves(placed, shown):
    assert "No real money" not in shown(placed())


def test_with_redirect_the_payer_goes_to_the_platforms_page(api, version, platform, add_channel, shown):
    order_no = api.buy(channel=add_channel("epay", platform.config(version, redirect="true"))).data["order_no"]
    assert "Continue to payment" in shown(order_no)


@pytest.mark.parametrize("gives", ["html", "image"])
def test_a_payment_that_can_not_be_shown_cancels_the_order(gives, api, channel, platform, flask_json):
    platform.gives = gives
    assert api.buy(channel=channel).code == 50201
    assert [row["status"] for row in flask_json("order", "list")] == ["cancelled"]


def test_a_script_instead_of_an_address_never_reaches_the_page(placed, platform, api, shown, exceptions):
    platform.gives = "script"
    order_no = placed()
    assert "javascript:" not in shown(order_no)
    assert (api.status(order_no), exceptions()) == ("pending", {order_no: "unknown_outcome"})


def test_a_refusal_cancels_the_order_and_shows_the_reason_to_the_operator(
    api, channel, platform, flask, flask_json, order_details
):
    flask("channel", "set", channel, "--config", "pid=1002")
    refused = api.buy(channel=channel)
    assert (refused.status, refused.code) == (502, 50201)
    [row] = flask_json("order", "list")
    assert order_details(row["order_no"])["history"][-1]["why"] in (
        "Rejected: 商户ID不存在",
        "Rejected: RSA签名校验失败",
    )


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.usefixtures("impatient")
def test_an_order_whose_opening_failed_is_opened_by_the_sweep_and_paid(
    fault, placed, version, api, platform, shown, later, balances, exceptions
):
    platform.fails(fault)
    order_no = placed()
    assert (api.status(order_no), exceptions()) == ("pending", {order_no: "unknown_outcome"})
    assert "Preparing your payment" in shown(order_no)
    later(1)
    assert 'class="qr"' in shown(order_no)
    assert exceptions() == {}
    platform.pay(order_no)
    platform.notice(order_no, version).to(api.send, order_no)
    assert balances() == PAID


def test_an_order_is_opened_again_unchanged_and_checked_like_a_new_one(placed, api, platform, later):
    platform.fails("lost")
    order_no = placed()
    later(1)
    assert list(platform.orders) == [order_no]
    platform.pay(order_no)
    later(60)
    assert api.status(order_no) == "completed"


# --- notices


def test_a_lost_notice_is_found_by_a_status_check(placed, api, platform, later, balances):
    order_no = placed()
    platform.pay(order_no)
    later(60)
    assert (api.status(order_no), balances()) == ("completed", PAID)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.usefixtures("impatient")
def test_a_status_check_without_a_response_is_repeated(fault, placed, api, platform, later, balances, exceptions):
    order_no = placed()
    platform.pay(order_no)
    platform.fails(fault)
    later(60)
    assert (api.status(order_no), exceptions()) == ("pending", {order_no: "unknown_outcome"})
    later(120)
    assert (api.status(order_no), balances(), exceptions()) == ("completed", PAID, {})


def test_the_same_notice_counts_once_however_often_it_arrives(placed, version, api, platform, balances):
    order_no = placed()
    platform.pay(order_no)
    notice = platform.notice(order_no, version)
    assert [notice.to(api.send, order_no).text for _ in range(3)] == ["success"] * 3
    assert balances() == PAID


@pytest.mark.parametrize("how", ["twice", "backwards", "at_once"])
def test_notices_count_once_in_any_order(how, service, version, platform):
    pairs = [part for name, value in platform.config(version).items() for part in ("--config", f"{name}={value}")]
    service.flask("channel", "add", "--category", "gateway_b", "--driver", "epay", "--name", "Epay", *pairs)
    service.flask("channel", "link", "5", "demo")
    orders = [service.api.buy(channel=5).data["order_no"] for _ in range(4)]
    for order_no in orders:
        platform.pay(order_no)
    notices = [(order_no, platform.notice(order_no, version)) for order_no in orders]
    assert {answer.text for answer in platform.deliver(notices, through_http(service.url), how)} == {"success"}
    balance = json.loads(service.flask("ledger", "balances", "--json").stdout)["demo"]["available"]
    assert balance == START + 4 * 9_940


@pytest.mark.parametrize("money", ["100", "100.0", "100.00", "100.0000"])
def test_the_money_of_a_notice_may_be_written_in_any_way(placed, version, api, platform, balances, money):
    order_no = placed()
    platform.notice(order_no, version, money=money).to(api.send, order_no)
    assert balances() == PAID


def test_another_amount_credits_nothing_and_is_visible(placed, version, api, platform, balances, exceptions):
    order_no = placed()
    platform.pay(order_no, "99.99")
    assert platform.notice(order_no, version).to(api.send, order_no).text == "success"
    assert (balances(), exceptions()) == (NOTHING, {order_no: "wrong_amount"})


WRONG = {
    "no query at all": lambda query: "",
    "another sum": lambda query: query.replace("money=100.00", "money=1.00"),
    "another order": lambda query: query.replace("out_trade_no=2", "out_trade_no=3"),
    "no signature": lambda query: query.replace("&sign=", "&sing="),
    "an empty signature": lambda query: f"{query.partition('&sign=')[0]}&sign=&sign_type=MD5",
    "cut off": lambda query: query[: len(query) // 2],
    "a field twice": lambda query: f"{query}&money=100.00",
    "not UTF-8": lambda query: query.replace("name=Order", "name=%ff"),
    "one field more": lambda query: f"{query}&param=1",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_forged_notice_changes_nothing_and_is_recorded(
    wrong, placed, version, platform, http, order_details, balances
):
    order_no = placed()
    told = order_details(order_no)
    query = WRONG[wrong](platform.notice(order_no, version).query)
    refused = http("GET", f"/addons/paychannel/notify/{order_no}?{query}")
    assert (refused.status, refused.text) == (400, "fail")
    after, reasons = heard(order_details(order_no))
    assert (after, len(reasons), balances()) == (told, 1, NOTHING)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"pid": "1002"}, "another merchant"),
        ({"trade_status": "TRADE_CLOSED"}, "not report a payment"),
        ({"trade_no": ""}, "not report a payment"),
        ({"money": "100.001"}, "amount is missing or invalid"),
        ({"money": "-100.00"}, "amount"),
        ({"money": "１００"}, "amount"),
        ({"money": "1e2"}, "amount"),
        ({"money": ""}, "amount"),
    ],
)
def test_a_signed_notice_with_other_facts_changes_nothing(
    changed, reason, placed, version, platform, api, order_details, balances
):
    order_no = placed()
    told = order_details(order_no)
    assert platform.notice(order_no, version, **changed).to(api.send, order_no).status == 400
    after, [why] = heard(order_details(order_no))
    assert (after, balances()) == (told, NOTHING)
    assert reason in why


def test_a_notice_counts_for_the_order_that_it_names_only(placed, version, api, platform, order_details):
    paid, unpaid = placed(), placed()
    told = order_details(unpaid)
    assert platform.notice(paid, version).to(api.send, unpaid).status == 400
    assert heard(order_details(unpaid)) == (told, ["it is about another order"])
    assert api.status(paid) == "pending"


def test_a_notice_of_another_channels_platform_is_refused(placed, version, api, platform, other_platform):
    order_no = placed()
    other_platform.orders = platform.orders
    assert other_platform.notice(order_no, version).to(api.send, order_no).status == 400
    assert api.status(order_no) == "pending"


@pytest.fixture
def other_platform(web_server):
    """A platform that has other keys."""
    return EpayPlatform(web_server, "elsewhere", "another-key-of-version-1")


def test_with_ask_again_a_notice_alone_credits_nothing(api, version, platform, add_channel, due, balances, steps):
    channel = add_channel("epay", platform.config(version, ask_again="true"))
    honest, forged = (api.buy(channel=channel).data["order_no"] for _ in range(2))
    platform.pay(honest)
    for order_no in (honest, forged):
        assert platform.notice(order_no, version).to(api.send, order_no).text == "success"
    assert balances() == NOTHING
    due.orders()
    assert (api.status(honest), api.status(forged), balances()) == ("completed", "pending", PAID)


def test_with_ask_again_a_notice_creates_no_late_money_and_no_second_payment(
    api, version, platform, add_channel, later, due, balances, exceptions
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
    platform.notice(cancelled, version).to(api.send, cancelled)
    due.orders()
    assert exceptions() == {cancelled: "late_payment"}


def test_with_ask_again_a_notice_whose_check_fails_must_be_repeated(
    api, version, platform, add_channel, later, order_details
):
    order_no = api.buy(channel=add_channel("epay", platform.config(version, ask_again="true"))).data["order_no"]
    platform.pay(order_no)
    later(60)
    told = order_details(order_no)
    platform.fails("broken")
    assert platform.notice(order_no, version).to(api.send, order_no).status == 400
    assert heard(order_details(order_no)) == (told, ["the channel, asked about it, gave no answer"])


# --- the end of a deposit


def test_an_unpaid_deposit_is_cancelled_and_late_money_is_found_without_a_notice(
    placed, api, platform, later, balances, exceptions
):
    platform.can_close = False
    order_no = placed()
    later(450, times=2)
    assert api.status(order_no) == "cancelled"
    platform.pay(order_no)
    later(reconciliation.LATE[0] + 1)
    assert (api.status(order_no), balances(), exceptions()) == ("cancelled", NOTHING, {order_no: "late_payment"})


def test_a_deposit_closed_or_checked_for_a_day_is_not_checked_again(placed, version, platform, later, called):
    placed()
    later(450, times=2)
    asked = len(platform.calls)
    for seconds in (600, 600, 3_600, 3_600, 90_000, 90_000):
        later(seconds)
    assert len(platform.calls) - asked == {"1": len(reconciliation.LATE), "2": 0}[version]
    assert ("api/pay/close" in called(platform)) is (version == "2")


def test_a_check_for_late_money_without_a_response_is_repeated(placed, version, api, platform, later, exceptions):
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


def test_a_deposit_that_the_platform_does_not_know_expires(placed, api, platform, later):
    order_no = placed()
    platform.orders.clear()
    later(450, times=2)
    assert api.status(order_no) == "cancelled"


@pytest.mark.parametrize(
    ("status", "money", "expected", "kind"),
    [
        ("2", "", "pending", "wrong_amount"),
        ("2", "40.00", "pending", "wrong_amount"),
        ("2", "100.00", "cancelled", None),
        ("3", "", "pending", "unknown_outcome"),
    ],
)
def test_a_refunded_or_frozen_payment_credits_nothing(
    placed, api, platform, later, balances, exceptions, status, money, expected, kind
):
    order_no = placed()
    platform.pay(order_no)
    platform.orders[order_no] |= {"status": status} | ({"refundmoney": money} if money else {})
    later(60)
    assert (api.status(order_no), balances(), exceptions().get(order_no)) == (expected, NOTHING, kind)


def test_a_deposit_at_an_unreachable_platform_is_cancelled_by_an_operator_after_a_day(
    placed, api, platform, later, flask, refuses, balances, monkeypatch
):
    order_no = placed()
    monkeypatch.setattr(platform, "answer", lambda path, request: Response("gone", 410))
    later(900, times=3)
    assert "after a day" in refuses("order", "settle", order_no, "--cancel")
    later(86_400)
    assert "nothing can be credited" in refuses("order", "settle", order_no, "--credit")
    flask("order", "settle", order_no, "--cancel")
    assert (api.status(order_no), balances()) == ("cancelled", NOTHING)


def test_an_operators_status_check_of_a_cancelled_deposit_finds_its_payment(
    placed, api, platform, later, flask, refuses, balances
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
    assert (api.status(order_no), balances()) == ("cancelled", PAID)
    platform.fails("broken")
    assert "No valid response" in refuses("order", "ask", order_no)


# --- the config


BAD = [
    ("1", {"base_url": "pay.example.com"}, "base_url"),
    ("1", {"base_url": "https://pay.example.com/?a=1"}, "base_url"),
    ("1", {"pid": "10 01"}, "pid"),
    ("1", {"key": ""}, "key"),
    ("1", {"version": "3"}, "version"),
    ("1", {"device": "fridge"}, "device"),
    ("1", {"clientip": "here"}, "clientip"),
    ("1", {"proxy": "socks5://127.0.0.1:1080"}, "proxy"),
    ("1", {"proxy": "http://127.0.0.1:99999"}, "proxy"),
    ("1", {"proxy": "https://127.0.0.1:3128"}, "proxy"),
    ("1", {"redirect": "perhaps"}, "redirect"),
    ("1", {"ask_again": "perhaps"}, "ask_again"),
    ("1", {"secret": "x"}, "secret"),
    ("2", {"private_key": ""}, "private_key"),
    ("2", {"private_key": "MIIB"}, "private_key"),
    ("2", {"platform_key": "nonsense"}, "platform_key"),
]


@pytest.mark.parametrize(("version", "wrong", "field"), BAD, ids=lambda value: repr(value)[:40])
def test_an_invalid_config_is_refused_by_field(version, wrong, field, platform, refuses, flask_json):
    before = flask_json("channel", "list")
    config = platform.config(version) | wrong
    pairs = [part for name, value in config.items() for part in ("--config", f"{name}={value}")]
    said = refuses("channel", "add", "--category", "gateway_b", "--driver", "epay", "--name", "New", *pairs)
    assert f"config: {field}: " in said
    assert KEY not in said
    assert flask_json("channel", "list") == before


def test_keys_are_accepted_from_files_and_as_the_bare_text_of_consoles(api, platform, add_channel, tmp_path):
    files = {"private_key": tmp_path / "mine.pem", "platform_key": tmp_path / "theirs.txt"}
    config = platform.config("2")
    files["private_key"].write_text(f"\n{config['private_key']}\n")
    files["platform_key"].write_text("".join(config["platform_key"].splitlines()[1:-1]))
    channel = add_channel("epay", config | {name: f"@{file}" for name, file in files.items()})
    assert api.buy(channel=channel).code == 1


def test_a_line_end_in_a_file_is_not_part_of_a_key(platform, add_channel, flask, tmp_path):
    (tmp_path / "key.txt").write_text(f"{KEY}\r\n")
    channel = add_channel("epay", platform.config("1", key=f"@{tmp_path / 'key.txt'}"))
    assert "accepts your keys" in flask("channel", "check", channel).output


def test_the_field_of_a_missing_key_file_is_named(refuses, tmp_path):
    missing = tmp_path / "nowhere.pem"
    new = ("channel", "add", "--category", "gateway_b", "--driver", "epay", "--name", "New")
    assert "the file for private_key cannot be read: No such file" in refuses(
        *new, "--config", f"private_key=@{missing}"
    )


def test_no_key_is_in_a_log_or_an_error(api, channel, platform, later, caplog, version, flask):
    caplog.set_level(logging.DEBUG)
    platform.fails("unheard", "broken", "garbage", "half")
    order_no = api.buy(channel=channel).data["order_no"]
    later(60, times=4)
    # The others are the platform's.
    ours = [record.getMessage() for record in caplog.records if record.name != "werkzeug"]
    told = "\n".join(ours) + json.dumps(api.detail(order_no=order_no).json) + flask("order", "show", order_no).output
    secret = KEY if version == "1" else platform.merchant_private.splitlines()[3]
    assert secret not in told


@pytest.mark.parametrize("changed", ["pid=1002", "base_url=https://elsewhere.example.com"])
def test_the_account_of_open_orders_is_not_replaced(changed, channel, placed, flask, refuses, later):
    flask("channel", "set", channel, "--config", "pid=1001")  # no order is open, and nothing changes
    placed()
    said = refuses("channel", "set", str(channel), "--config", changed)
    assert f"the present {changed.partition('=')[0]}. Add another channel" in said
    flask("channel", "set", channel, "--config", "device=mobile", "--name", "Renamed")
    flask("channel", "set", channel, "--config", changed, "--same-account")


def test_without_open_orders_the_account_can_be_replaced(channel, placed, platform, flask, later):
    placed()
    later(450, times=2)
    for seconds in (600, 3_600, 90_000):
        later(seconds)
    flask("channel", "set", channel, "--config", "pid=1002")


def test_a_channel_can_be_checked_before_it_takes_an_order(channel, version, platform, flask, refuses):
    assert "accepts your keys" in flask("channel", "check", channel).output
    platform.fails("broken")
    assert "502" in refuses("channel", "check", str(channel))
    wrong = ["key=another-key"] if version == "1" else [f"private_key={key_pair('somebody')[0]}"]
    flask("channel", "set", channel, "--config", *wrong)
    assert {"1": "商户密钥错误", "2": "RSA签名校验失败"}[version] in refuses("channel", "check", str(channel))


# --- the driver alone


def _payment(number):
    site = "http://shop.example/addons/paychannel"
    order_no = f"{20260501:d}{number:016d}"
    return Payment(order_no, 100 + number, "wxpay", "Order", f"{site}/notify/{order_no}", f"{site}/pay", 2_000_000_000)


def test_several_threads_use_one_driver_at_once(version, platform):
    driver, states = build("epay", platform.config(version)), {}

    def work(number):
        payment = _payment(number)
        driver.open_payment(payment)
        platform.pay(payment.order_no)
        report = driver.query(payment)
        states[number] = (report.state, report.amount)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert states == {number: (State.PAID, 100 + number) for number in range(16)}


def test_the_channels_own_proxy_is_used(version, web_server, platform):
    proxied = []

    def forward(request):
        proxied.append(request.environ["REQUEST_URI"])
        return platform._json({"code": -1, "msg": "订单号不存在"})

    web_server.expect_request("/behind/api.php").respond_with_handler(forward)
    web_server.expect_request("/behind/api/pay/query").respond_with_handler(forward)
    proxy = web_server.url_for("").rstrip("/")
    config = platform.config(version, proxy=proxy, base_url="http://platform.invalid/behind")
    assert build("epay", config).query(_payment(1)).state is State.ABSENT
    assert [address.startswith("http://platform.invalid/behind/") for address in proxied] == [True]
