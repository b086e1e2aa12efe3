"""After a restore: no shop credits twice, no id is reused, and payouts and expiry wait for the operator."""

import pytest
from peewee import fn

from gateways.sandbox.records import books
from models.db.base import database
from models.tables.order import Order
from models.tables.outbox import Callback
from models.tables.refund import Refund, RefundHistory
from services.refunds import place
from services.refunds.place import Wanted
from tests import postgres
from tests.backups import Backup
from tests.refunds import allow
from tests.support import Service, completed

MANUAL = 3
AHEAD = 1_000_003


@pytest.fixture
def backup(app, instance, tmp_path):
    """`backup()` makes a backup of the present database."""
    return lambda: Backup(instance, tmp_path)


@pytest.fixture
def placed(api, order_details):
    """`placed()`: the id of a new deposit."""
    return lambda: order_details(api.buy().data["order_no"])["id"]


def test_an_order_that_completes_again_has_the_same_webhook_id(api, shop, due, backup):
    order_no = api.buy().data["order_no"]
    before = backup()
    api.play(order_no, "success")
    due.callbacks()
    before.restore()
    assert api.status(order_no) == "pending"
    api.play(order_no, "success")
    due.callbacks()
    first, again = shop.got
    assert first.event["type"] == again.event["type"] == "order.completed"
    assert first.webhook_id == again.webhook_id


def test_types_and_orders_have_webhook_ids_of_their_own(api, flask, flask_json):
    flask("merchant", "set", "demo", "--events", "paid,confirmed")
    completed(api)
    completed(api)
    ids = [row["id"] for row in flask_json("callback", "list")]
    assert len(set(ids)) == len(ids) == 6


def test_the_ids_of_lost_orders_are_not_reused_also_after_a_second_restore(api, placed, backup):
    kept = placed()
    before = backup()
    # The replaced database can be read on SQLite only.
    lost = placed()
    before.restore()
    known = kept if postgres.IN_USE else lost
    assert api.sell("900000.00").code == 40901  # rolled back
    first = placed()
    assert first >= known + AHEAD if postgres.IN_USE else first == known + AHEAD
    assert [placed(), placed()] == [first + 1, first + 2]
    assert api.listed().data["total"] == 4
    numbers = database.execute_sql('SELECT seq FROM "order" WHERE merchant_id = 1 ORDER BY id').fetchall()
    assert numbers == [(1,), (2,), (3,), (4,)]
    before.restore()
    again = placed()
    assert again >= kept + AHEAD if postgres.IN_USE else again == first + 2 + AHEAD


def test_ids_of_exceptions_callbacks_and_channels_are_not_reused_and_search_finds_all(
    api, flask_json, backup, order_details
):
    api.buy(merchant_order_no="before the restore")
    backup().restore()
    order_no = api.buy(merchant_order_no="after the restore").data["order_no"]
    api.notice(order_no, 5)
    completed(api)
    added = flask_json("channel", "add", "--category", "gateway_a", "--driver", "trial", "--name", "New")
    assert order_details(order_no)["exceptions"][0]["id"] == AHEAD
    assert database.execute_sql("SELECT MIN(id) FROM callback").fetchone() == (AHEAD,)
    assert added["id"] > AHEAD
    assert database.execute_sql("SELECT MAX(id) FROM ledger_account").fetchone()[0] > AHEAD
    assert api.listed(merchant_order_no="the restore").data["total"] == 2


def test_a_refund_that_was_made_after_the_backup_is_made_once(api, flask, later, backup, balances, due):
    allow()
    order_no = completed(api)
    refund = place.place(Order.find(order_no), Wanted(4_000, "operator", approved_by="operator"))
    saved = backup()
    due.orders()
    assert Refund.find(refund.refund_no).status == "completed"
    after, webhooks = balances(), list(Callback.select(Callback.webhook_id).tuples())
    saved.restore()
    assert Refund.find(refund.refund_no).status == "pending"
    unsent = place.place(Order.find(completed(api)), Wanted(2_000, "operator", approved_by="operator"))
    assert unsent.id == refund.id + AHEAD
    later(301, 3)
    # The channel has the first one. The other one waits.
    assert Refund.find(refund.refund_no).status == "completed"
    assert RefundHistory.select(fn.MAX(RefundHistory.id)).scalar() > AHEAD
    assert Refund.find(unsent.refund_no).status == "pending"
    assert balances() == (after[0] + 9_940 - 2_000, 2_000)
    assert set(webhooks) <= set(Callback.select(Callback.webhook_id).tuples())
    flask("db", "resume")
    later(301, 2)
    assert Refund.find(unsent.refund_no).status == "completed"
    assert [each.amount for each in books().refunds(order_no)] == [4_000]


def test_nothing_is_sent_and_no_manual_deposit_expires_until_the_operator_resumes(api, flask, later, backup, balances):
    by_hand, queried = (api.buy("100.00", channel=channel).data["order_no"] for channel in (MANUAL, 2))
    unsent, paid_out, manual = (api.sell("50.00", channel=channel).data["order_no"] for channel in (2, 2, MANUAL))

    def status(*orders):
        return [api.status(order_no) for order_no in orders]

    saved = backup()
    flask("order", "accept", paid_out)
    later(60, 3)
    assert status(paid_out) == ["completed"]
    after = balances()
    saved.restore()
    for order_no in (unsent, paid_out, manual):
        flask("order", "accept", order_no)
    later(60, 2)
    assert status(paid_out, unsent, manual) == ["completed", "confirmed", "confirmed"]  # the channel has the first
    assert balances() == after
    flask("order", "paid", manual, "--reference", "B-1")
    later(1200, 3)
    assert status(manual, by_hand, queried, unsent) == ["completed", "pending", "cancelled", "confirmed"]
    assert "absent" in flask("order", "ask", unsent).stdout
    flask("db", "resume")
    later(301, 3)
    assert status(by_hand, unsent) == ["cancelled", "completed"]


def test_the_commands_say_what_is_paused_and_what_to_do_next_and_are_audited(flask, refuses, rows, backup):
    assert "nothing is paused" in refuses("db", "resume")
    said = backup().restore()
    assert "payouts, refunds and the expiry of manual deposits are paused" in said
    steps = [
        "start the service",
        "tillbook reconcile",
        "tillbook order list",
        "tillbook order unknown",
        "tillbook db resume",
    ]
    places = [said.index(step, said.index("next steps")) for step in steps]
    assert places == sorted(places)
    assert "resume within five minutes" in flask("db", "resume").stdout
    assert "nothing is paused" in refuses("db", "resume")
    written = [(row[1], row[2], row[3]) for row in rows()["AuditEntry"]]
    assert written == [("command line", "restore", "database"), ("command line", "resume", "database")]


def test_mark_restored_pauses_and_moves_ids_on_both_databases(flask, placed):
    last = placed()
    assert "tillbook db resume" in flask("db", "mark-restored").stdout
    assert placed() == last + AHEAD
    flask("db", "resume")


@pytest.mark.sqlite
@pytest.mark.usefixtures("slow")
def test_a_start_warns_while_paused(instance, tmp_path):
    service = Service(instance)
    service.flask("db", "mark-restored")
    service.start()
    try:
        assert "tillbook db resume" in service.log.read_text()
        refused = service.flask("db", "mark-restored", check=False)
        assert "stop it first" in refused.stderr
    finally:
        assert service.stop() == 0
