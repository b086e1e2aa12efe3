"""`python -m bench --peers`: this service's create and list against peers that are installed for the comparison."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bench import bodies, load, report
from bench.context import Bench, Compared, spent
from bench.load import Failed, Load
from bench.peer_servers import PEERS, Peer, PeerServer, brief
from bench.processes import Service

CONNECTIONS = 8
OURS = "service"
CALLS = {"create": "createOrder", "list": "orderQueryList"}
# Lets wrk post a fixed body of any media type; load.lua still prints the outcome.
POSTING = "wrk.method, wrk.body = 'POST', {body}\nwrk.headers['Content-Type'] = '{media_type}'\ndofile({script})\n"


@dataclass
class Measured:
    """Figures of a server by round of create and of list; `missing` has the reason if a call failed."""

    rounds: dict[str, list[Load]] = field(default_factory=lambda: {call: [] for call in CALLS})
    missing: dict[str, str] = field(default_factory=dict)
    records: int = 0  # created before the first list


def _post(bench: Bench, server: PeerServer, seconds: float) -> Load:
    """Run wrk with one repeated body: unlike the service, no peer requires a new body each time."""
    peer, script = server.peer, bench.work / "posting.lua"
    quoted = {"body": json.dumps(peer.body), "script": json.dumps(str(load.SCRIPT))}
    script.write_text(POSTING.format(media_type=peer.media_type, **quoted))
    command = [load.wrk(), "-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(seconds))}", f"--timeout={load.TIMEOUT}"]
    command += [part for name, value in server.headers.items() for part in ("-H", f"{name}: {value}")]
    url = server.url + peer.create
    return load.read(url, subprocess.run([*command, f"-s{script}", url], capture_output=True, text=True))


def _measures(bench: Bench, call: str, running: dict[str, Any]) -> dict[str, Callable[[float], Load]]:
    """By server, a function that runs load for so many seconds."""
    url = f"{running[OURS].url}/merchant/{CALLS[call]}"
    ours = bodies.buys if call == "create" else lambda count: bodies.signed(CALLS["list"], count)
    things: dict[str, Callable[[float], Load]] = {OURS: lambda seconds: bench.load(url, CONNECTIONS, ours, seconds)}
    for name, server in running.items():
        if name != OURS and call == "create":
            things[name] = partial(_post, bench, server)
        elif name != OURS:
            listed = partial(bench.load, server.url + server.peer.listed, CONNECTIONS, None, **server.headers)
            things[name] = lambda seconds, listed=listed: listed(seconds=seconds)
    return things


def _try(measured: Measured, call: str, measure: Callable[[float], Load], seconds: float) -> Load | None:
    """One run, or None if it failed. A call that failed once is not repeated."""
    if call in measured.missing:
        return None
    try:
        return measure(seconds)
    except Failed as error:
        measured.missing[call] = brief(str(error).split(": ", 1)[-1])
        return None


def _load_all(bench: Bench, call: str, running: dict[str, Any], found: dict[str, Measured]) -> None:
    """Warm up for a second, then measure all rounds of one call on every server."""
    things = _measures(bench, call, running)
    warm = {name: _try(found[name], call, measure, 1) for name, measure in things.items()}
    rounds = bench.in_turn(
        **{name: partial(_try, found[name], call, measure, bench.seconds) for name, measure in things.items()}
    )
    for name, loads in rounds.items():
        found[name].rounds[call] = [one for one in loads if one]
        if call == "create":
            found[name].records = sum(one.responses for one in [warm[name], *loads] if one)


def _started(bench: Bench, running: ExitStack, found: dict[str, Measured]) -> dict[str, Any]:
    """Install the servers if necessary and start them."""
    servers: dict[str, Any] = {}
    for peer in PEERS:
        try:
            peer.install(bench.say)
            servers[peer.name] = running.enter_context(PeerServer(peer, bench.work / f"peer-{peer.name}"))
        except Failed as error:
            found[peer.name].missing = dict.fromkeys(CALLS, str(error))
    servers[OURS] = running.enter_context(Service(bench.work / "peers-service"))
    return servers


def _compared(peer: Peer, call: str, found: dict[str, Measured]) -> Compared | str:
    """Return the figures of the service and a peer for one call, or the reason for their absence."""
    ours, theirs = found[OURS], found[peer.name]
    if call in ours.missing:
        raise Failed(f"{CALLS[call]}: {ours.missing[call]}")
    if call in theirs.missing:
        return f"not available: {theirs.missing[call]}"
    notes = spent(*ours.rounds[call])
    if call == "list":
        notes += (f"of {ours.records:,} orders here, of {theirs.records:,} records there",)
    return Compared(
        [one.rate for one in ours.rounds[call]], [one.rate for one in theirs.rounds[call]], "a second", notes
    )


def _entry(peer: Peer, call: str, compared: Compared | str) -> dict[str, Any]:
    path = (f"POST {peer.create}" if call == "create" else f"GET {peer.listed}").split("?")[0]
    title = f"{CALLS[call]} / {peer.title}, {path}, {CONNECTIONS} connections"
    known = {"name": f"{call}-{peer.name}", "title": title, "keeps": peer.keeps}
    return known | ({"error": compared} if isinstance(compared, str) else report.figures(compared))


def _lines(peer: Peer, compared: dict[str, Compared | str]) -> str:
    """A peer's line of the table, followed by explanations."""
    texts = {call: one if isinstance(one, str) else f"{one.ratio:.2f}" for call, one in compared.items()}
    if len(set(texts.values())) == 1 and isinstance(compared["create"], str):
        return f"{peer.title:<30}{texts['create']}\n{'':<4}{peer.keeps}"
    more = []
    for call, one in compared.items():
        if isinstance(one, str):
            texts[call], notes = "-", [one]
        else:
            ours, theirs = statistics.median(one.ours), statistics.median(one.yardstick)
            notes = [f"{ours:,.0f} {one.unit} here, {theirs:,.0f} there", *one.notes]
        more.append(f"{'':<4}{call}: {'; '.join(notes)}")
    return "\n".join([f"{peer.title:<30}{texts['create']:>10}{texts['list']:>10}", *more, f"{'':<4}{peer.keeps}"])


def compare(bench: Bench) -> list[dict[str, Any]]:
    """Print the table of ratios and return the rows for the file. Raises Failed if the service can't be measured."""
    found = {name: Measured() for name in (OURS, *(peer.name for peer in PEERS))}
    with ExitStack() as stack:
        running = _started(bench, stack, found)
        for call in CALLS:
            _load_all(bench, call, running, found)
    print(f"This service / peer, {CONNECTIONS} connections, medians of {bench.rounds} rounds; above 1 it is faster.")
    print(f"{'':<30}{'create':>10}{'list':>10}")
    entries = []
    for peer in PEERS:
        compared = {call: _compared(peer, call, found) for call in CALLS}
        print(_lines(peer, compared), flush=True)
        entries += [_entry(peer, call, one) for call, one in compared.items()]
    return entries
