"""Postgres: connections that all threads share, and the meaning of its errors."""

from __future__ import annotations

import re
import select
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from queue import Empty, SimpleQueue
from typing import Any
from zlib import crc32

from peewee import DatabaseError, InterfaceError, OperationalError, PostgresqlDatabase, __exception_wrapper__

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
    from psycopg.pq import TransactionStatus
    from psycopg.types.numeric import IntLoader
    from psycopg.types.string import StrDumperUnknown

    class _Text(StrDumperUnknown):
        """Text whose NUL characters become U+FFFD, because Postgres can't store them. Upstream responses may contain
        some."""

        def dump(self, obj: str) -> Any:
            return super().dump(obj.replace("\0", "\ufffd"))

except ImportError:  # needed for Postgres only
    psycopg = None  # type: ignore[assignment]

# An unescaped @ or / in a password would make its rest a host or database name, which error messages repeat.
_ADDRESS = re.compile(r"postgres(ql)?://([^/@]*@)?[^@]*")
# Defaults, which the address can override. The server's times are in ms, the driver's in seconds.
CONNECTING = {
    "application_name": "tillbook",
    "connect_timeout": 5,
    "target_session_attrs": "read-write",  # of several hosts, the one that is not a standby
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
SESSION = {
    "statement_timeout": 20_000,
    "lock_timeout": 5_000,  # the same as SQLite's busy timeout
    "idle_in_transaction_session_timeout": 30_000,  # releases the locks of a host that disappeared
    "client_min_messages": "warning",
    "jit": "off",
}
LONGEST_WAIT = 5.0  # seconds until a connection in use by others becomes free
HURRIED_WAIT = 100  # ms for a lock, in work that other callers wait for

# SQLSTATEs of conflicts with another transaction.
OVERTAKEN = ("40001", "40P01")
# Beginnings of the SQLSTATEs by which a running server refuses a COMMIT: nothing is stored.
REFUSED_COMMIT = ("40", "53", "55", "57014")


class NoDriver(Exception):
    """The driver of Postgres is not installed."""


class CommitLost(OperationalError):
    """The connection was lost during COMMIT: the transaction may or may not be stored."""


def sqlstate(error: BaseException) -> str | None:
    """Return the SQLSTATE of a peewee error; "" if it has none, None if it is not from Postgres."""
    cause: Any = error
    while hasattr(cause, "orig"):  # errors while connecting are wrapped twice
        cause = cause.orig
    if psycopg is None or not isinstance(cause, psycopg.Error):
        return None
    return cause.sqlstate or ""


def is_overtaken(error: BaseException) -> bool:
    """Return whether the transaction conflicted with another one, so that a retry helps."""
    return sqlstate(error) in OVERTAKEN


class Postgres(PostgresqlDatabase):
    """A limited number of connections. A thread has one for the duration of its transaction or single statement.

    Each connection is checked when a thread takes it, so a restart of the server affects only running work.

    No library does this: with playhouse's pool, busy threads overtake waiting ones, and psycopg's pool checks a
    connection by a query.
    """

    # Integers have 64 bits and texts sort by their bytes, as on SQLite.
    field_types = {**PostgresqlDatabase.field_types, "INT": "BIGINT", "AUTO": "BIGSERIAL", "TEXT": 'TEXT COLLATE "C"'}
    is_shared = True

    def __init__(self, url: str, connections: int):
        """Raises NoDriver, or DatabaseError for an invalid address."""
        if psycopg is None:
            raise NoDriver("the Postgres driver is missing: run `make postgres`")
        super().__init__(None, prefer_psycopg3=True)
        # peewee's lock protects state that each thread has separately here. With it, threads would wait for each other.
        self._lock = nullcontext()
        # A place is an idle connection, or None if the thread that takes it must connect. Waiting threads get places in
        # order: with a semaphore, busy threads overtook them until LONGEST_WAIT was over.
        self._places: list[Any | None] = [None] * connections
        self._waiting: deque[SimpleQueue[Any | None]] = deque()
        self._places_lock = threading.Lock()
        try:
            given = conninfo_to_dict(url) if _ADDRESS.fullmatch(url) else None
        except (psycopg.Error, ValueError):
            given = None
        if given is None:  # without the driver's message, which quotes the address
            raise DatabaseError(
                "the address can't be read: it must look like postgresql://user:password@host/database, with "
                "@, / and % in the password written as %40, %2F and %25"
            )
        options = [f"-c {name}={value}" for name, value in SESSION.items()]
        settings: dict[str, Any] = CONNECTING | given | {"options": " ".join([*options, str(given.get("options", ""))])}
        self._conninfo = make_conninfo("", **settings)
        self.init(f"{given.get('host', 'localhost')}/{given.get('dbname', '')}")

    def _connect(self) -> Any:
        idle = self._take_place()
        try:
            if idle is not None:
                if _is_alive(idle):
                    return idle
                idle.close()
            connection = psycopg.connect(self._conninfo, autocommit=True)
            connection.adapters.register_loader("numeric", IntLoader)  # for sums, which are integers here
            connection.adapters.register_dumper(str, _Text)
            return connection
        except BaseException:
            self._give_place(None)
            raise

    def _close(self, connection: Any) -> None:
        if connection.pgconn.transaction_status == TransactionStatus.IDLE:
            self._give_place(connection)
        else:  # lost, or left inside a transaction
            connection.close()
            self._give_place(None)

    def _take_place(self) -> Any | None:
        """Return the idle connection of a free place, or None if it has none; raise after LONGEST_WAIT."""
        with self._places_lock:
            if self._places:
                return self._places.pop()
            given: SimpleQueue[Any | None] = SimpleQueue()
            self._waiting.append(given)
        try:
            return given.get(timeout=LONGEST_WAIT)
        except Empty:
            with self._places_lock:
                if given in self._waiting:
                    self._waiting.remove(given)
                    raise psycopg.OperationalError(f"no connection was free for {LONGEST_WAIT:g} seconds") from None
            return given.get()  # assigned just after the timeout

    def _give_place(self, idle: Any | None) -> None:
        with self._places_lock:
            if self._waiting:
                self._waiting.popleft().put(idle)
            else:
                self._places.append(idle)

    def hand_back(self) -> None:
        """Return this thread's connection to its place; nothing if it has none."""
        if not self.is_closed():
            self.close()

    def close_all(self) -> None:
        """Close idle connections."""
        with self._places_lock:
            unused, self._places = self._places, [None] * len(self._places)
        for connection in filter(None, unused):
            connection.close()

    def execute_sql(self, sql: str, params: Any = None) -> Any:
        """Run a statement. Its rows are fetched before the connection is returned."""
        if not self.is_closed():
            return super().execute_sql(sql, params)
        try:
            return super().execute_sql(sql, params)
        finally:
            self.close()

    def begin(self, isolation_level: str | None = None) -> None:
        """Begin a transaction on a connection that the thread keeps until its end."""
        try:
            super().begin(isolation_level)
        except BaseException:
            self.close()
            raise

    def commit(self) -> None:
        """Commit, or raise. Postgres itself would respond to a COMMIT after an error with a silent rollback.

        Raises:
            CommitLost: the connection was lost during the COMMIT.
        """
        if self.connection().pgconn.transaction_status == TransactionStatus.INERROR:
            raise DatabaseError("the transaction had failed before")
        try:
            super().commit()
        except (OperationalError, InterfaceError) as error:
            if (sqlstate(error) or "").startswith(REFUSED_COMMIT):
                raise
            raise CommitLost(error, *error.args) from error
        self.close()

    def rollback(self) -> None:
        """Roll back. If the connection is lost, the server has rolled back already."""
        try:
            with suppress(OperationalError, InterfaceError):
                super().rollback()
        finally:
            self.close()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Run a transaction that sees all tables as of one moment and has no time limits."""
        with self.atomic("REPEATABLE READ"):
            self.take_time()
            yield

    def take_time(self) -> None:
        """Remove the time limits of this transaction and of the pauses between its statements."""
        for limit in ("statement_timeout", "idle_in_transaction_session_timeout"):
            self.execute_sql(f"SET LOCAL {limit} = 0")

    def hurry(self) -> None:
        """Set a short lock timeout for this transaction."""
        self.execute_sql(f"SET LOCAL lock_timeout = {HURRIED_WAIT}")

    def for_update(self, rows: Any, *, skip_locked: bool = False, alone: bool = False) -> Any:
        """Return the query with its rows locked until the transaction ends.

        Args:
            skip_locked: leave out rows that another transaction has locked.
            alone: wait until no other transaction relies on them (`relied_on`), and prevent it from then on.
        """
        return rows.for_update("FOR UPDATE" if alone else "FOR NO KEY UPDATE", skip_locked=skip_locked)

    def relied_on(self, rows: Any) -> Any:
        """Return the query with a shared lock on its rows until the transaction ends."""
        return rows.for_update("FOR KEY SHARE")

    def advisory_lock(self, what: str, *ids: int) -> None:
        """Lock this name (each of `ids` separately) until the transaction ends; wait while another one has it."""
        keys = sorted(each % 2**31 for each in ids) or [0]  # sorted, so that no two transactions wait for each other
        locks = "SELECT pg_advisory_xact_lock(%s, each) FROM unnest(%s::integer[]) AS each"
        self.execute_sql(locks, (lock_key(what), keys))

    def copy_in(self, table: str, columns: list[str], rows: Iterable[Any]) -> None:
        """Insert many rows into a table, in the caller's transaction."""
        names = ", ".join(f'"{name}"' for name in columns)
        with __exception_wrapper__, self.cursor().copy(f'COPY "{table}" ({names}) FROM STDIN') as target:
            for row in rows:
                target.write_row(row)


def lock_key(what: str) -> int:
    """Return the number of an advisory lock."""
    return crc32(what.encode()) & 0x7FFFFFFF


def _is_alive(connection: Any) -> bool:
    """Return whether the server still has the connection open; an idle one is readable only after it was closed."""
    if connection.closed:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)
