"""The sandbox: the effect of each outcome of a refund, through the driver's interface, and the simulator's choices."""

import pytest

from gateways import registry
from gateways.base import BadNotice, ChannelRefused, ChannelUnknown, Incoming, Payment, RefundRequest, State
from gateways.sandbox.records import REFUND_OUTCOMES, SIGNATURE_HEADER, books, sign
from models.tables.order import Order
from services.sandbox import simulator

WHOLE, PART = 10_000, 3_000
ORDER_NO, REFUND_NO, ANOTHER = "202605010000000000000009", "202605010000000000000001", "202605010000000000000002"
PAYMENT = Payment(ORDER_NO, WHOLE, "wxpay", "", "", "", 2_000_000_000)
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html"}

pytestmark = pytest.mark.usefixtures("demo")


@pytest.fixture
def driver_with(app):
    """`driver_with("silent")`: the driver of a channel whose refunds have this outcome, and a paid deposit."""

    def make(outcome="success"):
        books().set_outcome(ORDER_NO, WHOLE, "success")
        return registry.build("sandbox", {"secret": "a-secret-of-a-test", "refund": outcome})

    return make


def request_of(fen=PART, refund_no=REFUND_NO):
    return RefundRequest(refund_no, ORDER_NO, f"SB{ORDER_NO}", fen, WHOLE, "", "")


def requested(driver, request):
    """The state after a request, or the name of the error."""
    try:
        return driver.refund(request).state
    except (ChannelRefused, ChannelUnknown) as error:
        return type(error)


def queried(driver, request):
    try:
        return driver.query_refund(request).state
    except ChannelUnknown:
        return ChannelUnknown


# outcome; the response to the request; to status checks at once, after 4 s and after 6 s; what the payer has then
OUTCOMES = {
    "success": (State.PAID, State.PAID, State.PAID, State.PAID, PART),
    "processing": (State.OPEN, State.OPEN, State.PAID, State.PAID, PART),
    "fail": (ChannelRefused, State.FAILED, State.FAILED, State.FAILED, 0),
    "silent": (State.OPEN, State.OPEN, State.OPEN, State.OPEN, 0),
    "timeout": (ChannelUnknown, ChannelUnknown, ChannelUnknown, State.PAID, PART),
    "abnormal": (State.STUCK, State.STUCK, State.STUCK, State.STUCK, 0),
    "not_enough": (ChannelUnknown, State.ABSENT, State.ABSENT, State.ABSENT, 0),
    "late_fail": (State.PAID, State.PAID, State.PAID, State.FAILED, 0),
}


@pytest.mark.parametrize("outcome", REFUND_OUTCOMES)
def test_each_outcome_has_its_effect_on_a_refund(outcome, driver_with, ahead):
    driver, request = driver_with(outcome), request_of()
    seen = [requested(driver, request)]
    for seconds in (0, 4, 2):
        ahead(seconds)
        seen.append(queried(driver, request))
    report = driver.query(PAYMENT)
    assert (*seen, report.returned) == OUTCOMES[outcome]
    assert (report.state, report.amount) == (State.PAID, WHOLE - report.returned)


def test_an_unknown_refund_is_absent(driver_with):
    assert driver_with().query_refund(request_of()).state is State.ABSENT


@pytest.mark.parametrize("outcome", ["success", "timeout"])
def test_a_repeated_request_is_the_same_refund(outcome, driver_with):
    driver = driver_with(outcome)
    assert driver.repeats_refund(request_of())
    for _ in range(3):
        requested(driver, request_of())
    assert [(each.refund_no, each.amount) for each in books().refunds(ORDER_NO)] == [(REFUND_NO, PART)]
    assert driver.query(PAYMENT).returned == PART


def test_a_report_has_the_amount_and_the_channels_own_number(driver_with):
    report = driver_with().refund(request_of())
    assert (report.amount, report.reference, report.proven) == (PART, f"SBR{REFUND_NO}", True)


def test_the_whole_payment_and_no_more_can_be_refunded(driver_with):
    driver = driver_with()
    driver.refund(request_of())
    with pytest.raises(ChannelRefused, match="exceed"):
        driver.refund(request_of(WHOLE, ANOTHER))
    driver.refund(request_of(WHOLE - PART, ANOTHER))
    report = driver.query(PAYMENT)
    assert (report.state, report.amount, report.returned) == (State.FAILED, 0, WHOLE)


def test_a_refund_without_balance_succeeds_after_the_tester_chose_so_and_it_is_requested_again(driver_with):
    driver = driver_with("not_enough")
    requested(driver, request_of())
    books().set_refund_outcome(REFUND_NO, "success")
    assert queried(driver, request_of()) is State.ABSENT
    assert driver.refund(request_of()).state is State.PAID


# --- notices


@pytest.mark.parametrize(
    ("outcome", "state"), [("processing", State.PAID), ("abnormal", State.STUCK), ("late_fail", State.FAILED)]
)
def test_the_end_of_a_refund_has_one_notice(outcome, state, driver_with, ahead):
    driver = driver_with(outcome)
    requested(driver, request_of())
    ahead(6)
    [play] = books().untold_refunds()
    notice = driver.read_notice(driver.notice_of_refund(play))
    assert (notice.order_no, notice.report, notice.refund_no) == (ORDER_NO, None, REFUND_NO)
    assert (notice.refund.state, notice.refund.amount) == (state, PART)
    books().set_told(play)
    assert books().untold_refunds() == []


@pytest.mark.parametrize("outcome", ["success", "fail", "silent", "timeout", "not_enough"])
def test_other_outcomes_have_no_notice(outcome, driver_with, ahead):
    requested(driver_with(outcome), request_of())
    ahead(6)
    assert books().untold_refunds() == []


def test_a_notice_of_a_refund_with_another_signature_or_an_unknown_state_is_refused(driver_with):
    driver = driver_with("processing")
    driver.refund(request_of())
    notice = driver.notice_of_refund(books().find_refund(REFUND_NO))
    with pytest.raises(BadNotice, match="bad signature"):
        driver.read_notice(Incoming("POST", b"", {SIGNATURE_HEADER: sign(notice.body, "another-secret")}, notice.body))
    body = notice.body.replace(b'"open"', b'"eaten"')
    with pytest.raises(BadNotice, match="makes no sense"):
        driver.read_notice(Incoming("POST", b"", {SIGNATURE_HEADER: sign(body, "a-secret-of-a-test")}, body))


# --- the tester's choice


@pytest.fixture
def paid(api):
    """The number of a paid deposit of 100 yuan on a sandbox channel."""
    order_no = api.buy().data["order_no"]
    api.play(order_no, "success")
    return order_no


@pytest.fixture
def choose(api):
    """`choose(order_no, "silent")`: the response to this choice."""
    return lambda order_no, outcome: api.send(
        "POST", "/sandbox/refund", f"order_no={order_no}&outcome={outcome}".encode(), FORM | {"Accept": "*/*"}
    )


def refund_of(order_no, refund_no=REFUND_NO):
    """Request a refund of 30 yuan of this order, as the service would; return the simulator's record."""
    driver = simulator.driver_of(Order.find(order_no).channel)
    requested(driver, RefundRequest(refund_no, order_no, f"SB{order_no}", PART, WHOLE, "", ""))
    return books().find_refund(refund_no)


def test_a_chosen_outcome_is_that_of_the_next_refund_only(paid, choose):
    assert choose(paid, "silent").data == {"order_no": paid, "outcome": "silent"}
    assert [refund_of(paid, number).outcome for number in (REFUND_NO, ANOTHER)] == ["silent", "success"]
    assert simulator.next_refunds() == {}


def test_an_open_refund_gets_the_chosen_outcome_and_an_ended_one_keeps_its_own(paid, choose):
    choose(paid, "silent")
    refund_of(paid)
    choose(paid, "success")
    assert books().find_refund(REFUND_NO).state is State.PAID
    choose(paid, "fail")
    assert books().find_refund(REFUND_NO).state is State.PAID
    assert simulator.next_refunds() == {paid: "fail"}


def test_a_channels_refunds_have_its_outcome(paid, api, http):
    assert http("POST", "/sandbox/channel", b"channel=2&refund=abnormal", FORM).status == 303
    assert refund_of(paid).state is State.STUCK
    assert 'value="abnormal" selected' in http("GET", "/sandbox").text


def test_the_page_shows_refunds_and_chosen_outcomes_in_both_languages(paid, choose, http):
    choose(paid, "abnormal")
    assert "Next refund: Payer&#39;s account closed" in http("GET", "/sandbox").text
    refund_of(paid)
    page = http("GET", "/sandbox").text.partition('id="refunds"')[2].partition("</section>")[0]
    assert (REFUND_NO in page, "¥30.00" in page, f'value="{paid}"' in page) == (True, True, True)
    choose(paid, "success")
    page = http("GET", "/sandbox").text.partition('id="refunds"')[2].partition("</section>")[0]
    assert (REFUND_NO in page, f'value="{paid}"' in page) == (True, False)
    assert "付款人立即收到退款" in http("GET", "/sandbox", b"", {"Accept-Language": "zh"}).text


def test_a_wrong_choice_is_refused(paid, api, choose):
    withdrawal, manual = api.sell("10.00").data["order_no"], api.buy(channel=3).data["order_no"]
    codes = [choose(paid, "eaten").code, choose("1" * 24, "fail").code]
    assert [*codes, choose(manual, "fail").code, choose(withdrawal, "fail").code] == [42200, 40401, 42200, 42200]
    assert simulator.next_refunds() == {}


def test_the_job_of_planned_outcomes_sends_the_notice_of_a_refunds_end_to_the_service(paid, choose, ahead, monkeypatch):
    taken = []
    monkeypatch.setattr(simulator.kinds, "take_notice", lambda order, incoming: taken.append(order.order_no))
    choose(paid, "processing")
    refund_of(paid)
    for expected in ([], [paid], [paid]):
        simulator.play_planned()
        assert taken == expected
        ahead(4)
