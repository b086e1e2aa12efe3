"""A merchant's latency, and the memory used, while another caller sends expensive or refused requests."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from bench import bodies, flood
from bench.context import Bench, Compared
from bench.load import Failed
from bench.processes import Service

RATE = 50  # orders a second of the merchant whose latency is measured
MERCHANT, CHANNEL = "other", 2
ADDRESS = "203.0.113.7"  # of the other caller, as reported by the proxy
LEAD = 1.0  # seconds of the other caller's requests before the measurement
MOST_MEMORY = 160.0  # MiB more than without an attack
FORM = "application/x-www-form-urlencoded"


def _sign_ins(service: Service) -> Iterator[str]:
    """Sign-ins with a wrong password, ten from each address."""
    page = service.http.get(f"{service.url}/console/login")
    token = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', page.text)
    if token is None:
        raise Failed("the console has no form to sign in")
    cookie = "; ".join(f"{name}={value}" for name, value in service.http.cookies.items())
    for number in itertools.count():
        form = f"csrf_token={token[1]}&name=demo&password=guess-number-{number}"
        address = f"198.51.{number // 2560 % 256}.{number // 10 % 256}"
        yield bodies.request("POST", "/console/login", form, FORM, Cookie=cookie, X_Forwarded_For=address)


def _page_views(service: Service) -> Iterator[str]:
    """Views of one payment page."""
    order_no = service.call("createOrder", bodies.BUY)["order_no"]
    path = f"/addons/paychannel/pay/index?order_no={order_no}"
    return itertools.repeat(bodies.request("GET", path, X_Forwarded_For=ADDRESS))


def _searches(service: Service) -> Iterator[str]:
    """Searches by two characters, by the merchant that has most of the orders in the file."""
    for body in bodies.signed("orderQueryList", 10_000, [{"merchant_order_no": "zq"}], "demo"):
        yield bodies.request("POST", "/merchant/orderQueryList", body, X_Forwarded_For=ADDRESS)


def _bad_signatures(service: Service) -> Iterator[str]:
    """Orders with a wrong signature."""
    for body in bodies.buys(100_000):
        forged = re.sub(r'"signature": "[0-9a-f]{8}', '"signature": "00000000', body)
        yield bodies.request("POST", "/merchant/createOrder", forged, X_Forwarded_For=ADDRESS)


@dataclass(frozen=True)
class Attack:
    """The requests of another caller, and their number in a second."""

    requests: Callable[[Service], Iterator[str]]
    rate: int


ATTACKS = {
    "sign-ins": Attack(_sign_ins, 120),
    "page-views": Attack(_page_views, 127),
    "searches": Attack(_searches, 22),
    "signatures": Attack(_bad_signatures, 500),
}


@dataclass
class _Rounds:
    """By round: p99 of createOrder in ms, and the process's largest memory in MiB."""

    quiet: list[float] = field(default_factory=list)
    attacked: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    notes: tuple[str, ...] = ()


def _orders(bench: Bench, service: Service) -> tuple[float, float]:
    """Let the merchant create orders; return p99 in ms and the largest memory meanwhile in MiB. Raises Failed."""
    orders = bodies.buys(round(RATE * bench.seconds), CHANNEL, MERCHANT)
    placed = bodies.posts("/merchant/createOrder", orders)
    running, most = flood.start(service.port, placed, RATE, bench.seconds, bench.work / "orders.txt"), 0.0
    while running.poll() is None:
        most = max(most, service.memory() / 2**20)
        time.sleep(0.05)
    found = flood.outcome(running)
    if set(found["statuses"]) != {"200"}:
        raise Failed(f"the merchant's orders: {flood.counts(found)}")
    return found["p99"]["200"], most


def _attacked(name: str, bench: Bench) -> _Rounds:
    rounds, attack = _Rounds(), ATTACKS[name]
    with Service(bench.copy(bench.large), ORDERS_TRUSTED_PROXIES="1") as service:
        service.rest()
        _orders(bench, service)  # the first responses are slower
        for _ in range(bench.rounds):
            p99, quiet = _orders(bench, service)
            seconds = bench.seconds + 2 * LEAD
            other = flood.start(service.port, attack.requests(service), attack.rate, seconds, bench.work / "attack.txt")
            time.sleep(LEAD)
            under_attack, most = _orders(bench, service)
            rounds.quiet.append(p99)
            rounds.attacked.append(under_attack)
            rounds.memory.append(most - quiet)
            rounds.notes += (flood.counts(flood.outcome(other)),)
    return rounds


_measured: dict[str, Callable[[Bench], _Rounds]] = {
    name: lambda bench, name=name: _attacked(name, bench)  # type: ignore[misc]
    for name in ATTACKS
}


def latency(name: str) -> Callable[[Bench], Compared]:
    """p99 of the merchant's orders during an attack against without one."""

    def measure(bench: Bench) -> Compared:
        rounds = bench.once(_measured[name])
        return Compared(rounds.attacked, rounds.quiet, "ms", rounds.notes)

    return measure


def memory(name: str) -> Callable[[Bench], Compared]:
    """Memory that an attack adds to the process, against its limit."""

    def measure(bench: Bench) -> Compared:
        rounds = bench.once(_measured[name])
        return Compared(rounds.memory, [MOST_MEMORY] * len(rounds.memory), "MiB", rounds.notes)

    return measure
