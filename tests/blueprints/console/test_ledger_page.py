"""The ledger's page: every balance, the failures of the last check, and the checkpoints for auditors."""

import json
import re

import pytest

from models.tables.operator import AuditEntry
from services.ledger import scheduled_checks
from tests.databases import unguarded
from tests.refunds import allow, refunded
from tests.support import completed, until, words

BALANCE_OFF = "UPDATE ledger_account SET balance = balance + 1 WHERE kind = 'fees'"


@pytest.fixture
def page_text(page):
    """`page_text()`: the page's text, without its tags."""
    return lambda **more: words(re.sub(r"<[^>]+>", " ", page("ledger/", **more).html.partition("<main")[2]))


def ended():
    """The newest run, after all runs have ended."""
    until(lambda: not scheduled_checks.running())
    return scheduled_checks.recent()[0]


def test_each_balance_is_shown(page, page_text, api, flask):
    completed(api)
    api.sell("50.00", channel=2)
    paid_out = api.sell("50.00", channel=3).data["order_no"]
    flask("order", "accept", paid_out)
    flask("order", "paid", paid_out)
    shown = {row["Merchant"]: (row["Available"], row["Reserved"]) for row in page("ledger/").rows if "Reserved" in row}
    assert shown == {
        "Demo Shop 演示商户 demo": ("9,999.15", "50.10"),
        "Other Shop 另一商户 other": ("0.00", "0.00"),
        "Total": ("9,999.15", "50.10"),
    }
    columns = ("Receivable from channel (¥)", "Payable to channel (¥)")
    owed = {row["Channel"]: tuple(map(row.get, columns)) for row in page("ledger/").rows if columns[0] in row}
    assert owed == {
        "Sandbox A": ("10,000.00", "0.00"),
        "Sandbox B": ("100.00", "0.00"),
        "Manual C": ("0.00", "50.03"),
        "Sandbox D": ("0.00", "0.00"),
        "Total": ("10,100.00", "50.03"),
    }
    text = page_text()
    for line in ("Fee income 0.75", "Runs automatically every 24 hours."):
        assert line in text


@pytest.mark.usefixtures("slow")
def test_an_operator_starts_an_integrity_check(send, page_text, page, api):
    completed(api)
    answer = send("ledger/verify")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/console/ledger/")
    run = ended()
    assert (run.who, run.outcome) == ("operator demo", "holds")
    assert "Ledger integrity check passed" in page_text()
    (row,) = [row for row in page("ledger/").rows if "Outcome" in row]
    assert (row["Outcome"], row["By"], row["Entries"]) == ("passed", "operator demo", "5")
    assert AuditEntry.select().where(AuditEntry.action == "verify ledger", AuditEntry.who == "demo").count() == 1


def test_the_page_shows_the_running_check_and_offers_a_second_one_once_it_was_killed(send, page_text, ahead, app):
    scheduled_checks._begin("operator demo")
    text = page_text()
    assert ("Check running" in text, "Check now" in text) == (True, False)
    send("ledger/verify")
    assert "Action failed: A ledger check is already running." in page_text()
    assert len(scheduled_checks.recent()) == 1
    ahead(scheduled_checks.SILENCE + 1)
    text = page_text()
    assert ("stopped" in text, "Check now" in text) == (True, True)


def test_a_viewer_sees_the_balances_and_cannot_start_a_check(page_text, viewer):
    text = page_text(client=viewer)
    assert ("Receivable from channel (¥)" in text, "Check now" in text) == (True, False)


@pytest.mark.breaks_the_ledger
@pytest.mark.usefixtures("slow")
def test_the_damage_of_a_ledger_is_listed_line_by_line(send, page_text, page, api, instance):
    completed(api)
    with unguarded(instance) as books:
        books.execute(BALANCE_OFF)
    send("ledger/verify")
    assert ended().outcome == "off"
    text = page_text()
    assert "Ledger integrity check failed" in text
    assert "Failed: balances equal their entries" in text
    assert "account fees 0 has 61 fen, but its entries sum to 60" in text


def test_the_command_accepts_the_pages_checkpoints(console, api, flask, tmp_path):
    completed(api)
    answer = console.get("/console/ledger/heads.json")
    assert answer.headers["Content-Type"] == "application/json"
    assert re.fullmatch(r'attachment; filename="heads-[\d-]+\.json"', answer.headers["Content-Disposition"])
    assert json.loads(answer.text) == json.loads(flask("ledger", "heads", "--json").stdout)
    file = tmp_path / "heads.json"
    file.write_text(answer.text)
    completed(api)
    assert "ok      entries go back to the heads that were kept" in flask("ledger", "verify", "--against", file).stdout


def test_numbered_postings_are_found_by_their_purpose(page, api, later):
    allow()
    order_no = completed(api)
    refunded(api, order_no, "40.00")
    later(61)
    refunded(api, order_no, "20.00", "silent")
    for purpose, label, entries in (
        ("refund_hold", "Refund reserved", 4),
        ("refund", "Deposit refunded", 2),
        ("refund_release", "", 0),
        ("credit", "Deposit credited", 3),
    ):
        rows = page(f"entries/?flt_purpose={purpose}").rows
        assert ({row["Purpose"] for row in rows}, len(rows)) == ({label} if label else set(), entries)
