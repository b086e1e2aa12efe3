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
OPEN = {"orderQueryList": ("pending", "paid", "confirmed"), "refundQueryList": ("pending", "confirmed")}


@dataclass(frozen=True)
class Play:
    """The upstream's record of an order: fen, chosen outcome, time of the payout request."""

    amount: int
    outcome: str
    payout_at: float | None


@dataclass(frozen=True)
class SentBack:
    """The upstream's record of a refund: order, fen, outcome, time at which it was accepted."""

    order_no: str
    amount: int
    outcome: str
    accepted_at: float | None


@dataclass
class Found:
    """The facts from the service, and those from its upstream.

    `orders` are orderQueryList's and `refunds` refundQueryList's, each with its `merchant`; `before` and
    `balances` are in fen by merchant; `off` are the lines of `ledger verify`; `exceptions` are the kinds by
    order number; `books` and `sent_back` are the upstream's, by order and by refund number.
    """

    orders: list[dict[str, Any]] = field(default_factory=list)
    refunds: list[dict[str, Any]] = field(default_factory=list)
    callbacks: list[dict[str, Any]] = field(default_factory=list)
    off: list[str] = field(default_factory=list)
    before: Balances = field(default_factory=dict)
    balances: Balances = field(default_factory=dict)
    exceptions: dict[str, str] = field(default_factory=dict)
    books: dict[str, Play] = field(default_factory=dict)
    sent_back: dict[str, SentBack] = field(default_factory=dict)


def apis(target: Target) -> dict[str, Api]:
    """A client of each merchant."""
    return {key: Api(through_http(target.url()), key) for key in MERCHANTS}


def _listed(api: Api, merchant: str, endpoint: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    page = 1
    while rows := api.call(endpoint, {"page": page, "limit": 100}).data["list"]:
        found += [row | {"merchant": merchant} for row in rows]
        page += 1
    return found


def _books(path: Path) -> tuple[dict[str, Play], dict[str, SentBack]]:
    with closing(sqlite3.connect(path)) as books:
        plays = books.execute("SELECT order_no, amount, outcome, payout_at FROM play").fetchall()
        refunds = books.execute("SELECT refund_no, order_no, amount, outcome, accepted_at FROM refund").fetchall()
    return (
        {order_no: Play(*facts) for order_no, *facts in plays},
        {refund_no: SentBack(*facts) for refund_no, *facts in refunds},
    )


def find(target: Target, before: Balances) -> Found:
    """Read all facts of an idle service."""
    callbacks, verified, balances, exceptions = target.ask(
        ("callback", "list", "--limit", "10000"),
        ("ledger", "verify"),
        ("ledger", "balances"),
        ("order", "list", "--exceptions", "--limit", "10000"),
    )
    books, sent_back = _books(target.folder / "sandbox.sqlite")
    return Found(
        orders=[row for key, api in apis(target).items() for row in _listed(api, key, "orderQueryList")],
        refunds=[row for key, api in apis(target).items() for row in _listed(api, key, "refundQueryList")],
        callbacks=callbacks,
        off=[f"{check}: {line}" for check, lines in verified.items() for line in lines],
        before=before,
        balances=balances,
        exceptions={row["order_no"]: row["exceptions"] for row in exceptions},
        books=books,
        sent_back=sent_back,
    )


def at_rest(target: Target) -> bool:
    """Return whether every order and refund has ended, and every callback been delivered."""
    for api in apis(target).values():
        for endpoint, statuses in OPEN.items():
            if any(api.call(endpoint, {"status": status, "limit": 1}).data["total"] for status in statuses):
                return False
    (waiting,) = target.ask(("callback", "list", "--state", "pending", "--limit", "1"))
    return not waiting
