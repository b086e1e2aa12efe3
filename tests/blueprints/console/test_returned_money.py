"""Returned money: the number and the day of the transfer that returned it, on one page and in the exports."""

import csv
import io

import pytest

from models.tables.operator import AuditEntry
from models.tables.order import Order, PaymentException
from models.tables.refund import Refund
from services.operations import actions
from tests.blueprints.console.acting import Desk
from tests.services import walks

TODAY = "2026-05-01"  # of the stopped clock, in China
pytestmark = pytest.mark.usefixtures("clock")


def key_of(order_no, act, ending=""):
    """The key of the order's only action of this kind."""
    every = actions.possible(Order.find(order_no))
    (key,) = [each.key for each in every if each.act == act and each.key.endswith(ending)]
    return key


def payout_sent(w):
    order_no = w.api.sell("50.00", channel=walks.MANUAL).data["order_no"]
    w.flask("order", "approve", order_no)
    w.flask("order", "paid", order_no, "--reference", f"OUT-{order_no}")
    return order_no


def paid_too_little(w):
    order_no = w.api.buy(channel=walks.MANUAL).data["order_no"]
    w.flask("order", "paid", order_no, "--amount", "90.00", "--reference", f"IN-{order_no}")
    return order_no


def refund_to_send(w):
    order_no = w.api.buy(channel=walks.MANUAL).data["order_no"]
    w.flask("order", "paid", order_no, "--reference", f"IN-{order_no}")
    w.flask("refund", "create", order_no, "40.00")
    w.later(1)
    return order_no


RETURNS = [(payout_sent, "returned", ""), (paid_too_little, "resolve", "refund"), (refund_to_send, "mark-refunded", "")]
EACH = pytest.mark.parametrize(("walk", "act", "ending"), RETURNS, ids=lambda value: getattr(value, "__name__", value))


def stored(order_no, act):
    """The stored number and day of the transfer."""
    if act == "mark-refunded":
        row = Refund.select().join(Order).where(Order.order_no == order_no).get()
        return row.channel_reference or None, row.returned_on
    row = PaymentException.select().join(Order).where(Order.order_no == order_no).get_or_none()
    return row and (row.return_reference, row.returned_on)


@EACH
def test_the_number_is_needed_and_the_day_is_today_unless_it_is_another(world, desk, walk, act, ending):
    order_no = walk(world)
    key = key_of(order_no, act, ending)
    form = desk.order(order_no).actions[key]
    assert form["date"] == TODAY
    for wrong in (
        {"reference": ""},
        {"reference": "无"},
        {"reference": "R-1", "date": "2026-05-02"},
        {"reference": "R-1", "date": "2026-04-30"},
        {"reference": "R-1", "date": "yesterday"},
    ):
        assert desk.act(order_no, key, **wrong)[0] == "bad", wrong
        assert stored(order_no, act) in (None, (None, None))
    kind, told = desk.act(order_no, key, reference=" R-1 ", date=TODAY)
    assert kind != "bad"
    assert ("The payout is recorded as returned." in told) is (act == "returned")
    assert stored(order_no, act) == ("R-1", TODAY)
    shown = desk.order(order_no).text
    assert "R-1" in shown
    assert f"Returned on {TODAY}" in shown
    done = AuditEntry.select().order_by(AuditEntry.id.desc()).get()
    assert f"R-1; {TODAY}" in done.detail


@EACH
def test_one_number_counts_once_per_channel_unless_it_is_shared(world, desk, walk, act, ending):
    walks_before = [each for each in RETURNS if each[0] is not walk]
    numbers = []
    for number, (before, its_act, its_ending) in enumerate(walks_before):
        earlier = before(world)
        numbers.append(f"R-{number}")
        assert desk.act(earlier, key_of(earlier, its_act, its_ending), reference=numbers[-1])[0] != "bad"
        numbers.append(f"{'OUT' if before is payout_sent else 'IN'}-{earlier}")
    order_no = walk(world)
    key = key_of(order_no, act, ending)
    for used in numbers:
        category, text = desk.act(order_no, key, reference=used)
        assert (category, "already recorded" in text) == ("bad", True), used
    assert desk.act(order_no, key, reference=numbers[0], shared="1")[0] != "bad"
    assert stored(order_no, act)[0] == numbers[0]


@EACH
def test_the_number_of_the_payment_itself_is_never_that_of_its_return(world, desk, walk, act, ending):
    order_no = walk(world)
    own = f"{'OUT' if walk is payout_sent else 'IN'}-{order_no}"
    for given in ({}, {"shared": "1"}):
        category, text = desk.act(order_no, key_of(order_no, act, ending), reference=own, **given)
        assert (category, "is the payment itself, not its return" in text) == ("bad", True), given
        assert stored(order_no, act) in (None, (None, None))


def test_one_transfer_returns_two_payments_of_an_order_only_if_it_is_shared(world, desk):
    order_no = world.api.buy(channel=walks.MANUAL).data["order_no"]
    for number in range(3):
        world.flask("order", "paid", order_no, "--reference", f"IN-{number}")
    every = [each.key for each in actions.possible(Order.find(order_no)) if each.act == "resolve"]
    first, second = (key for key in every if key.endswith("refund"))
    assert desk.act(order_no, first, reference="R-1")[0] == "warn"
    own, used_before = "not its return", "returned money of this order"
    for used, words in (("IN-0", own), ("IN-1", own), ("R-1", used_before)):
        category, text = desk.act(order_no, second, reference=used)
        assert (category, words in text) == ("bad", True), used
    assert desk.act(order_no, second, reference="R-1", shared="1")[0] == "good"
    assert [each.return_reference for each in PaymentException.select()] == ["R-1"] * 2


def test_a_transfer_returns_a_wrong_payment_or_a_refund_of_the_same_order(world, desk):
    order_no = refund_to_send(world)
    world.flask("order", "paid", order_no, "--reference", "IN-2")
    refund, twice = key_of(order_no, "mark-refunded"), key_of(order_no, "resolve", "refund")
    assert desk.act(order_no, twice, reference="R-1")[0] == "good"
    assert "returned money of this order" in desk.act(order_no, refund, reference="R-1")[1]
    assert desk.act(order_no, refund, reference="R-2")[0] == "good"


def test_a_payment_is_not_recorded_with_the_number_of_a_return(world, desk, refuses):
    returned, little = payout_sent(world), paid_too_little(world)
    desk.act(returned, key_of(returned, "returned"), reference="R-1")
    desk.act(little, key_of(little, "resolve", "refund"), reference="R-2")
    paying = world.api.buy(channel=walks.MANUAL).data["order_no"]
    assert returned in refuses("order", "paid", paying, "--reference", "R-1")
    assert "returned money of this order" in refuses("order", "paid", little, "--reference", "R-2")


def test_the_commands_take_the_same_number_and_day(world, flask, flask_json, refuses):
    sent, little, refunded = (walk(world) for walk, _, _ in RETURNS)
    number = Refund.get().refund_no
    commands = (
        ("order", "returned", sent, "--yes"),
        ("order", "resolve", little, "--refund"),
        ("refund", "paid", number),
    )
    for each, command in enumerate(commands):
        assert "Enter the bank's transaction ID" in refuses(*command)
        assert "in the future" in refuses(*command, "--reference", "R-9", "--date", "2026-05-02")
        flask(*command, "--reference", f"R-{each}", "--date", TODAY)
    assert "already recorded" in refuses(
        "order", "paid", world.api.buy(channel=3).data["order_no"], "--reference", "R-2"
    )
    (exception,) = flask_json("order", "show", sent)["exceptions"]
    assert (exception["return_reference"], exception["returned_on"]) == ("R-0", TODAY)
    (refund,) = flask_json("order", "show", refunded)["refunds"]
    assert (refund["channel_reference"], refund["returned_on"]) == ("R-2", TODAY)
    assert flask_json("refund", "show", number)["returned_on"] == TODAY


def test_a_number_is_only_for_money_that_the_operator_sent_back(world, refuses):
    order_no = paid_too_little(world)
    assert "sent back yourself" in refuses("order", "resolve", order_no, "--credit", "--reference", "R-1")


def test_the_channel_s_own_proof_needs_no_number(world, desk, flask):
    order_no = walks.deposit_of_no_amount(world)
    flask("order", "resolve", order_no, "--refund", "--date", TODAY)
    (exception,) = PaymentException.select()
    assert (exception.resolution, exception.return_reference, exception.returned_on) == ("refund", None, TODAY)


def test_the_export_of_exceptions_has_number_and_day(world, desk, console, export):
    order_no = paid_too_little(world)
    desk.act(order_no, key_of(order_no, "resolve", "refund"), reference="R-1")
    text = export("exceptions/export?flt_state=all", console).data.decode("utf-8-sig")
    (row,) = csv.DictReader(io.StringIO(text))
    assert (row["Return transaction ID"], row["Returned on"]) == ("R-1", TODAY)


def test_a_payout_that_came_back_is_returned_to_the_merchant_first_or_kept_as_paid_out(world, desk):
    order_no = payout_sent(world)
    category, text = desk.act(order_no, key_of(order_no, "returned"), reference="R-1")
    assert (category, "An exception needs your decision" in text) == ("warn", True)
    shown = desk.order(order_no)
    assert "Returned or reversed" in shown.text
    assert "The payout came back. Order status: Completed" in shown.text
    assert shown.html.index("Return to merchant</button>") < shown.html.index("Keep as paid out</button>")
    assert "Mark as paid out" not in shown.text


def test_money_that_was_returned_to_the_merchant_is_shown_as_returned(world, desk):
    order_no = payout_sent(world)
    assert "Returned to merchant" not in desk.order(order_no).text
    desk.act(order_no, key_of(order_no, "returned"), reference="RT20261128")
    category, text = desk.act(order_no, key_of(order_no, "resolve", "credit"))
    assert (category, text) == (
        "good",
        "¥50.15 returned to the merchant. No callback is sent. Inform the merchant yourself.",
    )
    shown = desk.order(order_no).text
    top, money = shown[: shown.index("Payee")], shown[shown.index("Merchant pays") : shown.index("Timeline")]
    assert "Completed Returned to merchant" in top
    assert "Paid out. The money came back and was returned to the merchant." in top
    assert "Returned to merchant -50.15" in money
    assert f"Exception {PaymentException.get().id} resolved: Returned to merchant" in shown
    (found,) = desk.see("search?q=RT20261128").rows  # the number of the return
    assert order_no in str(found)


def test_a_viewer_sees_the_number_of_the_return(world, desk, sign_in):
    order_no = payout_sent(world)
    desk.act(order_no, key_of(order_no, "returned"), reference="R-1")
    assert "Return transaction ID R-1" in Desk(sign_in, "viewer").order(order_no).text
