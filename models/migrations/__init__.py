"""Numbered steps from each released schema to the next; a new database starts from the models."""

from collections.abc import Iterable
from typing import Any

# Types of columns. All steps from 0005 on use them, so they must not change.
SQLITE = {"id": "INTEGER NOT NULL PRIMARY KEY", "text": "TEXT", "int": "INTEGER", "bool": "INTEGER"}
POSTGRES = {"id": "BIGSERIAL NOT NULL PRIMARY KEY", "text": 'TEXT COLLATE "C"', "int": "BIGINT", "bool": "BOOLEAN"}


def execute(database: Any, statements: Iterable[str]) -> None:
    """Execute a step's statements, with {id}, {text}, {int} and {bool} for the types of their columns."""
    types = POSTGRES if database.is_shared else SQLITE
    for statement in statements:
        database.execute_sql(statement.format(**types))
