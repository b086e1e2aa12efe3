"""Account balances: the page of all channels, that of one, and the form that records the channel's figure."""

from datetime import datetime, timedelta, timezone

import pytest

from models.tables.account_balance import AccountBalance
from models.tables.operator import AuditEntry
from tests.support import completed

CHINA = timezone(timedelta(hours=8))
ONE = "account_balances/2"
UNEXPLAINED = "Unexplained difference (¥)"


@pytest.fixture(autouse=True)
def may(time_machine):
    """Noon on 2 May 2026 in China."""
    time_machine.move_to(datetime(2026, 5, 2, 12, tzinfo=CHINA))


@pytest.fixture
def figures(page):
    """`figures()`: the recorded balances on the page of the channel."""

    def read(**more):
        columns = ("Day", "By the channel (¥)", "By the books (¥)", "Difference (¥)", "Unexplained (¥)", "Explanation")
        return [tuple(row[name] for name in columns) for row in page(ONE, **more).rows if "Explanation" in row]

    return read


def test_all_channels_have_a_row_and_their_latest_figure(page, send, api):
    completed(api)
    send(ONE, amount="1,100.00", day="2026-05-02")
    rows = {row["Channel"].split()[1]: row for row in page("account_balances/").rows if UNEXPLAINED in row}
    columns = ("By the books now (¥)", "By the channel (¥)", "Day", "Source", UNEXPLAINED, "Since")
    assert {name: tuple(row[column] for column in columns) for name, row in rows.items()} == {
        "A": ("10,000.00", "not recorded", "", "", "", ""),
        "B": ("100.00", "1,100.00", "2026-05-02", "operator", "+1,000.00", "2026-05-02"),
        "C": ("0.00", "not recorded", "", "", "", ""),
        "D": ("0.00", "not recorded", "", "", "", ""),
    }
    assert page("account_balances/").links["Sandbox B"] == f"/console/{ONE}"


def test_the_page_of_a_channel_shows_how_the_expected_balance_is_made_up(page, api, flask):
    completed(api)
    api.notice(api.buy().data["order_no"], 9_000)
    flask("channel", "set", 2, "--settlement-days", 1)
    completed(api)
    text = page(ONE).text
    for line in ("Booked", "Received, not credited yet", "In open exceptions", "Payouts and refunds in progress"):
        assert line in text
    table = page(ONE).html.partition('id="by-books"')[2].partition("</table>")[0]
    assert [part.partition("<")[0] for part in table.split('<td class="money">')[1:]] == [
        *("100.00", "100.00", "90.00"),
        *("0.00", "290.00"),
    ]


def test_an_operator_records_a_figure_and_explains_its_difference(page, send, figures, api):
    completed(api)
    answer = send(ONE, amount="-5.00", day="2026-05-01")
    assert (answer.status_code, answer.location) == (303, f"/console/{ONE}")
    send(ONE, amount="600", day="")
    assert figures() == [
        ("2026-05-02", "600.00", "100.00", "+500.00", "+500.00", "Explain difference"),
        ("2026-05-01", "-5.00", "0.00", "-5.00", "-5.00", "Explain difference"),
    ]
    assert "unexplained" not in page(ONE).text
    link = page(ONE).html.partition("day=2026-05-02&amp;amount=600.00")
    assert link[1]
    asked = page(f"{ONE}?day=2026-05-02&amount=600.00")
    assert (asked.fields["day"], asked.fields["amount"]) == ("2026-05-02", "600.00")
    send(ONE, amount="600.00", day="2026-05-02", note="opening <balance>")
    assert figures()[0] == ("2026-05-02", "600.00", "100.00", "+500.00", "0.00", "opening <balance>")
    kept = AuditEntry.select().where(AuditEntry.action == "record account balance").order_by(AuditEntry.id.desc())
    entry = kept.first()
    assert (entry.who, entry.about, entry.key) == ("demo", "channel", "2")
    assert entry.detail == "day: 2026-05-02; amount: 600.00; note: opening <balance>"
    assert "recorded the account balance of channel Sandbox B" in page("audit/").text


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"amount": "", "day": "2026-05-01"}, "Must be"),
        ({"amount": "1.005", "day": "2026-05-01"}, "decimals"),
        ({"amount": "much", "day": "2026-05-01"}, "Must be"),
        ({"amount": "5", "day": "2026-05-03"}, "The day is in the future."),
        ({"amount": "5", "day": "2026-02-30"}, "Enter a day, such as 2026-05-01."),
        ({"amount": "5", "day": "9999-12-31"}, "The day is in the future."),
        ({"amount": "5", "day": "20260501"}, "Enter a day, such as 2026-05-01."),
        ({"amount": "5", "day": "2026-W18-5"}, "Enter a day, such as 2026-05-01."),
        ({"amount": "5", "day": "1999-12-31"}, "Enter a day, such as 2026-05-01."),
        ({"amount": "1e5", "day": "2026-05-01"}, "Must be a decimal number."),
        ({"amount": "5", "day": "2026-05-01", "note": "x" * 301}, "300"),
    ],
)
def test_an_invalid_figure_is_refused_at_its_field(send, fields, message):
    answer = send(ONE, **fields)
    assert (answer.status_code, AccountBalance.select().count()) == (422, 0)
    assert message in answer.text


def test_a_viewer_sees_the_figures_and_cannot_record_any(page, send, viewer, figures, console):
    send(ONE, amount="5", day="2026-05-01")
    assert figures(client=viewer) == [("2026-05-01", "5.00", "0.00", "+5.00", "+5.00", "")]
    assert "Record a balance" not in page(ONE, client=viewer).text
    assert send(ONE, client=viewer, amount="6", day="2026-05-01").status_code == 403
    assert console.post(f"/console/{ONE}", data={"amount": "6"}).status_code == 400  # without the form's token
    assert [row.amount for row in AccountBalance.select()] == [500]


def test_a_channel_that_does_not_exist_has_no_page(page):
    page("account_balances/99", status=404)


def test_the_pages_are_in_chinese_too(page, send, console, api):
    completed(api)
    send(ONE, amount="5", day="2026-05-01")
    console.set_cookie("console_language", "zh")
    assert "未说明差额（¥）" in page("account_balances/").text
    text = page(ONE).text
    for each in ("当前账面", "已收款，未入账", "处理中的代付和退款", "登记余额", "说明差额"):
        assert each in text


def test_the_page_of_a_channel_leads_to_its_account(page):
    assert page("channel/2").links["Account balance"] == f"/console/{ONE}"
