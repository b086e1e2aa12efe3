"""The console's first page shows the shop's state, in numbers that agree with the linked lists."""

import re
from datetime import UTC, datetime
from urllib.parse import parse_qsl, urlsplit
from zoneinfo import ZoneInfo

import pytest

from models.db.base import database
from services.console import statistics
from services.ledger import scheduled_checks
from tests.databases import unguarded
from tests.pages import CLAIM, FORM
from tests.support import completed, until, words

BALANCE_OFF = "UPDATE ledger_account SET balance = balance + 1 WHERE kind = 'fees'"


@pytest.fixture
def dashboard(page, sign_in, monkeypatch):
    """`dashboard(zone)`: the present first page, for a reader in a time zone, who signs in again if necessary."""
    monkeypatch.setattr(statistics, "FRESH", -1)
    clients = {}

    def look(zone="UTC", name="demo"):
        if name not in clients or clients[name].get("/console/").status_code != 200:
            clients[name] = sign_in(name)
        clients[name].set_cookie("console_zone", zone, path="/console")
        return page(client=clients[name])

    return look


def card(shown, title):
    """The text of one card of the page."""
    found = re.search(rf"<h2[^>]*>(?:<a[^>]*>)?{re.escape(title)}.*?</section>", shown.html, re.DOTALL)
    assert found, title
    return words(re.sub(r"<[^>]+>", " ", found[0]))


def verdict(shown):
    """The first lines of the page."""
    found = re.search(r'<section class="verdict (\w+)".*?</section>', shown.html, re.DOTALL)
    return found[1], words(re.sub(r"<[^>]+>", " ", found[0]))


def by_day(shown):
    """The table's rows that are not empty: day, in, out, fees, orders."""
    rows = [row for row in shown.rows if "Day" in row and row["Orders created"] != "0"]
    return [tuple(row.values()) for row in rows]


def behind(link):
    """The filters of a linked list, with the type as in orders."""
    address = urlsplit(link.replace("&amp;", "&"))
    assert address.path == "/console/orders/"
    filters = {name.removeprefix("flt_"): value for name, value in parse_qsl(address.query)}
    return filters | ({"type": {"buy": "1", "sell": "2"}[filters["type"]]} if "type" in filters else {})


def counted(filters, zone="UTC"):
    """The number of orders in a list with these filters, and their amount, from all rows."""

    def moment(text, last):
        at = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()
        return at + 59 if last else at

    columns = {"type": "order_type", "status": "status", "channel": "channel_id", "method": "payment_method"}
    names = [*columns.values(), "createtime", "amount"]
    found = database.execute_sql(f'SELECT {", ".join(names)} FROM "order"').fetchall()
    rows = [dict(zip(names, row, strict=True)) for row in found]
    if "since" in filters:
        since, until = moment(filters["since"], False), moment(filters["until"], True)
        rows = [row for row in rows if since <= row["createtime"] <= until]
    for name, column in columns.items():
        if name in filters:
            rows = [row for row in rows if str(row[column]) == filters[name]]
    return len(rows), sum(row["amount"] for row in rows)


# Numbers


def test_volumes_orders_and_fees_are_those_of_the_api(dashboard, api, flask):
    completed(api)
    api.play(api.buy("50.00").data["order_no"], "fail")
    api.buy("7.00")
    flask("channel", "set", 2, "--auto-accept-max", "1000.00")
    paid_out = api.sell("30.00", channel=3).data["order_no"]
    flask("order", "accept", paid_out)
    flask("order", "paid", paid_out)
    shown = dashboard()
    today = card(shown, "Today")
    assert "Completed deposits (¥) 100.00" in today
    assert "Completed withdrawals (¥) 30.00" in today
    assert "Orders created 4" in today
    assert "Fees earned 0.69 less channel cost of 0.02" in today
    assert card(shown, "Last 30 days") == today.replace("Today", "Last 30 days")
    assert by_day(shown) == [(f"{datetime.now(UTC):%Y-%m-%d}", "100.00", "30.00", "0.69", "4")]


def test_a_day_is_in_the_readers_time_zone(dashboard, api, time_machine):
    for at in ("2026-11-20T15:59:59", "2026-11-20T16:00:00", "2026-11-21T15:59:59", "2026-11-21T16:00:00"):
        time_machine.move_to(datetime.fromisoformat(f"{at}+00:00"), tick=False)
        completed(api)
    time_machine.move_to(datetime(2026, 11, 22, 12, tzinfo=UTC), tick=False)

    def orders(zone):
        return {day: count for day, *_, count in by_day(dashboard(zone))}

    assert orders("Asia/Shanghai") == {"2026-11-20": "1", "2026-11-21": "2", "2026-11-22": "1"}
    assert orders("UTC") == {"2026-11-20": "2", "2026-11-21": "2"}
    assert orders("Asia/Kathmandu") == {"2026-11-20": "2", "2026-11-21": "2"}
    assert orders("America/Los_Angeles") == {"2026-11-20": "2", "2026-11-21": "2"}


def test_days_follow_changes_of_daylight_saving_time(dashboard, api, time_machine):
    berlin = ZoneInfo("Europe/Berlin")  # winter begins on 2026-10-25
    moments = [
        *((24, 0, 0), (24, 23, 59), (25, 0, 0), (25, 23, 59), (26, 0, 0), (26, 23, 59)),
    ]
    for day, hour, minute in moments:
        time_machine.move_to(datetime(2026, 10, day, hour, minute, tzinfo=berlin), tick=False)
        api.buy()
    time_machine.move_to(datetime(2026, 10, 30, 12, tzinfo=berlin), tick=False)
    assert [(day, count) for day, *_, count in by_day(dashboard("Europe/Berlin"))] == [
        (f"2026-10-{day}", "2") for day in (26, 25, 24)
    ]


def test_orders_older_than_30_days_are_not_counted(dashboard, api, ahead):
    completed(api)
    ahead(29 * 86_400)
    assert "Orders created 1" in card(dashboard(), "Last 30 days")
    ahead(86_400)
    assert "Orders created 0" in card(dashboard(), "Last 30 days")


def test_numbers_follow_an_orders_steps(dashboard, api):
    order_no = api.buy().data["order_no"]
    assert "(¥) 0.00" in card(dashboard(), "Today")
    api.play(order_no, "success")
    assert "Completed deposits (¥) 100.00" in card(dashboard(), "Today")


def test_many_blocks_of_orders_add_up_as_one(demo, dashboard, api, flask, monkeypatch, time_machine):
    monkeypatch.setattr(statistics, "BLOCK", 64)
    monkeypatch.setattr(statistics, "OVERLAP", 10)
    time_machine.move_to(datetime(2026, 3, 15, tzinfo=UTC))
    flask("seed", "--orders", "2000")
    dashboard()
    for order_no in [completed(api) for _ in range(3)]:
        api.play(order_no, "reverse")
    shown = dashboard()
    assert_links_agree(shown)
    assert len(by_day(shown)) == 30


# Links


def assert_links_agree(shown, zone="UTC"):
    """Check that each number with a link to orders is their number or their amount."""
    found = re.findall(r'<a (?:class="amount" )?href="(/console/orders/\?[^"]+)"[^>]*>([\d,.]+)</a>', shown.html)
    for link, number in found:
        count, amount = counted(behind(link), zone)
        text = number.replace(",", "")
        assert text == (f"{amount / 100:.2f}" if "." in text else str(count)), link
    assert len(found) > 60


def test_every_number_agrees_with_its_linked_list(dashboard, api):
    for _ in range(3):
        completed(api)
    api.play(api.buy(channel=1, paychannel_paymethod="alipay").data["order_no"], "fail")
    api.sell()
    for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
        assert_links_agree(dashboard(zone), zone)


def test_a_bar_shows_its_numbers_and_links_to_its_orders(dashboard, api):
    completed(api)
    shown = dashboard()
    (bar,) = re.findall(r'<a href="([^"]+)" class="bar">\s*<title>([^<]+)</title>', shown.html)
    assert words(bar[1]) == f"{datetime.now(UTC):%Y-%m-%d} · in: 100.00 · 1 order"
    assert counted(behind(bar[0])) == (1, 10_000)


def test_success_is_the_share_of_finished_orders(dashboard, api):
    for outcome, count in (("success", 9), ("fail", 3)):
        for _ in range(count):
            api.play(api.buy().data["order_no"], outcome)
    api.buy()
    api.play(api.buy(channel=1).data["order_no"], "success")
    rows = [row for row in dashboard().rows if "Success rate" in row]
    assert [tuple(row.values()) for row in rows] == [
        ("Sandbox B · WeChat Pay", "75.0 %", "9", "3", "1"),
        ("Sandbox A · WeChat Pay", "too few orders", "1", "0", "0"),
    ]


# To do


@pytest.fixture
def verified(app):
    """The ledger was checked just now."""
    scheduled_checks.record("command", {}, 0.1)


def test_without_open_items_everything_is_up_to_date(dashboard, verified, api):
    completed(api)
    assert verdict(dashboard()) == ("well", "Everything is up to date.")


def test_exceptions_payouts_and_claims_need_attention(dashboard, verified, api, http, ahead):
    api.play(api.buy().data["order_no"], "wrong_amount")
    for _ in range(2):
        api.sell()
    claimed = api.buy(channel=3).data["order_no"]
    http("POST", CLAIM, f"order_no={claimed}".encode(), FORM)
    ahead(3 * 3_600)
    severity, text = verdict(dashboard())
    assert severity == "urgent"
    assert text.startswith("3 items need attention")
    assert "Customers who say they have paid: 1 (oldest: 3 hours)" in text
    assert "Open exceptions: 1" in text
    assert "Withdrawals to review or send: 2 (oldest: 3 hours)." in text
    assert text.index("Urgent") < text.index("Soon")
    waits = card(dashboard(), "To do")
    assert "Open exceptions 1" in waits
    assert "Withdrawals to review or send 2 oldest: 3 hours" in waits


def test_withdrawals_that_wait_long_are_urgent(dashboard, verified, api, ahead):
    api.sell()
    assert verdict(dashboard())[0] == "soon"
    ahead(86_401)
    assert verdict(dashboard())[0] == "urgent"


def test_a_manual_withdrawal_needs_attention_until_it_is_paid(dashboard, verified, api, flask):
    order_no = api.sell(channel=3).data["order_no"]
    flask("order", "accept", order_no)
    assert "Withdrawals to review or send: 1" in verdict(dashboard())[1]
    flask("order", "paid", order_no)
    assert verdict(dashboard())[0] == "well"


def test_failed_callbacks_are_reported(dashboard, verified, api, shop, due, ahead):
    shop.answers(500)
    completed(api)
    due.callbacks()
    assert verdict(dashboard()) == ("soon", "1 item needs attention Soon Callbacks being retried: 1.")
    for _ in range(8):
        ahead(40_000)
        due.callbacks()
    severity, text = verdict(dashboard())
    assert severity == "urgent"
    assert "Callbacks that failed after all retries, last 7 days: 1." in text
    ahead(8 * 86_400)
    assert "callback" not in verdict(dashboard())[1]


def test_a_merchant_without_callbacks_is_not_reported(dashboard, verified, api, flask):
    flask("merchant", "set", "demo", "--callback-url", "")
    completed(api)
    assert verdict(dashboard())[0] == "well"


def test_a_channel_that_does_not_respond_is_named(dashboard, verified, api, later):
    api.play(api.buy().data["order_no"], "timeout")
    later(60)
    text = verdict(dashboard())[1]
    assert "Sandbox B has not responded about 1 order" in text
    assert "exception" not in text


def test_a_channel_that_fails_more_than_usual_is_named(dashboard, verified, api, ahead):
    for _ in range(55):
        completed(api)
    ahead(3 * 86_400)
    for number in range(24):
        api.play(api.buy().data["order_no"], "fail" if number % 2 else "success")
    scheduled_checks.record("command", {}, 0.1)
    text = verdict(dashboard())[1]
    assert "Sandbox B: deposit success rate since yesterday 50%, usually 100%." in text


def test_an_unchecked_ledger_is_reported(dashboard, api, ahead):
    completed(api)
    assert "The ledger has never been checked." in verdict(dashboard())[1]
    scheduled_checks.record("command", {}, 0.1)
    ahead(3 * 86_400)
    assert "The ledger has not been checked for 3 days." in verdict(dashboard())[1]


@pytest.mark.breaks_the_ledger
@pytest.mark.usefixtures("slow")
def test_a_damaged_ledger_turns_the_page_red_and_names_the_failures(dashboard, verified, api, instance):
    completed(api)
    with unguarded(instance) as books:
        books.execute(BALANCE_OFF)
    scheduled_checks.start("operator demo")
    until(scheduled_checks.running)
    until(lambda: not scheduled_checks.running())
    shown = dashboard()
    severity, text = verdict(shown)
    assert severity == "urgent"
    assert "Ledger integrity check failed. Failed checks: balances equal their entries." in text
    assert "account fees 0 has 61 fen, but its entries sum to 60" in card(shown, "Ledger integrity")


# The first steps


@pytest.fixture
def empty(flask, instance):
    """No merchant, no channel, no order."""
    with unguarded(instance) as books:
        for table in ("entry", "posting", "ledger_account", "channel_link", "receiving_account", "merchant", "channel"):
            books.execute(f"DELETE FROM {table}")


def test_an_empty_shop_shows_the_first_steps(dashboard, empty):
    shown = dashboard()
    assert verdict(shown)[0] == "well"
    begin = card(shown, "Get started")
    for step in ("Add a channel", "Add a merchant", "Give the merchant access to a channel", "Create the first order"):
        assert step in begin
    assert "done" not in begin
    assert '<svg class="bars"' not in shown.html


def test_completed_first_steps_are_marked(dashboard, app):
    begin = card(dashboard(), "Get started")
    assert begin.count("done") == 3


# For all readers, at any size


def test_a_viewer_sees_the_same(dashboard, api):
    completed(api)
    assert card(dashboard(name="viewer"), "Today") == card(dashboard(), "Today")


def test_the_number_of_statements_does_not_grow(demo, dashboard, api, flask, time_machine):
    def statements():
        heard = []
        database.query_hooks.append(heard.append)
        try:
            dashboard()
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
    assert "Orders created 1" in card(page(), "Today")
    api.buy()
    shown = page()
    assert "Orders created 1" in card(shown, "Today")
    assert "As of 20" in shown.text
    monkeypatch.setattr(statistics, "FRESH", -1)
    assert "Orders created 2" in card(page(), "Today")


def test_the_plot_has_a_name_a_description_and_a_table(dashboard, api):
    completed(api)
    html = dashboard().html
    assert '<svg class="bars" role="group" aria-labelledby="volume" aria-describedby="volume-told">' in html
    assert '<desc id="volume-told">' in html
    assert "Show as table" in html


# The lists themselves


def test_the_lists_linked_from_to_do_have_exactly_those_rows(
    dashboard, page, verified, api, http, flask, shop, due, ahead
):
    exceptions = [api.buy().data["order_no"] for _ in range(2)]
    for order_no in exceptions:
        api.play(order_no, "wrong_amount")
    payouts = [api.sell().data["order_no"], api.sell(channel=3).data["order_no"]]
    flask("order", "accept", payouts[1])
    claim = api.buy(channel=3).data["order_no"]
    http("POST", CLAIM, f"order_no={claim}".encode(), FORM)
    shop.answers(410)
    given_up = completed(api)
    due.callbacks()
    shown = dashboard()
    lines = {text: url.replace("&amp;", "&") for text, url in shown.links.items() if "flt_" in url}

    def orders(start):
        (url,) = [url for text, url in lines.items() if text.startswith(start)]
        return {words(row["Order number"]).split()[0] for row in page(url.removeprefix("/console/")).rows}

    assert orders("Open exceptions: 2") == set(exceptions)
    assert orders("Withdrawals to review or send: 2") == set(payouts)
    assert orders("Customers who say they have paid") == {claim}
    (url,) = [url for text, url in lines.items() if text.startswith("Callbacks that failed after all retries")]
    assert [given_up in " ".join(row.values()) for row in page(url.removeprefix("/console/")).rows] == [True]


def test_the_list_linked_from_a_number_has_exactly_those_orders(dashboard, console, page, api):
    done = {completed(api) for _ in range(3)}
    api.buy()
    for zone in ("UTC", "Asia/Kolkata"):
        shown = dashboard(zone)
        console.set_cookie("console_zone", zone, path="/console")
        (bar,) = re.findall(r'<a href="/console/([^"]+)" class="bar">', shown.html)
        rows = page(bar.replace("&amp;", "&")).rows
        assert {words(row["Order number"]).split()[0] for row in rows} == done
