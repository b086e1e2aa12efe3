"""Bills and differences in the console: fetched, compared, checked, explained, and closed by what settles them."""

import io
from datetime import date, datetime, timedelta, timezone
from functools import partial

import pytest

from gateways.base import ChannelUnknown
from models.tables.bill import Bill, StatementDifference
from models.tables.operator import AuditEntry
from runtime.clock import CHINA
from services.operations import alerts
from services.operations.alert_texts import sentence
from services.platform.language import language_of
from services.statements import bills, differences
from tests.blueprints.console.acting import messages, token_of
from tests.blueprints.console.reading import Shown
from tests.refunds import allow, refunded
from tests.support import completed
from tests.trial_service import Trial

HEADER = "order_no,amount,fee,status,time,reference"
NOON = "2026-05-01 12:00:00"
CHANNEL = 2


@pytest.fixture(autouse=True)
def clock(time_machine):
    """`clock("2026-05-01 23:55:00")` sets the time in China; each test begins at noon of that day."""

    def at(text):
        time_machine.move_to(datetime.fromisoformat(text).replace(tzinfo=timezone(timedelta(hours=8))))

    at(NOON)
    return at


def line(order_no, amount="100.00", fee="0.00", status="paid", time=NOON, reference=""):
    return f"{order_no},{amount},{fee},{status},{time},{reference}"


def csv_of(*lines):
    return "\n".join((HEADER, *lines, "")).encode()


@pytest.fixture
def upload(console):
    """`upload(line(...), ...)`: compare a statement; the path of its result."""

    def post(*lines, client=console, **fields):
        file = (io.BytesIO(csv_of(*lines)), "statement.csv")
        data = {"csrf_token": token_of(client), "channel": CHANNEL, "kind": 0, "file": file, "since": "2026-05-01"}
        answer = client.post("/console/reconciliation/upload", data=data | fields, content_type="multipart/form-data")
        assert answer.status_code == 303, answer.text
        return answer.headers["Location"].removeprefix("/console/")

    return post


@pytest.fixture
def next_day(clock, sign_in, page, send):
    """`next_day("10:00:00")`: `page` and `send` of an operator who signs in on 2 May."""

    def begin(time):
        clock(f"2026-05-02 {time}")
        client = sign_in("demo")
        return partial(page, client=client), partial(send, client=client)

    return begin


@pytest.fixture
def check():
    """`check()`: check the differences that are due, as the job does."""
    return differences.check_due


@pytest.fixture
def upstream(monkeypatch):
    """`upstream(content)`: what channels answer when a bill is fetched; an exception is raised."""

    def answers(content):
        def fetch_statement(self, day):
            if isinstance(content, Exception):
                raise content
            return content

        monkeypatch.setattr(Trial, "fetches_statements", True, raising=False)
        monkeypatch.setattr(Trial, "fetch_statement", fetch_statement, raising=False)

    return answers


@pytest.fixture
def kind(check, page, upload):
    """`kind(line(...), ...)`: the kind of the only open difference, with its details, and what to do."""

    def read(*lines):
        upload(*lines)
        check()
        (row,) = page("differences/").rows
        return row["Kind of difference"], row["Next step"]

    return read


def test_a_difference_is_to_do_until_the_operator_resolves_the_exception_of_its_order(
    upload, check, page, flask, api, clock
):
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 9_900, reference="R-9")
    upload(line(order_no, "99.00", reference="R-9"))
    check()
    (row,) = page("differences/").rows
    assert row["Kind of difference"].startswith("Deposit: status differs the money moved there")
    assert (row["Order number"], row["Next step"]) == (order_no, "Resolve exception Explain… Check again")
    assert (row["Difference (¥)"], row["Status"], row["Day"]) == (
        *("99.00", "To do 0 seconds ago", "2026-05-01 Sandbox B"),
    )
    assert "Differences to statements" in page("").text
    assert [each.facts["count"] for each in alerts.now(CHINA) if each.kind == "differences"] == [1]
    assert "differences to statements" in flask("to-do").output
    flask("order", "settle", order_no, "--credit")
    clock("2026-05-01 12:11:00")
    check()
    assert page("differences/").rows == []
    (row,) = page("differences/?flt_state=closed").rows
    assert (row["Order number"], row["Status"], row.get("Next step")) == (order_no, "Closed 11 minutes ago", "")
    assert [each for each in alerts.now(CHINA) if each.kind == "differences"] == []


def test_a_difference_is_explained_on_its_page_and_the_note_is_shown(upload, check, page, send, api):
    order_no = completed(api)
    result = upload(line(order_no, "99.00"))
    check()
    shown = page("difference/1")
    assert "Deposit: amount differs" in shown.text
    assert shown.rows == [
        {
            "Line": "2",
            "Time": shown.rows[0]["Time"],
            "Status": "paid",
            "Order number": order_no,
            "Channel transaction ID": "",
            "Amount (¥)": "99.00",
            "Fee (¥)": "0.00",
        }
    ]
    answer = send("difference/1/explain", note="they correct it on Monday")
    assert answer.headers["Location"] == "/console/difference/1"
    shown = page("difference/1")
    assert "they correct it on Monday" in shown.text
    assert "operator demo" in shown.text
    assert 'id="explain"' not in shown.html
    assert "explained difference" in page("audit/").text
    assert page("differences/").rows == []
    (row,) = [row for row in page(result).rows if "Next step" in row]
    assert row["Status"] == "Explained"
    send("difference/1/explain", note="again")
    assert ("bad", "This difference is settled already.") in messages(page("difference/1").html)


@pytest.mark.parametrize(
    ("note", "problem"),
    [("  ", "Enter the explanation."), ("x" * 501, "Enter at most 500 characters.")],
)
def test_an_explanation_needs_a_note_of_at_most_500_characters(upload, check, page, send, api, note, problem):
    result = upload(line(completed(api), "99.00"))
    check()
    for path in ("difference/1", result):
        send(f"{path}/explain", note=note)
        assert ("bad", problem) in messages(page(path).html)
    assert StatementDifference.get().state == "open"


def test_all_differences_of_a_result_that_are_not_settled_are_explained_at_once(upload, check, page, send, api):
    result = upload(line(completed(api), "99.00"), line(completed(api), "98.00"), line("SHOP-1", "5.00"))
    check()
    assert "of which not settled: 3" in page(result).text
    send(f"{result}/explain", note="the channel's mistake")
    shown = page(result)
    assert ("good", "3 differences explained.") in messages(shown.html)
    assert "of which not settled: 0" in page(result).text
    assert page("differences/").rows == []
    assert len(page("differences/?flt_state=explained").rows) == 3


def test_a_difference_is_checked_again_on_request(upload, check, page, send, api):
    order_no = api.buy().data["order_no"]
    upload(line(order_no))
    check()
    api.play(order_no, "silent")  # the channel has the money now
    send("difference/1/check")
    assert StatementDifference.get().state == "checking"
    check()
    assert StatementDifference.get().state == "closed"
    send("difference/1/check")
    assert ("bad", "Nothing is left to check.") in messages(page("difference/1").html)


def test_lines_of_another_use_of_the_account_lead_to_the_lines(kind, page):
    found = kind(line("SHOP-1", "5.00"), line("SHOP-2", "7.50"))
    assert found == (
        "Other lines: only in the statement lines without an order number of this service: 2",
        "View the lines Explain…",
    )
    lines = page(page("differences/").links["View the lines"].removeprefix("/console/")).rows
    assert [row["Status"] for row in lines if "Next step" in row] == ["To do", "To do"]


def test_a_line_that_is_twice_in_the_statement_has_no_step_but_the_explanation(kind, api):
    order_no = completed(api)
    twice = line(order_no, reference=f"SB{order_no}")
    assert kind(twice, twice) == (
        "Deposit: twice in the statement the statement has the same line twice: it is also line 2",
        "Explain…",
    )


def test_many_fees_that_differ_lead_to_the_costs_of_the_channel(kind, api, page, flask):
    flask("channel", "set", 2, "--cost", "0.38")
    numbers = [completed(api) for _ in range(10)]
    found = kind(*[line(number, fee="0.40", reference=f"SB{number}") for number in numbers])
    assert found == (
        "Fees differ from the rates the fees of 10 payments differ from the rates of this channel",
        "Check the channel's costs Explain…",
    )
    assert page("differences/").links["Check the channel's costs"] == "/console/channel/2"


def test_refunds_and_payouts_are_named(upload, check, page, api, flask):
    allow()
    order_no = completed(api)
    refunded(api, order_no, "40.00")
    payout = api.sell("30.00").data["order_no"]
    upload(line(order_no), line(payout, "30.00"), line(order_no, "10.00", status="refunded", reference="X-1"))
    check()
    kinds = page("differences/?flt_state=all").column("Kind of difference")
    assert any(each.startswith("Payout: status differs") for each in kinds)
    assert any(each.startswith("Refund: ") for each in kinds)


def test_viewers_read_and_do_not_act(upload, check, page, send, viewer, api):
    result = upload(line(completed(api), "99.00"))
    check()
    for path in ("differences/", "difference/1", "bills/", result):
        shown = page(path, client=viewer)
        assert not {"Check again", "Mark as explained", "Explain…", "Fetch again"} & (
            set(shown.sends) | set(shown.links)
        ), path
    for path in ("difference/1/check", "difference/1/explain", "bills/fetch", f"{result}/explain"):
        assert send(path, client=viewer, note="x", channel=2, day="2026-04-30").status_code == 403, path
    assert StatementDifference.get().state == "open"


def test_unknown_differences_and_results_are_not_found(page, send):
    page("difference/9", status=404)
    page("differences/?flt_state=wrong", status=422)
    for path in ("difference/9/check", "difference/9/explain", "reconciliation/9/explain"):
        assert send(path, note="x").status_code == 404


def test_an_operator_fetches_a_bill_and_reads_its_result(upstream, next_day, api):
    order_no = completed(api)
    upstream(csv_of(line(order_no)))
    page, send = next_day("10:00:00")
    send("bills/fetch", channel=CHANNEL, day="2026-05-01")
    (row,) = page("bills/").rows
    assert (row["Day"], row["Status"]) == ("2026-05-01", "Waiting for the bill")
    bills.run()
    shown = page("bills/?flt_channel=2")
    (row,) = [row for row in shown.rows if row["Day"] == "2026-05-01"]
    assert (row["Status"], row["Lines"], row["Matched"]) == ("No differences", "1", "1")
    assert shown.links["2026-05-01"].startswith("/console/reconciliation/")
    entry = AuditEntry.select().where(AuditEntry.action == "fetch bill").get()
    assert (entry.about, entry.key, entry.detail) == ("channel", "2", "day: 2026-05-01")
    assert "fetched a bill of channel" in page("audit/").text
    assert "Sandbox B agrees" in page("").text
    upstream(csv_of(line(order_no, "99.00")))
    send("bills/fetch", channel=CHANNEL, day="2026-05-01")
    bills.run()
    assert page("bills/?flt_channel=2&flt_state=compared").rows[0]["Status"] == "Differences found: 1"
    assert "1 difference to the bills" in page("").text
    differences.explain(list(StatementDifference.select()), "seen", "operator demo")
    assert page("bills/?flt_channel=2&flt_state=compared").rows[0]["Status"] == "Differences settled: 1"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"channel": "2", "day": "2026-05-01"}, "Choose a day before today, at most 90 days ago."),
        ({"channel": "2", "day": "2025-05-01"}, "Choose a day before today, at most 90 days ago."),
        ({"channel": "2", "day": "yesterday"}, "Choose a channel that offers bills, and a day."),
        ({"channel": "2", "day": ""}, "Choose a channel that offers bills, and a day."),
        ({"channel": "99", "day": "2026-04-30"}, "Choose a channel that offers bills, and a day."),
        ({"channel": "x", "day": "2026-04-30"}, "Choose a channel that offers bills, and a day."),
        ({}, "Choose a channel that offers bills, and a day."),
    ],
)
def test_a_bill_of_a_wrong_channel_or_day_is_not_fetched(upstream, page, send, fields, problem):
    upstream(None)
    send("bills/fetch", **fields)
    assert messages(page("bills/").html) == [("bad", problem)]
    assert Bill.select().count() == 0


def test_a_channel_without_bills_is_not_offered(page, send):
    assert "Fetch a bill" not in page("bills/").text
    send("bills/fetch", channel=CHANNEL, day="2026-04-30")
    assert messages(page("bills/").html) == [("bad", "Choose a channel that offers bills, and a day.")]


def test_a_late_bill_is_an_alert_until_its_statement_is_uploaded(upstream, upload, next_day, api, sign_in):
    order_no = completed(api)
    upstream(ChannelUnknown("no connection"))
    page, _ = next_day("17:45:00")
    bills.run()
    assert "no bill yet from" in page("").text
    ours = Bill.select().where(Bill.channel == CHANNEL, Bill.day == "2026-05-01").get()
    assert (ours.state, ours.problem) == ("late", "no connection")
    (finding,) = [each for each in alerts.now(CHINA) if each.kind == "bills" and each.facts["channel"] == CHANNEL]
    assert finding.severity == "soon"
    assert (finding.facts["count"], finding.facts["day"]) == (7, "2026-04-25")
    text = sentence(finding, language_of("en"))
    assert text == "Sandbox B: 7 bills are missing, the oldest of 2026-04-25. no connection"
    assert sentence(finding, language_of("zh")).startswith("Sandbox B：缺少 7 份账单，最早一份为 2026-04-25。")
    assert page("bills/?flt_state=late&flt_channel=2").rows[0]["Last problem"] == "no connection"
    upload(line(order_no), client=sign_in("demo"), since="2026-04-25", until="2026-05-01")
    assert [each for each in alerts.now(CHINA) if each.kind == "bills" and each.facts["channel"] == CHANNEL] == []


def test_in_chinese_no_english_is_left_on_these_pages(upstream, upload, check, console, api):
    upstream(None)
    result = upload(line(completed(api), "99.00"), line("SHOP-1", "5.00"))
    check()
    bills.request(differences.find(1).channel, date(2026, 4, 30))
    for path in ("bills/", "differences/?flt_state=all", "difference/1", "difference/2", result):
        shown = Shown(console.get(f"/console/{path}", headers={"Accept-Language": "zh"}).text)
        for english in ("Status", "Next step", "Explain", "Check", "Waiting", "Channel", "statement "):
            assert english not in shown.text.replace("statement.csv", ""), (path, english)


def test_the_commands_list_check_and_explain(upload, check, flask, flask_json, refuses, api):
    order_no = completed(api)
    upload(line(order_no, "99.00"))
    check()
    (row,) = flask_json("difference", "list", "--channel", CHANNEL)
    assert {name: row[name] for name in ("id", "state", "about", "kind", "order_no", "amount", "since")} == {
        "id": 1,
        "state": "open",
        "about": "deposit",
        "kind": "amount",
        "order_no": order_no,
        "amount": "1.00",
        "since": "2026-05-01",
    }
    assert order_no in flask("difference", "list").output
    assert "difference 1: checking" in flask("difference", "check", 1).output
    check()
    assert "Enter the explanation." in refuses("difference", "explain", 1, "--note", " ")
    assert "difference 1: explained" in flask("difference", "explain", 1, "--note", "their mistake").output
    assert "This difference is settled already." in refuses("difference", "explain", 1, "--note", "again")
    assert flask_json("difference", "list") == []
    assert [row["note"] for row in flask_json("difference", "list", "--state", "all")] == ["their mistake"]
    assert "There is no such difference." in refuses("difference", "check", 9)
    assert "There is no such difference." in refuses("difference", "explain", 9, "--note", "x")


def test_the_commands_fetch_and_list_bills(upstream, flask, flask_json, refuses, api, clock):
    assert "This channel offers no bills." in refuses("bill", "fetch", CHANNEL, "2026-04-30")
    upstream(csv_of(line(completed(api))))
    clock("2026-05-02 10:00:00")
    assert "at most 90 days ago" in refuses("bill", "fetch", CHANNEL, "2026-05-02")
    assert flask_json("bill", "fetch", CHANNEL, "2026-05-01")["state"] == "waiting"
    assert [row["state"] for row in flask_json("bill", "list")] == ["waiting"]
    bills.run()
    (row,) = flask_json("bill", "list", "--channel", CHANNEL, "--state", "compared")
    assert (row["day"], row["lines"], row["matched"], row["differences"]) == ("2026-05-01", 1, 1, 0)
    assert "2026-05-01" in flask("bill", "list").output


def test_both_lists_are_exported(upstream, upload, check, export, send, api):
    order_no = completed(api)
    upload(line(order_no, "99.00"))
    check()
    send("difference/1/explain", note="their mistake")
    rows = export("differences/export?flt_state=all").text.splitlines()
    assert [order_no in rows[1], "their mistake" in rows[1], "Deposit: amount differs" in rows[1]] == [True] * 3
    upstream(None)
    send("bills/fetch", channel=CHANNEL, day="2026-04-30")
    assert "2026-04-30,Sandbox B,Waiting for the bill" in export("bills/export").text
