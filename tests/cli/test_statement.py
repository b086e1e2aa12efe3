"""`tillbook merchant statement`: a month's balances and movements, and all lines as CSV."""

import csv
import io
import json

from services.sandbox import seeded_orders
from tests.support import completed


def test_the_balances_and_movements_of_a_month(api, flask, clock):
    completed(api)
    api.sell("50.00", channel=3)
    shown = json.loads(flask("merchant", "statement", "demo", "2026-05", "--json").stdout)
    assert shown == {
        "merchant": "demo",
        "month": "2026-05",
        **{"opening": "10000.00", "deposits": "100.00", "withdrawals": "0.00", "exceptions": "0.00"},
        **{"adjustments": "0.00", "fees": "-0.60", "closing": "10099.40"},
        **{"available": "10049.25", "held": "50.15"},
    }
    assert "10099.40" in flask("merchant", "statement", "demo", "2026-05").stdout


def test_the_lines_lead_from_the_opening_to_the_closing_balance(clock, api, flask, tmp_path):
    seeded_orders.seed_orders(200)
    month = "2026-03"
    file = tmp_path / "statement.csv"
    view = json.loads(flask("merchant", "statement", "demo", month, "--json").stdout)
    flask("merchant", "statement", "demo", month, "--csv", file)
    rows = list(csv.DictReader(io.StringIO(file.read_text("utf-8"))))
    cents = [int(row["change"].replace(".", "")) for row in rows]
    opening, closing = (int(view[name].replace(".", "")) for name in ("opening", "closing"))
    assert rows
    assert opening + sum(cents) == closing
    assert rows[-1]["balance"] == view["closing"]
    assert {row["time"][:7] for row in rows} == {month}
    printed = flask("merchant", "statement", "demo", month, "--csv", "-").stdout
    assert printed.splitlines() == file.read_text("utf-8").splitlines()


def test_a_wrong_month_or_merchant_is_refused(flask, api):
    assert "Enter a month, such as 2026-05." in flask("merchant", "statement", "demo", "2026-13", fails=True).stderr
    assert flask("merchant", "statement", "nobody", "2026-05", fails=True).exit_code == 1
