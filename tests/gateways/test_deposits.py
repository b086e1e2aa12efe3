"""What every driver guarantees for deposits, against its upstream on this machine (`adapters.py` has the differences).

A driver's own file (`test_epay.py`, ...) tests what only its protocol has.
"""

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from gateways import registry
from gateways.base import Incoming, Payment, State
from services.jobs import sweep
from tests.gateways.adapters import (
    DRIVERS,
    REMOTE,
    Alipay,
    AlipayByCertificates,
    Epay1,
    Epay2,
    Trial,
    Wechat,
)
from tests.support import free_port, heard, sandbox_signed, through_http

START = 1_000_000
UNPAID, PAID = (START, 0), (START + 9_940, 0)
EXPIRY = 900
FAULTS = ("slow", "unheard", "lost", "half", "garbage", "broken")
CODE = 'class="qr"'  # in the payment page


def of(*adapters):
    """Run the test for these adapters only."""
    return pytest.mark.parametrize("adapter", adapters, indirect=True, ids=lambda adapter: adapter.__name__)


@pytest.fixture(params=DRIVERS, ids=lambda adapter: adapter.__name__)
def adapter(request, web_server):
    return request.param(web_server)


@pytest.fixture
def channel(adapter, add_channel):
    return add_channel(adapter.driver, adapter.config())


@pytest.fixture
def create(api, adapter, channel):
    """`create()` creates a deposit of 100 yuan on the channel; returns the response."""
    return lambda: api.buy(channel=channel, paychannel_paymethod=adapter.method)


@pytest.fixture
def buy(create):
    """`buy()`: the number of a new deposit."""
    return lambda: create().data["order_no"]


@pytest.fixture
def order_no(buy):
    return buy()


@pytest.fixture
def send(api):
    """`send(notice, order_no)` sends a notice to the address of an order; returns status and text of the response."""

    def to(notice, order_no):
        answer = notice.to(api.send, order_no)
        return answer.status, answer.text

    return to


# --- payments


@of(*DRIVERS, AlipayByCertificates)
def test_a_deposit_is_shown_paid_and_credited_with_the_channels_reference(
    adapter, order_no, send, shown, steps, order_details, outcome
):
    assert CODE in shown(order_no)
    assert "No real money" not in shown(order_no)
    adapter.pay(order_no, 10_000)
    assert send(adapter.notice(order_no), order_no) == adapter.accepts
    assert outcome(order_no) == ("completed", PAID, {})
    assert order_details(order_no)["channel_reference"] == adapter.reference(order_no)
    assert steps(order_no)[1:] == [
        ("channel", "pending", "paid"),
        ("channel", "paid", "confirmed"),
        ("service", "confirmed", "completed"),
    ]


def test_a_repeated_notice_is_accepted_and_credits_once(adapter, order_no, send, later, balances, exceptions):
    adapter.pay(order_no, 10_000)
    notice = adapter.notice(order_no)
    for repeated in (notice, notice, adapter.notice(order_no)):
        assert send(repeated, order_no) == adapter.accepts
    later(60)
    assert (balances(), exceptions()) == (PAID, {})


@pytest.mark.parametrize("seconds", [60, EXPIRY], ids=["a minute later", "at its expiry"])
def test_a_lost_notice_is_found_by_a_status_check(seconds, adapter, order_no, later, order_details, outcome):
    adapter.pay(order_no, 10_000)
    later(seconds)
    assert outcome(order_no) == ("completed", PAID, {})
    assert order_details(order_no)["channel_reference"] == adapter.reference(order_no)


@pytest.mark.parametrize("fen", [9_999, 1_000_000])
def test_another_amount_credits_nothing_and_needs_an_operator(fen, adapter, order_no, send, outcome):
    adapter.pay(order_no, fen)
    assert send(adapter.notice(order_no), order_no) == adapter.accepts
    assert outcome(order_no) == ("pending", UNPAID, {order_no: "wrong_amount"})


@of(Epay1, Wechat, Alipay)
def test_a_withdrawal_is_refused_by_a_channel_without_payouts(adapter, channel, api, balances):
    refused = api.sell(channel=channel, paychannel_paymethod=adapter.method)
    assert (refused.code, refused.data) == (42200, {"paychannel_paymethod": ["This channel pays out by: -."]})
    assert (balances(), adapter.platform.calls) == (UNPAID, [])


# --- notices


def test_notices_that_are_not_genuine_are_refused_and_change_nothing(adapter, buy, send, order_details, balances):
    for label, (make, reason) in adapter.refused_notices.items():
        order_no, state = buy(), dict(vars(adapter.platform))
        adapter.pay(order_no, 10_000)
        before = order_details(order_no)
        assert send(make(adapter, order_no), order_no) == adapter.refuses, label
        vars(adapter.platform).update(state)
        after, reasons = heard(order_details(order_no))
        assert (after, len(reasons), balances()) == (before, 1, UNPAID), label
        assert reasons[0].startswith(reason), label


def test_a_genuine_notice_counts_for_the_order_that_it_names_only(adapter, buy, api, send, order_details, outcome):
    paid, unpaid = buy(), buy()
    adapter.pay(paid, 10_000)
    before = order_details(unpaid)
    assert send(adapter.notice(paid), unpaid) == adapter.refuses
    assert heard(order_details(unpaid)) == (before, ["it is about another order"])
    assert outcome(paid) == ("pending", UNPAID, {})
    assert send(adapter.notice(paid), paid) == adapter.accepts
    assert api.status(paid) == "completed"


@pytest.fixture
def checks_notices(adapter, add_channel, api):
    """`checks_notices()`: a new deposit on a channel with `ask_again`."""
    channel = add_channel(adapter.driver, adapter.config(ask_again="true"))
    return lambda: api.buy(channel=channel, paychannel_paymethod=adapter.method).data["order_no"]


@of(*REMOTE)
def test_with_ask_again_a_notice_alone_credits_nothing(adapter, checks_notices, api, send, due, balances):
    honest, forged = checks_notices(), checks_notices()
    adapter.pay(honest, 10_000)
    for order_no, notice in ((honest, adapter.notice(honest)), (forged, adapter.false_notice(forged))):
        assert send(notice, order_no) == adapter.accepts
    assert balances() == UNPAID
    due.orders()
    assert (api.status(honest), api.status(forged), balances()) == ("completed", "pending", PAID)


@of(*REMOTE)
def test_with_ask_again_a_notice_whose_check_fails_must_be_repeated(
    adapter, checks_notices, send, later, order_details
):
    order_no = checks_notices()
    adapter.pay(order_no, 10_000)
    later(60)
    before = order_details(order_no)
    adapter.platform.fails("broken")
    assert send(adapter.notice(order_no), order_no) == adapter.refuses
    assert heard(order_details(order_no)) == (before, ["the channel, asked about it, gave no answer"])


def test_a_notice_without_effect_changes_nothing(api, order_details):
    order_no = api.buy().data["order_no"]
    before = order_details(order_no)
    for state in ("open", "absent"):
        assert api.notice(order_no, 10_000, state=state).text == "success"
    assert order_details(order_no) == before
    missing = api.notice("1" * 24, 10_000)
    assert (missing.status, missing.code) == (404, 40401)


def test_refused_notices_do_not_fill_the_history(api, order_details):
    order_no = api.buy().data["order_no"]
    for number in range(15):
        body = json.dumps({"order_no": order_no, f"made up {number}": 1}).encode()
        for headers in (sandbox_signed(body)[1], {}):
            api.send("POST", f"/addons/paychannel/notify/{order_no}", body, headers)
    _, refused = heard(order_details(order_no))
    assert len(refused) == 10
    assert refused.count("bad signature") == 1


@pytest.mark.parametrize("how", ["twice", "backwards", "at_once"])
@of(Epay1)
def test_notices_over_real_http_count_once_in_any_order(how, adapter, service):
    pairs = [part for name, value in adapter.config().items() for part in ("--config", f"{name}={value}")]
    service.flask("channel", "add", "--category", "gateway_b", "--driver", "epay", "--name", "Epay", *pairs)
    service.flask("channel", "link", "5", "demo")
    orders = [service.api.buy(channel=5).data["order_no"] for _ in range(4)]
    for order_no in orders:
        adapter.pay(order_no, 10_000)
    notices = [(order_no, adapter.notice(order_no)) for order_no in orders]
    answers = adapter.platform.deliver(notices, through_http(service.url), how)
    assert {answer.text for answer in answers} == {"success"}
    balance = json.loads(service.flask("ledger", "balances", "--json").stdout)["demo"]["available"]
    assert balance == START + 4 * 9_940


# --- responses


@of(*REMOTE)
def test_deposits_whose_opening_failed_are_opened_once_by_the_sweep_and_paid(
    adapter, buy, impatient, api, send, shown, later, balances, exceptions
):
    adapter.platform.fails(*FAULTS)
    with impatient():
        orders = {buy(): fault for fault in FAULTS}
    assert exceptions() == dict.fromkeys(orders, "unknown_outcome")
    assert {api.status(order_no) for order_no in orders} == {"pending"}
    assert all("Preparing your payment" in shown(order_no) for order_no in orders)
    later(1)
    for order_no, fault in orders.items():
        assert CODE in shown(order_no), fault
        adapter.pay(order_no, 10_000)
        send(adapter.notice(order_no), order_no)
        assert api.status(order_no) == "completed", fault
    assert (balances(), exceptions()) == ((START + len(FAULTS) * 9_940, 0), {})


@of(*REMOTE)
def test_status_checks_without_a_response_are_repeated(adapter, buy, impatient, api, later, balances, exceptions):
    orders = [buy() for _ in FAULTS]
    for order_no in orders:
        adapter.pay(order_no, 10_000)
    adapter.platform.fails(*FAULTS)
    with impatient():
        later(60)
    assert (balances(), exceptions()) == (UNPAID, dict.fromkeys(orders, "unknown_outcome"))
    assert {api.status(order_no) for order_no in orders} == {"pending"}
    later(120)
    assert (balances(), exceptions()) == ((START + len(FAULTS) * 9_940, 0), {})


@of(*REMOTE)
def test_an_explicit_refusal_cancels_the_order_and_records_the_reason(adapter, create, flask_json, order_details):
    for label, (arrange, why) in adapter.refusals.items():
        with pytest.MonkeyPatch.context() as patch:
            arrange(adapter, patch)
            refused = create()
        assert (refused.status, refused.code) == (502, 50201), label
        newest = flask_json("order", "list")[0]
        assert newest["status"] == "cancelled", label
        assert order_details(newest["order_no"])["history"][-1]["why"] == f"Rejected: {why}", label


@of(*REMOTE)
def test_an_unclear_response_is_no_refusal_and_the_order_is_opened_later(
    adapter, buy, api, later, shown, order_details
):
    orders = {}
    for label, arrange in adapter.unclear.items():
        with pytest.MonkeyPatch.context() as patch:
            arrange(adapter, patch)
            orders[label] = order_no = buy()
        page = shown(order_no)
        assert (api.status(order_no), CODE in page, "javascript:" in page) == ("pending", False, False), label
        [exception] = order_details(order_no)["exceptions"]
        assert exception["kind"] == "unknown_outcome", label
        assert not exception["detail"].startswith("the driver failed"), f"the driver did not expect {label}"
    later(1)
    later(60)
    assert [label for label, order_no in orders.items() if CODE not in shown(order_no)] == []


@of(*REMOTE)
def test_reports_with_other_facts_and_false_responses_credit_nothing(adapter, buy, later, balances, exceptions):
    orders = [buy() for _ in adapter.odd_reports]
    for order_no, change in zip(orders, adapter.odd_reports.values(), strict=True):
        adapter.pay(order_no, 10_000)
        change(adapter, order_no)
    later(60)
    assert (balances(), exceptions()) == (UNPAID, dict.fromkeys(orders, "unknown_outcome"))
    for label, change in adapter.false_responses.items():
        orders.append(buy())
        adapter.pay(orders[-1], 10_000)
        change(adapter)
        later(60)
        assert (balances(), exceptions()) == (UNPAID, dict.fromkeys(orders, "unknown_outcome")), label


@of(Trial, Wechat, Alipay)
def test_an_unpaid_deposit_has_the_state_that_the_channel_reports(adapter, buy, api, later, balances):
    orders = {state: buy() for state in adapter.states}
    for state, (change, _) in adapter.states.items():
        change(adapter, orders[state])
    later(60)
    assert {state: api.status(orders[state]) for state in orders} == {
        state: expected for state, (_, expected) in adapter.states.items()
    }
    assert balances() == UNPAID


# --- the end of a deposit


@of(*REMOTE)
def test_an_unpaid_deposit_is_closed_there_and_cancelled_here(adapter, order_no, api, later):
    adapter.begin(order_no)
    later(EXPIRY // 2, times=2)
    assert (api.status(order_no), adapter.is_closed(order_no)) == ("cancelled", adapter.closes)
    asked = len(adapter.platform.calls)
    for seconds in (600, 600, 3_600, 3_600, 90_000, 90_000):
        later(seconds)
    # A closed payment can't be paid any more. Any other is checked for late money.
    assert len(adapter.platform.calls) - asked == (0 if adapter.closes else len(sweep.LATE))


@of(Epay1, Epay2, Alipay)
def test_late_money_for_a_payment_that_was_not_closed_is_found_without_a_notice(adapter, order_no, api, later, outcome):
    """Some platforms can't close a payment; Alipay can't close one whose code was not scanned."""
    adapter.platform.can_close = False
    later(EXPIRY // 2, times=2)
    assert api.status(order_no) == "cancelled"
    adapter.pay(order_no, 10_000)
    later(sweep.LATE[0] + 1)
    assert outcome(order_no) == ("cancelled", UNPAID, {order_no: "late_payment"})


@of(Wechat, Alipay)
def test_a_deposit_that_is_paid_while_it_is_closed_is_credited(
    adapter, order_no, api, later, exceptions, monkeypatch, outcome
):
    close = adapter.platform._close
    monkeypatch.setattr(adapter.platform, "_close", lambda asked: adapter.pay(order_no, 10_000) or close(asked))
    adapter.begin(order_no)
    later(EXPIRY)
    assert (api.status(order_no), exceptions()) == ("pending", {})
    later(300)
    assert outcome(order_no) == ("completed", PAID, {})


@of(Wechat, Alipay)
def test_closings_without_a_response_are_repeated(adapter, buy, impatient, api, later):
    orders = [buy() for _ in FAULTS]
    for order_no, fault in zip(orders, FAULTS, strict=True):
        adapter.begin(order_no)
        adapter.platform.fails("", fault)  # the status check has a response
    with impatient():
        later(EXPIRY)
    assert {api.status(order_no) for order_no in orders} == {"pending"}
    later(300)
    assert {(api.status(order_no), adapter.is_closed(order_no)) for order_no in orders} == {("cancelled", True)}


# --- the channel


@of(Wechat, Alipay)
def test_the_upstreams_own_address_is_the_default(adapter):
    given = adapter.config()
    del given["base_url"]
    assert registry.DRIVERS[adapter.driver].config_schema().load(given)["base_url"] == adapter.own_address


def _pairs(config):
    return [part for name, value in config.items() if value != "-" for part in ("--config", f"{name}={value}")]


@of(*REMOTE, AlipayByCertificates)
def test_mistakes_in_a_config_are_named_by_field(adapter, refuses, flask_json):
    before = flask_json("channel", "list")
    new = ("channel", "add", "--category", "gateway_b", "--driver", adapter.driver, "--name", "New")
    for label, (wrong, fields) in adapter.mistakes.items():
        message = refuses(*new, *_pairs(adapter.config() | wrong))
        named = [part.partition(": ")[0] for part in message.partition("config: ")[2].split("; ")]
        assert sorted(named) == sorted(fields), label
        assert not [secret for secret in adapter.secrets if secret in message], label
    assert flask_json("channel", "list") == before


@of(*REMOTE, AlipayByCertificates)
def test_keys_are_accepted_from_files_and_as_the_bare_text_of_consoles(adapter, add_channel, flask, tmp_path):
    config = adapter.config()
    for name, value in config.items():
        bare = "".join(value.splitlines()[1:-1]) if "KEY-----" in value else value
        (tmp_path / name).write_text(f"{bare}\n")
        config[name] = f"@{tmp_path / name}"
    channel = add_channel(adapter.driver, config)
    assert "accepts your keys" in flask("channel", "check", channel).output
    assert not [secret for secret in adapter.secrets if secret in flask("channel", "list", "--json").output]


@of(*REMOTE)
def test_a_check_of_the_channel_tests_connection_keys_and_clock(adapter, channel, checked, flask, refuses):
    found = checked()
    assert (found["keys"][0], found["clock"][0]) == ("ok", "ok")
    adapter.platform.fails("broken")
    assert "502" in refuses("channel", "check", str(channel))
    wrong, reason = adapter.wrong_key
    flask("channel", "set", channel, *_pairs(wrong))
    assert reason in refuses("channel", "check", str(channel))


@of(*REMOTE)
def test_keys_are_in_no_log_and_no_response(adapter, create, api, send, later, flask, caplog):
    caplog.set_level(logging.DEBUG)
    adapter.platform.fails(*FAULTS[1:], "")
    told = [create() for _ in FAULTS]
    orders = [answer.data["order_no"] for answer in told]
    adapter.pay(orders[-1], 10_000)
    told += [send(next(iter(adapter.refused_notices.values()))[0](adapter, orders[-1]), orders[-1])]
    adapter.platform.fails(*FAULTS[1:], "")
    later(60, times=2)
    told += [api.detail(order_no=order_no).text for order_no in orders]
    told += [flask("order", "show", order_no).output for order_no in orders]
    # The others are the upstream's.
    logged = [record.getMessage() for record in caplog.records if record.name != "werkzeug"]
    assert orders[-1] in "".join(logged)
    assert not [secret for secret in adapter.secrets if secret in f"{told}{logged}{[each.text for each in told[:6]]}"]


@of(*REMOTE)
def test_the_channels_own_proxy_is_used(adapter, api, add_channel, later):
    closed, server = f"127.0.0.1:{free_port()}", adapter.server.url_for("/").rstrip("/")
    config = adapter.config(proxy=server)
    config["base_url"] = config["base_url"].replace(server, f"http://{closed}")
    channel = add_channel(adapter.driver, config)
    order_no = api.buy(channel=channel, paychannel_paymethod=adapter.method).data["order_no"]
    adapter.pay(order_no, 10_000)
    later(60)
    assert (api.status(order_no), {call.host for call in adapter.platform.calls}) == ("completed", {closed})


@pytest.mark.usefixtures("app")
@of(*REMOTE, AlipayByCertificates)
def test_threads_that_share_a_driver_get_their_own_responses(adapter):
    driver, together = registry.build(adapter.driver, adapter.config()), Barrier(8)

    def life(number):
        payment = Payment(
            f"20260501{number:016d}", 100 + number, adapter.method, f"Order {number}",
            "http://shop.example/notify", "http://shop.example/pay", 2_000_000_000,
        )  # fmt: skip
        together.wait()
        opened = driver.open_payment(payment)
        adapter.pay(payment.order_no, payment.amount)
        report, sent = driver.query(payment), adapter.notice(payment.order_no)
        notice = driver.read_notice(Incoming(sent.method, sent.query.encode(), sent.headers, sent.body))
        return payment, opened.qr, report, notice

    with ThreadPoolExecutor(8) as pool:
        lives = list(pool.map(life, range(8)))
    assert len({code for _, code, _, _ in lives}) == 8
    for payment, _, report, notice in lives:
        assert (report.state, report.amount) == (State.PAID, payment.amount)
        assert report.reference == adapter.reference(payment.order_no)
        assert (notice.order_no, notice.report.amount) == (payment.order_no, payment.amount)


@of(*REMOTE)
def test_a_payment_can_be_opened_on_view(adapter, add_channel, api, http, shown):
    channel = add_channel(adapter.driver, adapter.config(open_on_view="true"))
    order_no = api.buy(channel=channel, paychannel_paymethod=adapter.method).data["order_no"]
    assert 'id="open"' in shown(order_no)
    assert adapter.platform.calls == []
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    http("POST", "/addons/paychannel/pay/open", f"order_no={order_no}".encode(), form)
    assert CODE in shown(order_no)
