"""Names, certificates and cards of ended orders are erased after some days; the ledger does not change."""

import json

import pytest

from models.db.base import database
from models.tables.maintenance import ErasureDelayed
from models.tables.operator import AuditEntry
from models.tables.order import InternalNote, Order
from models.tables.outbox import Callback
from models.tables.refund import Refund
from services.console import privacy
from tests.all_interfaces import GATEWAY_A
from tests.refunds import allow, request
from tests.support import CARD, PERSON, DemoService, completed, until

DAY = 86_400
NAME = "李四光"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def paid_by_name(api):
    """`paid_by_name()`: a completed deposit of a named customer; its number."""

    def place(**more):
        order_no = api.buy(customer_name=NAME, **more).data["order_no"]
        api.play(order_no, "success")
        return order_no

    return place


@pytest.fixture
def paid_out(api, flask):
    """`paid_out()`: a completed withdrawal to a card of its own; its number."""

    def place():
        order_no = api.sell("1.00", **GATEWAY_A).data["order_no"]
        flask("order", "accept", order_no)
        api.play(order_no, "success")
        return order_no

    return place


@pytest.fixture
def delivered(flask, due, shop, later):
    """`delivered()`: all callbacks are delivered, and channels are checked for the last time."""

    def wait():
        due()
        later(100_000, times=3)
        due()

    return wait


@pytest.fixture
def revealed(flask_json):
    """`revealed(order_no)`: the stored personal data of an order."""

    def read(order_no):
        found = flask_json("order", "show", order_no, "--reveal")
        return found.get("account", found.get("customer_name"))

    return read


def test_personal_data_and_nothing_else_is_erased_some_days_after_an_order_ended(
    paid_by_name, paid_out, delivered, revealed, ahead, rows, api, balances
):
    orders = deposit, withdrawal = paid_by_name(), paid_out()
    delivered()
    assert privacy.run(30) == 0
    assert (revealed(deposit), revealed(withdrawal)["card_number"]) == (NAME, CARD["card_no"])
    ahead(30 * DAY)
    before, seen, had = rows(), [api.detail(order_no=each).data for each in orders], balances()
    assert (privacy.run(30), privacy.run(30)) == (2, 0)
    assert revealed(deposit) == ""
    assert set(revealed(withdrawal).values()) == {""}
    after = rows()
    changed = {name for name in before if before[name] != after[name]}
    assert changed - {"Nonce"} == {"Order", "PayoutAccount", "ErasureProgress", "AuditEntry"}
    assert [api.detail(order_no=each).data for each in orders] == seen
    assert balances() == had
    stored = str({name: found for name, found in after.items() if name != "PayoutAccount"})
    assert not [text for text in (NAME, CARD["card_no"], PERSON["cert_no"], PERSON["mobile_no"]) if text in stored]
    sealed = database.execute_sql("SELECT COUNT(*) FROM receiving_account WHERE NOT on_file AND details <> ''")
    assert sealed.fetchone()[0] == 0


def test_each_batch_is_audited_without_personal_data(paid_by_name, delivered, ahead, monkeypatch):
    orders = [paid_by_name() for _ in range(5)]
    delivered()
    ahead(30 * DAY)
    monkeypatch.setattr(privacy, "BATCH", 2)
    monkeypatch.setattr(privacy, "LONGEST", 600)
    assert privacy.run(30) == 5
    entries = list(AuditEntry.select().order_by(AuditEntry.id))
    assert [(each.who, each.action, each.about) for each in entries] == [("erasure job", "erase", "orders")] * 3
    assert [each.key for each in entries] == [orders[1], orders[3], orders[4]]
    assert [each.detail.split()[0] for each in entries] == ["2", "2", "1"]


def test_orders_that_have_not_ended_wait_until_they_have(api, delivered, paid_by_name, ahead, flask, revealed, due):
    claimed = api.buy(channel=3, customer_name=NAME).data["order_no"]
    api.send("POST", "/addons/paychannel/pay/paid", f"order_no={claimed}".encode(), FORM)
    questioned = api.buy(customer_name=NAME).data["order_no"]
    api.notice(questioned, 9_900)
    ended = paid_by_name()
    delivered()
    ahead(30 * DAY)
    assert privacy.run(30) == 1
    assert (revealed(claimed), revealed(questioned), revealed(ended)) == (NAME, NAME, "")
    flask("order", "paid", claimed, "--reference", "R-9")
    delivered()
    ahead(2 * DAY)
    assert privacy.run(30) == 0
    assert revealed(claimed) == NAME
    ahead(29 * DAY)
    assert privacy.run(30) == 1
    assert (revealed(claimed), revealed(questioned)) == ("", NAME)
    assert ErasureDelayed.select().count() == 1


def test_an_undelivered_callback_keeps_the_data(paid_by_name, flask, shop, due, revealed, ahead, later):
    order_no = paid_by_name()
    later(100_000, times=3)
    ahead(30 * DAY)
    assert privacy.run(30) == 0
    due()
    ahead(2 * DAY)
    assert privacy.run(30) == 1
    assert revealed(order_no) == ""


def test_a_status_check_that_is_still_to_come_keeps_the_data(api, flask, due, delivered, revealed, ahead):
    order_no = api.sell("1.00", **GATEWAY_A).data["order_no"]
    flask("order", "accept", order_no)
    flask("order", "reject", order_no, "--reason", "no")  # the channel may have it after all
    due.callbacks()
    ahead(30 * DAY)
    assert privacy.run(30) == 0
    delivered()
    ahead(2 * DAY)
    assert privacy.run(30) == 1
    assert set(revealed(order_no).values()) == {""}


def test_the_account_on_file_stays(api, flask, delivered, ahead, revealed):
    order_no = api.sell("1.00", channel=2).data["order_no"]
    flask("order", "accept", order_no)
    api.play(order_no, "success")
    delivered()
    ahead(30 * DAY)
    assert privacy.run(30) == 0
    assert revealed(order_no)["card_number"]
    assert api.sell("1.00", channel=2).code == 1


def test_a_safe_retry_finds_an_erased_order(api, flask, due, shop):
    header = {"Idempotency-Key": "again"}
    first = api.sell("1.00", headers=header, **GATEWAY_A).data
    flask("order", "reject", first["order_no"], "--reason", "no")
    due()
    Order.update(due_at=None).execute()
    flask("privacy", "erase", first["order_no"], "--yes")
    again = api.sell("1.00", headers=header, **GATEWAY_A)
    assert (again.code, again.data["order_no"]) == (1, first["order_no"])
    assert set(again.data["payment_method_snapshot"].values()) == {""}
    assert again.data["customer_payment_method"]["full_info"] == ""


def test_a_running_service_erases_by_its_setting(slow, demo, instance):
    service = DemoService(instance, ORDERS_ERASE_AFTER_DAYS="30").start()
    try:
        order_no = service.api.buy(customer_name=NAME, channel=3).data["order_no"]

        def stored():
            return NAME in service.flask("order", "show", order_no, "--reveal").stdout

        service.api.send("POST", "/sandbox/clock", b"seconds=1000", FORM)
        until(lambda: service.api.status(order_no) == "cancelled")
        assert stored()
        service.api.send("POST", "/sandbox/clock", b"seconds=%d" % (31 * DAY), FORM)
        until(lambda: not stored())
    finally:
        service.stop()


# Reasons of refunds, which merchants choose

REASON = f"退款给{NAME}"


@pytest.fixture
def refunded_for(api):
    """`refunded_for(order_no)`: the refund of a part, with a reason that names the customer."""
    allow()

    def place(order_no, outcome="success"):
        answer = request(api, order_no, "40.00", outcome, reason=REASON)
        return Refund.find(answer.data["refund_no"])

    return place


def reason_of(refund):
    """The stored reason, and those in the bodies of callbacks."""
    told = [json.loads(each.body)["data"] for each in Callback.select().where(Callback.type.startswith("refund."))]
    return Refund.find(refund.refund_no).reason, {each["reason"] for each in told}


def test_the_reason_of_a_refund_is_erased_with_its_order_and_in_its_callbacks(
    api, delivered, refunded_for, ahead, rows, balances
):
    refund = refunded_for(completed(api))
    delivered()
    assert privacy.run(30) == 0
    assert reason_of(refund) == (REASON, {REASON})
    ahead(31 * DAY)
    had, body = balances(), Callback.get(Callback.type == "refund.completed").body
    assert (privacy.run(30), privacy.run(30)) == (1, 0)
    assert reason_of(refund) == ("", {""})
    assert Callback.get(Callback.type == "refund.completed").body == body.replace(REASON, "")
    assert balances() == had
    assert NAME not in str(rows())
    assert api.call("refundQueryDetail", {"refund_no": refund.refund_no}).data["reason"] == ""


def test_a_refund_in_progress_keeps_its_reason(api, delivered, refunded_for, ahead, flask, refuses):
    order_no = completed(api)
    refund = refunded_for(order_no, "silent")
    delivered()
    ahead(31 * DAY)
    assert privacy.run(30) == 0
    assert "a refund is in progress" in refuses("privacy", "erase", order_no, "--yes")
    assert reason_of(refund)[0] == REASON


@pytest.mark.parametrize("restarted", [True, False])
def test_the_reason_of_a_refund_after_the_erasure_of_its_order_is_erased_later(
    api, paid_by_name, delivered, refunded_for, ahead, restarted
):
    order_no = paid_by_name()
    delivered()
    ahead(31 * DAY)
    assert privacy.run(30) == 1
    refund = refunded_for(order_no)
    if restarted:
        privacy._later_refunds.forget()
    assert privacy.run(30) == 0
    delivered()
    ahead(20 * DAY)
    assert privacy.run(30) == 0
    assert reason_of(refund)[0] == REASON
    ahead(11 * DAY)
    assert privacy.run(30) == 1
    assert reason_of(refund) == ("", {""})


def notes():
    return [row.text for row in InternalNote.select()]


def test_the_notes_of_operators_are_erased_with_the_order_some_days_after_the_last_one(
    paid_by_name, delivered, revealed, ahead, flask, rows
):
    order_no = paid_by_name()
    flask("order", "note", order_no, f"call {NAME}")
    delivered()
    ahead(20 * DAY)
    flask("order", "note", order_no, "no answer")
    ahead(11 * DAY)
    assert privacy.run(30) == 0
    assert (notes(), revealed(order_no)) == ([f"call {NAME}", "no answer"], NAME)
    ahead(20 * DAY)
    assert (privacy.run(30), privacy.run(30)) == (1, 0)
    assert (notes(), revealed(order_no)) == ([], "")
    assert NAME not in str(rows())


def test_a_note_after_the_erasure_of_its_order_is_erased_later(paid_by_name, delivered, ahead, flask):
    order_no = paid_by_name()
    delivered()
    ahead(31 * DAY)
    assert privacy.run(30) == 1
    flask("order", "note", order_no, NAME)
    assert privacy.run(30) == 0
    ahead(29 * DAY)
    assert (privacy.run(30), notes()) == (0, [NAME])
    ahead(2 * DAY)
    assert (privacy.run(30), notes()) == (1, [])
