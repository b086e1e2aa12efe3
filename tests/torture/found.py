"""The state after the torture: by the service's public interfaces, and in the channel's records."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import MERCHANTS, Api, through_http
from tests.torture.target import Target

Balances = dict[str, dict[str, int]]


@dataclass(frozen=True)
class Play:
    """The upstream's record of an order: fen, chosen outcome, time of the payout request."""

    amount: int
    outcome: str
    payout_at: float | None


@dataclass
class Found:
    """The facts from the service, and those from its upstream.

    `orders` are orderQueryList's, each with its `merchant`; `before` and `balances` are in fen by
    merchant; `off` are the lines of `ledger verify`; `exceptions` are the kinds by order number.
    """

    orders: list[dict[str, Any]] = field(default_factory=list)
    callbacks: list[dict[str, Any]] = field(default_factory=list)
    off: list[str] = field(default_factory=list)
    before: Balances = field(default_factory=dict)
    balances: Balances = field(default_factory=dict)
    exceptions: dict[str, str] = field(default_factory=dict)
    books: dict[str, Play] = field(default_factory=dict)


def apis(target: Target) -> dict[str, Api]:
    """A client of each merchant."""
    return {key: Api(through_http(target.url()), key) for key in MERCHANTS}


def _orders(api: Api, merchant: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    page = 1
    while rows := api.listed(page=page, limit=100).data["list"]:
        found += [row | {"merchant": merchant} for row in rows]
        page += 1
    return found


def _books(path: Path) -> dict[str, Play]:
    with closing(sqlite3.connect(path)) as books:
        rows = books.execute("SELECT order_no, amount, outcome, payout_at FROM play").fetchall()
    return {order_no: Play(*facts) for order_no, *facts in rows}


def find(target: Target, before: Balances) -> Found:
    """Read all facts of an idle service."""
    callbacks, verified, balances, exceptions = target.ask(
        ("callback", "list", "--limit", "10000"),
        ("ledger", "verify"),
        ("ledger", "balances"),
        ("order", "list", "--exceptions", "--limit", "10000"),
    )
    return Found(
        orders=[row for key, api in apis(target).items() for row in _orders(api, key)],
        callbacks=callbacks,
        off=[f"{check}: {line}" for check, lines in verified.items() for line in lines],
        before=before,
        balances=balances,
        exceptions={row["order_no"]: row["exceptions"] for row in exceptions},
        books=_books(target.folder / "sandbox.sqlite"),
    )


def at_rest(target: Target) -> bool:
    """Return whether every order has ended, and every callback been delivered."""
    for api in apis(target).values():
        if any(api.listed(status=status, limit=1).data["total"] for status in ("pending", "paid", "confirmed")):
            return False
    (waiting,) = target.ask(("callback", "list", "--state", "pending", "--limit", "1"))
    return not waiting
