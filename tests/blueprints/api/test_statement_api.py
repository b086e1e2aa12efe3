"""statementQuery: a merchant's own statement of a month, as JSON and as CSV, page by page."""

import csv
import io
from datetime import datetime, timedelta, timezone

import pytest

from models.tables.merchant import Merchant
from services.ledger import day_sums, monthly_statement
from tests.support import completed

CHINA = timezone(timedelta(hours=8))
MAY = {"month": "2026-05"}


@pytest.fixture(autouse=True)
def may(time_machine):
    """10:00 on 2 May 2026 in China."""
    time_machine.move_to(datetime(2026, 5, 2, 10, tzinfo=CHINA), tick=False)


def test_it_has_balances_sums_counts_days_and_lines(api, flask):
    order_no = completed(api)
    api.sell("50.00", channel=3)
    flask("ledger", "adjust", "demo", "-12.50", "--reason", "bank fee")
    shown = api.call("statementQuery", MAY).data
    days, lines = shown.pop("days"), shown.pop("list")
    sums = {
        **{"deposits_count": 1, "deposits_amount": 10_000, "withdrawals_count": 0, "withdrawals_amount": 0},
        **{"refunds_count": 0, "refunds_amount": 0, "exceptions_count": 0, "exceptions_amount": 0},
        **{"adjustments_count": 1, "adjustments_amount": -1_250, "fees_amount": -60, "change_amount": 8_690},
    }
    assert shown == sums | {
        **{"month": "2026-05", "is_over": False, "total": 2, "limit": 100, "next": ""},
        **{"opening_cny_amount": "10000.00", "opening_amount": 1_000_000},
        **{"closing_cny_amount": "10086.90", "closing_amount": 1_008_690},
        **{"held_cny_amount": "50.15", "held_amount": 5_015},
    }
    assert days == [sums | {"day": "2026-05-02", "balance_amount": 1_008_690}]
    at = int(datetime(2026, 5, 2, 10, tzinfo=CHINA).timestamp())
    assert lines[0] == {
        **{"line_no": lines[0]["line_no"], "createtime": at, "kind": "credit", "order_no": order_no},
        **{"merchant_order_no": api.detail(order_no=order_no).data["merchant_order_no"], "memo": ""},
        **{"cny_amount": "100.00", "fees_amount": -60, "change_amount": 9_940, "balance_amount": 1_009_940},
    }
    names = ("kind", "order_no", "cny_amount", "fees_amount", "memo", "balance_amount")
    assert [lines[1][name] for name in names] == ["adjustment", "", "-12.50", 0, "bank fee", 1_008_690]


def pages(api, **more):
    """All pages of May with two lines each."""
    found = [api.call("statementQuery", MAY | more | {"limit": 2}).data]
    while found[-1]["next"]:
        found.append(api.call("statementQuery", MAY | more | {"limit": 2, "after": found[-1]["next"]}).data)
    return found


def test_its_pages_have_each_line_once_in_both_formats(api, flask, time_machine, tmp_path):
    for day in (2, 2, 3):
        time_machine.move_to(datetime(2026, 5, day, 10, tzinfo=CHINA))
        completed(api)
        api.sell("50.00", channel=3)
    flask("ledger", "adjust", "demo", "1.00", "--reason", "=1+1")
    listed = [line for page in pages(api) for line in page["list"]]
    every = list(monthly_statement.lines(monthly_statement.of(Merchant.get(key="demo"), datetime(2026, 5, 1).date())))
    assert [line["line_no"] for line in listed] == [line.number for line in every]
    assert [line["balance_amount"] for line in listed] == [line.balance for line in every]
    flask("merchant", "statement", "demo", "2026-05", "--csv", tmp_path / "may.csv")
    whole = "".join(page["csv"] for page in pages(api, format="csv"))
    assert whole == (tmp_path / "may.csv").read_bytes().decode()
    assert [row["memo"] for row in csv.DictReader(io.StringIO(whole))][-1] == "'=1+1"
    assert "list" not in pages(api, format="csv")[0]


def test_a_merchant_reads_only_its_own(api, other):
    completed(api)
    line_no = api.call("statementQuery", MAY).data["list"][0]["line_no"]
    theirs = other.call("statementQuery", MAY).data
    assert (theirs["total"], theirs["list"]) == (0, [])
    assert other.call("statementQuery", MAY | {"after": line_no}).code == 40406


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({}, "month"),
        *(
            ({"month": text}, "month")
            for text in ("2026-13", "2026-06", "2027-01", "2026-5", "may", "２０２６-05", "2026-05-01")
        ),
        (MAY | {"format": "xml"}, "format"),
        (MAY | {"limit": 1001}, "limit"),
        (MAY | {"limit": 0}, "limit"),
        (MAY | {"after": "a" * 65}, "after"),
        (MAY | {"page": 2}, "page"),
    ],
)
def test_a_wrong_field_is_named(api, fields, wrong):
    refused = api.call("statementQuery", fields)
    assert (refused.code, [*refused.data]) == (42200, [wrong])


def test_it_can_be_tried_again_while_the_sums_of_many_new_entries_are_prepared(api, monkeypatch):
    completed(api)
    monkeypatch.setattr(day_sums, "MOST", 0)
    refused = api.call("statementQuery", MAY)
    assert (refused.status, refused.code, refused.headers["Retry-After"]) == (503, 50300, "60")
    assert "The statement is being prepared." in refused.json["msg"]
    day_sums.complete()
    assert api.call("statementQuery", MAY).code == 1
