"""The figures of the overview: they agree with the orders, with the linked lists, and with the range before."""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from models.db.base import database
from models.tables.bill import COMPARED, NONE, Bill
from models.tables.ledger import CLEARING, COMMISSION
from models.tables.merchant import PROPORTIONAL
from runtime.clock import CHINA
from runtime.state import current
from services.console import order_sums, statistics
from services.jobs import job_table
from services.ledger import accounts, earnings
from tests.blueprints.console.overview.parts import (
    alerts,
    assert_links_agree,
    behind,
    by_slot,
    card,
    counted,
    figure,
    figures,
)
from tests.databases import unguarded
from tests.plans import Heard
from tests.refunds import allow, refunded
from tests.support import completed, until, words

NOON = datetime(2026, 11, 22, 12, 30, tzinfo=UTC)


# Numbers


def test_figures_are_those_of_the_api(overview, api, flask):
    completed(api)
    api.play(api.buy("50.00").data["order_no"], "fail")
    api.buy("7.00")
    paid_out = api.sell("30.00", channel=3).data["order_no"]
    flask("order", "accept", paid_out)
    flask("order", "paid", paid_out)
    shown = overview()
    assert figures(shown) == {
        "deposits": "Deposits (¥) 100.00 Today: 100.00",
        "withdrawals": "Withdrawals (¥) 30.00 Today: 30.00",
        "income": "Net income (¥) 0.67 Fees 0.69, channel cost 0.02",
        "rate": "Success rate 66.7 % 2 of 3",
        "orders": "New orders 4 Today: 4",
    }
    assert figures(overview(name="viewer")) == figures(shown)
    assert by_slot(shown) == [(f"{datetime.now(UTC):%Y-%m-%d}", "100.00", "30.00", "4")]
    rates = [tuple(row.values()) for row in shown.rows if "Success rate" in row]
    assert rates == [
        ("Sandbox B · WeChat Pay", "50.0 % 1 of 2", "1", "1", "1"),
        ("Manual C · Bank transfer", "100.0 % 1 of 1", "1", "0", "0"),
    ]
    today = figures(overview(range="today"))
    assert today["deposits"] == "Deposits (¥) 100.00 of 1 order created today"
    assert today["orders"] == "New orders 4 1 in progress"


DAYS = {
    "Asia/Shanghai": {"2026-11-20": "1", "2026-11-21": "2", "2026-11-22": "1"},
    "UTC": {"2026-11-20": "2", "2026-11-21": "2"},
    "Asia/Kathmandu": {"2026-11-20": "2", "2026-11-21": "2"},
    "America/Los_Angeles": {"2026-11-20": "2", "2026-11-21": "2"},
}
HOURS = {
    "UTC": {"12:00": "1", "00:00": "2"},
    "Asia/Shanghai": {"20:00": "1", "08:00": "2", "07:00": "1"},
    "Asia/Kathmandu": {"18:00": "1", "06:00": "1", "05:00": "2"},
}


@pytest.mark.parametrize(
    ("name", "moments", "counts"),
    [
        ("7", ("20T15:59:59", "20T16:00:00", "21T15:59:59", "21T16:00:00"), DAYS),
        ("today", ("21T23:59:59", "22T00:00:00", "22T00:20:00", "22T12:29:59"), HOURS),
    ],
)
def test_a_day_and_an_hour_are_in_the_readers_time_zone(overview, api, time_machine, name, moments, counts):
    for at in moments:
        time_machine.move_to(datetime.fromisoformat(f"2026-11-{at}+00:00"), tick=False)
        completed(api)
    time_machine.move_to(NOON, tick=False)
    found = {zone: {slot: count for slot, *_, count in by_slot(overview(zone, name))} for zone in counts}
    assert found == counts


def test_days_follow_changes_of_daylight_saving_time(overview, api, time_machine):
    berlin = ZoneInfo("Europe/Berlin")  # winter begins on 2026-10-25
    for day in (24, 25, 26):
        for hour, minute in ((0, 0), (23, 59)):
            time_machine.move_to(datetime(2026, 10, day, hour, minute, tzinfo=berlin), tick=False)
            api.buy()
    time_machine.move_to(datetime(2026, 10, 30, 12, tzinfo=berlin), tick=False)
    assert [(day, count) for day, *_, count in by_slot(overview("Europe/Berlin"))] == [
        (f"2026-10-{day}", "2") for day in (26, 25, 24)
    ]


@pytest.mark.parametrize(
    ("name", "label", "days"),
    [("today", "Today", 1), ("wrong", "7 days", 7), ("30", "30 days", 30), ("90", "90 days", 90)],
)
def test_a_range_ends_today_and_has_so_many_days(overview, api, time_machine, name, label, days):
    for back in (days, days - 1):
        time_machine.move_to(NOON - timedelta(back), tick=False)
        completed(api)
    time_machine.move_to(NOON, tick=False)
    shown = overview(range=name)
    assert re.findall(r'aria-current="true">([^<]+)', shown.html) == [label]
    assert figure(shown, "orders").startswith("New orders 1 ")
    rows = [row for row in shown.rows if "In" in row]
    assert len(rows) == (24 if days == 1 else days)


def test_changes_compare_full_hours_with_the_range_before(overview, api, time_machine):
    week_ago = NOON - timedelta(7)
    # Two orders of the range before count. The one in the present hour a week ago does not, nor does that of now.
    for at in (week_ago - timedelta(6), week_ago.replace(hour=11), week_ago, NOON - timedelta(2)):
        time_machine.move_to(at, tick=False)
        completed(api)
    time_machine.move_to(NOON - timedelta(1), tick=False)
    api.play(api.buy("50.00").data["order_no"], "fail")
    time_machine.move_to(NOON, tick=False)
    completed(api)
    shown = overview()
    assert figure(shown, "deposits") == "Deposits (¥) 200.00 -50.0 % Today: 100.00"
    assert figure(shown, "orders") == "New orders 3 no change Today: 1"
    assert figure(shown, "rate") == "Success rate 66.7 % -50.0 points 2 of 3"
    assert 'title="Before: 200.00"' in shown.html
    assert "Changes compare full hours with Nov 9 00:00 to Nov 15 12:00." in shown.text
    month = overview(range="30")
    assert "%" not in figure(month, "deposits")  # nothing to compare with
    assert "Changes compare" not in month.text
    time_machine.move_to(NOON + timedelta(13), tick=False)
    api.play(api.buy("1.00").data["order_no"], "success")
    time_machine.move_to(NOON + timedelta(20), tick=False)
    completed(api)
    time_machine.move_to(NOON + timedelta(21), tick=False)
    assert figure(overview(), "deposits") == "Deposits (¥) 100.00 > +1,000 % Today: 0.00"


def test_today_is_compared_with_the_same_hours_of_yesterday(overview, api, time_machine):
    midnight = NOON.replace(hour=0, minute=10)
    for at in (NOON - timedelta(1, hours=1), NOON - timedelta(1), midnight):
        time_machine.move_to(at, tick=False)
        completed(api)
    assert figure(overview(range="today"), "deposits") == "Deposits (¥) 100.00 of 1 order created today"
    assert "The comparison with yesterday begins after the first full hour." in overview(range="today").text
    time_machine.move_to(NOON, tick=False)
    completed(api)
    assert figure(overview(range="today"), "deposits") == "Deposits (¥) 200.00 no change of 2 orders created today"


def test_a_change_of_less_than_half_of_a_figure_is_not_shown(overview, api, time_machine):
    time_machine.move_to(NOON - timedelta(1, hours=1), tick=False)
    completed(api)
    time_machine.move_to(NOON - timedelta(hours=1), tick=False)
    api.play(api.buy("60.00").data["order_no"], "fail")
    time_machine.move_to(NOON, tick=False)
    completed(api)
    shown = overview(range="today")
    assert figure(shown, "deposits") == "Deposits (¥) 100.00 of 1 order created today", "all of it in this hour"
    assert figure(shown, "rate") == "Success rate 50.0 % -100.0 points 1 of 2"
    completed(api)
    shown = overview(range="today")
    assert figure(shown, "rate") == "Success rate 66.7 % 2 of 3"
    assert figure(shown, "orders") == "New orders 3 0 in progress"
    assert "Changes compare" not in shown.text


def test_income_is_what_was_booked_on_the_days_in_china_less_costs_and_refunds(overview, api, flask, time_machine):
    allow(fees=PROPORTIONAL)
    flask("channel", "set", 2, "--settlement-days", 1)
    yesterday = datetime(2026, 11, 21, 12, tzinfo=CHINA)
    time_machine.move_to(yesterday - timedelta(8), tick=False)
    flask("ledger", "adjust", "demo", "-4.00", "--reason", "bank fee")
    time_machine.move_to(yesterday - timedelta(2), tick=False)
    flask("ledger", "adjust", "demo", "-3.00", "--reason", "bank fee")
    late = completed(api)  # is credited later
    flask("channel", "set", 2, "--settlement-days", 0)
    time_machine.move_to(yesterday, tick=False)
    assert api.status(late) == "confirmed"
    refunded(api, completed(api), "40.00")
    completed(api)
    shown = overview("Asia/Shanghai")
    assert figure(shown, "income") == "Net income (¥) 3.96 -25.0 % Today: 0.96"
    assert "/console/earnings/?since=2026-11-15&until=2026-11-21" in shown.links.values()
    assert figure(overview("Asia/Shanghai", "today"), "income") == "Net income (¥) 0.96"
    assert _yesterday(shown) == "Yesterday: 0 payments, 0 refunds, ¥0.00 earned"
    time_machine.move_to(yesterday + timedelta(1), tick=False)
    flask("ledger", "adjust", "demo", "5.00", "--reason", "sorry")
    shown = overview("Asia/Shanghai")
    assert _yesterday(shown) == "Yesterday: 2 payments, 1 refund, ¥0.96 earned"
    assert "/console/earnings/?since=2026-11-21&until=2026-11-21" in shown.links.values()
    time_machine.move_to(yesterday + timedelta(2), tick=False)
    assert _yesterday(overview("Asia/Shanghai")) == "Yesterday: 0 payments, 0 refunds, ¥5.00 lost"


def test_what_was_earned_yesterday_includes_its_bills_and_no_bills_of_days_before(overview, api, time_machine):
    yesterday = datetime(2026, 11, 21, 12, tzinfo=CHINA)
    time_machine.move_to(yesterday, tick=False)
    completed(api)  # fee 0.60
    _bill("2026-11-20", 7)
    time_machine.move_to(yesterday + timedelta(1), tick=False)
    assert _yesterday(overview("Asia/Shanghai")).startswith("Yesterday: 1 payment, 0 refunds,")
    assert _yesterday(overview("Asia/Shanghai")).endswith("¥0.60 earned")
    _bill("2026-11-21", 38)
    shown = overview("Asia/Shanghai")
    assert _yesterday(shown) == "Yesterday: 1 payment, 0 refunds, Sandbox B agrees, ¥0.22 earned"
    Bill.update(state=NONE).where(Bill.day == "2026-11-21").execute()
    assert "agrees" not in _yesterday(overview("Asia/Shanghai"))


def _bill(day, costs):
    """A compared bill of a day that corrects the costs by so many fen."""
    accounts.post(f"bill_costs 2 {day}", {(CLEARING, 2): costs, (COMMISSION, 0): -costs}, who="service")
    Bill.add(channel=2, day=day, state=COMPARED, costs=costs, createtime=0, updatetime=0)


def test_without_the_sums_of_older_entries_income_is_unknown_not_zero(overview, api, monkeypatch):
    monkeypatch.setattr(earnings, "MOST", 0)
    completed(api)
    shown = overview()
    assert figure(shown, "income") == "Net income (¥) – being prepared"
    assert "earnings are being prepared" in _yesterday(shown)


def _yesterday(shown):
    (found,) = re.findall(r'<p class="card" id="yesterday".*?</p>', shown.html)
    return words(re.sub("<[^>]+>", "", found))


@pytest.mark.parametrize(
    ("amount", "labels"),
    [("14000.00", ["15,000", "10,000", "5,000", "0"]), ("1400000.00", ["1.5M", "1M", "500K", "0"])],
)
def test_the_axis_has_all_its_numbers_in_one_form(overview, api, flask, amount, labels):
    flask("channel", "set", 2, "--max", "9999999.99")
    api.play(api.buy(amount).data["order_no"], "success")
    axis = overview().html.partition('<svg class="axis"')[2].partition("</svg>")[0]
    assert re.findall(r">([^<\s]+)</text>", axis) == labels


def test_millions_are_short_and_their_full_value_is_a_tooltip(overview, api, flask, console):
    flask("channel", "set", 2, "--max", "9999999.99")
    api.play(api.buy("1234567.89").data["order_no"], "success")
    shown = overview()
    assert figure(shown, "deposits").startswith("Deposits (¥) 1.23M Today: 1.23M")
    assert '<p class="value" title="1,234,567.89">' in shown.html
    console.set_cookie("console_language", "zh", path="/console")
    assert "123.46万" in console.get("/console/").text


def taken(rows, first, last):
    """The figures of rows of orders created from `first` until before `last`, computed one by one."""
    rows = [row for row in rows if first.timestamp() <= row["createtime"] < last.timestamp()]
    done = [row for row in rows if row["status"] == "completed"]
    closed = len([row for row in rows if row["status"] == "cancelled"]) + len(done)
    return {
        "deposits": sum(row["amount"] for row in done if row["order_type"] == 1) / 100,
        "withdrawals": sum(row["amount"] for row in done if row["order_type"] == 2) / 100,
        "rate": 100 * len(done) / closed if closed else 0,
        "orders": len(rows),
    }


def changed(name, now, before):
    """The text of a change."""
    number = f"{now - before if name == 'rate' else 100 * (now / before - 1):+.1f}"
    return f"{number} points" if name == "rate" else f"{number} %"


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "America/New_York"])
def test_the_totals_are_those_of_the_orders(demo, overview, flask, monkeypatch, time_machine, zone):
    monkeypatch.setattr(order_sums, "BLOCK", 64)
    now = datetime(2026, 3, 15, 14, 20, tzinfo=ZoneInfo(zone))
    time_machine.move_to(now, tick=False)
    flask("seed", "--orders", "1500")
    columns = ("order_type", "status", "amount", "createtime")
    found = database.execute_sql(f'SELECT {", ".join(columns)} FROM "order"').fetchall()
    rows = [dict(zip(columns, row, strict=True)) for row in found]
    for name, days in (("today", 1), ("7", 7), ("30", 30), ("90", 90)):
        start = now.replace(hour=0, minute=0) - timedelta(days - 1)
        figures_of_range, full_hours = taken(rows, start, now), taken(rows, start, now.replace(minute=0))
        before = taken(rows, start - timedelta(days), now.replace(minute=0) - timedelta(days))
        shown = overview(zone, name)
        for each, value in figures_of_range.items():
            text = figure(shown, each)
            number = f"{value:.1f} %" if each == "rate" else f"{value:,}" if each == "orders" else f"{value:,.2f}"
            assert f" {number} " in text, (name, text)
            if before[each] and full_hours[each]:
                assert changed(each, full_hours[each], before[each]) in text, (name, text)
        assert_links_agree(shown, zone)


def test_many_blocks_of_orders_add_up_as_one(demo, overview, api, flask, monkeypatch, time_machine):
    monkeypatch.setattr(order_sums, "BLOCK", 64)
    monkeypatch.setattr(order_sums, "OVERLAP", 10)
    time_machine.move_to(datetime(2026, 3, 15, tzinfo=UTC))
    flask("seed", "--orders", "2000")
    overview()
    for order_no in [completed(api) for _ in range(3)]:
        api.play(order_no, "reverse")
    shown = overview(range="30")
    assert_links_agree(shown)
    assert len(by_slot(shown)) == 30


def test_sums_stay_right_as_weeks_pass(overview, api, time_machine, monkeypatch):
    monkeypatch.setattr(order_sums, "BLOCK", 4)
    for day in range(0, 200, 10):
        time_machine.move_to(NOON + timedelta(day), tick=False)
        completed(api)
        before = len([each for each in range(0, day + 1, 10) if day - each < 90])
        assert figure(overview(range="90"), "orders").startswith(f"New orders {before} ")
    assert figure(overview(range="90"), "orders") == "New orders 9 no change Today: 1"
    time_machine.move_to(NOON, tick=False)  # a clock that was set back
    assert figure(overview(range="90"), "orders").startswith("New orders 1 ")


# Links


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
def test_numbers_and_bars_link_to_exactly_their_orders(overview, console, page, api, zone):
    done = {completed(api) for _ in range(3)}
    api.play(api.buy(channel=1, paychannel_paymethod="alipay").data["order_no"], "fail")
    api.sell()
    shown = overview(zone)
    assert_links_agree(shown, zone)
    (link, title), *_ = re.findall(r'<a href="([^"]+)" class="bar">\s*<title>([^<]+)</title>', shown.html)
    assert words(title).endswith(" · in: 300.00 · 3 orders")
    assert counted(behind(link), zone) == (3, 30_000)
    console.set_cookie("console_zone", zone, path="/console")
    rows = page(link.replace("&amp;", "&").removeprefix("/console/")).rows
    assert {words(row["Order number"]).split()[0] for row in rows} == done


# The first steps


@pytest.fixture
def empty(flask, instance):
    """No merchant, no channel, no order."""
    with unguarded(instance) as books:
        for table in ("entry", "posting", "ledger_account", "channel_link", "receiving_account", "merchant", "channel"):
            books.execute(f"DELETE FROM {table}")


def test_an_empty_shop_shows_the_first_steps_and_a_button_for_the_next(overview, empty):
    shown = overview()
    assert alerts(shown) is None
    begin = card(shown, "Get started")
    for step in ("Add a channel", "Add a merchant", "Give the merchant access to a channel", "Create the first order"):
        assert step in begin
    assert ("done" in begin, '<svg class="bars"' in shown.html) == (False, False)
    assert re.findall(r'<a class="button primary" href="[^"]+">([^<]+)', shown.html) == ["Add a channel"]
    assert {"Add a merchant", "Merchants", "New payment link"} <= set(shown.links)
    assert "New payment link" not in overview(name="viewer").links


def test_completed_first_steps_are_marked(overview):
    shown = overview()
    assert card(shown, "Get started").count("done") == 3
    assert '<a class="button primary" href="/console/new-order/">New payment link</a>' in shown.html


# For all readers, at any size


def test_the_number_of_statements_does_not_grow(demo, overview, api, flask, time_machine):
    def statements():
        heard = []
        database.query_hooks.append(heard.append)
        try:
            overview()
        finally:
            database.query_hooks.remove(heard.append)
        return len(heard)

    completed(api)
    api.sell()
    time_machine.move_to(datetime(2026, 5, 1, tzinfo=UTC))
    statements()
    few = statements()
    flask("seed", "--orders", "3000")
    statements()
    assert statements() <= few + 2


def test_a_result_is_cached_briefly_and_shown_with_its_time(page, api, ahead, monkeypatch):
    completed(api)
    assert figure(page(), "orders").startswith("New orders 1 ")
    api.buy()
    shown = page()
    assert figure(shown, "orders").startswith("New orders 1 ")
    assert "As of 20" in shown.text
    monkeypatch.setattr(statistics, "FRESH", -1)
    assert figure(page(), "orders").startswith("New orders 2 ")


@pytest.mark.usefixtures("slow")
def test_after_a_start_the_sums_of_china_are_ready_before_the_first_view(console, page, api):
    completed(api)
    console.set_cookie("console_zone", "Asia/Shanghai", path="/console")
    stop = job_table.start(current().settings)
    try:
        until(lambda: statistics._cached()(((0, 8 * 3_600),)).result)
    finally:
        stop()
    with Heard() as heard:
        assert figure(page(), "orders").startswith("New orders 1 ")
    assert heard.statements
    assert not any("/ 3600" in sql for sql in heard.statements)


@pytest.mark.parametrize(("name", "so_far", "lines"), [("7", "today so far", 5), ("today", "this hour so far", 4)])
def test_the_unfinished_day_or_hour_is_dashed_and_named_in_chart_table_and_lines(
    overview, api, time_machine, name, so_far, lines
):
    for at in (NOON - timedelta(1), NOON - timedelta(hours=2), NOON):
        time_machine.move_to(at, tick=False)
        completed(api)
    html = overview(range=name).html
    assert len(re.findall(r'<rect class="in open"', html)) == 1
    assert len(re.findall(r'<polyline class="open"', html)) == lines
    assert html.count(f"({so_far})") == 3  # the title and label of the bar, and the row of the table


@pytest.mark.parametrize(
    ("outcomes", "state", "meaning"),
    [
        (("success",), "good", "at least 80 %"),
        (("success", "fail"), "warn", "50 to 80 %"),
        (("fail",), "bad", "below 50 %"),
    ],
)
def test_the_bar_of_a_success_rate_has_the_color_and_the_mark_of_its_state(overview, api, outcomes, state, meaning):
    for outcome in outcomes:
        api.play(api.buy("1.00").data["order_no"], outcome)
    html = overview().html
    assert re.findall(r'<rect class="(good|warn|bad)"', html) == [state]
    assert re.findall(r'<b class="number rated (\w+)" title="([^"]+)"><svg', html) == [(state, meaning)]


def test_the_plot_has_a_name_a_description_and_a_table_and_parts_are_live(overview, api, time_machine):
    time_machine.move_to(NOON - timedelta(1), tick=False)
    completed(api)
    time_machine.move_to(NOON, tick=False)
    html = overview().html
    for text in (
        '<svg class="bars" role="group" aria-labelledby="volume" aria-describedby="volume-told">',
        '<desc id="volume-told">',
        "Show as table",
        'role="img" aria-label="Deposits (¥): lowest 0.00, highest 100.00"',
    ):
        assert text in html
    live = re.findall(r'id="([\w-]+)"[^>]*\bdata-live\b', html)
    assert {"as-of", "alerts", "queues", "figures", "volumes", "rates", "balances", "integrity"} <= set(live)


# The lists themselves
