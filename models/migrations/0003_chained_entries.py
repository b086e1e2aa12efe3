"""After 0.3.0: number the entries of each account and chain them by hash (models/db/hash_chain.py)."""

from typing import Any

from models.db.hash_chain import Chain, Facts

BATCH = 10_000

# New tables replace both: ADD COLUMN would leave a DEFAULT behind.
NEW_TABLES = (
    """CREATE TABLE "chained_entry" ("id" INTEGER NOT NULL PRIMARY KEY,
    "posting_id" INTEGER NOT NULL,
    "account_id" INTEGER NOT NULL,
    "amount" INTEGER NOT NULL CHECK (amount <> 0),
    "number" INTEGER NOT NULL,
    "hash" TEXT NOT NULL,
    FOREIGN KEY ("posting_id") REFERENCES "posting" ("id"),
    FOREIGN KEY ("account_id") REFERENCES "ledger_account" ("id"))""",
    """CREATE TABLE "chained_account" ("id" INTEGER NOT NULL PRIMARY KEY,
    "kind" TEXT NOT NULL CHECK (kind IN ('available', 'held', 'fees', 'commission', 'clearing')),
    "owner" INTEGER NOT NULL,
    "balance" INTEGER NOT NULL,
    "entries" INTEGER NOT NULL,
    "head" TEXT NOT NULL,
    CHECK (kind NOT IN ('available', 'held') OR balance >= 0))""",
    "INSERT INTO chained_account SELECT id, kind, owner, balance, 0, '' FROM ledger_account",
)
NEXT = """SELECT entry.id, posting_id, entry.account_id, entry.amount, order_no, purpose, who, memo, posting.createtime
    FROM entry LEFT JOIN posting ON posting.id = posting_id LEFT JOIN "order" ON "order".id = order_id
    WHERE entry.id > ? ORDER BY entry.id LIMIT ?"""
REFUSE = "BEGIN SELECT RAISE(ABORT, 'entry is append-only'); END"
THERE = 'EXISTS (SELECT 1 FROM "entry" WHERE id = NEW.id OR (account_id = NEW.account_id AND number = NEW.number))'
# The runner has switched foreign keys off: each table finds the other's replacement under the old name.
IN_PLACE = (
    'DROP TABLE "entry"',
    'ALTER TABLE "chained_entry" RENAME TO "entry"',
    'DROP TABLE "ledger_account"',
    'ALTER TABLE "chained_account" RENAME TO "ledger_account"',
    'CREATE INDEX "entry_posting_id" ON "entry" ("posting_id")',
    'CREATE UNIQUE INDEX "entry_account_id_number" ON "entry" ("account_id", "number")',
    'CREATE UNIQUE INDEX "ledger_account_kind_owner" ON "ledger_account" ("kind", "owner")',
    f'CREATE TRIGGER entry_no_update BEFORE UPDATE ON "entry" {REFUSE}',
    f'CREATE TRIGGER entry_no_delete BEFORE DELETE ON "entry" {REFUSE}',
    f'CREATE TRIGGER entry_no_replace BEFORE INSERT ON "entry" WHEN {THERE} {REFUSE}',
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    for statement in NEW_TABLES:
        database.execute_sql(statement)
    # Copy the entries into the new table, each with its number and hash.
    connection = database.connection()
    accounts = connection.execute("SELECT id, kind, owner FROM ledger_account")
    chains = {account: Chain(kind, owner) for account, kind, owner in accounts}
    last = 0
    while rows := connection.execute(NEXT, (last, BATCH)).fetchall():
        chained = []
        for entry, posting, account, amount, *facts in rows:
            link = chains[account].append(amount, Facts(posting, *facts))
            chained.append((entry, posting, account, amount, link["number"], link["hash"]))
        connection.executemany("INSERT INTO chained_entry VALUES (?, ?, ?, ?, ?, ?)", chained)
        last = rows[-1][0]
    ends = [(chain.number, chain.head, account) for account, chain in chains.items()]
    connection.executemany("UPDATE chained_account SET entries = ?, head = ? WHERE id = ?", ends)
    for statement in IN_PLACE:
        database.execute_sql(statement)
