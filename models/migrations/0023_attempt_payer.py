"""After 0.4.0: the payer of an attempt, for channels that need the payer's id."""

from typing import Any


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    text = 'TEXT COLLATE "C"' if database.is_shared else "TEXT"
    database.execute_sql(f'ALTER TABLE "attempt" ADD COLUMN "payer" {text}')
