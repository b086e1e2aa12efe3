"""Lists as CSV files: the same rows, streamed, safe in a spreadsheet; hostile requests to lists and files."""

import csv
import io
from itertools import islice

import pytest

from models.db.base import database
from models.tables.order import Order
from services.console import lists
from services.sandbox import seeded_orders
from tests.services import walks
from tests.support import completed

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'-alert(1)-'",
    "{{ 7 * 7 }}",
    "\u202egnp.exe\u2066",
    "W" * 255,
    "汉字" * 100,
)
FORMULAS = (
    "=1+1",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    " =1+1",
    "＝1+1",
    "＋1",
    "－1+1",
    "＠SUM(A1)",
    "a;=1+1",
    'a",=1+1',
    '"=1+1"',
)


@pytest.fixture
def exported(console, export):
    """`exported("orders/export")`: its rows as dictionaries, and the whole text."""

    def read(path, client=console):
        answer = export(path, client)
        assert answer.status_code == 200, answer.text
        assert answer.content_type == "text/csv; charset=utf-8"
        assert answer.data.startswith(b"\xef\xbb\xbf")
        return list(csv.DictReader(io.StringIO(answer.data.decode("utf-8-sig")))), answer

    return read


def test_an_export_has_all_matching_rows_and_a_name(exported, page, console, api):
    seeded_orders.seed_orders(300)
    rows, answer = exported("orders/export?flt_status=completed&flt_merchant=demo")
    sought = "SELECT order_no FROM \"order\" WHERE status = 'completed' AND merchant_id = 1"
    whole = [row[0] for row in database.execute_sql(f"{sought} ORDER BY createtime DESC, id DESC").fetchall()]
    assert [row["Order number"] for row in rows] == whole
    assert {row["Status"] for row in rows} == {"Completed"}
    assert answer.headers["Content-Disposition"].startswith('attachment; filename="orders-20')
    assert page("orders/?flt_status=paid").sends["Export as CSV"] == "/console/orders/export?flt_status=paid"


def test_amounts_times_and_words_read_the_same_in_every_program(clock, exported, api, console):
    console.set_cookie("console_zone", "Asia/Shanghai", path="/console")
    api.sell("1234.50", channel=2)
    (row,), _ = exported("orders/export")
    assert (row["Amount (¥)"], row["Fees (¥)"]) == ("1234.50", "2.47")
    assert row["Created"] == "2026-05-01T20:00:00+08:00"
    assert (row["Type"], row["Merchant key"]) == ("Withdrawal", "demo")


def test_negative_amounts_stay_numbers(exported, api):
    completed(api)
    rows, _ = exported("entries/export?flt_account=clearing&flt_channel=2")
    assert [row["Amount (¥)"] for row in rows] == ["-100.00"]


@pytest.mark.parametrize("text", FORMULAS)
def test_no_merchants_text_is_a_formula_in_any_spreadsheet(exported, api, text):
    api.buy(merchant_order_no=text)
    (row,), _ = exported("orders/export")
    cell = row["Merchant order number"]
    assert cell.replace("'", "") == text
    for separator in (";", ",", "\t", "|"):
        for part in cell.split(separator):
            assert part.strip(' "')[:1] not in tuple("=+-@＝＋－＠")


def test_a_number_is_not_a_formula(exported, api):
    for text in ("-12.50", "12", "A-1", "2026-01-01"):
        api.buy(merchant_order_no=text)
    rows, _ = exported("orders/export")
    assert [row["Merchant order number"] for row in rows] == ["2026-01-01", "A-1", "12", "-12.50"]


def test_control_characters_reach_neither_page_nor_file(exported, page, app):
    seeded_orders.seed_orders(1)
    Order.update(merchant_order_no="a\r\n=b\x1b[31m\u202ec\u3000d").execute()
    (row,), _ = exported("orders/export")
    assert row["Merchant order number"] == "a  =b\ufffd[31m\ufffdc d"
    assert "a =b\ufffd[31m\ufffdc d" in page("orders/").column("Order number")[0]


@pytest.mark.parametrize("text", HOSTILE)
def test_strangers_texts_are_escaped_on_every_list(page, api, flask, shop, due, world, text):
    shop.answers(500, text)
    flask("merchant", "set", "demo", "--name", text)
    flask("channel", "set", 2, "--name", text)
    flask("account", "add", "demo", "--card-number", "6222020000000000999", "--real-name", text, "--bank", text)
    for order_no in (completed(api), api.buy(merchant_order_no=text, customer_name="客户").data["order_no"]):
        api.notice(order_no, 9_900, reference=text[:40])
    api.sell("1.00", merchant_order_no=text)
    walks.claim(world, api.buy(channel=3, merchant_order_no=text).data["order_no"])
    due.callbacks()
    lists = ("orders", "payouts", "claims", "exceptions", "callbacks", "entries", "merchants", "channels", "accounts")
    for name in lists:
        shown = page(f"{name}/?flt_merchant=demo" if name not in ("merchants", "channels") else f"{name}/")
        assert shown.rows
        assert shown.tags.count("script") == shown.html.count("<script src=")  # its own
        assert "img" not in shown.tags
        assert "\u202e" not in shown.html
        assert "49" not in {cell for row in shown.rows for cell in row.values()}


def test_values_masked_in_the_list_are_masked_in_the_file(exported, flask):
    flask("account", "add", "demo", "--card-number", "6222020000000000999", "--real-name", "李四光")
    rows, answer = exported("accounts/export")
    assert (rows[0]["Account number"], rows[0]["Account holder"]) == ("***************0999", "李*")
    assert "6222020000000000" not in answer.text


@pytest.mark.parametrize(
    "name",
    [
        "orders",
        "payouts",
        "claims",
        "exceptions",
        "callbacks",
        "entries",
        "merchants",
        "channels",
        "accounts",
        "audit",
        "failed_sign_ins",
    ],
)
def test_a_viewer_may_export_every_list_and_the_audit_log_records_it(exported, page, viewer, api, name):
    completed(api)
    api.notice(api.buy().data["order_no"], 9_900)
    rows, _ = exported(f"{name}/export", client=viewer)
    shown = page(f"{name}/").rows
    assert len(rows) == len(shown)
    logged = page("audit/").rows[0] if name != "audit" else page("audit/?flt_action=export").rows[0]
    assert logged["Event"] == f"viewer exported the list {name}"


def test_the_audit_log_records_exports(exported, page):
    exported("orders/export?flt_status=paid&flt_least=5")
    assert page("audit/").rows[0]["Details"] == "status: Claimed / Paid out, least: 5"


def test_an_export_reads_in_small_steps_and_locks_nothing(export, app, monkeypatch):
    seeded_orders.seed_orders(300)
    monkeypatch.setattr(lists, "AT_ONCE", 20)
    seen = []
    answer = export("orders/export", buffered=False)
    database.query_hooks.append(seen.append)
    parts = iter(answer.response)
    list(islice(parts, 3))
    begun = len(seen)
    assert not database.in_transaction()
    rest = b"".join(parts)
    database.query_hooks.remove(seen.append)
    assert begun < len(seen) / 3
    assert rest.count(b"\r\n") > 200
    assert "Content-Length" not in answer.headers


def test_many_simultaneous_exports_leave_threads_for_other_requests(console, export, api):
    api.buy()
    under_way = [export("orders/export") for _ in range(8)]
    assert export("orders/export", buffered=True).status_code == 429
    assert console.get("/console/orders/").status_code == 200
    under_way.pop().close()
    assert export("orders/export", buffered=True).status_code == 200
    for each in reversed(under_way):
        each.close()


def test_another_site_can_not_trigger_an_export(console, page):
    assert console.get("/console/orders/export").status_code == 405
    assert console.post("/console/orders/export").status_code == 400
    assert "exported" not in " ".join(page("audit/").column("Event"))


def test_only_orders_that_moved_a_balance_have_an_amount_credited_or_deducted(exported, api, flask):
    flask("channel", "set", 3, "--settlement-days", 1)
    pending, cancelled, awaiting = (api.buy(channel=channel).data["order_no"] for channel in (2, 2, 3))
    flask("order", "paid", awaiting, "--reference", "R-1")
    api.play(cancelled, "fail")
    held, rejected, sent = (api.sell("50.00", channel=3).data["order_no"] for _ in range(3))
    flask("order", "reject", rejected, "--reason", "no")
    flask("order", "accept", sent)
    flask("order", "paid", sent, "--reference", "R-2")
    credited = completed(api)
    late = api.buy().data["order_no"]
    api.notice(late, 9_900, reference="R-3")
    flask("order", "settle", late, "--credit")
    amounts = {row["Order number"]: row["Credited or deducted (¥)"] for row in exported("orders/export")[0]}
    assert amounts == {
        **dict.fromkeys((pending, cancelled, awaiting, held, rejected), ""),
        sent: "50.15",
        credited: "99.40",
        late: "98.41",
    }
