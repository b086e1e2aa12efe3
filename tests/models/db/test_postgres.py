"""Transactions on Postgres: concurrent on few connections, repeated after conflicts, complete or not at all."""

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from peewee import DatabaseError, IntegrityError, OperationalError, __exception_wrapper__

from models.db import writer
from models.db.base import database, open_postgres
from models.db.postgres import Postgres
from models.db.writer import after_commit, grouped, transaction
from tests import postgres
from tests.support import until

pytestmark = pytest.mark.skipif(not postgres.IS_INSTALLED, reason="the programs of Postgres are not installed")

CONNECTIONS = 3


# The connections of this test's service; other tests' services have databases of their own.
OURS = "FROM pg_stat_activity WHERE application_name = 'tillbook' AND datname = current_database()"


@pytest.fixture
def there(postgres_url, runtime):
    """An empty table of unique texts; `there(sql)` runs a query on another connection."""
    open_postgres(postgres_url, CONNECTIONS)
    database.execute_sql("CREATE TABLE note (text TEXT UNIQUE, number BIGINT DEFAULT 0)")
    with psycopg.connect(postgres_url, autocommit=True) as other:
        yield lambda sql="SELECT text FROM note ORDER BY text": [row[0] for row in other.execute(sql).fetchall()]
    writer.stop()
    database.close_all()


@transaction
def write(text):
    database.execute_sql("INSERT INTO note (text) VALUES (%s)", (text,))
    return f"wrote {text}"


def test_many_threads_share_few_connections(there):
    with ThreadPoolExecutor(20) as pool:
        assert len(list(pool.map(write, map(str, range(200))))) == 200
    assert len(there()) == 200
    assert len(there(f"SELECT pid {OURS}")) <= CONNECTIONS


def test_without_a_free_connection_a_call_fails_and_the_next_succeeds(there, monkeypatch):
    monkeypatch.setattr("models.db.postgres.LONGEST_WAIT", 0.2)
    go_on = threading.Event()

    @transaction
    def hold():
        assert go_on.wait(20)

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        holding = [pool.submit(hold) for _ in range(CONNECTIONS)]
        until(lambda: not database.obj._places)
        with pytest.raises(OperationalError, match="no connection was free"):
            write("a")
        go_on.set()
        assert [each.result(20) for each in holding] == [None] * CONNECTIONS
    assert write("a") == "wrote a"


def test_threads_get_connections_in_the_order_of_their_requests(there, postgres_url):
    open_postgres(postgres_url, 1)
    begun, go_on, order = threading.Event(), threading.Event(), []

    @transaction
    def first():
        begun.set()
        assert go_on.wait(20)

    def first_and_again():
        first()
        transaction(order.append)("again")

    with ThreadPoolExecutor(6) as pool:
        calls = [pool.submit(first_and_again)]
        assert begun.wait(20)
        for at in range(5):
            calls.append(pool.submit(transaction(order.append), at))
            until(lambda: len(database.obj._waiting) == len(calls) - 1)
        go_on.set()
        assert [call.result(20) for call in calls] == [None] * 6
    assert order == [0, 1, 2, 3, 4, "again"]


def test_a_restart_of_the_server_that_closed_every_connection_breaks_nothing_later(there):
    met = threading.Barrier(CONNECTIONS, timeout=20)

    @transaction
    def use(_):
        met.wait()

    for _ in range(2):
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            assert len(list(pool.map(use, range(CONNECTIONS)))) == CONNECTIONS
        there(f"SELECT pg_terminate_backend(pid) {OURS}")
        until(lambda: not there(f"SELECT pid {OURS}"))


def test_deadlocked_transactions_both_succeed(there):
    for text in "ab":
        write(text)
    met, tries = threading.Barrier(2, timeout=20), []

    @transaction
    def add(first, second):
        tries.append(first)
        database.execute_sql("UPDATE note SET number = number + 1 WHERE text = %s", (first,))
        if tries.count(first) == 1:
            met.wait()
        database.execute_sql("UPDATE note SET number = number + 1 WHERE text = %s", (second,))
        after_commit(lambda: followed.append(first))

    followed = []
    with ThreadPoolExecutor(2) as pool:
        for each in [pool.submit(add, "a", "b"), pool.submit(add, "b", "a")]:
            each.result(20)
    assert there("SELECT number FROM note") == [2, 2]
    assert len(tries) >= 3  # a repeated transaction may conflict with the other one again
    assert sorted(followed) == ["a", "b"]  # once for each, and not for rolled back work


def test_a_failure_stores_nothing_and_calls_no_hooks(there):
    followed = []

    @transaction
    def fail():
        write("a")
        after_commit(lambda: followed.append("a"))
        raise ValueError("no such luck")

    with pytest.raises(ValueError, match="no such luck"):
        fail()
    assert (there(), followed) == ([], [])


def test_an_ignored_error_does_not_become_a_silent_rollback(there):
    @transaction
    def careless():
        write("a")
        try:
            write("a")
        except IntegrityError:
            return "done"

    with pytest.raises(DatabaseError, match="failed before"):
        careless()
    assert there() == []
    assert write("b") == "wrote b"


def test_failed_work_in_a_group_does_not_affect_the_others(there):
    calls = []

    @grouped(lambda text: 0)
    def write_many(texts):
        calls.append(len(texts))
        for text in texts:
            database.execute_sql("INSERT INTO note (text) VALUES (%s)", (text,))
        return texts

    with ThreadPoolExecutor(12) as pool:
        futures = [pool.submit(write_many, text) for text in "aabcdefghijk"]
        failed = [future for future in futures if future.exception(20)]
    assert [type(future.exception()) for future in failed] == [IntegrityError]
    assert there() == list("abcdefghijk")
    assert sum(calls) >= 12


def test_a_group_whose_commit_had_no_response_is_not_repeated(there, monkeypatch):
    begun, go_on, commit = threading.Event(), threading.Event(), Postgres.commit

    @grouped(lambda text: 0)
    def write_many(texts):
        begun.set()
        assert go_on.wait(20)
        for text in texts:
            database.execute_sql("INSERT INTO note (text) VALUES (%s)", (text,))
        return texts

    def unanswered(self):
        commit(self)
        with __exception_wrapper__:
            raise psycopg.OperationalError("the connection is lost")

    monkeypatch.setattr(Postgres, "commit", unanswered)
    with ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(write_many, "a")]
        assert begun.wait(20)
        calls += [pool.submit(write_many, text) for text in "bc"]
        until(lambda: writer._grouped[-1].queue()._queue.qsize() == 2)
        go_on.set()
        assert [type(call.exception(20)) for call in calls] == [OperationalError] * 3
    assert there() == ["a", "b", "c"]


def test_a_connection_that_the_server_closed_breaks_nothing_later(there):
    write("a")
    there(f"SELECT pg_terminate_backend(pid) {OURS}")
    until(lambda: not there(f"SELECT pid {OURS}"))
    assert write("b") == "wrote b"
    assert there() == ["a", "b"]


def test_a_transaction_whose_connection_is_lost_stores_nothing_and_fails(there):
    @transaction
    def interrupted():
        write("a")
        there(f"SELECT pg_terminate_backend(pid) {OURS}")
        write("b")

    with pytest.raises(OperationalError):
        interrupted()
    assert there() == []
    assert write("c") == "wrote c"


def test_texts_sort_by_their_bytes_and_sums_are_whole_numbers(there):
    for text in ("b", "B", "a", "é", "张", "_"):
        write(text)
    assert [row[0] for row in database.execute_sql('SELECT text FROM note ORDER BY text COLLATE "C"').fetchall()] == [
        *("B", "_", "a", "b", "é", "张")
    ]
    total = database.execute_sql("SELECT SUM(number + 9000000000000000000) FROM note").fetchone()[0]
    assert (total, type(total)) == (54 * 10**18, int)
