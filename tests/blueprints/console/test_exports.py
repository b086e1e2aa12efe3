"""Lists as CSV files: the same rows, streamed, safe in a spreadsheet; what else the console copies or saves."""

import csv
import html
import io
import re
from itertools import islice

import pytest

from blueprints import console as console_app
from blueprints.console import labels
from models.db.base import database
from models.tables.order import Order
from services.console import lists
from services.sandbox import seeded_orders
from tests.all_interfaces import LISTS
from tests.blueprints.console.conftest import MANUAL
from tests.services import walks
from tests.support import completed

HOSTILE = (
    *("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "'-alert(1)-'", "{{ 7 * 7 }}"),
    *("\u202egnp.exe\u2066", "W" * 255, "汉字" * 100),
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


def test_amounts_times_and_words_read_the_same_in_every_program(clock, exported, api, console, page):
    console.set_cookie("console_zone", "Asia/Shanghai", path="/console")
    api.sell("1234.50", channel=2)
    (row,), _ = exported("orders/export")
    assert (row["Amount (¥)"], row["Fees (¥)"]) == ("1234.50", "2.47")
    assert row["Created"] == "2026-05-01T20:00:00+08:00"
    assert (row["Type"], row["Merchant key"]) == ("Withdrawal", "demo")
    completed(api)
    rows, _ = exported("entries/export?flt_account=clearing&flt_channel=2")
    assert [row["Amount (¥)"] for row in rows] == ["-100.00"]
    for text in ("-12.50", "12", "A-1", "2026-01-01"):
        api.buy(merchant_order_no=text)
    rows, _ = exported("orders/export?flt_status=pending&flt_type=buy")
    assert [row["Merchant order number"] for row in rows] == ["2026-01-01", "A-1", "12", "-12.50"]
    assert page("audit/").rows[0]["Details"] == "Type: Deposits; Status: Awaiting payment"
    Order.update(merchant_order_no="a\r\n=b\x1b[31m\u202ec\u3000d").execute()
    (row, *_), _ = exported("orders/export")
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


def test_a_viewer_may_export_every_list_and_the_audit_log_records_it(exported, page, viewer, api, flask):
    completed(api)
    api.notice(api.buy().data["order_no"], 9_900)
    flask("account", "add", "demo", "--card-number", "6222020000000000999", "--real-name", "李四光")
    for name in LISTS:
        rows, answer = exported(f"{name}/export", client=viewer)
        assert len(rows) == len(page(f"{name}/").rows), name
        assert page("audit/?flt_action=export").rows[0]["Event"] == f"viewer exported the list {labels.LISTS[name]}"
        assert "6222020000000000" not in answer.text
        if name == "accounts":
            assert (rows[0]["Account number"], rows[0]["Account holder"]) == ("***************0999", "李*")


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


# Everything that a spreadsheet opens: files of console and commands, and what the console copies as a table

NAMES = [
    *("=1+1", "+1+1", "-1+1", "@SUM(A1)", " =1+1", "＝1+1", "＋1", "－1+1", "＠SUM(A1)"),
    *("a;=1+1", 'a",=1+1', '"=1+1"'),
]
PAYEES = ["=1+1", " ＋1", "a;-1+1", '"=1+1"']


def starts_a_formula(cell):
    """Whether a spreadsheet may run a cell, also one that splits it at other separators or removes its quotes."""
    if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", cell):
        return False
    return any(part.strip(' "')[:1] in tuple("=+-@＝＋－＠") for part in re.split(r"[;,|\t\n\r]", cell))


@pytest.fixture
def payouts(api, flask):
    """The numbers of approved withdrawals on the manual channel, whose payees have names like formulas."""
    numbers = []
    for name in PAYEES:
        account = ("--card-number", "6222020000000000999", "--real-name", name, "--bank", name, "--sub-bank", name)
        flask("account", "add", "demo", *account)
        numbers.append(api.sell("10.00", channel=MANUAL, merchant_order_no=name).data["order_no"])
        flask("order", "accept", numbers[-1])
    return numbers


@pytest.mark.usefixtures("clock", "shop")
def test_no_cell_of_a_file_in_the_console_is_a_formula(api, flask, due, world, payouts, create, export):
    order_no = completed(api)
    Order.update(merchant_order_no="\t=1+1").where(Order.order_no == order_no).execute()
    api.notice(order_no, 9_900, reference="=1+1")
    for text in NAMES:
        walks.claim(world, api.buy(channel=MANUAL, merchant_order_no=text).data["order_no"])
        flask("ledger", "adjust", "demo", "5.00", "--reason", text)
    flask("merchant", "set", "demo", "--name", "=1+1")
    flask("channel", "set", MANUAL, "--name", "+1+1")
    due.callbacks()
    create(payouts)
    files = {
        rule.endpoint: rule.rule.lstrip("/").replace("<int(max=9223372036854775807):number>", "1")
        for rule in console_app.create().url_map.iter_rules()
        if rule.endpoint.endswith((".export", ".file"))
    }
    files["statements.export"] += "?merchant=demo&month=2026-05"
    cells = set()
    for endpoint, path in files.items():
        answer = export(path)
        assert answer.content_type.startswith("text/csv"), endpoint
        rows = csv.reader(io.StringIO(answer.data.decode("utf-8-sig"), newline=""))
        cells |= {(endpoint, cell) for row in rows for cell in row}
    assert {endpoint for endpoint, cell in cells if "1+1" in cell} >= {
        *("orders.export", "payouts.export", "claims.export", "callbacks.export", "entries.export", "channels.export"),
        *("merchants.export", "statements.export", "batch.file"),
    }
    assert set(NAMES) <= {cell.replace("'", "") for endpoint, cell in cells if endpoint == "orders.export"}
    assert {(endpoint, cell) for endpoint, cell in cells if starts_a_formula(cell)} == set()


def test_no_cell_of_the_copied_payees_is_a_formula(payouts, send):
    page = send("payouts/reveal?flt_state=send").text
    copied = html.unescape(re.search(r'<pre id="all-payees" hidden>(.*?)</pre>', page, re.DOTALL)[1])
    rows = list(csv.reader(io.StringIO(copied, newline=""), "excel-tab"))
    assert [row[0] for row in rows] == payouts
    assert {(row[2], row[4]) for row in rows} == {("6222020000000000999", "10.00")}
    assert [row[1].replace("'", "") for row in rows] == PAYEES
    # A spreadsheet may also take each line and tab as they are, or one payee alone.
    singly = re.findall(r'<span id="payee-[0-9]+" hidden>(.*?)</span>', page, re.DOTALL)
    assert len(singly) == len(payouts)
    cells = [cell for row in rows for cell in row] + re.split(r"[\t\r\n]+", copied)
    cells += [line for text in singly for line in html.unescape(text).split("\n")]
    assert [cell for cell in cells if starts_a_formula(cell)] == []


def test_no_cell_of_a_statement_by_command_is_a_formula(api, flask, tmp_path, clock):
    texts = [*NAMES, "\t=1+1"]
    for text in texts:
        order_no = completed(api)
        Order.update(merchant_order_no=text).where(Order.order_no == order_no).execute()
        flask("ledger", "adjust", "demo", "5.00", "--reason", text)
    flask("ledger", "adjust", "demo", "-5.00", "--reason", "bank fee")
    file = tmp_path / "statement.csv"
    flask("merchant", "statement", "demo", "2026-05", "--csv", file)
    rows = list(csv.DictReader(io.StringIO(file.read_bytes().decode(), newline="")))
    assert (rows[-1]["amount"], rows[-1]["memo"]) == ("-5.00", "bank fee"), "a negative amount stays a number"
    assert sum("'" in row["merchant_order_no"] + row["memo"] for row in rows) == 2 * len(texts)
    assert [cell for row in rows for cell in row.values() if starts_a_formula(cell)] == []
