"""After a restore: a refund continues under the number that its channel knows, and no money goes back twice."""

import json

import pytest

from gateways.base import ChannelUnknown, Report, State
from gateways.sandbox.records import books
from models.tables.order import Order, PaymentException
from models.tables.refund import Refund
from services.refunds import place, settle
from services.refunds.place import Wanted
from tests.backups import Backup
from tests.support import sandbox_signed
from tests.trial_service import Trial

BEFORE = 1_009_940
HOUR = 3_601


@pytest.fixture
def backup(app, instance, tmp_path):
    """`backup()` makes a backup of the present database; the channel's own records stay as they are."""
    return lambda: Backup(instance, tmp_path)


@pytest.fixture
def requests(monkeypatch):
    """The numbers of the refunds that the channel was requested to make, once for each request."""
    received, refund = [], Trial.refund

    def counted(self, request):
        received.append(request.refund_no)
        return refund(self, request)

    monkeypatch.setattr(Trial, "refund", counted)
    return received


@pytest.fixture
def sent_back():
    """`sent_back(order_no)`: what the channel has refunded of an order, in fen."""
    return lambda order_no: sum(each.amount for each in books().refunds(order_no) if each.state is State.PAID)


@pytest.fixture
def sums_only(monkeypatch, sent_back):
    """A channel that knows no numbers of refunds, only the sum for each payment. `sums_only.known = False` hides it."""

    class Sums:
        known = True

    def refunded_sum(self, request):
        return sent_back(request.order_no) if Sums.known else None

    def query_refund(self, request):
        now, before = sent_back(request.order_no), request.refunded_before
        if now == (before or 0):
            return Report(State.ABSENT)
        if before is not None and now == before + request.amount:
            return Report(State.PAID, request.amount)
        raise ChannelUnknown("the sum does not tell")

    monkeypatch.setattr(Trial, "refunded_sum", refunded_sum)
    monkeypatch.setattr(Trial, "query_refund", query_refund)
    monkeypatch.setattr(Trial, "repeats_refund", lambda self, request: False)
    return Sums


def kinds_open():
    return [each.kind for each in PaymentException.select().where(PaymentException.resolution.is_null())]


def committed(order_no, amount=None):
    """Commit a refund as a request does before the channel is called; return its number."""
    return place.place(Order.find(order_no), Wanted(amount, "merchant", "service")).refund_no


def test_a_refund_that_was_sent_after_the_backup_is_found_while_paused(
    paid, requests, backup, later, state, flask, balances
):
    refund_no = committed(paid, 4_000)
    saved = backup()
    later(1)
    assert (requests, state(refund_no)) == ([refund_no], "completed")
    saved.restore()
    assert (state(refund_no), balances()) == ("pending", (BEFORE - 4_000, 4_000))
    later(301)
    assert (requests, state(refund_no), balances()) == ([refund_no], "completed", (BEFORE - 4_000, 0))
    flask("db", "resume")
    later(HOUR, 3)
    assert (requests, kinds_open()) == ([refund_no], [])


def test_a_refund_that_the_channel_accepted_before_the_backup_is_found_while_paused(
    paid, refund, plays, requests, backup, later, state, flask, balances
):
    plays("silent")
    refund_no = refund(paid, "40.00").data["refund_no"]
    saved = backup()
    books().set_refund_outcome(refund_no, "success")
    later(301)
    assert state(refund_no) == "completed"
    saved.restore()
    assert state(refund_no) == "confirmed"
    later(301)
    assert (requests, state(refund_no), balances()) == ([refund_no], "completed", (BEFORE - 4_000, 0))
    flask("db", "resume")
    later(HOUR, 3)
    assert (requests, kinds_open()) == ([refund_no], [])


def test_a_refund_that_failed_after_the_backup_returns_its_hold_while_paused(
    paid, requests, plays, backup, later, state, balances
):
    plays("fail")
    refund_no = committed(paid)
    saved = backup()
    later(1)
    saved.restore()
    later(301)
    assert (requests, state(refund_no), balances()) == ([refund_no], "cancelled", (BEFORE, 0))


def test_an_unsent_refund_waits_until_it_is_resumed(paid, requests, backup, later, state, flask, sent_back):
    refund_no = committed(paid)
    backup().restore()
    later(301, 3)
    assert (requests, state(refund_no)) == ([], "pending")
    flask("db", "resume")
    later(301)
    assert (requests, state(refund_no), sent_back(paid)) == ([refund_no], "completed", 10_000)


@pytest.mark.parametrize("amount", ["40.00", "100.00"])
@pytest.mark.parametrize("resumed", [False, True])
def test_a_repeated_request_for_a_refund_that_the_backup_lacks_is_the_same_refund_at_the_channel(
    api, paid, refund, backup, later, state, flask, balances, sent_back, amount, resumed
):
    saved = backup()
    refund_no = refund(paid, amount, "R-1").data["refund_no"]
    fen = sent_back(paid)
    saved.restore()
    assert (api.call("refundQueryDetail", {"merchant_refund_no": "R-1"}).code, balances()) == (40405, (BEFORE, 0))
    if resumed:
        flask("db", "resume")
    assert refund(paid, amount, "R-1").data["refund_no"] == refund_no
    later(301)
    assert (state(refund_no), balances(), sent_back(paid)) == ("completed", (BEFORE - fen, 0), fen)
    if not resumed:
        flask("db", "resume")
    later(HOUR, 3)
    assert (sent_back(paid), kinds_open()) == (fen, [])


def test_a_refused_refund_that_the_backup_lacks_is_refused_again(
    paid, refund, plays, backup, state, flask, balances, sent_back
):
    plays("fail")
    saved = backup()
    refund_no = refund(paid, "40.00", "R-1").data["refund_no"]
    saved.restore()
    flask("db", "resume")
    plays("success")
    again = refund(paid, "40.00", "R-1")
    assert (again.code, again.data["refund_no"]) == (50201, refund_no)
    assert (state(refund_no), balances(), sent_back(paid)) == ("cancelled", (BEFORE, 0), 0)


def test_another_amount_under_the_number_of_a_lost_refund_waits_for_an_operator(
    paid, refund, backup, later, state, flask, sent_back
):
    saved = backup()
    refund_no = refund(paid, "40.00", "R-1").data["refund_no"]
    saved.restore()
    flask("db", "resume")
    refund(paid, "50.00", "R-1")
    later(301)
    assert (sent_back(paid), state(refund_no), kinds_open()) == (4_000, "confirmed", ["refund_conflict"])


def test_the_result_of_a_lost_refund_has_the_same_webhook_id(paid, refund, shop, due, backup, flask):
    saved = backup()
    refund(paid, "40.00", "R-1")
    due.callbacks()
    saved.restore()
    flask("db", "resume")
    refund(paid, "40.00", "R-1")
    due.callbacks()
    results = [each for each in shop.got if each.event["type"] == "refund.completed"]
    assert len(results) == 2
    assert len({each.webhook_id for each in results}) == 1


def test_merchants_with_the_same_number_have_different_refunds(paid):
    mine, another = Order.find(paid), Order.find(paid)
    another.merchant = 2
    numbers = {
        place.merchants_refund_no(order.merchant_id, number) for order in (mine, another) for number in ("R-1", "R-2")
    }
    assert len(numbers) == 4
    assert all(len(number) == 24 and number.isdecimal() for number in numbers)
    assert place.merchants_refund_no(mine.merchant_id, "R-1") in numbers


def test_a_lost_refund_that_its_notice_reported_first_is_deducted_once(
    paid, refund, http, requests, backup, later, flask, sent_back
):
    """The notice names a number that the restored database does not know."""
    saved = backup()
    refund_no = refund(paid, "40.00", "R-1").data["refund_no"]
    saved.restore()
    said = {"order_no": paid, "refund_no": refund_no, "state": "paid", "amount": 4_000, "reference": "CH-1"}
    body, headers = sandbox_signed(json.dumps(said).encode())
    http("POST", f"/addons/paychannel/notify/{paid}", body, headers)
    assert kinds_open() == ["reversed"]
    flask("db", "resume")
    assert refund(paid, "40.00", "R-1").data["reason"] == "exception"
    flask("order", "resolve", paid, "--refund")
    assert refund(paid, "40.00", "R-1").data["reason"] == "exception"
    later(HOUR, 3)
    assert (requests, sent_back(paid), Refund.select().count()) == ([refund_no], 4_000, 0)


def test_a_notice_that_waited_for_the_placement_of_its_refund_opens_no_exception(paid, refund):
    data = refund(paid, "40.00").data
    report = Report(State.PAID, 4_000, "CH-1")
    assert settle.take_unknown(Order.find(paid), data["refund_no"], report, "") is False
    assert kinds_open() == []


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("resumed", [False, True])
def test_a_lost_refund_of_a_channel_without_numbers_waits_for_an_operator(
    paid, refund, requests, sums_only, backup, later, state, flask, balances, known, resumed
):
    saved = backup()
    refund_no = refund(paid, "40.00", "R-1").data["refund_no"]
    saved.restore()
    sums_only.known = known
    if resumed:
        flask("db", "resume")
    refund(paid, "40.00", "R-1")
    later(301)
    if not resumed:
        assert (state(refund_no), kinds_open()) == ("pending", [])
        flask("db", "resume")
        later(301)
    assert (requests, state(refund_no), kinds_open()) == ([refund_no], "confirmed", ["refund_abnormal"])
    later(HOUR, 3)
    flask("order", "resolve", paid, "--complete")
    assert (requests, state(refund_no), balances()) == ([refund_no], "completed", (BEFORE - 4_000, 0))


def test_recorded_refunds_do_not_stop_the_next_one_at_a_channel_without_numbers(
    paid, refund, requests, sums_only, backup, later, state, flask
):
    first = refund(paid, "40.00").data["refund_no"]
    backup().restore()
    flask("db", "resume")
    second = refund(paid, "60.00").data["refund_no"]
    later(61, 2)
    assert (requests, state(first), state(second)) == ([first, second], "completed", "completed")


def test_an_operators_refund_that_is_repeated_after_a_restore_is_the_same_at_the_channel(
    paid, requests, backup, later, state, flask, balances
):
    saved = backup()
    first = committed(paid, 4_000)
    later(1)
    saved.restore()
    flask("db", "resume")
    again = committed(paid, 4_000)
    later(1)
    assert (again, state(first), requests) == (first, "completed", [first, first])
    assert len(books().refunds(paid)) == 1
    another = committed(paid, 4_000)
    assert another != first


def test_money_that_is_sent_back_again_after_a_restore_goes_back_once(api, requests, backup, later, state, flask):
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 15_000)
    saved = backup()
    for _ in range(2):
        flask("order", "resolve", order_no, "--refund")
        later(1)
        if saved:
            saved.restore()
            flask("db", "resume")
            saved = None
    assert len(set(requests)) == 1
    assert [each.amount for each in books().refunds(order_no)] == [15_000]
