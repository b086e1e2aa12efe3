"""The console's lists: their content, their filters, and pages in both directions."""

import csv
import io
import re
from datetime import UTC, datetime, timedelta

import pytest

from models.db.base import database
from models.tables.bill import COMPARED, Bill
from models.tables.ledger import CLEARING, COMMISSION
from models.tables.merchant import PROPORTIONAL
from models.tables.order import STATUSES, Order
from services.console import lists
from services.ledger import accounts
from services.refunds import place
from services.refunds.place import Wanted
from services.sandbox import seeded_orders
from tests.all_interfaces import LISTS, add_difference
from tests.blueprints.console.reading import Shown
from tests.databases import raw as connected
from tests.refunds import allow, refunded
from tests.services import walks
from tests.support import completed

ORDERS = 400


@pytest.fixture
def settings_of_app():
    return {"requests_per_second": 1_000_000}


@pytest.fixture
def many(app):
    """Hundreds of orders of both merchants, over months."""
    seeded_orders.seed_orders(ORDERS)


@pytest.fixture
def raw(app, instance):
    """A separate connection."""
    with connected(instance) as connection:
        yield connection


@pytest.fixture
def every(page):
    """`every("orders/?flt_status=paid")`: the order numbers on all its pages, and how many pages there are."""

    def walk(path, heading="Order number"):
        found, pages = [], 0
        at = path
        while at:
            shown = page(at)
            found += [row[heading].split()[0] for row in shown.rows]
            pages += 1
            at = shown.links.get("Older", "").removeprefix("/console/")
        return found, pages

    return walk


def test_a_viewer_sees_every_list_and_a_message_if_it_is_empty(page, viewer):
    for name in LISTS:
        shown = page(f"{name}/", client=viewer)
        assert shown.rows or "No" in shown.text, name
        assert "Export as CSV" in shown.sends, name
    for name, button in (("merchants", "New merchant"), ("channels", "New channel")):
        assert (button in page(f"{name}/").text, button in page(f"{name}/", client=viewer).text) == (True, False)


def test_a_row_shows_an_orders_most_important_facts(page, api, raw):
    order_no = completed(api)
    pending = api.buy("1234.50", merchant_order_no="MY-1").data["order_no"]
    newest, oldest = page("orders/").rows
    assert newest["Order number"].endswith(" MY-1")
    assert (newest["Amount (¥)"], newest["Fees (¥)"], newest["Status"]) == ("1,234.50", "7.41", "Awaiting payment")
    assert (oldest["Order number"], oldest["Status"], oldest["Type"]) == (order_no, "Completed", "Deposit")
    assert (oldest["Merchant"], oldest["Channel"]) == ("Demo Shop 演示商户", "Sandbox B WeChat Pay")
    times = raw.execute('SELECT order_no, completedtime = updatetime FROM "order"').fetchall()
    assert dict(times) == {pending: None, order_no: 1}, "the time of completion is stored"


def test_times_are_those_of_the_readers_zone(clock, page, console, api):
    api.buy()
    console.set_cookie("console_zone", "Asia/Shanghai", path="/console")
    assert page("orders/").column("Created") == ["2026-05-01 20:00:00"]
    for since, until, rows in (("19:59", "20:00", 1), ("20:01", "23:00", 0), ("18:00", "19:59", 0)):
        path = f"orders/?flt_since=2026-05-01T{since}&flt_until=2026-05-01T{until}"
        assert len(page(path).rows) == rows
    assert len(page("orders/?flt_since=2026-05-01&flt_until=2026-05-01").rows) == 1
    assert not page("orders/?flt_since=2026-05-02").rows


STATES = {f"flt_type=&flt_status={status}": f"status = '{status}'" for status in STATUSES}
STATES |= {f"flt_type=buy&flt_status={status}": f"order_type = 1 AND status = '{status}'" for status in STATUSES}
STATES |= {f"flt_type=sell&flt_status={status}": f"order_type = 2 AND status = '{status}'" for status in STATUSES}
FILTERS = STATES | {
    "": "1 = 1",
    "flt_type=buy": "order_type = 1",
    "flt_type=sell": "order_type = 2",
    "flt_merchant=other": "merchant_id = 2",
    "flt_channel=3": "channel_id = 3",
    "flt_channel=3&flt_least=500": "channel_id = 3 AND amount >= 50000",
    "flt_method=alipay&flt_status=completed": "payment_method = 'alipay' AND status = 'completed'",
    "flt_least=500&flt_most=1,000.00": "amount BETWEEN 50000 AND 100000",
    "flt_since=2026-03-05&flt_until=2026-06-01T08:30": "createtime BETWEEN 1772668800 AND 1780302659",
    "flt_since=2026-03-05&flt_status=paid": "createtime >= 1772668800 AND status = 'paid'",
    "flt_until=2026-03-05&flt_merchant=demo&flt_least=9.99": (
        "createtime < 1772755200 AND merchant_id = 1 AND amount >= 999"
    ),
    "search=0012": "merchant_order_no LIKE '%0012%'",
    "search=SEED": "merchant_order_no LIKE 'SEED%'",
    "search=00&flt_type=sell": "merchant_order_no LIKE '%00%' AND order_type = 2",
    "search=nothing": "merchant_order_no = 'nothing'",
    "flt_sort=completed": "status = 'completed'",
    "flt_completed_since=2026-03-05&flt_completed_until=2026-06-01T08:30": (
        "completedtime BETWEEN 1772668800 AND 1780302659"
    ),
    "flt_completed_since=2026-03-05&flt_type=sell&flt_merchant=demo": (
        "completedtime >= 1772668800 AND order_type = 2 AND merchant_id = 1"
    ),
    "flt_sort=completed&flt_since=2026-03-05&flt_channel=2": (
        "completedtime > 0 AND createtime >= 1772668800 AND channel_id = 2"
    ),
    "flt_sort=completed&flt_status=completed&search=00": "completedtime > 0 AND merchant_order_no LIKE '%00%'",
    "flt_sort=completed&flt_status=paid": "0 = 1",
}


def yuan(fen):
    return f"{fen // 100:,}.{fen % 100:02}"


def test_filters_find_count_and_sum_the_same_orders_as_checking_each(page, every, many, raw):
    for filters, condition in FILTERS.items():
        time = "completedtime" if "completed_since" in filters or "sort=completed" in filters else "createtime"
        columns = "order_no, amount, order_type, status"
        sought = f'SELECT {columns} FROM "order" WHERE {condition} ORDER BY {time} DESC, id DESC'
        wanted = raw.execute(sought).fetchall()
        found, pages = every(f"orders/?{filters}")
        assert found == [order_no for order_no, *_ in wanted], filters
        assert pages == max(1, -(-len(wanted) // 50)), filters
        done = [(kind, amount) for _, amount, kind, status in wanted if status == "completed"]
        sums = [yuan(sum(amount for kind, amount in done if kind == each)) for each in (1, 2)]
        told = [f"received ¥{sums[0]}"] * ("type=sell" not in filters) + [f"paid out ¥{sums[1]}"] * (
            "buy" not in filters
        )
        text = f"{len(wanted)} total · {' · '.join(told)}"
        if any(f"flt_status={status}" in filters for status in STATUSES if status != "completed"):
            text = f"{len(wanted)} total"
            assert "received ¥" not in page(f"orders/?{filters}").text
        assert not wanted or text in page(f"orders/?{filters}").text, filters


def test_deposits_and_withdrawals_are_two_parts_of_the_list_with_their_own_statuses_and_sum(page, many):
    both = page("orders/")
    assert "(completed only)" in both.text
    deposits = page(both.links["Deposits"].removeprefix("/console/"))
    assert set(deposits.column("Type")) == {"Deposit"}
    assert ("Awaiting payment" in deposits.links, "Needs review" in deposits.links) == (True, False)
    assert ("received ¥" in deposits.text, "paid out ¥" in deposits.text) == (True, False)
    withdrawals = page(deposits.links["Withdrawals"].removeprefix("/console/"))
    assert ("Awaiting payment" in withdrawals.links, "Needs review" in withdrawals.links) == (False, True)
    assert ("received ¥" in withdrawals.text, "paid out ¥" in withdrawals.text) == (False, True)
    claimed = page(deposits.links["Claimed"].removeprefix("/console/"))
    assert set(claimed.column("Status")) == {"Claimed"}
    assert "received ¥" not in claimed.text


def test_the_heading_of_a_time_sorts_by_it_and_reverses_the_order(page, many, raw):
    by_created = page("orders/")
    assert by_created.links["Created"] == "/console/orders/?flt_sort=-created"
    by_completed = page(by_created.links["Completed at"].removeprefix("/console/"))
    oldest = page(by_completed.links["Completed at"].removeprefix("/console/"))
    first = raw.execute("SELECT order_no FROM \"order\" WHERE status = 'completed' ORDER BY completedtime, id LIMIT 1")
    assert oldest.rows[0]["Order number"].split()[0] == first.fetchone()[0]
    assert oldest.links["Completed at"] == "/console/orders/?flt_sort=completed"
    second = page(oldest.links["Newer"].removeprefix("/console/"))
    assert second.rows[0]["Completed at"] >= oldest.rows[-1]["Completed at"]


def test_chinese_filters_have_chinese_marks(console):
    def shown(name):
        return Shown(console.get(f"/console/{name}/", headers={"Accept-Language": "zh"}).text)

    orders, audit = shown("orders").text, shown("audit").html
    assert "：渠道、支付方式、最小金额、最大金额。" in orders
    assert "Demo Shop 演示商户（demo）" in orders
    labels = re.findall("<option.*?>(.*?)<", audit[audit.index("flt_about") : audit.index("flt_key")])
    assert len(set(labels)) == len(labels) > 9, "each subject has its own name"


def test_beyond_a_limit_the_count_is_a_minimum_and_the_total_is_left_out(page, many, monkeypatch):
    text = "These filters are slower without a time range, because each row is checked: "
    assert f"{text}Channel, Method, Minimum amount, Maximum amount." in page("orders/").text
    assert text not in page("audit/").text
    monkeypatch.setattr(lists, "MOST_COUNTED", 20)
    assert "more than 20 · Narrow the time range to see the total amount." in page("orders/?flt_channel=2").text
    assert f"{ORDERS} total · Narrow the time range" in page("orders/").text
    monkeypatch.setattr(lists, "MOST_COUNTED", 10_000)
    monkeypatch.setattr(lists, "MOST_CHECKED", 40)
    assert "more than " in page("orders/?flt_channel=2").text


def test_an_order_is_found_by_its_number_and_by_one_that_is_not_indexed_yet(page, api, many):
    order_no = api.buy(merchant_order_no="brand-new").data["order_no"]
    for text in (order_no, "brand-new", "AND-N", "w"):
        assert f"{order_no} brand-new" in page(f"orders/?search={text}").column("Order number")


def test_pages_link_back_to_the_previous_page(page, many):
    def numbers(path):
        shown = page(path)
        return shown.column("Order number"), {name: url.removeprefix("/console/") for name, url in shown.links.items()}

    first, links = numbers("orders/?flt_type=buy")
    assert "Newer" not in links
    second, on = numbers(links["Older"])
    third, further = numbers(on["Older"])
    assert not {*first} & {*second} | {*second} & {*third}
    assert numbers(further["Newer"])[0] == second
    assert numbers(on["Newer"])[0] == first
    assert numbers(further["Newest"])[0] == first
    last, back = numbers(links["Oldest"])
    assert "Older" not in back
    assert numbers(back["Newer"])[0] != last


@pytest.mark.parametrize("name", ["callbacks", "entries", "exceptions"])
def test_the_other_long_lists_have_pages_both_ways_too(page, api, many, raw, name):
    if name == "callbacks":
        for _ in range(60):
            completed(api)
    if name == "exceptions":
        raw.execute(
            "INSERT INTO payment_exception (order_id, kind, amount, reference, code, createtime, channel_id) "
            "SELECT id, 'late_payment', 100, 'R', 'paid_after_end', createtime, channel_id "
            'FROM "order" WHERE id <= 120'
        )
        name = "exceptions/?flt_kind=late_payment&flt_state=open"  # otherwise they are one row for each channel
    first = page(name if "?" in name else f"{name}/")
    assert len(first.rows) == 50
    second = page(first.links["Older"].removeprefix("/console/"))
    assert page(second.links["Newer"].removeprefix("/console/")).rows == first.rows
    assert not [row for row in second.rows if row in first.rows]
    assert "Older" not in page(first.links["Oldest"].removeprefix("/console/")).links


def test_an_invalid_filter_shows_nothing_and_an_unknown_page_the_newest_one(page, export, many):
    for query in (
        *("orders/?flt_status=lost", "orders/?flt_merchant=nobody", "orders/?flt_channel=99"),
        *("orders/?flt_least=12.345", "orders/?flt_most=1e3x", "orders/?flt_since=soon"),
        *("orders/?flt_until=0001-01-01T00:00", "orders/?search=%00abc", "callbacks/?flt_state=%3Cscript%3E"),
    ):
        shown = page(query, status=422)
        assert ("A filter is not valid" in shown.text, shown.rows) == (True, []), query
        assert "<script>" not in shown.html
        assert export(query.replace("/?", "/export?")).status_code == 422, query
    newest = page("orders/").rows
    for odd in ("before=x", "before=-1", "after=99999999999999999999", "before=123456789", "after=777"):
        assert page(f"orders/?{odd}").rows == newest, odd


def test_active_filters_are_shown_and_can_be_removed_one_by_one(page, many):
    shown = page("orders/?flt_status=paid&flt_type=buy&flt_least=5")
    assert "Minimum amount 5" in shown.text
    assert shown.links["All"] == "/console/orders/?flt_status=paid&flt_least=5"
    assert "/console/orders/?flt_type=buy&flt_status=paid" in shown.addresses
    fields = (shown.fields[name] for name in ("flt_type", "flt_status", "flt_least"))
    assert tuple(fields) == ("buy", "paid", "5")


def test_without_an_index_for_a_filter_a_page_searches_a_part_and_the_next_continues(page, many, monkeypatch):
    monkeypatch.setattr("models.queries.keyset.LOOKS_THROUGH", 100)
    monkeypatch.setattr("models.queries.keyset.FIRST_STRETCH", 30)
    monkeypatch.setattr("models.queries.keyset.LONGEST_STRETCH", 40)
    found, pages, at = [], 0, "orders/?flt_least=1995"
    whole = 'SELECT order_no FROM "order" WHERE amount >= 199500 ORDER BY createtime DESC, id DESC'
    while at:
        shown = page(at)
        found += [row["Order number"].split()[0] for row in shown.rows]
        pages += 1
        assert ("Searched only part of the list" in shown.text) is ("Search older" in shown.links)
        at = shown.links.get("Search older", "").removeprefix("/console/")
    assert pages > 3
    assert found == [row[0] for row in database.execute_sql(whole).fetchall()]


def test_exceptions_show_open_ones_first_and_resolved_ones_on_demand(page, api, flask):
    one, two = (api.buy("100.00", channel=2).data["order_no"] for _ in range(2))
    for order_no in (one, two):
        api.notice(order_no, 10_100, reference=order_no)
    assert page("exceptions/?flt_channel=2").column("Order number") == [two, one]
    assert "Exceptions 2" in page().text
    flask("order", "settle", one, "--credit")
    (row,) = page("exceptions/").rows
    assert (row["Order amount (¥)"], row["Actual amount (¥)"], row["Status"]) == ("100.00", "101.00", "Open")
    (settled,) = page("exceptions/?flt_state=settled&flt_merchant=demo&flt_channel=2&flt_type=buy").rows
    assert settled["Status"] == "Credited operator (command line)"
    assert len(page("exceptions/?flt_state=all&flt_kind=wrong_amount").rows) == 2
    assert not page("exceptions/?flt_state=all&flt_merchant=other").rows


def test_open_exceptions_of_one_cause_are_one_row_that_opens_them(page, api, export, flask):
    def wrong_amount(channel):
        order_no = api.buy("100.00", channel=channel).data["order_no"]
        api.notice(order_no, 10_100, reference=order_no)
        return order_no

    other = wrong_amount(1)
    same = [wrong_amount(2) for _ in range(5)]
    shown = page("exceptions/")
    assert shown.column("Order number") == [other], "not buried by the others"
    assert [text for text in ("Sandbox B", "5 open", "505.00") if text not in shown.text] == []
    assert shown.links["Wrong amount"] == "/console/exceptions/?flt_kind=wrong_amount&flt_channel=2"
    opened = page(shown.links["Wrong amount"].removeprefix("/console/"))
    assert sorted(opened.column("Order number")) == sorted(same)
    assert "5 open" not in opened.text
    assert len(export("exceptions/export").text.splitlines()) == 1 + 6
    assert sorted(page("exceptions/?flt_state=all").column("Order number")) == sorted([other, *same])
    assert "5 open" in page("exceptions/?flt_merchant=demo&flt_type=buy&flt_since=today").text
    assert "No results" in page("exceptions/?flt_merchant=other").text
    for order_no in same[:3]:
        flask("order", "settle", order_no, "--credit")
    assert "2 open" in page("exceptions/").text
    flask("order", "settle", same[3], "--credit")
    assert sorted(page("exceptions/").column("Order number")) == sorted([other, same[4]])


def test_callbacks_show_their_results(page, api, shop, due):
    shop.answers(410, "no")
    dead = completed(api)
    due.callbacks()
    shop.answers(200)
    delivered = completed(api)
    due.callbacks()
    newest, oldest = page("callbacks/").rows
    assert (newest["Order number"], newest["Status"], newest["Attempts"]) == (delivered, "Delivered", "1 HTTP 200")
    assert (oldest["Status"], oldest["Attempts"]) == ("Failed", "1 HTTP 410")
    assert "Callbacks 1" in page().text
    assert page("callbacks/?flt_state=dead").column("Order number") == [dead]
    assert page(f"callbacks/?flt_order={delivered}").column("Order number") == [delivered]
    assert page("callbacks/?flt_event=order.completed&flt_merchant=demo").column("Order number") == [delivered, dead]
    assert not page("callbacks/?flt_event=order.paid").rows


def test_entries_are_found_by_account_owner_purpose_order_and_time(page, api, flask):
    order_no = completed(api)
    flask("ledger", "adjust", "other", "5.00", "--reason", "a gift")
    entries = page("entries/").rows
    assert len(entries) == 2 + 3 + 2
    assert (entries[0]["By"], entries[0]["Order number"]) == ("operator (command line)", "")
    assert "Adjustment a gift" in {row["Purpose"] for row in entries}
    credit = page(f"entries/?flt_order={order_no}").rows
    assert sorted((row["Account"], row["Owner"], row["Amount (¥)"]) for row in credit) == [
        ("Available", "Demo Shop 演示商户", "99.40"),
        ("Channel clearing", "Sandbox B", "-100.00"),
        ("Fees", "Platform Demo Shop 演示商户 · Sandbox B", "0.60"),
    ]
    assert page("entries/?flt_merchant=other").column("Amount (¥)") == ["-5.00", "5.00"]
    assert page("entries/?flt_channel=2").column("Amount (¥)") == ["0.60", "-100.00"]
    assert page("entries/?flt_purpose=credit").column("Order number") == [order_no] * 3
    today = datetime.now(UTC)
    assert len(page(f"entries/?flt_since={today:%Y-%m-%d}").rows) == 5
    assert page(f"entries/?flt_account=available&flt_since={today:%Y-%m-%d}").column("Amount (¥)") == ["5.00", "99.40"]
    assert not page("entries/?flt_until=2020-01-01").rows


@pytest.fixture
def operators_entries(page, api, flask, due, later):
    """`operators_entries("flt_channel=2")`: amount, merchant and channel of the operator's entries in the list."""
    allow(fees=PROPORTIONAL)
    order_no = completed(api)
    refunded(api, order_no, "40.00")
    later(61)
    place.place(Order.find(order_no), Wanted(1_000, "operator ann", "operator ann", by_platform=True))
    due.orders()
    sent = api.sell("50.00", channel=3).data["order_no"]
    flask("order", "accept", sent)
    flask("order", "paid", sent)
    accounts.post("bill_costs 2 2026-05-01", {(CLEARING, 2): 7, (COMMISSION, 0): -7}, who="service")
    flask("ledger", "adjust", "other", "5.00", "--reason", "a gift")

    def read(query):
        rows = page(f"entries/?{query}").rows
        of_operator = [row for row in rows if row["Owner"].startswith("Platform")]
        return [(row["Amount (¥)"], row["Owner"].removeprefix("Platform").strip()) for row in of_operator]

    return read


def test_fees_and_costs_are_found_by_merchant_and_channel(operators_entries, page, export):
    demo, b, c = "Demo Shop 演示商户", "Sandbox B", "Manual C"
    deposit, refund, platform = (("0.60", f"{demo} · {b}"), ("-0.24", f"{demo} · {b}"), ("-10.00", f"{demo} · {b}"))
    payout = [("0.15", f"{demo} · {c}"), ("-0.03", f"{demo} · {c}")]
    bill = ("-0.07", b)
    assert sorted(operators_entries("flt_merchant=demo")) == sorted([deposit, refund, platform, *payout])
    assert sorted(operators_entries("flt_channel=2")) == sorted([deposit, refund, platform, bill])
    assert sorted(operators_entries("flt_channel=3")) == sorted(payout)
    assert sorted(operators_entries("flt_channel=2&flt_merchant=demo")) == sorted([deposit, refund, platform])
    assert operators_entries("flt_channel=2&flt_account=commission") == [bill]
    assert operators_entries("flt_merchant=demo&flt_purpose=credit") == [deposit]
    assert [amount for amount, _ in operators_entries("flt_merchant=other")] == ["-5.00"]
    of_order = page("entries/?flt_channel=2").rows[-1]["Order number"]
    assert sorted(operators_entries(f"flt_merchant=demo&flt_order={of_order}")) == sorted([deposit, refund, platform])
    assert operators_entries(f"flt_merchant=other&flt_order={of_order}") == []
    shown = page("entries/?flt_channel=2&flt_merchant=demo").rows
    older = page(f"entries/?flt_channel=2&flt_merchant=demo&before={shown[0]['Entry']}").rows
    assert [row["Entry"] for row in older] == [row["Entry"] for row in shown[1:]], "each once on the pages"
    rows = csv.DictReader(io.StringIO(export("entries/export?flt_account=fees").data.decode("utf-8-sig")))
    assert {(row["Merchant"], row["Channel"]) for row in rows if row["Amount (¥)"] == "0.60"} == {(demo, b)}


def test_an_entry_is_found_by_its_time_although_older_entries_were_added_later(page, api, many):
    completed(api)
    seeded_orders.seed_orders(2 * ORDERS)
    since = datetime.now(UTC) - timedelta(minutes=1)  # the last seeded order is older
    rows = page(f"entries/?flt_since={since:%Y-%m-%dT%H:%M:%S}").rows
    assert sorted(row["Amount (¥)"] for row in rows) == ["-100.00", "0.60", "99.40"]


def test_merchants_channels_accounts_and_the_audit_log_have_lists_too(page, api, flask):
    assert page("audit/").rows[0]["Event"] == "demo signed in"
    assert page("audit/?flt_who=demo").rows
    for nothing in ("flt_who=nobody", "flt_about=order&flt_key=1"):
        assert not page(f"audit/?{nothing}").rows
    completed(api)
    other, demo = page("merchants/").rows
    assert (demo["Available (¥)"], demo["Reserved (¥)"], demo["Channels"]) == ("10,099.40", "0.00", "3")
    assert (other["Merchant"], other["Status"]) == ("Other Shop 另一商户 other", "Enabled")
    assert page("merchants/?search=OTHER").rows == [other]
    channels = {row["ID"]: row for row in page("channels/").rows}
    assert (channels["2"]["Receivable (¥)"], channels["2"]["Payable (¥)"]) == ("100.00", "0.00")
    assert set(page("channels/?flt_driver=manual").column("Channel")) == {"Manual C"}
    flask("account", "add", "demo", "--card-number", "6222020000000000999", "--real-name", "李四光")
    new, old = page("accounts/").rows
    assert (new["Account number"], new["Account holder"]) == ("***************0999", "李*")
    assert [new["Status"], old["Status"]] == ["In use", "Replaced"]


def test_a_page_takes_as_many_queries_for_one_row_as_for_ten(page, export, api, flask, shop, due, world):
    paths = [
        *(f"{name}/" for name in LISTS if name not in ("merchants", "channels", "failed_sign_ins", "exceptions")),
        "exceptions/?flt_channel=2",  # without the filter, those of one cause are one row
        "orders/?flt_type=buy&flt_least=1",
    ]

    def queries(path):
        seen = []
        database.query_hooks.append(seen.append)
        page(path)
        database.query_hooks.remove(seen.append)
        return len(seen)

    def happen(times):
        for number in range(times):
            day = f"2026-05-{times + number:02}"
            add_difference(completed(api), day, name=day)
            Bill.add(channel=2, day=day, state=COMPARED, createtime=0, updatetime=0)
            api.notice(api.buy().data["order_no"], 9_900)
            api.sell("1.00", channel=3)
            walks.buy_claimed(world)
            export("accounts/export")
            flask("account", "add", "demo", "--card-number", "6222020000000000999", "--real-name", "李四光")
        due.callbacks()

    happen(1)
    before = {path: queries(path) for path in paths}
    happen(9)
    assert min(len(page(path).rows) for path in paths) >= 10
    assert {path: queries(path) for path in paths} == before


def test_the_menu_shows_where_a_page_belongs(page, api):
    order_no = api.buy().data["order_no"]
    current = {
        path: page(path).html.split('aria-current="page">')[1].split("</svg>")[1].split("<")[0].strip()
        for path in ("", "orders/", f"order/{order_no}", "merchant/demo", "channel/2", "audit/")
    }
    assert list(current.values()) == ["Overview", "Orders", "Orders", "Merchants", "Channels", "Audit log"]


def test_an_order_with_an_open_exception_is_marked_in_every_list_of_orders(page, world, flask, due):
    order_no, other = walks.deposit_too_small(world), world.api.buy().data["order_no"]
    payout = walks.payout_before_it_was_accepted(world)

    def marked(path):
        rows = page(path).rows
        return {row["Order number"].split()[0]: row["Status"].endswith("Needs review") for row in rows}

    assert marked("orders/?flt_type=buy") == {order_no: True, other: False}
    assert marked(f"orders/?search={order_no}") == {order_no: True}
    (row,) = page("payouts/").rows
    assert (row["Order number"].split()[0], row["To do"]) == (payout, "Review Needs review")
    flask("order", "settle", order_no, "--refund")
    due.orders()
    assert marked("orders/?flt_type=buy") == {order_no: False, other: False}
