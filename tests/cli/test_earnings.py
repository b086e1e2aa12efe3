"""`tillbook earnings`."""

import csv
import io
from datetime import datetime

import pytest

from cli.earnings import AMOUNTS
from runtime.clock import CHINA
from services.ledger import earnings
from tests.support import completed


@pytest.fixture(autouse=True)
def booked(api, flask, time_machine):
    """A deposit in April, a payout and an adjustment in May."""
    time_machine.move_to(datetime(2026, 4, 30, 12, tzinfo=CHINA))
    completed(api)  # fee 0.60
    time_machine.move_to(datetime(2026, 5, 2, 12, tzinfo=CHINA))
    sent = api.sell("50.00", channel=3).data["order_no"]  # fee 0.15, channel cost 0.03
    flask("order", "accept", sent)
    flask("order", "paid", sent)
    flask("ledger", "adjust", "demo", "0.50", "--reason", "sorry")


def test_this_month_is_shown_by_channel(flask):
    head, payouts, adjustments, total = flask("earnings").stdout.splitlines()
    assert tuple(head.split()) == ("channel", *AMOUNTS)
    assert payouts.split() == ["Manual", "C", "0", "0.00", "1", "50.00", "0", "0.00", "0.15", "0.03", "0.12"]
    assert adjustments.startswith("Manual adjustments ")
    assert total.split() == ["Total", "0", "0.00", "1", "50.00", "0", "0.00", "-0.35", "0.03", "-0.38"]


def test_json_has_the_lines_of_any_days_and_groups_and_their_total(flask_json):
    found = flask_json("earnings", "--since", "2026-04-30", "--until", "2026-05-02", "--by", "day,merchant")
    assert [(row["line"], row["day"], row["merchant"], row["net"]) for row in found["lines"]] == [
        ("orders", "2026-04-30", "demo", "0.60"),
        ("orders", "2026-05-02", "demo", "0.12"),
        ("adjustments", "2026-05-02", "", "-0.50"),
    ]
    assert (found["total"]["deposits"], found["total"]["net"]) == (1, "0.22")
    assert flask_json("earnings", "--month", "2026-04", "--by", "")["total"]["fees"] == "0.60"


def test_csv_has_the_lines_without_a_total(flask, tmp_path):
    flask("earnings", "--by", "channel,method", "--csv", tmp_path / "earnings.csv")
    written = (tmp_path / "earnings.csv").read_text("utf-8")
    rows = list(csv.DictReader(io.StringIO(written)))
    assert tuple(rows[0]) == earnings.COLUMNS
    assert [(row["line"], row["method"], row["net"]) for row in rows] == [
        ("orders", "bank", "0.12"),
        ("adjustments", "", "-0.50"),
    ]
    assert flask("earnings", "--by", "channel,method", "--csv", "-").stdout.splitlines() == written.splitlines()


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("--month", "2026-13"), "Enter a month, such as 2026-05."),
        (("--month", "2026-06"), "The month is in the future."),
        (("--since", "2026-05-02", "--until", "2026-05-01"), "The first day is after the last one."),
        (("--month", "2026-05", "--since", "2026-05-01"), "Give a month, or the first and last day."),
        (("--by", "day,colour"), "choose from day, merchant, channel, method, not"),
        (("--since", "May"), "May"),
    ],
)
def test_wrong_options_are_refused(flask, given, why):
    assert why in flask("earnings", *given, fails=True).output or why == "May"
