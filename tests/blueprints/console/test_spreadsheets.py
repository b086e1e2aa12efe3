"""Everything that a spreadsheet opens: every file of console and commands, and what the console copies as a table."""

import csv
import html
import io
import re

import pytest

from blueprints import console as console_app
from models.tables.order import Order
from tests.blueprints.console.conftest import MANUAL
from tests.services import walks
from tests.support import completed

NAMES = ["=1+1", " ＋1", "a;-1+1", '"=1+1"']


def starts_a_formula(cell):
    """Whether a spreadsheet may run a cell, also one that splits it at other separators or removes its quotes."""
    if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", cell):
        return False
    return any(part.strip(' "')[:1] in tuple("=+-@＝＋－＠") for part in re.split(r"[;,|\t\n\r]", cell))


@pytest.fixture
def payouts(api, flask):
    """The numbers of approved withdrawals on the manual channel, whose payees have names like formulas."""
    numbers = []
    for name in NAMES:
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
    walks.claim(world, api.buy(channel=MANUAL, merchant_order_no="=1+1").data["order_no"])
    flask("ledger", "adjust", "demo", "5.00", "--reason", "=1+1")
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
    assert {(endpoint, cell) for endpoint, cell in cells if starts_a_formula(cell)} == set()


def test_no_cell_of_the_copied_payees_is_a_formula(payouts, send):
    page = send("payouts/reveal?flt_state=send").text
    copied = html.unescape(re.search(r'<pre id="all-payees" hidden>(.*?)</pre>', page, re.DOTALL)[1])
    rows = list(csv.reader(io.StringIO(copied, newline=""), "excel-tab"))
    assert [row[0] for row in rows] == payouts
    assert {(row[2], row[4]) for row in rows} == {("6222020000000000999", "10.00")}
    assert [row[1].replace("'", "") for row in rows] == NAMES
    assert [cell for row in rows for cell in row if starts_a_formula(cell)] == []
    # A spreadsheet may also take each line and tab as they are.
    assert [cell for cell in re.split(r"[\t\r\n]+", copied) if starts_a_formula(cell)] == []

    singly = re.findall(r'<span id="payee-[0-9]+" hidden>(.*?)</span>', page, re.DOTALL)
    assert len(singly) == len(payouts)
    assert [line for text in singly for line in html.unescape(text).split("\n") if starts_a_formula(line)] == []


def test_no_cell_of_a_statement_by_command_is_a_formula(api, flask, tmp_path, clock):
    for text in [*NAMES, "@SUM(A1)", "\t=1+1"]:
        order_no = completed(api)
        Order.update(merchant_order_no=text).where(Order.order_no == order_no).execute()
        flask("ledger", "adjust", "demo", "5.00", "--reason", text)
    flask("ledger", "adjust", "demo", "-5.00", "--reason", "bank fee")
    file = tmp_path / "statement.csv"
    flask("merchant", "statement", "demo", "2026-05", "--csv", file)
    rows = list(csv.DictReader(io.StringIO(file.read_bytes().decode(), newline="")))
    assert (rows[-1]["amount"], rows[-1]["memo"]) == ("-5.00", "bank fee"), "a negative amount stays a number"
    assert sum("'" in row["merchant_order_no"] + row["memo"] for row in rows) == 2 * 6
    assert [cell for row in rows for cell in row.values() if starts_a_formula(cell)] == []
