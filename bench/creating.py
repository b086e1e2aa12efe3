"""Speed of createOrder in several situations, against its yardsticks."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from bench import bodies, flood, raw_orders
from bench.context import Bench, Compared, spent
from bench.load import Failed, Load
from bench.processes import ROOT, WAITRESS_THREADS, Service, bare, copied
from runtime.settings import Settings
from services.channels import bulkhead

CONNECTIONS = (8, 32, 1)
BALANCE = "1000000000"  # yuan, so that no withdrawal is refused
SHARE = 0.7  # of the rate over 32 connections
SLOW_CONNECTIONS, SLOW_SECONDS = Settings.threads // bulkhead.SHARE, 0.5  # as many as may wait for one channel
SLOW_ROUNDS_OF_ALL = 20  # orders per connection


def _create(bench: Bench, service: Service, connections: int) -> Load:
    return bench.load(f"{service.url}/merchant/createOrder", connections, bodies.buys)


def _raw(bench: Bench, number: int) -> float:
    """Return the raw transactions a second, into a copy of the service's own file, in a separate process."""
    folder = copied(bench.work / "template", bench.work / f"raw-{number}")
    command = [sys.executable, "-m", "bench.raw_orders", str(bench.work / "template.json")]
    command += [str(folder / "orders.sqlite"), str(bench.seconds)]
    done = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    return done["orders"] / done["seconds"]


def _learn(bench: Bench) -> None:
    """Store the file of a service with one order in `template`, and that order's rows in `template.json`."""
    folder, number = bench.work / "template", "B-template-00000001"
    with Service(folder) as service:
        before = raw_orders.contents(folder / "orders.sqlite")
        service.call("createOrder", bodies.BUY | {"merchant_order_no": number})
        template = raw_orders.learn(folder / "orders.sqlite", before, number)
    (bench.work / "template.json").write_text(json.dumps(template))


def _against_yardsticks(bench: Bench) -> dict[tuple[str, int], list[Any]]:
    """Rounds of createOrder, both echoes and the raw transactions, in turn.

    Each round starts a new service on an empty file. In its first minute no order's status is due to be checked.
    """
    _learn(bench)
    found: dict[tuple[str, int], list[Any]] = {}
    for number in range(bench.rounds):
        with ExitStack() as running:
            same = running.enter_context(bare("same", Settings.threads, bench.work))
            waitress = running.enter_context(bare("waitress", WAITRESS_THREADS, bench.work))
            service = running.enter_context(Service(bench.work / f"create-{number}"))
            urls = {
                "create": f"{service.url}/merchant/createOrder",
                "same": f"{same.url}/echo",
                "waitress": f"{waitress.url}/echo",
            }
            for url in urls.values():
                bench.load(url, max(CONNECTIONS), bodies.buys, 1)  # the first responses are slower
            things: dict[tuple[str, int], Callable[[], Any]] = {
                (name, connections): partial(bench.load, url, connections, bodies.buys)
                for connections in CONNECTIONS
                for name, url in urls.items()
            }
            things["raw", 1] = partial(_raw, bench, number)
            for key in list(things)[:: -1 if number % 2 else 1]:
                found.setdefault(key, []).append(things[key]())
    return found


def against_echo(server: str, connections: int) -> Callable[[Bench], Compared]:
    """createOrder against the bare echo on `same` or `waitress`: responses a second."""

    def measure(bench: Bench) -> Compared:
        found = bench.once(_against_yardsticks)
        ours, yardstick = found["create", connections], found[server, connections]
        notes = spent(*ours, *yardstick)
        return Compared([one.rate for one in ours], [one.rate for one in yardstick], "a second", notes)

    return measure


def against_raw(bench: Bench) -> Compared:
    """createOrder, 32 connections, against raw transactions of the same rows: orders a second."""
    found = bench.once(_against_yardsticks)
    return Compared([one.rate for one in found["create", 32]], found["raw", 1], "a second")


def tail(bench: Bench) -> Compared:
    """createOrder, 8 connections: p99 against the median."""
    ours = bench.once(_against_yardsticks)["create", 8]
    return Compared([one.p99 for one in ours], [one.p50 for one in ours], "ms")


def slow_channel(bench: Bench) -> Compared:
    """Orders a second on a channel that takes half a second, against the maximum for so many connections."""
    service = Service(bench.work / "slow", ("-m", "bench.slow", "serve"))
    command = ("-m", "bench.slow")
    service.flask("seed", entry=command)
    made = service.flask(
        *("channel", "add", "--category", "gateway_b", "--driver", "slow", "--name", "Slow", "--json"), entry=command
    )
    channel = json.loads(made)["id"]
    service.flask("channel", "link", str(channel), "demo", entry=command)
    count = SLOW_CONNECTIONS * (SLOW_ROUNDS_OF_ALL if not bench.quick else 4)
    with service:
        found = [
            bench.load(
                f"{service.url}/merchant/createOrder",
                SLOW_CONNECTIONS,
                lambda _: bodies.buys(count, channel),
                # Ends with the last response, which takes less time unless the rate is a third of the maximum.
                3 * count / SLOW_CONNECTIONS * SLOW_SECONDS,
            ).rate
            for _ in range(bench.rounds)
        ]
    return Compared(found, [SLOW_CONNECTIONS / SLOW_SECONDS] * len(found), "a second")


def withdrawals(bench: Bench) -> Compared:
    """createOrder for withdrawals, each with its hold on the balance, against deposits: orders a second."""
    service = Service(bench.work / "withdrawals")
    service.flask("seed")
    service.flask("ledger", "adjust", "demo", BALANCE, "--reason", "bench")
    with service:
        url = f"{service.url}/merchant/createOrder"
        for make in (bodies.buys, bodies.sells):
            bench.load(url, 8, make, 1)  # the first responses are slower
        found = bench.in_turn(
            sells=lambda: bench.load(url, 8, bodies.sells), buys=lambda: bench.load(url, 8, bodies.buys)
        )
    notes = spent(*found["sells"], *found["buys"])
    return Compared([one.rate for one in found["sells"]], [one.rate for one in found["buys"]], "a second", notes)


def _epay(bench: Bench) -> dict[tuple[str, int], list[Load]]:
    """Rounds of mapi.php and createOrder in turn, each on a service with an empty file."""
    found: dict[tuple[str, int], list[Load]] = {}
    for number in range(bench.rounds):
        service = Service(bench.work / f"epay-{number}")
        service.flask("seed")
        keys = json.loads(service.flask("epay", "enable", "demo", "--host", "127.0.0.1", "--type", "wxpay=2", "--json"))
        forms = bodies.epay_payments(keys["pid"], keys["key"])
        with service:
            epay = partial(bench.load, f"{service.url}/mapi.php", make_bodies=forms, media=bodies.FORM)
            api = partial(bench.load, f"{service.url}/merchant/createOrder", make_bodies=bodies.buys)
            for each in (epay, api):
                each(8, seconds=1)  # the first responses are slower
            things = {(name, some): (each, some) for some in (8, 32) for name, each in (("epay", epay), ("api", api))}
            for key in list(things)[:: -1 if number % 2 else 1]:
                load, connections = things[key]
                before = service.call("orderQueryList", {})["total"]
                found.setdefault(key, []).append(load(connections))
                created = service.call("orderQueryList", {})["total"] - before
                if created < found[key][-1].responses:  # a refusal has status 200, too
                    raise Failed(f"{key}: {found[key][-1].responses} responses, but {created} orders")
    return found


def epay(connections: int) -> Callable[[Bench], Compared]:
    """Orders by the epay gateway against createOrder: orders a second."""

    def measure(bench: Bench) -> Compared:
        found = bench.once(_epay)
        ours, yardstick = found["epay", connections], found["api", connections]
        return Compared([one.rate for one in ours], [one.rate for one in yardstick], "a second", spent(*ours))

    return measure


def fixed_rate(bench: Bench) -> Compared:
    """p99 at a fixed arrival rate below the maximum, against the median over one connection: ms."""
    found: list[dict[str, Any]] = []
    alone, notes = [], []
    for number in range(bench.rounds):
        with Service(bench.work / f"rate-{number}") as service:
            url = f"{service.url}/merchant/createOrder"
            bench.load(url, 32, bodies.buys, 1)  # the first responses are slower
            rate = SHARE * bench.load(url, 32, bodies.buys).rate
            alone.append(bench.load(url, 1, bodies.buys).p50)
            orders = bodies.posts("/merchant/createOrder", bodies.buys(round(rate * bench.seconds)))
            file = bench.work / "rate.txt"
            found.append(flood.outcome(flood.start(service.port, orders, rate, bench.seconds, file)))
        if set(found[-1]["statuses"]) != {"200"}:
            raise Failed(f"at {rate:.0f} a second: {flood.counts(found[-1])}")
        notes.append(f"{rate:.0f} a second: p50 {found[-1]['p50']['200']:.1f}, p99 {found[-1]['p99']['200']:.1f} ms")
    return Compared([one["p99"]["200"] for one in found], alone, "ms", tuple(notes))


def large_file(bench: Bench) -> Compared:
    """createOrder, 8 connections, with many orders in the file against few: orders a second."""

    def into(folder: Path) -> Load:
        with Service(folder) as service:
            bench.load(f"{service.url}/merchant/createOrder", 8, bodies.buys, 1)  # the first responses are slower
            return _create(bench, service, 8)

    large, small = bench.copy(bench.large), bench.copy(bench.small)
    found = bench.in_turn(large=partial(into, large), small=partial(into, small))
    notes = spent(*found["large"], *found["small"])
    return Compared([one.rate for one in found["large"]], [one.rate for one in found["small"]], "a second", notes)
