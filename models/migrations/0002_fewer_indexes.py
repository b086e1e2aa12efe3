"""From 0.2.0 to 0.3.0: no index of times is kept that each order would have to write to."""

from typing import Any

DROPPED = ("order_createtime", "nonce_createtime", "idempotency_key_createtime")


def up(migrator: Any, database: Any) -> None:
    """Apply it; the runner's transaction holds it all."""
    for index in DROPPED:
        database.execute_sql(f'DROP INDEX "{index}"')
