"""What a merchant notices while another caller does its worst, at a rate that a single machine sends with ease."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench import bodies, flood
from bench.context import Bench, Compared
from bench.load import Failed
from bench.processes import ROOT, Service

RATE = 50  # orders a second of the merchant who is to notice nothing
MERCHANT, CHANNEL = "other", 2
ADDRESS = "203.0.113.7"  # of the other caller, as the proxy in front tells it
LEAD = 1.0  # seconds for which the other caller is at it before anything is measured
MOST_MEMORY = 160.0  # MiB more than when it is quiet
FORM = "application/x-www-form-urlencoded"


def _sign_ins(service: Service) -> Iterator[str]:
    """Sign-ins with a wrong password, each ten from an address of their own."""
    page = service.http.get(f"{service.url}/console/login")
    token = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', page.text)
    if token is None:
        raise Failed("the console has no form to sign in")
    cookie = "; ".join(f"{name}={value}" for name, value in service.http.cookies.items())
    for number in itertools.count():
        form = f"csrf_token={token[1]}&name=demo&password=guess-number-{number}"
        address = f"198.51.{number // 2560 % 256}.{number // 10 % 256}"
        yield flood.request("POST", "/console/login", form, FORM, Cookie=cookie, X_Forwarded_For=address)


def _page_views(service: Service) -> Iterator[str]:
    """Views of one payment page."""
    order_no = service.call("createOrder", bodies.BUY)["order_no"]
    path = f"/addons/paychannel/pay/index?order_no={order_no}"
    return itertools.repeat(flood.request("GET", path, X_Forwarded_For=ADDRESS))


def _searches(service: Service) -> Iterator[str]:
    """Searches by two characters, by a merchant with all the orders in the file."""
    for body in bodies.signed("orderQueryList", 10_000, [{"merchant_order_no": "zq"}], "demo"):
        yield flood.request("POST", "/merchant/orderQueryList", body, X_Forwarded_For=ADDRESS)


def _bad_signatures(service: Service) -> Iterator[str]:
    """Orders whose signature is wrong."""
    for body in bodies.buys(100_000):
        forged = re.sub(r'"signature": "[0-9a-f]{8}', '"signature": "00000000', body)
        yield flood.request("POST", "/merchant/createOrder", forged, X_Forwarded_For=ADDRESS)


@dataclass(frozen=True)
class Attack:
    """What another caller sends, and how often a second."""

    requests: Callable[[Service], Iterator[str]]
    rate: int


ATTACKS = {
    "sign-ins": Attack(_sign_ins, 120),
    "page-views": Attack(_page_views, 127),
    "searches": Attack(_searches, 22),
    "signatures": Attack(_bad_signatures, 500),
}


@dataclass
class _Seen:
    """What each round gave: p99 of createOrder in ms, and the process's largest memory in MiB."""

    quiet: list[float] = field(default_factory=list)
    attacked: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    notes: tuple[str, ...] = ()


def _begin(service: Service, requests: Iterator[str], rate: float, seconds: float, file: Path) -> subprocess.Popen[str]:
    flood.write(file, itertools.islice(requests, round(rate * seconds)))
    command = [sys.executable, "-m", "bench.flood", str(service.port), str(rate), str(seconds), str(file)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def _orders(bench: Bench, service: Service) -> tuple[float, float]:
    """Have the merchant place orders: p99 in ms, and the largest memory meanwhile in MiB.

    Raises:
        Failed: one was not placed.
    """
    placed = (
        flood.request("POST", "/merchant/createOrder", body)
        for body in bodies.buys(round(RATE * bench.seconds), CHANNEL, MERCHANT)
    )
    running, most = _begin(service, placed, RATE, bench.seconds, bench.work / "orders.txt"), 0.0
    while running.poll() is None:
        most = max(most, service.memory() / 2**20)
        time.sleep(0.05)
    found = json.loads(running.communicate()[0])
    if set(found["said"]) != {"200"}:
        raise Failed(f"of the merchant's orders: {found['said']}")
    return float(found["p99"]["200"]), most


def _attacked(name: str, bench: Bench) -> _Seen:
    seen, attack = _Seen(), ATTACKS[name]
    with Service(bench.copy(bench.large), ORDERS_TRUSTED_PROXIES="1") as service:
        service.rest()
        _orders(bench, service)  # the first answers are slower
        for _ in range(bench.rounds):
            p99, quiet = _orders(bench, service)
            seconds = bench.seconds + 2 * LEAD
            other = _begin(service, attack.requests(service), attack.rate, seconds, bench.work / "attack.txt")
            time.sleep(LEAD)
            under_attack, most = _orders(bench, service)
            said = json.loads(other.communicate()[0])["said"]
            seen.quiet.append(p99)
            seen.attacked.append(under_attack)
            seen.memory.append(most - quiet)
            seen.notes += (", ".join(f"{status}: {count}" for status, count in sorted(said.items())),)
    return seen


_measured: dict[str, Callable[[Bench], _Seen]] = {
    name: lambda bench, name=name: _attacked(name, bench)  # type: ignore[misc]
    for name in ATTACKS
}


def latency(name: str) -> Callable[[Bench], Compared]:
    """p99 of the merchant's orders under an attack against when it is quiet."""

    def measure(bench: Bench) -> Compared:
        seen = bench.once(_measured[name])
        return Compared(seen.attacked, seen.quiet, "ms", seen.notes)

    return measure


def memory(name: str) -> Callable[[Bench], Compared]:
    """What an attack adds to the memory of the process, against what it may."""

    def measure(bench: Bench) -> Compared:
        seen = bench.once(_measured[name])
        return Compared(seen.memory, [MOST_MEMORY] * len(seen.memory), "MiB", seen.notes)

    return measure
