"""Create the tables, protect the append-only ones, and upgrade older databases."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

from peewee import AutoField
from playhouse.migrations import Migration, Runner

from models.db.base import database, first_ids
from models.queries.search import SearchProgress
from models.queries.search import create as search_statements
from models.schema_postgres import statements as postgres_statements
from models.tables.account_balance import AccountBalance
from models.tables.bill import Bill, StatementDifference
from models.tables.channel import Channel, ChannelHealth, ChannelLink, ChannelMember, ChannelPicture, MemberDay
from models.tables.earnings import EarningsDay, EarningsProgress
from models.tables.epay import EpayAccount, EpayOrder
from models.tables.ledger import Entry, LedgerAccount, LedgerDay, Posting
from models.tables.maintenance import ErasureDelayed, ErasureProgress, Restoration, Verification
from models.tables.merchant import Merchant, PaymentPage
from models.tables.notification import BalanceWarning, Destination, KnownFinding, Notification
from models.tables.operator import (
    AuditEntry,
    FailedSignIn,
    Operator,
    PayoutRequest,
    PendingSignIn,
    RecoveryCode,
    SavedView,
    SecondFactor,
    Session,
    SignInTry,
)
from models.tables.order import Attempt, History, InternalNote, Order, OrderNote, PaymentException
from models.tables.order_counts import TRIGGERS, OrderCount
from models.tables.outbox import Callback, CallbackAttempt, WebhookKey
from models.tables.payout_account import PayoutAccount
from models.tables.payout_batch import PayoutBatch, PayoutBatchLine
from models.tables.reconciliation import Reconciliation
from models.tables.refund import Refund, RefundHistory
from models.tables.replay import IdempotencyKey, Nonce
from models.tables.setup_version import OF_TABLES, REVISED, SetupVersion
from models.tables.statement_layout import StatementLayout
from models.tables.unknown_notice import UnknownNotice

TABLES = [
    Merchant,
    Channel,
    ChannelLink,
    PayoutAccount,
    Order,
    History,
    PaymentException,
    LedgerAccount,
    Posting,
    Entry,
    Callback,
    CallbackAttempt,
    Nonce,
    IdempotencyKey,
    OrderCount,
    SearchProgress,
    SetupVersion,
    Operator,
    AuditEntry,
    Verification,
    WebhookKey,
    Restoration,
    UnknownNotice,
    Attempt,
    PayoutRequest,
    ErasureProgress,
    ErasureDelayed,
    Session,
    SecondFactor,
    RecoveryCode,
    FailedSignIn,
    Destination,
    KnownFinding,
    Notification,
    BalanceWarning,
    LedgerDay,
    Reconciliation,
    SavedView,
    OrderNote,
    ChannelPicture,
    PayoutBatch,
    PayoutBatchLine,
    EpayAccount,
    EpayOrder,
    PaymentPage,
    StatementLayout,
    PendingSignIn,
    SignInTry,
    Refund,
    RefundHistory,
    InternalNote,
    Bill,
    StatementDifference,
    AccountBalance,
    EarningsDay,
    EarningsProgress,
    ChannelMember,
    MemberDay,
    ChannelHealth,
]
# Conditions that find a row that must not change or be deleted, not even by REPLACE, which fires no DELETE trigger.
APPEND_ONLY = {
    Posting: "id = NEW.id OR (order_id = NEW.order_id AND purpose = NEW.purpose)",
    Entry: "id = NEW.id OR (account_id = NEW.account_id AND number = NEW.number)",
    History: "id = NEW.id",
    AuditEntry: "id = NEW.id",
    RefundHistory: "id = NEW.id",
}
# SQLite keeps their rows in the order of their keys; Postgres has no such tables.
BY_KEY = (Nonce, IdempotencyKey, OrderCount, EarningsDay)
NUMBERED = [table for table in TABLES if isinstance(table._meta.primary_key, AutoField)]
# Databases record steps by file name, so no step can be renamed, not even the two 0018 and the two 0024.
MIGRATIONS = Path(__file__).parent / "migrations"
HISTORY = "schema_migration"  # the table with the names of the applied steps


class WrongSchema(Exception):
    """The database's schema does not match this version."""


def _runner() -> Runner:
    return Runner(database.obj, str(MIGRATIONS), table_name=HISTORY)


def has_tables() -> bool:
    """Return whether the database has this service's tables."""
    return database.table_exists(Order._meta.table_name)


def _sqlite_triggers() -> Iterator[str]:
    for table, same in APPEND_ONLY.items():
        name = table._meta.table_name
        refuse = f"BEGIN SELECT RAISE(ABORT, '{name} is append-only'); END"
        for verb in ("UPDATE", "DELETE"):
            yield f'CREATE TRIGGER {name}_no_{verb.lower()} BEFORE {verb} ON "{name}" {refuse}'
        there = f'EXISTS (SELECT 1 FROM "{name}" WHERE {same})'
        yield f'CREATE TRIGGER {name}_no_replace BEFORE INSERT ON "{name}" WHEN {there} {refuse}'
    yield from TRIGGERS
    yield from REVISED


def _first_rows() -> None:
    SearchProgress.add(order_id=0)
    SetupVersion.add(number=0)
    WebhookKey.add(key=secrets.token_hex(32))


def create(fill: Callable[[], None] = _first_rows) -> bool:
    """Create the tables of an empty database and the triggers of append-only ones; return False if it has tables.

    Args:
        fill: inserts the initial rows, before triggers protect or count them.
    """
    if has_tables():
        return False
    for table in BY_KEY:
        table._meta.without_rowid = not database.is_shared
    with database.atomic():
        database.advisory_lock("schema")
        if has_tables():  # another process was quicker
            return False
        database.create_tables(TABLES)
        for statement in search_statements():
            database.execute_sql(statement)
        fill()
        guarded = [table._meta.table_name for table in APPEND_ONLY]
        triggers = postgres_statements(guarded, OF_TABLES) if database.is_shared else _sqlite_triggers()
        for statement in triggers:
            database.execute_sql(statement)
        _runner().fake()
    return True


def continue_ids() -> None:
    """Set the sequences so that each table's next id follows its last one, or the one that a restore stored."""
    if not database.is_shared:
        return  # SQLite uses the highest id of the rows; models/db/base.py handles restores
    for table in NUMBERED:
        name = f'"{table._meta.table_name}"'
        least = first_ids().get(table._meta.table_name, 1) - 1  # there is no id below 1
        last = f"GREATEST(MAX(id), NULLIF({least}, 0))"
        database.execute_sql(
            f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), {last}) FROM {name} HAVING {last} IS NOT NULL"
        )


def migrate() -> list[str]:
    """Apply the steps that an older database lacks; return their names. Raises WrongSchema if it is newer."""
    missing()
    return _runner().up()


def missing() -> list[str]:
    """Return the names of the steps that an older database lacks.

    Raises:
        WrongSchema: it has a step that this version does not know.
    """
    applied: set[str] = set()
    if database.table_exists(HISTORY):
        applied = {name for (name,) in database.execute_sql(f'SELECT name FROM "{HISTORY}"').fetchall()}
    steps = [migration.name for migration in Migration.load_directory(str(MIGRATIONS))]
    if not applied.issubset(steps):
        raise WrongSchema("the database is from a newer version of the service: upgrade the service")
    return [name for name in steps if name not in applied]


def check() -> None:
    """Raise if the database is older or newer than this version.

    Raises:
        WrongSchema: with one line on what to do.
    """
    if missing():
        raise WrongSchema("the database is from an older version: back it up, then run `tillbook db migrate`")
