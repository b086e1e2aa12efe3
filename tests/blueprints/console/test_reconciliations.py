"""Reconciliation: a channel's statement is uploaded and compared, and its result is kept."""

import io
import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from models.tables.ledger import Posting
from models.tables.order import History, Order, PaymentException
from models.tables.outbox import Callback
from models.tables.reconciliation import Reconciliation
from models.tables.refund import Refund
from services.statements import kept_results, tables
from tests.blueprints.console.acting import token_of
from tests.blueprints.console.reading import Shown
from tests.refunds import allow, refunded
from tests.support import completed

CHINA = timezone(timedelta(hours=8))
HEADER = "order_no,amount,fee,status,time,reference"
NOW = "2026-05-01 12:00:00"


@pytest.fixture(autouse=True)
def noon(time_machine):
    """Noon on 1 May 2026 in China."""
    time_machine.move_to(datetime(2026, 5, 1, 12, tzinfo=CHINA))


def line(order_no, amount="100.00", fee="0.00", status="paid", time=NOW, reference=""):
    return f"{order_no},{amount},{fee},{status},{time},{reference}"


def csv_of(*lines):
    return "\n".join((HEADER, *lines, "")).encode()


@pytest.fixture
def upload(console):
    """`upload(content, kind=1)`: the response to the form."""

    def post(content, name="statement.csv", client=console, channel=2, **fields):
        data = {"csrf_token": token_of(client), "channel": channel, "kind": 0, "file": (io.BytesIO(content), name)}
        return client.post("/console/reconciliation/upload", data=data | fields, content_type="multipart/form-data")

    return post


@pytest.fixture
def result(upload, page):
    """`result(content)`: the page with the result."""

    def read(content, **fields):
        answer = upload(content, **fields)
        assert answer.status_code == 303, answer.text
        return page(answer.headers["Location"].removeprefix("/console/"))

    return read


@pytest.fixture
def differences(result):
    """`differences(content)`: the rows of differences."""
    return lambda content, **fields: [row for row in result(content, **fields).rows if "Next step" in row]


def test_each_difference_has_its_amounts_and_its_next_step(differences, api, flask, page):
    paid, missing = completed(api), completed(api)
    pending, late = (api.buy().data["order_no"] for _ in range(2))
    api.notice(late, 9_900, reference="R-9")
    content = csv_of(
        line(paid, "99.00"), line("20260501000", "1234.50"), line(pending), line(late, "99.00", reference="R-9")
    )
    rows = {row["Order number"]: row for row in differences(content)}
    columns = ("Kind of difference", "Orders", "Channel statement", "Next step")
    assert {number: tuple(row[name] for name in columns) for number, row in rows.items()} == {
        paid: ("Deposit: amount differs", "Completed ¥100.00", "paid ¥99.00", "Check the order"),
        "20260501000": ("Deposit: only in the statement", "", "paid ¥1,234.50", ""),
        pending: ("Deposit: status differs", "Awaiting payment ¥100.00", "paid ¥100.00", "Check the payment"),
        late: ("Deposit: status differs", "Awaiting payment ¥99.00", "paid ¥99.00", "Resolve exception"),
        missing: ("Deposit: missing in the statement", "Completed ¥100.00", "", "Adjust balance"),
    }
    assert "Wrong amount: Open" in rows[late]["Details"]
    flask("order", "settle", late, "--credit")
    again = page("reconciliation/1").rows
    assert [row["Next step"] for row in again if row.get("Order number") == late] == ["Check the payment"]
    one_kind = page("reconciliation/1?kind=missing_here").rows
    assert [row["Order number"] for row in one_kind if "Next step" in row] == ["20260501000"]


def test_times_of_details_are_in_the_zone_of_the_page(result, api, console):
    missing = completed(api)
    console.set_cookie("console_zone", "Asia/Tokyo", path="/console")
    shown = result(csv_of(line("20260501000")))
    (details,) = [row["Details"] for row in shown.rows if row.get("Order number") == missing]
    assert details == "moved here at 2026-05-01 13:00:00"
    assert '<time datetime="2026-05-01T13:00:00+09:00"' in shown.html.partition("moved here at ")[2][:50]


def test_the_result_is_that_of_the_command_and_changes_nothing_else(result, api, flask, page, tmp_path):
    completed(api)
    content = csv_of(line(completed(api), "99.00"), line("20260501000", "12.50"))
    before = [list(table.select().dicts()) for table in (Order, History, PaymentException, Posting, Callback)]
    result(content)
    assert [list(table.select().dicts()) for table in (Order, History, PaymentException, Posting, Callback)] == before
    file = tmp_path / "statement.csv"
    file.write_bytes(content)
    told = json.loads(flask("reconcile", 2, file, "--json", fails=True).stdout)
    kept = kept_results.of(Reconciliation.get())
    assert [(each.kind, each.order_no, each.detail) for each in kept.differences] == [
        (each["kind"], each["order_no"], each["detail"]) for each in told["differences"]
    ]
    assert (kept.row.since, kept.row.until, kept.row.lines, kept.row.matched) == ("2026-05-01", "2026-05-01", 2, 1)
    assert kept.kinds == {"amount": (1, 100), "missing_here": (1, 1_250), "missing_there": (1, 10_000)}
    assert "compared a statement of" in page("audit/").html


def test_the_same_file_is_kept_once_and_results_are_listed_newest_first(upload, page, api):
    order_no = api.buy().data["order_no"]
    content = csv_of(line(order_no))
    first = upload(content).headers["Location"]
    assert Reconciliation.get().differences == 1
    found = '<span class="state pending">Differences found: 1</span>'
    shown = page(first.removeprefix("/console/")).html
    assert (found in shown, '<p class="notice warn"' in shown.partition("<h1")[0]) == (True, True)
    assert found in page("reconciliations/").html
    api.play(order_no, "success")
    assert upload(content, name="renamed.csv").headers["Location"] == first
    shown = page(first.removeprefix("/console/")).html
    agrees = '<span class="state good">No differences</span>'
    assert (agrees in shown, '<p class="notice good"' in shown) == (True, True)
    (row,) = [row for row in page("reconciliations/").rows if row]
    assert (row["File"], row["Result"], row["Matched"]) == ("renamed.csv", "No differences", "1")
    upload(content, name="of channel 3.csv", channel=3)
    shown = page("reconciliations/")
    assert shown.column("File") == ["of channel 3.csv", "renamed.csv"]
    assert shown.links["renamed.csv"] == "/console/reconciliation/1"
    assert page("reconciliations/?flt_channel=3").column("File") == ["of channel 3.csv"]
    page("reconciliation/99", status=404)


def test_options_are_those_of_the_command(differences, api):
    deposit = completed(api)
    content = "商户单号,金额,状态\n".encode() + f"{deposit},100.00,成功\n".encode()
    columns = "number=商户单号\namount=金额\nstatus=状态\npaid=成功"
    assert differences(content, columns=columns, since="2026-05-01", kind=1) == []
    fees = differences(csv_of(line(deposit, fee="0.10")), fee_rate="0.38")
    assert [(row["Kind of difference"], row["Orders"], row["Channel statement"]) for row in fees] == [
        ("Fee differs", "¥0.38", "¥0.10")
    ]
    assert fees[0]["Next step"] == "Check the channel's fees"


@pytest.mark.parametrize(
    ("content", "fields", "problem"),
    [
        (b"", {}, "The file is empty."),
        (b"PK\x03\x04", {}, "The Excel workbook is damaged."),
        (b"a,b\n1,2\n", {}, "no line with the columns order_no or out_trade_no"),
        (csv_of(line("1", "x")), {}, "line 2, column amount: not an amount in yuan: &#39;x&#39;"),
        (csv_of(line("1", "9" * 5_000)), {}, "line 2, column amount"),
        (csv_of(line("1", fee="9" * 40)), {}, "line 2, column fee"),
        (csv_of(line("1", time="9999-12-31 23:59:59")), {}, "line 2, column time"),
        (csv_of(line("1", time="0001-01-01 00:00:00")), {}, "line 2, column time"),
        (csv_of(line("1", time="")), {}, "the statement has no times"),
        (csv_of(line("1")), {"channel": ""}, "This field is required."),
        (csv_of(line("1")), {"columns": "number"}, "write one name=value on each line"),
        (csv_of(line("1"), line("2", time="2026-06-01 12:00:00")), {}, "more than 31 days"),
        (csv_of(line("1")), {"since": "yesterday"}, "Enter a day, such as 2026-05-01."),
        (csv_of(line("1")), {"fee_rate": "x"}, "percent"),
    ],
)
def test_a_file_that_can_not_be_compared_is_refused_in_one_sentence(upload, content, fields, problem):
    answer = upload(content, **fields)
    assert (answer.status_code, problem in answer.text) == (422, True)
    assert Reconciliation.select().count() == 0


def test_after_a_wrong_option_the_file_need_not_be_chosen_again_and_another_one_replaces_it(upload, api):
    asked = upload(csv_of(line(completed(api))), since="yesterday").text
    assert "statement.csv</bdi> · Already uploaded. Choose a file only to compare another one." in asked
    (form,) = [form for form in Shown(asked).forms if "file-content" in form]
    sent = {name: value for name, value in form.items() if name.startswith("file-")}
    assert upload(csv_of(line("20260501000")), "other.csv", **sent).status_code == 303
    assert Reconciliation.get().file == "other.csv"


def test_a_large_file_is_compared_and_its_first_differences_are_shown_and_a_larger_one_is_refused(upload, result, page):
    content = csv_of(*[line(f"2026050{number:04d}", reference="x" * 60) for number in range(5_000)])
    shown = result(content)
    assert "The first 500 differences are kept." in shown.html
    assert len([row for row in shown.rows if "Next step" in row]) == 100
    last = page("reconciliation/1?from=400")
    assert (last.rows[-1]["Order number"], "Next" in last.links) == ("20260500499", False)
    kept = kept_results.of(Reconciliation.get())
    assert (kept.row.differences, len(kept.differences)) == (5_000, 500)
    assert len(kept.row.result) < 200_000
    assert upload(content * 12).status_code == 413


def test_one_comparison_runs_at_a_time(upload):
    uploaded = tables.alone(lambda: upload(csv_of(line("1"))))
    assert "Another file is being read. Try again in a moment." in uploaded.text
    assert upload(csv_of(line("1")), since="9999-12-30", until="9999-12-31").status_code == 303, "the last day of all"


def test_texts_of_the_file_are_escaped_and_shortened(result):
    shown = result(csv_of(line("<script>alert(1)</script>" * 9, reference="r" * 300)), name="<img>.csv")
    assert "<script>alert" not in shown.html
    assert "<img>" not in shown.html
    (difference,) = kept_results.of(Reconciliation.get()).differences
    assert (len(difference.order_no), len(difference.reference)) == (100, 0)


def test_a_file_without_a_status_column_asks_whether_each_line_is_paid(upload, console, page, api):
    content = f"order_no,amount,time\n{completed(api)},100.00,{NOW}\n".encode()
    assert "Each line of this file is a completed payment" not in upload(b"").text
    answer = upload(content)
    assert (answer.status_code, 'name="all_paid"' in answer.text) == (422, True)
    assert "The file has no status column, so each line would count as a completed payment." in answer.text
    (form,) = [form for form in Shown(answer.text).forms if "file-content" in form]
    data = form | {"channel": 2, "kind": 0, "all_paid": "y"}
    compared = console.post("/console/reconciliation/upload", data=data, content_type="multipart/form-data")
    shown = page(compared.headers["Location"].removeprefix("/console/"))
    assert Reconciliation.get().file == "statement.csv"
    assert "The statement agrees with the orders." in shown.html
    assert "1 of 1 match an order" in shown.html
    (received,) = [row for row in shown.rows if row.get("Sum (¥)") == "Received"]
    assert (received["Channel statement"], received["Orders"], received["Difference"]) == ("100.00", "100.00", "")


def test_refunds_have_a_sum_of_their_own_and_a_missing_one_is_checked_and_not_adjusted(result, api, page):
    allow()
    first, second = completed(api), completed(api)
    refunded(api, first, "40.00")
    number = refunded(api, second, "30.00")
    shown = result(csv_of(line(first), line(first, "40.00", status="refunded"), line(second)))
    sums = {row["Sum (¥)"]: (row["Channel statement"], row["Orders"], row["Difference"]) for row in shown.rows[:4]}
    assert sums == {
        "Received": ("200.00", "200.00", ""),
        "Paid out": ("0.00", "0.00", ""),
        "Refunds": ("40.00", "70.00", "-30.00"),
        "Fees": ("0.00", "0.00", ""),
    }
    (missing,) = [row for row in shown.rows if "Next step" in row]
    assert (missing["Kind of difference"], missing["Orders"], missing["Next step"]) == (
        "Refund: missing in the statement",
        "Completed ¥30.00",
        "Check the order",
    )
    completed_at = datetime.fromtimestamp(Refund.get(Refund.refund_no == number).updatetime, UTC)
    assert missing["Details"] == f"refund {number} completed here at {completed_at:%Y-%m-%d %H:%M:%S}"
    # Results of earlier versions have no such sum.
    row = Reconciliation.get()
    kept = json.loads(row.result)
    for side in kept["sums"].values():
        del side["refunds"]
    Reconciliation.update(result=json.dumps(kept)).execute()
    older = [each["Sum (¥)"] for each in page("reconciliation/1").rows if "Sum (¥)" in each]
    assert older == ["Received", "Paid out", "Fees"]
