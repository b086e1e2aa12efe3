"""Querying thousands of orders over HTTP, each response compared with the whole table."""

import itertools
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app import create_app
from models import schema
from models.db.base import database
from models.queries import count_buckets
from models.schema_postgres import statements as postgres_statements
from models.tables.order import STATUSES
from services.sandbox import seeded_orders, seeding
from tests import postgres
from tests.databases import raw as connected
from tests.databases import settings_of

ORDERS = 2_000
BUCKET = 64  # orders that are counted together, so that there are many such buckets
# A number that moves with each change.
MOVES = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text" if postgres.IN_USE else "PRAGMA data_version"
MANY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
TYPES_AND_STATUSES = list(itertools.product((None, 1, 2), (None, *STATUSES)))


@pytest.fixture(scope="module")
def app(any_database, tmp_path_factory):
    """The application with thousands of orders, which all tests here share."""
    folder = tmp_path_factory.mktemp("thousands")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(count_buckets, "BUCKET", BUCKET)

        def smaller(statements):
            return [text.replace("8192", str(BUCKET)) for text in statements]

        patched.setattr(schema, "TRIGGERS", smaller(schema.TRIGGERS))
        patched.setattr(schema, "postgres_statements", lambda *names: smaller(postgres_statements(*names)))
        app = create_app(settings_of(folder, demo=True, requests_per_second=1_000_000, short_searches=1_000_000))
        seeding.seed_base()
        seeded_orders.seed_orders(ORDERS)
        yield app
    database.close()


@pytest.fixture
def raw(app):
    """A separate connection."""
    with connected(Path(app.instance_path)) as connection:
        yield connection


def lower(text):
    """A text without the case of its ASCII letters."""
    return text.lower() if text.isascii() else "".join(char.lower() if char.isascii() else char for char in text)


@pytest.fixture
def expected(raw):
    """`expected(merchant, **query)`: the numbers on the page and the total, from all rows."""
    read = {}

    def every():
        state = raw.execute(MOVES).fetchone()[0]
        if state not in read:
            read.clear()
            found = raw.execute('SELECT "order".*, key FROM "order" JOIN merchant ON merchant.id = merchant_id')
            names = [column[0] for column in found.description]
            rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
            read[state] = sorted(rows, key=lambda row: (row["createtime"], row["id"]), reverse=True)
        return read[state]

    def look(merchant="demo", *, page=1, limit=20, **wanted):
        exact = {name: wanted[name] for name in ("status", "order_type") if wanted.get(name)}
        text, since, until = (wanted.get(name) or "" for name in ("merchant_order_no", "start_time", "end_time"))
        found = [
            row["order_no"]
            for row in every()
            if row["key"] == merchant
            and all(row[name] == value for name, value in exact.items())
            and lower(text) in lower(row["merchant_order_no"])
            and (since or 0) <= row["createtime"] <= (until or 2**62)
        ]
        return found[(page - 1) * limit : page * limit], len(found)

    return look


def answered(api, **query):
    """The service's values for the same."""
    data = api.listed(**query).data
    return [order["order_no"] for order in data["list"]], data["total"]


@pytest.fixture
def times(raw):
    """The demo merchant's creation times, oldest first."""
    return [row[0] for row in raw.execute('SELECT createtime FROM "order" WHERE merchant_id = 1 ORDER BY createtime')]


def test_there_are_many_buckets_and_a_page_has_20_orders(raw, api, expected):
    assert raw.execute("SELECT MAX(bucket) FROM tally").fetchone()[0] > 15
    numbers, total = answered(api)
    assert len(numbers) == 20
    assert (numbers, total) == expected(limit=20)


@pytest.mark.parametrize("order_type", [None, 1, 2])
def test_all_pages_together_are_all_matches(api, expected, order_type):
    for status in (None, *STATUSES):
        wanted = {"order_type": order_type, "status": status}
        every, total = expected(limit=10**6, **wanted)
        listed = []
        for page in range(1, total // 100 + 2):
            numbers, said = answered(api, page=page, limit=100, **wanted)
            assert said == total
            listed += numbers
        assert listed == every
        assert answered(api, page=total // 100 + 2, limit=100, **wanted) == ([], total)
        assert answered(api, page=10**9, limit=100, **wanted) == ([], total)


@pytest.mark.parametrize("wanted", [{}, {"status": "completed"}, {"order_type": 1, "status": "paid"}])
def test_a_range_of_time_begins_and_ends_anywhere_in_a_bucket(api, expected, times, wanted):
    edges = [times[at] for at in (BUCKET - 1, BUCKET, 5 * BUCKET + 40)]
    for start, end in itertools.product([None, times[0] - 1, *edges, times[-1] + 1], repeat=2):
        query = {"start_time": start, "end_time": end, "limit": 7, **wanted}
        assert answered(api, **query) == expected(**query)


@MANY
@given(data=st.data())
def test_any_query_has_the_result_of_checking_each_order(api, other, expected, times, data):
    moments = st.none() | st.sampled_from(times).flatmap(lambda time: st.integers(time - 1, time + 1))
    query = data.draw(
        st.fixed_dictionaries(
            {
                "page": st.integers(1, 8) | st.integers(1, 300),
                "limit": st.integers(1, 100),
                "status": st.sampled_from((None, *STATUSES)),
                "order_type": st.sampled_from((None, 1, 2)),
                "start_time": moments,
                "end_time": moments,
                "merchant_order_no": st.sampled_from((None, None, "S", "seed-", "-00012", "0000042", "99", "nothing")),
            }
        )
    )
    client = data.draw(st.sampled_from((api, other)))
    assert answered(client, **query) == expected(client.key, **query)


def test_totals_stay_right_when_orders_change(api, http, flask, raw, expected):
    pending = (
        "SELECT order_no, order_type FROM \"order\" WHERE merchant_id = 1 AND channel_id = 2 AND status = 'pending'"
    )
    orders = raw.execute(f"{pending} ORDER BY id").fetchall()
    for number, (order_no, order_type) in enumerate(orders):
        if order_type == 1:
            assert api.play(order_no, ("success", "fail", "late")[number % 3]).code == 1
        else:
            flask("order", *(("accept",) if number % 2 else ("reject", "--reason", "no")), order_no)
    assert len(orders) > 12
    for order_type, status in TYPES_AND_STATUSES:
        wanted = {"order_type": order_type, "status": status, "page": 2}
        assert answered(api, **wanted) == expected(**wanted)
    counted = f'merchant_id, order_type, status, seq / {BUCKET}, COUNT(*) FROM "order" GROUP BY 1, 2, 3, 4'
    kept = raw.execute("SELECT * FROM tally WHERE count <> 0 ORDER BY 1, 2, 3, 4").fetchall()
    assert [tuple(row) for row in kept] == [tuple(row) for row in raw.execute(f"SELECT {counted} ORDER BY 1, 2, 3, 4")]


def test_a_clock_that_is_set_back_reverses_no_orders(api, expected, raw, ahead):
    first = api.buy().data
    ahead(-3600)
    second = api.buy().data
    ahead(-3600)
    third = api.sell("1.00").data
    placed = [order["order_no"] for order in (third, second, first)]
    assert answered(api, limit=3)[0] == placed
    assert first["createtime"] == second["createtime"] == third["createtime"]
    since = {"start_time": first["createtime"], "limit": 100}
    assert answered(api, **since)[0][-3:] == placed
    assert answered(api, **since) == expected(**since)
    in_turn = raw.execute('SELECT createtime FROM "order" WHERE merchant_id = 1 ORDER BY seq').fetchall()
    assert in_turn == sorted(in_turn, key=tuple)
