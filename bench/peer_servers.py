"""Other services to compare with: pinned packages, start commands and stored data."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import requests

from bench import order_files
from bench.load import Failed
from bench.processes import ROOT, Process, free_port

FOLDER = order_files.FOLDER / "peers"
PATIENCE = 900  # seconds for one command of an installation
SECRET_KEY = {"Authorization": "Bearer sk_test_bench"}  # both stand-ins for Stripe accept any key of the right form


@dataclass(frozen=True)
class Peer:
    """One peer. `launcher` is a program of its own language; its arguments are a port and a data folder.

    The launchers do not change how requests are handled: they bind to loopback, log no responses (as the service),
    and keep the peer's files in the run's folder.
    """

    name: str
    packages: tuple[str, ...]  # the first is the peer
    npm: bool
    launcher: str
    create: str
    body: str
    media_type: str
    listed: str
    keeps: str
    headers: Mapping[str, str] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)  # `{folder}` is the data folder
    enter: Callable[[PeerServer], Mapping[str, str]] | None = None  # returns headers that are known after the start
    probe: str = ""  # path that returns 200 once it has started; empty: the list

    @property
    def title(self) -> str:
        """Name and version."""
        return self.packages[0].replace("==", " ").replace("@", " ")

    @property
    def home(self) -> Path:
        """Folder of its installation."""
        return FOLDER / self.name

    def install(self, say: Callable[[str], None]) -> None:
        """Install it unless these exact packages are installed. Raises Failed."""
        mark, wanted = self.home / "installed", "\n".join(self.packages)
        if mark.exists() and mark.read_text() == wanted:
            return
        say(f"installing {self.title}")
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        if self.npm:
            _run("npm", "install", "--prefix", str(self.home), "--ignore-scripts", "--no-audit", "--no-fund",
                 "--fetch-retries=1", *self.packages)  # fmt: skip
        else:
            _run(sys.executable, "-m", "venv", str(self.home))
            _run(str(self.home / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                 "--retries=1", "--prefer-binary", *self.packages)  # fmt: skip
        mark.write_text(wanted)


def _run(*command: str) -> None:
    """Run one command of an installation. Raises Failed with the first error line."""
    try:
        done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=PATIENCE)
    except FileNotFoundError:
        raise Failed(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise Failed(f"not installed within {PATIENCE} s") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
        errors = [line for line in lines if "error" in line.lower()] or lines[-1:]
        raise Failed(f"not installed: {brief(errors[0].split(' (from')[0])}")


def brief(text: str) -> str:
    """A short reason, without this machine's paths."""
    return text.strip().replace(f"{ROOT}/", "")[:120]


class PeerServer(Process):
    """A peer on its own port with its data in `folder`; `headers` authenticate requests once it has started."""

    def __init__(self, peer: Peer, folder: Path):
        folder.mkdir(parents=True)
        port = free_port()
        environ = {name: value.format(folder=folder) for name, value in peer.environ.items()}
        super().__init__([], port, folder / "server.log", peer.probe or peer.listed, environ)
        # -P: it imports from its own packages, never from the service's folder.
        program = ("node", "-e") if peer.npm else (str(peer.home / "bin/python"), "-P", "-c")
        self.command = [*program, peer.launcher, str(port), str(folder)]
        self.peer, self.headers = peer, dict(peer.headers)

    def start(self) -> None:
        """Start it, get its key, and try both calls. Raises Failed with a short reason."""
        try:
            super().start()
        except (Failed, OSError):
            lines = self.log.read_text().strip().splitlines() or [f"{Path(self.command[0]).name} printed nothing"]
            raise Failed(f"does not start: {brief(lines[-1])}") from None
        try:
            self.headers |= self.peer.enter(self) if self.peer.enter else {}
            self._try()
        except (Failed, requests.RequestException, KeyError) as error:
            self.stop()
            raise Failed(brief(str(error))) from error

    def _try(self) -> None:
        """Make both calls once. Raises Failed with the status if one is refused, which wrk does not report."""
        typed = self.headers | {"Content-Type": self.peer.media_type}
        made = self.http.post(self.url + self.peer.create, self.peer.body, headers=typed, timeout=60)
        seen = self.http.get(self.url + self.peer.listed, headers=self.headers, timeout=60)
        for doing, response in (("create", made), ("list", seen)):
            if not response.ok:
                raise Failed(f"{doing} returns {response.status_code}")

    def _responds(self) -> bool:
        try:
            return self.http.get(self.url + self.probe, headers=self.headers, timeout=5).status_code == 200
        except requests.RequestException:
            return False


def _wallet(server: PeerServer) -> Mapping[str, str]:
    """The key of a new wallet, without a currency: otherwise each invoice fetches an exchange rate."""
    wallet = server.http.post(f"{server.url}/api/v1/account", json={"name": "bench"}, timeout=60).json()
    changed = server.http.patch(
        f"{server.url}/api/v1/wallet", json={"currency": ""}, headers={"X-Api-Key": wallet["adminkey"]}, timeout=60
    )
    if not changed.ok:
        raise Failed(f"setting the wallet up returns {changed.status_code}")
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
        media_type="application/json",
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
        media_type="application/x-www-form-urlencoded",
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
        media_type="application/json",
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
