"""`python -m bench --peers`: other services to compare with, their packages, start commands and stored data."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from bench import traffic
from bench.comparing import Bench, Row, Run, say
from bench.loading import Wrk
from bench.rows import SERVICE
from bench.starting import ROOT, Process, free_port

FOLDER = ROOT / "instance" / "bench" / "peers"
SECRET_KEY = {"Authorization": "Bearer sk_test_bench"}  # both stand-ins for Stripe accept any key of the right form


@dataclass(frozen=True, eq=False)
class Peer:
    """One peer; calling it installs and starts it. `launcher` is a program of its own language, whose arguments are a
    port and a data folder.

    The launchers do not change how requests are handled: they bind to loopback, log no responses (as the service),
    and keep the peer's files in the run's folder.
    """

    name: str
    packages: tuple[str, ...]  # the first is the peer
    npm: bool
    launcher: str
    create: str
    body: str
    listed: str
    keeps: str
    media_type: str = traffic.JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)  # `{folder}` is the data folder
    enter: Callable[[Process], Mapping[str, str]] | None = None  # returns headers that are known after the start
    probe: str = ""  # path that returns 200 once it has started; empty: the list

    @contextmanager
    def __call__(self, bench: Bench) -> Iterator[Process]:
        """Install it unless these exact packages are installed, and start it on a new folder."""
        home, folder, port = FOLDER / self.name, bench.work / f"peer-{self.name}", free_port()
        installed, wanted = home / "installed", "\n".join(self.packages)
        if not installed.exists() or installed.read_text() != wanted:
            say(f"installing {self.packages[0]}")
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir(parents=True)
            if self.npm:
                install = ["npm", "install", "--prefix", str(home), "--ignore-scripts", "--no-audit", "--no-fund"]
            else:
                subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
                install = [str(home / "bin/python"), "-m", "pip", "install", "--quiet", "--prefer-binary"]
            subprocess.run([*install, *self.packages], stdout=sys.stderr, check=True, timeout=900)
            installed.write_text(wanted)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        # -P: it imports from its own packages, never from the service's folder.
        program = ["node", "-e"] if self.npm else [str(home / "bin/python"), "-P", "-c"]
        command = [*program, self.launcher, str(port), str(folder)]
        environ = {name: value.format(folder=folder) for name, value in self.environ.items()}
        server = Process(command, port, folder / "server.log", self.probe or self.listed, environ)
        server.headers |= self.headers
        with server:
            server.headers |= self.enter(server) if self.enter else {}
            yield server

    def creates(self, server: Process) -> Iterator[str]:
        """One repeated request: unlike the service, no peer requires a new body each time."""
        return itertools.repeat(traffic.request("POST", self.create, self.body, self.media_type, **server.headers))

    def lists(self, server: Process) -> Iterator[str]:
        return itertools.repeat(traffic.request("GET", self.listed, **server.headers))


def _wallet(server: Process) -> Mapping[str, str]:
    """The key of a new wallet, without a currency: otherwise each invoice fetches an exchange rate."""
    wallet = server.http.post(f"{server.url}/api/v1/account", json={"name": "bench"}, timeout=60).json()
    keys = {"X-Api-Key": wallet["adminkey"]}
    changed = server.http.patch(f"{server.url}/api/v1/wallet", json={"currency": ""}, headers=keys, timeout=60)
    changed.raise_for_status()
    return {"X-Api-Key": wallet["inkey"]}


LOCALSTRIPE = """
import sys
from aiohttp import web
from localstripe import resources, server
resources.open = lambda path, mode: open(sys.argv[2] + "/localstripe.pickle", mode)
web.run_app(server.app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None, print=None)
"""
STATEFUL_MOCK = """
const folder = process.env.PEER_HOME + "/node_modules/stripe-stateful-mock";
require(folder).createExpressApp().listen(+process.argv[1], "127.0.0.1");
"""
# It expects its files in the folder of its package.
LNBITS = """
import importlib.util, os, sys, uvicorn
os.chdir(importlib.util.find_spec("lnbits").submodule_search_locations[0] + "/..")
uvicorn.run("lnbits.__main__:app", host="127.0.0.1", port=int(sys.argv[1]), loop="uvloop", log_level="warning")
"""

PEERS = (
    Peer(
        "localstripe",
        ("localstripe==1.15.10",),
        npm=False,
        launcher=LOCALSTRIPE,
        create="/v1/payment_intents",
        body='{"amount": 10000, "currency": "cny"}',
        listed="/v1/payment_intents?limit=20",
        headers=SECRET_KEY,
        keeps="Payment intents in memory. Each create writes all of them to one pickle file, twice and without a sync, "
        "so it slows down as they grow. Any well-formed key is accepted. No ledger.",
    ),
    Peer(
        "stripe-stateful-mock",
        ("stripe-stateful-mock@0.0.16",),
        npm=True,
        launcher=STATEFUL_MOCK,
        create="/v1/charges",
        body="amount=10000&currency=cny&source=tok_visa",
        media_type=traffic.FORM,
        listed="/v1/charges?limit=20",
        headers=SECRET_KEY,
        environ={"PEER_HOME": str(FOLDER / "stripe-stateful-mock")},
        keeps="Charges in memory only, lost when it stops. Each list sorts all of them, so it slows down as they grow. "
        "Any well-formed key is accepted. No ledger.",
    ),
    Peer(
        "lnbits",
        # Its bolt11 needs bitstring < 5 without declaring it.
        ("lnbits==1.6.2", "bitstring==4.4.0"),
        npm=False,
        launcher=LNBITS,
        create="/api/v1/payments",
        body='{"out": false, "amount": 100, "memo": "bench"}',
        listed="/api/v1/payments/paginated?limit=20",
        environ={
            "LNBITS_BACKEND_WALLET_CLASS": "FakeWallet",
            "LNBITS_DATA_FOLDER": "{folder}",
            "LNBITS_EXTENSIONS_PATH": "{folder}",
            "LNBITS_ADMIN_UI": "false",
            "LNBITS_RATE_LIMIT_NO": "1000000",
            # No requests to the internet.
            "LNBITS_PRICE_AGGREGATOR_ENABLED": "false",
            "LNBITS_EXCHANGE_RATE_PROVIDERS": "[]",
            "LNBITS_EXTENSIONS_MANIFESTS": "[]",
            "LNBITS_WASM_EXTENSIONS_MANIFESTS": "[]",
            "ENABLE_LOG_TO_FILE": "false",
            "FORWARDED_ALLOW_IPS": "127.0.0.1",
        },
        enter=_wallet,
        probe="/api/v1/health",
        keeps="Invoices in SQLite with a rollback journal, each synced in its own transaction. The key is looked up "
        "and each invoice is signed; requests are not. A balance is a sum over payments, not a ledger.",
    ),
)

# A list has as many records as the same server has created in a run's time.
CREATE = Run(SERVICE, Wrk(traffic.orders))
LIST = Run(SERVICE, Wrk(traffic.lists, before=traffic.orders))
TITLE = "8 connections: this service /"
CREATES = [
    Row(f"create-{peer.name}", f"create, {TITLE} {peer.packages[0]}", CREATE, Run(peer, Wrk(peer.creates)))
    for peer in PEERS
]
LISTS = [
    Row(f"list-{peer.name}", f"list, {TITLE} {peer.packages[0]}", LIST, Run(peer, Wrk(peer.lists, before=peer.creates)))
    for peer in PEERS
]
