"""Shared tools of the tests: a signing client, a synchronous pool, a service in a process of its own."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import requests
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pytest_httpserver import HTTPServer
from standardwebhooks import Webhook, WebhookVerificationError
from werkzeug import Request, Response

from app import create_app
from cli.command_line import Tillbook
from gateways.sandbox.driver import SandboxDriver
from gateways.sandbox.records import books
from models.tables.order import Order
from services import kinds
from services.channels.calls import driver_of
from tests import contract, databases

ROOT = Path(__file__).resolve().parents[1]
NOON = int(datetime(2026, 5, 1, 12, tzinfo=UTC).timestamp())  # the time of a stopped test clock
ENDPOINTS = (
    *("createOrder", "orderQueryDetail", "orderQueryList", "getPayChannels", "balanceQuery", "statementQuery"),
    *("createRefund", "refundQueryDetail", "refundQueryList"),
)
MERCHANTS = {"demo": "demo-secret", "other": "other-secret"}

PERSON = {
    "name": "张三",
    "cert_type": "00",
    "cert_no": "110101199003077758",
    "cert_validity_type": "0",
    "cert_begin_date": "20200101",
    "cert_end_date": "20400101",
    "mobile_no": "13800138000",
}
CARD = {
    "card_type": "2",
    "card_name": "张三",
    "card_no": "6222020000000000017",
    "prov_id": "110000",
    "area_id": "110101",
}


def _leaves(value: Any, path: str = "") -> list[tuple[str, str]]:
    """An integrator's own implementation of the rule, independent of the service's."""
    if isinstance(value, dict):
        return [leaf for name, item in value.items() for leaf in _leaves(item, f"{path}.{name}".lstrip("."))]
    if isinstance(value, list):
        return [leaf for number, item in enumerate(value) for leaf in _leaves(item, f"{path}.{number}")]
    if value is None or value == "":
        return []
    return [(path, {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value))]


def signature(endpoint: str, fields: dict[str, Any], secret: str, query: dict[str, str] | None = None) -> str:
    """The signature of a request, from Python values whose text equals their JSON."""
    # Of two values with one path, the body's comes first.
    leaves = sorted(_leaves(fields) + _leaves(query or {}), key=lambda leaf: leaf[0])
    lines = [f"{path}={value}" for path, value in leaves if path != "signature"]
    return hmac.new(secret.encode(), "\n".join([endpoint, *lines]).encode(), hashlib.sha256).hexdigest()


def signed(endpoint: str, fields: dict[str, Any], key: str = "demo", secret: str | None = None) -> dict[str, Any]:
    """The fields with the four auth fields; given ones are kept."""
    auth = {"api_key": key, "timestamp": int(time.time()), "nonce": secrets.token_hex(8)}
    body = auth | fields
    return body | {"signature": signature(endpoint, body, secret or MERCHANTS.get(key, "?"))}


def signed_text(endpoint: str, text: str, key: str = "demo") -> bytes:
    """A JSON object's text with the auth fields added, signed over its numbers as they are written."""
    auth = {"api_key": key, "timestamp": int(time.time()), "nonce": secrets.token_hex(8)}
    own = text.strip().removeprefix("{").removesuffix("}")
    body = ", ".join(part for part in (own, json.dumps(auth)[1:-1]) if part)
    sign = signature(endpoint, json.loads(f"{{{body}}}", parse_int=str, parse_float=str), MERCHANTS[key])
    return f'{{{body}, "signature": "{sign}"}}'.encode()


def types_of(fields: dict[str, Any]) -> dict[str, type]:
    """The type of each field, to compare with the contract."""
    return {name: type(value) for name, value in fields.items()}


@dataclass(frozen=True)
class Received:
    """One request to a `Receiver`; `event` is None if its signature is invalid."""

    method: str
    headers: dict[str, str]
    body: bytes
    event: dict[str, Any] | None

    @property
    def webhook_id(self) -> str:
        return self.headers["Webhook-Id"]


class Answer:
    """A response of either transport: status, headers, envelope."""

    def __init__(self, status: int, headers: Any, text: str):
        self.status, self.headers, self.text = status, headers, text

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.text)

    @property
    def code(self) -> int:
        return self.json["code"]

    @property
    def data(self) -> Any:
        return self.json["data"]

    def __repr__(self) -> str:
        return f"<{self.status} {self.text[:400]}>"


class Api:
    """A merchant's client; `send(method, path, body, headers)` is the transport."""

    def __init__(self, send: Any, key: str = "demo", secret: str | None = None):
        self.send, self.key, self.secret = send, key, secret or MERCHANTS.get(key)

    def call(self, endpoint: str, fields: dict[str, Any] | None = None, headers: Any = None, query: str = "") -> Answer:
        """Make one signed call of a /merchant endpoint, with parameters in the body."""
        body = json.dumps(signed(endpoint, fields or {}, self.key, self.secret), ensure_ascii=False).encode()
        return self.post(endpoint, body, headers, query)

    def post(self, endpoint: str, body: bytes, headers: Any = None, query: str = "") -> Answer:
        """Post unchanged bytes to a /merchant endpoint."""
        all_headers = {"Content-Type": "application/json"} | (headers or {})
        return self.send("POST", f"/merchant/{endpoint}{query}", body, all_headers)

    def buy(self, amount: Any = "100.00", channel: int = 2, headers: Any = None, **more: Any) -> Answer:
        fields = {"order_type": 1, "cny_amount": amount, "paychannel_id": channel, "paychannel_paymethod": "wxpay"}
        return self.call("createOrder", fields | more, headers)

    def sell(self, amount: Any = "100.00", channel: int = 2, headers: Any = None, **more: Any) -> Answer:
        fields = {"order_type": 2, "cny_amount": amount, "paychannel_id": channel, "paychannel_paymethod": "bank"}
        return self.call("createOrder", fields | more, headers)

    def detail(self, **by: Any) -> Answer:
        return self.call("orderQueryDetail", by)

    def listed(self, **filters: Any) -> Answer:
        return self.call("orderQueryList", filters)

    def status(self, order_no: str) -> str:
        return self.detail(order_no=order_no).data["status"]

    def play(self, order_no: str, outcome: str) -> Answer | None:
        """Perform `outcome` for an order by the upstream of the driver `trial`, for the application in this process.

        Returns: the service's response to the last notice, if one was sent.
        """
        order, answer = Order.get(Order.order_no == order_no), None
        driver = driver_of(order.channel)
        assert isinstance(driver, SandboxDriver)
        if order.is_buy and outcome == "late":
            kinds.expire(order)
        books().set_outcome(order_no, order.amount, outcome)
        for each in driver.notices(order_no) if order.is_buy else ():
            answer = self.send("POST", f"/addons/paychannel/notify/{order_no}", each.body, dict(each.headers))
        return answer

    def notice(self, order_no: str, amount: int, *, to: str = "", **more: Any) -> Answer:
        """The sandbox's notice about one order, sent to the address of that order (or of another)."""
        body, headers = sandbox_notice(order_no, amount, **more)
        return self.send("POST", f"/addons/paychannel/notify/{to or order_no}", body, headers)


class DemoApi(Api):
    """A merchant's client of a demo."""

    def play(self, order_no: str, outcome: str) -> Answer:
        """Choose the sandbox's outcome of an order."""
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.send("POST", "/sandbox/pay", f"order_no={order_no}&outcome={outcome}".encode(), headers)


def sandbox_signed(body: bytes, secret: str = "sandbox-notice-secret") -> tuple[bytes, dict[str, str]]:
    """A body, and the header with the signature of the sandbox's upstream."""
    return body, {"X-Sandbox-Signature": hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}


def sandbox_notice(
    order_no: str, amount: int, reference: str = "R-1", state: str = "paid", **secret: str
) -> tuple[bytes, dict[str, str]]:
    """A notice of the sandbox's upstream about an order: body and headers. `amount` in fen."""
    said = {"order_no": order_no, "state": state, "amount": amount, "reference": reference}
    return sandbox_signed(json.dumps(said).encode(), **secret)


def heard(order_details: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The output of `order show` without rejected notices, and the reasons of their rejection."""
    mark = "Notice rejected: "
    refused = [line["why"].removeprefix(mark) for line in order_details["history"] if line["why"].startswith(mark)]
    history = [line for line in order_details["history"] if not line["why"].startswith(mark)]
    return order_details | {"history": history}, refused


def completed(api: Api) -> str:
    """A deposit that was paid and credited: its order number."""
    order_no = str(api.buy().data["order_no"])
    api.play(order_no, "success")
    return order_no


def finished(command: Any, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, in the project's folder unless `cwd` is given; return its status and its output."""
    return subprocess.run(command, **{"cwd": ROOT, "capture_output": True, "text": True} | more)


def through_flask(client: Any) -> Any:
    """The transport of Flask's test client."""

    def send(method: str, path: str, body: bytes = b"", headers: Any = None) -> Answer:
        answer = client.open(path, method=method, data=body, headers=headers)
        return Answer(answer.status_code, answer.headers, answer.get_data().decode(errors="replace"))

    return send


def through_http(url: str) -> Any:
    """The transport of a real HTTP connection; each response is compared with the OpenAPI document."""
    session = requests.Session()
    session.trust_env = False

    def send(method: str, path: str, body: bytes = b"", headers: Any = None) -> Answer:
        answer = session.request(method, url + path, data=body, headers=headers, timeout=20, allow_redirects=False)
        contract.hold_answer(method, path, answer.status_code, answer.headers, answer.content)
        return Answer(answer.status_code, answer.headers, answer.text)

    return send


class Receiver:
    """A merchant's own HTTP server: verifies requests by a public library, stores them, responds as configured."""

    def __init__(self, server: HTTPServer, path: str, secret: str):
        self.server, self.secret, self.url = server, secret, server.url_for(path)
        self.got: list[Received] = []
        self.answer: Callable[[Request], Response] = lambda request: Response("thank you")
        server.expect_request(path).respond_with_handler(self._take)

    def _take(self, request: Request) -> Response:
        body = request.get_data()
        contract.hold_callback(request.headers, body)
        try:
            event = Webhook(self.secret).verify(body, dict(request.headers))
        except WebhookVerificationError:
            event = None
        self.got.append(Received(request.method, dict(request.headers), body, event))
        return self.answer(request)

    def answers(self, status: int, body: str = "", headers: Any = None) -> None:
        """Set the response from now on."""
        self.answer = lambda request: Response(body, status, headers)


class InlinePool:
    """Replaces the pool of workers: does each piece of work immediately, in this thread.

    `meanwhile` is called after the work is taken and before it begins.
    """

    def __init__(self, meanwhile: Callable[[], Any] = lambda: None):
        self._meanwhile = meanwhile
        self.sweeping = nullcontext()

    def take_announced(self) -> set[int]:
        return set()

    def unseen(self, tenants: Any) -> list[int]:
        return []

    def choose(self, tenants: Any, rows_of: Any) -> list[Any]:
        return [row for tenant in tenants for row in rows_of(tenant, 1000)]

    def submit(self, tenant: int, work: Any, item: Any) -> None:
        self._meanwhile()
        work(item)


class CrashedPool(InlinePool):
    """Takes the work and does nothing, like a process that is killed."""

    def submit(self, tenant: int, work: Any, item: Any) -> None:
        pass


def https_certificate(folder: Path, name: str) -> Path:
    """A file with a key and its self-signed certificate for this name (or address)."""
    key = ec.generate_private_key(ec.SECP256R1())
    owner = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    today = datetime.now(UTC)
    is_address = name.replace(".", "").isdigit()
    named = x509.IPAddress(IPv4Address(name)) if is_address else x509.DNSName(name)
    made = (
        x509.CertificateBuilder(owner, owner, key.public_key(), x509.random_serial_number())
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([named]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    file = folder / f"{name}.pem"
    file.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain) + made.public_bytes(pem))
    return file


def free_port() -> int:
    """A port that no process listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(condition: Any, seconds: float = 60) -> Any:
    """Return the result of `condition` once it is true: also on a slow and busy machine, where a start takes 20 s."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {condition}")


class Service:
    """The service in a process of its own, on a port of its own, with real jobs and real signals."""

    entry: tuple[str, ...] = ("-m", "tests.trial_service")  # what Python runs
    mode: ClassVar = {"ORDERS_PRIVATE_CHANNELS": "1", "ORDERS_PRIVATE_CALLBACKS": "1"}

    def __init__(self, instance: Path, *, port: int | None = None, **environ: str):
        databases.url_of(instance)  # if its config.toml configures it
        self.instance, self.port = instance, port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ORDERS_")}
        self.environ = clean | {
            "ORDERS_INSTANCE": str(instance),
            "ORDERS_PORT": str(self.port),
            **self.mode,
            **environ,
        }
        self.process: subprocess.Popen[bytes] | None = None
        self.log = instance / "service.log"
        self.api = Api(through_http(self.url))

    def launch(self) -> None:
        """Start it without waiting."""
        self.instance.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, *self.entry], cwd=ROOT, env=self.environ, stdout=log, stderr=log
            )

    def start(self) -> Service:
        """Start it and wait until it responds and reports that it serves; if it does not, stop it."""
        self.launch()
        try:
            until(self._answers)
            until(lambda: "serving on" in self.log.read_text("utf-8"))
        except BaseException:
            self.kill()
            raise
        return self

    def _answers(self) -> bool:
        assert self.process
        assert self.process.poll() is None, self.log.read_text()
        try:
            return requests.get(f"{self.url}/healthz", timeout=2).status_code == 200
        except (requests.ConnectionError, requests.Timeout):
            return False

    def kill(self) -> None:
        """kill -9."""
        assert self.process
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Send SIGTERM and return the exit status."""
        assert self.process
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(40)

    def refused(self) -> str:
        """Start it, which must fail immediately; return the one line on standard error, without those about
        permissions."""
        done = finished([sys.executable, *self.entry], env=self.environ, timeout=20)
        said = [line for line in done.stderr.splitlines() if not line.startswith("Other users could read")]
        assert (done.returncode, len(said)) == (2, 1), done.stderr
        return said[0]

    def flask(self, *arguments: str, check: bool = True, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run one of the operator's commands in this process; the service may run."""
        typed = ["tillbook", *arguments]  # the imports and the need of a database depend on it
        with patch.dict(os.environ, self.environ, clear=True), patch.object(sys, "argv", typed):
            done = CliRunner().invoke(Tillbook(create_app), arguments, stdin, prog_name="tillbook")
        databases.disconnect()
        assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)  # a traceback
        assert not check or done.exit_code == 0, done.stderr
        return subprocess.CompletedProcess(typed, done.exit_code, done.stdout, done.stderr)


class DemoService(Service):
    """The demo in a process of its own."""

    entry = ("app.py",)
    mode: ClassVar = {"ORDERS_DEMO": "1"}

    def __init__(self, instance: Path, *, port: int | None = None, **environ: str):
        super().__init__(instance, port=port, **environ)
        self.api = DemoApi(self.api.send)


def words(text: str) -> str:
    """A text with its white space folded, to compare visible texts."""
    return re.sub(r"\s+", " ", text).strip()
