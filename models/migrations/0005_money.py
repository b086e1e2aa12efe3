"""After 0.3.0: reasons as codes with arguments, the amount received, and the returned part of an exception's money."""

from typing import Any

# Nullable, and the last columns of their tables, so that no row is rewritten.
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
    """Apply the step on SQLite and on Postgres, in the runner's transaction."""
    whole = "BIGINT" if type(database).__name__ == "Postgres" else "INTEGER"
    for table, columns in COLUMNS.items():
        for name, kind in columns.items():
            database.execute_sql(f'ALTER TABLE "{table}" ADD COLUMN "{name}" {kind.format(int=whole)}')
    for statement in INDEXES:
        database.execute_sql(statement)
