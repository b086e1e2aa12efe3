"""A run: start, torture, wait until all work is done, and check the result."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.postgres import Cluster
from tests.support import until
from tests.torture.claims import Evidence
from tests.torture.clients import PATIENCE, Client
from tests.torture.found import Balances, at_rest, find
from tests.torture.killer import Killer
from tests.torture.receiver import Receiver
from tests.torture.seen import Seen
from tests.torture.target import Target


@dataclass(frozen=True)
class Plan:
    """The amount of torture: `kills` at least, `expiry` in seconds until an unpaid deposit expires.

    `processes` serve one database; with `postgres`, a Postgres database, which is also killed occasionally.
    `hasty` lets the service continue a killed process's work after 2 s instead of 25 and 30 s;
    `rest` is the maximum number of seconds until all work is done afterwards.
    """

    seed: int
    kills: int = 50
    clients: int = 4
    processes: int = 1
    postgres: Cluster | None = None
    expiry: int = 15
    rest: float = 120
    hasty: bool = False


@dataclass
class Result:
    """The evidence, and the figures of the run."""

    evidence: Evidence
    kills: Counter[str]
    stops: int
    seconds: float


def _set_up(target: Target, receiver: Receiver) -> Balances:
    """Create merchants with a receiver each, one with all events, and auto-approval. Return the balances."""
    target.operate(
        ("merchant", "set", "demo", "--callback-url", receiver.url("demo"), "--events", "paid,confirmed"),
        ("merchant", "set", "other", "--callback-url", receiver.url("other")),
        ("account", "add", "other", "--bank", "Bank", "--card-number", "6222020000000000017", "--real-name", "李四"),
        ("channel", "set", "1", "--auto-accept-max", "1000", "--config", "payout=fail"),
        ("channel", "set", "2", "--auto-accept-max", "1000"),
    )
    (balances,) = target.ask(("ledger", "balances"))
    return balances


def torture(plan: Plan, folder: Path, say: Callable[[str], None]) -> Result:
    """Run the torture, and end every process.

    Raises:
        AssertionError, TimeoutExpired: a step did not end in time; it is the last one that was printed.
        CommandFailed: one of the operator's commands failed.
    """
    began, rng = time.monotonic(), random.Random(plan.seed)
    seen, over, pressing = Seen(), threading.Event(), threading.Event()
    settings = {"ORDERS_BUY_EXPIRY": str(plan.expiry)}
    if plan.postgres:
        settings["ORDERS_DATABASE_URL"] = plan.postgres.url(plan.postgres.create())
    target = Target(folder, rng, plan.processes, plan.hasty, **settings)
    receiver, killer = Receiver(rng), Killer(rng, pressing, plan.postgres)
    clients = [Client(number, plan.seed, target, seen, over, pressing) for number in range(plan.clients)]
    try:
        say("starting")
        target.start()
        before = _set_up(target, receiver)
        for client in clients:
            client.start()
        _kill(plan, target, killer, seen, say)
        say("letting the clients finish")
        over.set()
        for client in clients:
            client.join(PATIENCE)
            assert not client.is_alive(), client.name
        say("letting everything come to its end")
        until(lambda: at_rest(target), plan.rest)
        say("looking at what is left")
        evidence = Evidence(seen, find(target, before), list(receiver.got), killer.wrong + receiver.unsigned)
    finally:
        over.set()
        target.stop()
        receiver.shutdown()
    return Result(evidence, killer.kills, killer.stops, time.monotonic() - began)


def _kill(plan: Plan, target: Target, killer: Killer, seen: Seen, say: Callable[[str], None]) -> None:
    while killer.kills.total() < plan.kills:
        moment = killer.strike(target.victim())
        orders = len(seen.wishes)
        say(f"kill {killer.kills.total()} of {plan.kills}, the last {moment}; {orders} orders requested")
