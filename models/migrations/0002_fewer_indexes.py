"""From 0.2.0 to 0.3.0: remove the indexes of times, to which each order would have to write."""

from typing import Any

DROPPED = ("order_createtime", "nonce_createtime", "idempotency_key_createtime")


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    for index in DROPPED:
        database.execute_sql(f'DROP INDEX "{index}"')
