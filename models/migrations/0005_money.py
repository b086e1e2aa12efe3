"""After 0.3.0: reasons as codes with arguments, the amount received, and how much of an exception's money went back."""

from typing import Any

# May be empty, and are the last of their tables: no row is rewritten.
COLUMNS = {
    "order": {"received_amount": "{int}", "left_alone_until": "{int}"},
    "history": {"code": "TEXT", "args": "TEXT"},
    "payment_exception": {"code": "TEXT", "args": "TEXT", "returned": "{int}"},
}
INDEXES = (
    'DROP INDEX "exception_money_in"',
    'DROP INDEX "exception_other"',
    'CREATE UNIQUE INDEX "exception_same_money" ON "payment_exception" ("order_id", "reference", "kind") '
    'WHERE ("resolution" IS NULL)',
)


def up(migrator: Any, database: Any) -> None:
    """Apply it, on SQLite and on Postgres; the runner's transaction holds it all."""
    whole = "BIGINT" if type(database).__name__ == "Postgres" else "INTEGER"
    for table, columns in COLUMNS.items():
        for name, kind in columns.items():
            database.execute_sql(f'ALTER TABLE "{table}" ADD COLUMN "{name}" {kind.format(int=whole)}')
    for statement in INDEXES:
        database.execute_sql(statement)
