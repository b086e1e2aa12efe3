"""Transactions through the one writer: waiting work is committed together, and each item fails separately."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from peewee import IntegrityError, OperationalError

from models.db import sqlite_writer, work_queue, writer
from models.db.base import database, open_database
from models.db.writer import after_commit, grouped, transaction
from tests.support import until
from tests.turns import together, writer_held_up

pytestmark = pytest.mark.sqlite

LONG = "x" * 400_000


class Broken(Exception):
    """A failure of a piece of work."""


class Fatal(BaseException):
    """A failure that `except Exception` does not catch."""


@pytest.fixture
def path(tmp_path, runtime):
    """An empty table of unique texts, in a file of its own."""
    file = tmp_path / "notes.sqlite"
    file.touch()
    open_database(file, busy_timeout=0.2)
    database.execute_sql("CREATE TABLE note (text TEXT UNIQUE)")
    yield file
    writer.stop()
    database.close()


@pytest.fixture
def there(path):
    """`there()`: the rows that another connection sees."""
    with closing(sqlite3.connect(path)) as other:
        yield lambda: [text for (text,) in other.execute("SELECT text FROM note ORDER BY rowid")]


@pytest.fixture
def commits(path):
    """`commits()`: the number of the writer's commits since the last call."""
    said = []

    @transaction
    def listen():
        database.connection().set_trace_callback(said.append)

    listen()
    said.clear()
    return lambda: said.count("COMMIT")


def put(text):
    database.execute_sql("INSERT INTO note VALUES (?)", (text,))


@transaction
def write(text, error=None):
    """Write a text; then raise the error, if one is given."""
    put(text)
    if error:
        raise error
    return f"wrote {text}"


@pytest.fixture
def many(path):
    """`many(text)`: grouped work that fails for "bad" at its end; `many.calls`: the lists of its calls."""
    calls = []

    @grouped(lambda text: 0)
    def write_many(texts):
        calls.append(texts)
        for text in texts:
            put(text)
        if "bad" in texts:
            raise Broken("bad")
        return [f"wrote {text}" for text in texts]

    write_many.calls = calls
    return write_many


@pytest.mark.parametrize("error", [Broken("no such luck", 7), Fatal("the end"), ValueError("嗯")])
def test_a_failure_keeps_its_type_and_its_text_and_stores_nothing(there, error):
    with pytest.raises(type(error)) as raised:
        write("x", error)
    assert raised.value.args == error.args
    assert there() == []
    assert write("x") == "wrote x"


def test_if_no_thread_can_be_started_the_next_writer_tries_again(there, monkeypatch):
    start, refused = threading.Thread.start, []

    def refuse_one(thread):
        if not refused:
            refused.append(thread.name)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_one)
    with pytest.raises(RuntimeError):
        write("a")
    later = threading.Thread(target=write, args=["b"], daemon=True)
    later.start()
    later.join(20)
    assert (refused, later.is_alive(), there()[-1]) == (["writer"], False, "b")


def test_waiting_work_is_committed_together_and_the_rest_after_it(there, commits, monkeypatch):
    monkeypatch.setattr(work_queue, "LARGEST_GROUP", 3)
    texts = ["a", "b", "c", "d", "e"]
    assert together(*((write, text) for text in texts)) == [f"wrote {text}" for text in texts]
    assert there() == texts
    assert commits() == 1 + 2  # the one that delayed the writer, a full group, and the rest


def test_threads_that_are_ready_to_write_share_the_commit(there, commits, monkeypatch):
    queue, late, calls, pool = sqlite_writer.writes()._queue, iter("bcdef"), [], ThreadPoolExecutor(5)

    def let_one_more_write():
        if text := next(late, ""):
            waiting = queue.qsize()
            calls.append(pool.submit(write, text))
            until(lambda: queue.qsize() > waiting)

    monkeypatch.setattr(work_queue, "_let_others_run", let_one_more_write)
    with pool:
        write("a")
    assert [call.result() for call in calls] == [f"wrote {text}" for text in "bcdef"]
    assert there() == list("abcdef")
    assert commits() == 1


@pytest.mark.parametrize("error", [Broken("b"), Fatal("b")])
def test_failed_work_does_not_affect_the_others(there, commits, error):
    write("twice")
    said = together((write, "a"), (write, "b", error), (write, "twice"), (write, "c"))
    assert (said[0], said[1], said[3]) == ("wrote a", error, "wrote c")
    assert isinstance(said[2], IntegrityError)
    assert there() == ["twice", "a", "c"]
    assert commits() == 1 + 2


def test_grouped_work_is_done_together_and_each_caller_gets_its_result(there, many, commits):
    said = together((many, "a"), (write, "x"), (many, "b"), (write, "y"))
    assert said == ["wrote a", "wrote x", "wrote b", "wrote y"]
    assert many.calls == [["a", "b"]]
    assert sorted(there()) == ["a", "b", "x", "y"]
    assert commits() == 2


def test_grouped_work_that_fails_for_one_succeeds_for_the_others(there, many, commits):
    said = together((many, "a"), (many, "bad"), (many, "c"))
    assert (said[0], said[2]) == ("wrote a", "wrote c")
    assert (type(said[1]), str(said[1])) == (Broken, "bad")
    assert many.calls == [["a", "bad", "c"], ["a"], ["bad"], ["c"]]
    assert there() == ["a", "c"]
    assert commits() == 2


def test_a_nested_call_is_part_of_its_callers_transaction(there, many, commits):
    @transaction
    def outer(error=None):
        said = write("a"), many("b")
        if error:
            raise error
        return said

    with pytest.raises(Broken):
        outer(Broken())
    assert there() == []
    before = commits()
    assert outer() == ("wrote a", "wrote b")
    assert (there(), commits() - before) == (["a", "b"], 1)


@pytest.mark.parametrize("neighbours", [[], ["a", "b"]])
def test_after_commit_hooks_run_if_the_work_succeeded(path, neighbours):
    followed = []

    @grouped(lambda text: 0)
    def promise(texts):
        for text in texts:
            after_commit(lambda text=text: followed.append(text))
        if "bad" in texts:
            raise Broken
        return texts

    said = together(*((promise, text) for text in ("bad", *neighbours)))
    assert isinstance(said[0], Broken)
    assert followed == neighbours


def test_a_failed_hook_does_not_fail_the_commit(there):
    @transaction
    def promise(text):
        put(text)
        after_commit(lambda: 1 / 0)
        return text

    said = together((promise, "a"), (write, "b"))
    assert there() == ["a", "b"]
    assert said == ["a", "wrote b"]


@transaction
def most_pages(count):
    database.execute_sql(f"PRAGMA max_page_count = {count}")


# SQLite rolls back the whole transaction, or only the statement, depending on the statement.
@pytest.mark.parametrize("sql", ["INSERT INTO note VALUES (?)", "INSERT INTO note VALUES (?), ('more')"])
def test_a_full_database_stores_nothing_in_part_and_the_writer_continues(path, there, sql):
    followed = []

    @transaction
    def write_much():
        after_commit(lambda: followed.append("b"))
        put("b")
        database.execute_sql(sql, (LONG,))

    most_pages(10)
    said = together((write, "a"), (write_much,), (write, "c"))
    kept = [text for text, result in zip("abc", said, strict=True) if not isinstance(result, Exception)]
    assert there() == kept
    assert "b" not in kept
    most_pages(1_000_000)
    assert write("d") == "wrote d"
    assert there() == [*kept, "d"]
    assert followed == []
    assert "full" in str(said[1])


def test_while_the_database_is_locked_each_call_fails_and_the_next_succeeds(path, there):
    write("a")
    with closing(sqlite3.connect(path, isolation_level=None)) as other, ThreadPoolExecutor(3) as pool:
        other.execute("BEGIN IMMEDIATE")
        for failure in [call.exception(20) for call in [pool.submit(write, text) for text in "bcd"]]:
            assert isinstance(failure, OperationalError)
            assert "locked" in str(failure)
        other.execute("ROLLBACK")
    assert write("e") == "wrote e"
    assert there() == ["a", "e"]


def test_after_it_was_stopped_the_next_call_starts_it_again(there):
    for text in "abc":
        write(text)
        writer.stop()
        writer.stop()
    assert there() == ["a", "b", "c"]


def test_waiting_work_is_done_before_it_stops(there):
    with writer_held_up() as callers:
        calls = [callers.call(write, text) for text in "abc"]
        stopping = callers.call(writer.stop)
    assert stopping.result(20) is None
    assert [call.result(20) for call in calls] == ["wrote a", "wrote b", "wrote c"]
    assert there() == ["a", "b", "c"]


def test_a_call_during_the_stop_is_done_too(there):
    with writer_held_up() as callers:
        stopping = callers.call(writer.stop)
        call = callers.call(write, "a")
        callers.let_go()
        stopping.result(20)
        try:
            until(call.done)
        finally:
            write("b")  # the waiting thread continues, so that the test ends
    assert there()[0] == "a"


def test_a_commit_is_on_the_disk_before_it_returns(path):
    assert database.execute_sql("PRAGMA synchronous").fetchone() == (2,), "FULL"
