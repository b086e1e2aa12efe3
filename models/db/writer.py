"""Transactions of both databases: `@transaction` and `@grouped`, done by sqlite_writer.py or postgres_writer.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from models.db import postgres_writer, sqlite_writer
from models.db.base import database
from models.db.work_queue import hooks

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
R = TypeVar("R")

_grouped: list[postgres_writer.Grouped] = []


def transaction(function: F) -> F:
    """Run each call of a function in one transaction, as part of the caller's if there is one.

    The call returns once its changes are on disk; if it raises, nothing is stored. The function must not use the
    network: all other writes wait meanwhile.
    """

    @wraps(function)
    def run(*arguments: Any, **named: Any) -> Any:
        if database.in_transaction():
            return function(*arguments, **named)
        engine = postgres_writer if database.is_shared else sqlite_writer
        return engine.run(function, *arguments, **named)

    return run  # type: ignore[return-value]


def grouped(party: Callable[[T], int]) -> Callable[[Callable[[list[T]], list[R]]], Callable[[T], R]]:
    """Like `transaction`, for work that is cheaper for many items at once.

    The function takes a list of items and returns a result for each; it is called with all waiting items. If it raises,
    nothing is stored, and it is called for each item alone.

    Args:
        party: returns an item's owner. On Postgres, repeated items of one owner run one after the other.
    """

    def decorate(function: Callable[[list[T]], list[R]]) -> Callable[[T], R]:
        on_postgres = postgres_writer.Grouped(function, party)
        _grouped.append(on_postgres)

        @wraps(function)
        def run(item: T) -> R:
            if database.in_transaction():
                return function([item])[0]
            result: R = (
                on_postgres.run(item) if database.is_shared else sqlite_writer.writes().add(function, item).wait()
            )
            return result

        return run

    return decorate


def after_commit(call: Callable[[], None]) -> None:
    """Run `call()` once this thread's transaction is on disk; not if it fails."""
    hooks.calls.append(call)


def stop() -> None:
    """Finish the waiting work and close the connections of the writing threads."""
    for queue in (sqlite_writer.writes, *(each.queue for each in _grouped)):
        queue().stop()


def check() -> Callable[[], bool]:
    """Queue an empty transaction, which changes nothing on the disk; return a function that says whether it has ended.

    On Postgres it says yes: no single thread writes there.
    """
    if database.is_shared:
        return lambda: True
    return sqlite_writer.writes().add(lambda items: items, None).is_finished
