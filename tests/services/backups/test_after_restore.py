"""After a restore: no shop credits twice, no id is reused, and payouts and expiry wait for the operator."""

import pytest

from models.db.base import database
from tests import postgres
from tests.backups import Backup
from tests.support import Service, completed

MANUAL = 3
AHEAD = 1_000_003


@pytest.fixture
def backup(app, instance, tmp_path):
    """`backup()` makes a backup of the present database."""
    return lambda: Backup(instance, tmp_path)


def row_id(order_details, order_no):
    return order_details(order_no)["id"]


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


def test_the_ids_of_lost_orders_are_not_reused(api, order_details, backup):
    kept = row_id(order_details, api.buy().data["order_no"])
    before = backup()
    lost = row_id(order_details, api.sell().data["order_no"])
    before.restore()
    # The replaced database can be read on SQLite only.
    known = kept if postgres.IN_USE else lost
    ids = [row_id(order_details, api.buy().data["order_no"]) for _ in range(3)]
    assert ids == [known + AHEAD, known + AHEAD + 1, known + AHEAD + 2]
    assert api.listed().data["total"] == 4
    assert [row["seq"] for row in _orders()] == [1, 2, 3, 4]


def _orders():
    found = database.execute_sql('SELECT seq FROM "order" WHERE merchant_id = 1 ORDER BY id').fetchall()
    return [{"seq": seq} for (seq,) in found]


def test_ids_of_exceptions_callbacks_and_channels_are_not_reused(api, flask, flask_json, due, backup, order_details):
    first = backup()
    first.restore()
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 5)
    completed(api)
    added = flask_json("channel", "add", "--category", "gateway_a", "--driver", "trial", "--name", "New")
    assert order_details(order_no)["exceptions"][0]["id"] == AHEAD
    assert database.execute_sql("SELECT MIN(id) FROM callback").fetchone() == (AHEAD,)
    assert added["id"] > AHEAD
    assert database.execute_sql("SELECT MAX(id) FROM ledger_account").fetchone()[0] > AHEAD


def test_an_order_that_was_rolled_back_after_a_restore_leaves_the_next_id_ahead(api, order_details, backup):
    backup().restore()
    assert api.sell("900000.00").code == 40901
    assert row_id(order_details, api.buy().data["order_no"]) >= AHEAD


def test_orders_after_a_restore_are_found_by_search(api, due, backup):
    api.buy(merchant_order_no="before the restore")
    backup().restore()
    api.buy(merchant_order_no="after the restore")
    assert api.listed(merchant_order_no="the restore").data["total"] == 2


def test_a_restore_twice_continues_above_the_first(api, order_details, backup):
    saved = backup()
    saved.restore()
    lost = row_id(order_details, api.buy().data["order_no"])
    saved.restore()
    again = row_id(order_details, api.buy().data["order_no"])
    assert again >= AHEAD if postgres.IN_USE else again == lost + AHEAD


def test_a_manual_deposit_does_not_expire_until_the_operator_resumes(api, flask, later, backup):
    order_no = api.buy("100.00", channel=MANUAL).data["order_no"]
    backup().restore()
    later(1200, 3)
    assert api.status(order_no) == "pending"
    flask("db", "resume")
    later(301)
    assert api.status(order_no) == "cancelled"


def test_a_deposit_on_a_channel_that_can_be_queried_still_expires(api, later, backup):
    order_no = api.buy().data["order_no"]
    backup().restore()
    later(1200, 2)
    assert api.status(order_no) == "cancelled"


def test_no_withdrawal_is_sent_until_the_operator_resumes(api, flask, later, backup, http):
    order_no = api.sell("50.00").data["order_no"]
    backup().restore()
    flask("order", "accept", order_no)
    later(60, 5)
    assert api.status(order_no) == "confirmed"
    assert "absent" in flask("order", "ask", order_no).stdout
    flask("db", "resume")
    later(301, 3)
    assert api.status(order_no) == "completed"


def test_a_withdrawal_paid_out_after_the_backup_completes_while_paused(api, flask, later, backup, balances):
    order_no = api.sell("50.00").data["order_no"]
    saved = backup()
    flask("order", "accept", order_no)
    later(60, 3)
    assert api.status(order_no) == "completed"
    after = balances()
    saved.restore()
    flask("order", "accept", order_no)
    later(60, 2)
    assert api.status(order_no) == "completed"
    assert balances() == after


def test_a_withdrawal_on_a_manual_channel_can_still_be_paid(api, flask, due, backup):
    order_no = api.sell("50.00", channel=MANUAL).data["order_no"]
    backup().restore()
    flask("order", "accept", order_no)
    due.orders()
    flask("order", "paid", order_no, "--reference", "B-1")
    assert api.status(order_no) == "completed"


def test_the_command_prints_what_is_paused_and_what_to_do_next(backup):
    said = backup().restore()
    assert "payouts and the expiry of manual deposits are paused" in said
    steps = [
        "start the service",
        "tillbook reconcile",
        "tillbook order list",
        "tillbook order unknown",
        "tillbook db resume",
    ]
    places = [said.index(step, said.index("next steps")) for step in steps]
    assert places == sorted(places)


def test_resume_is_refused_if_nothing_is_paused(flask, refuses, backup):
    assert "nothing is paused" in refuses("db", "resume")
    backup().restore()
    assert "resume within five minutes" in flask("db", "resume").stdout
    assert "nothing is paused" in refuses("db", "resume")


def test_mark_restored_pauses_and_moves_ids_on_both_databases(api, flask, refuses, order_details):
    last = row_id(order_details, api.buy().data["order_no"])
    assert "tillbook db resume" in flask("db", "mark-restored").stdout
    assert row_id(order_details, api.buy().data["order_no"]) == last + AHEAD
    flask("db", "resume")


def test_restore_and_resume_are_in_the_audit_log(flask, rows, backup):
    backup().restore()
    flask("db", "resume")
    written = [(row[1], row[2], row[3]) for row in rows()["AuditEntry"]]
    assert written == [("command line", "restore", "database"), ("command line", "resume", "database")]


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
