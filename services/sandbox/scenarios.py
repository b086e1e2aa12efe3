"""Run a scenario on a demo through its HTTP interface, with a merchant's signature."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Callable
from decimal import Decimal
from functools import cached_property
from typing import Any

import requests

from schemas.sandbox.scenario import NAME
from schemas.strict_json import parse
from services.sandbox.seeding import MERCHANTS
from services.security import signing

SECRETS = {str(merchant["key"]): str(merchant["secret"]) for merchant in MERCHANTS}
PATIENCE = 90  # seconds that one response may take: a move of the clock takes up to a minute
POLL_SECONDS = 0.1
LONGEST_LINE = 160  # characters of a step that are displayed
CREATE = "/merchant/createOrder"
HIDDEN = ("do", "within", "merchant", "code")
_VALUE = re.compile(rf"\{{({NAME})\.({NAME})\}}")


class Failed(Exception):
    """A step that failed: the expected and the actual result."""

    def __init__(self, expected: Any, seen: Any):
        super().__init__(f"expected {expected}, seen {seen}")
        self.expected, self.seen = _shown(expected), _shown(seen)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


class Demo:
    """A demo service at an address."""

    def __init__(self, url: str):
        self.url = url.rstrip("/")
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers["Accept"] = "application/json"

    def request(self, method: str, path: str, **sent: Any) -> dict[str, Any]:
        """Send a request; return the envelope of the response. Raises Failed without one."""
        try:
            answer = self._session.request(method, self.url + path, timeout=PATIENCE, allow_redirects=False, **sent)
            found: dict[str, Any] = answer.json()
        except (OSError, ValueError) as error:  # those of requests are OSErrors
            raise Failed(f"an answer of the demo at {self.url}{path}", f"{type(error).__name__}: {error}") from None
        return found

    def data_of(self, method: str, path: str, **sent: Any) -> Any:
        """Send a request that must succeed; return its data. Raises Failed."""
        answer = self.request(method, path, **sent)
        if answer.get("code") != 1:
            raise Failed(f"{method} {path} to succeed", answer)
        return answer["data"]

    def create(self, key: str, wanted: dict[str, Any]) -> dict[str, Any]:
        """Send a signed createOrder."""
        body = wanted | {"api_key": key, "timestamp": int(time.time()), "nonce": secrets.token_hex(8)}
        text = signing.string_to_sign("createOrder", parse(json.dumps(body).encode()))
        return self.request(
            "POST", self._create_path, json=body | {"signature": signing.sign(SECRETS.get(key, ""), text)}
        )

    @cached_property
    def _create_path(self) -> str:
        """The path of createOrder, which depends on the demo's API prefix."""
        paths = self.request("GET", "/openapi.json").get("paths", {})
        return next((path for path in paths if path.endswith(CREATE)), CREATE)


def _until_equal(read: Callable[[], Any], expected: Any, within: int) -> None:
    """Poll until the result is as expected. Raises Failed."""
    give_up = time.monotonic() + within
    while (seen := read()) != expected:
        if time.monotonic() > give_up:
            raise Failed(expected, seen)
        time.sleep(POLL_SECONDS)


class Run:
    """One run: the demo, the orders by their names, and the balances at the start."""

    def __init__(self, demo: Demo):
        self._demo = demo
        self._orders: dict[str, dict[str, Any]] = {}
        self._balances: dict[str, dict[str, str]] = {}

    def begin(self) -> None:
        """Let the inbox accept callbacks, and read the merchants' balances. Raises Failed."""
        self._balances = self._demo.data_of("GET", "/sandbox/balances")
        self._demo.data_of("POST", "/sandbox/inbox/answers", data={"answer": "200"})

    def carry_out(self, step: dict[str, Any]) -> None:
        """Perform a loaded step; its kind is the name of a method. Raises Failed."""
        getattr(self, step["do"])(step)

    def _order_no(self, step: dict[str, Any]) -> str:
        return str(self._orders[step["order"]]["order_no"])

    def _filled(self, value: Any) -> Any:
        """Replace `{name.field}` in a text, or in all texts of a list or object."""
        if isinstance(value, dict):
            return {name: self._filled(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        return _VALUE.sub(self._value, value) if isinstance(value, str) else value

    def _value(self, found: re.Match[str]) -> str:
        order = self._orders[found[1]]
        if found[2] not in order:
            raise Failed(f"{found[1]} to have {found[2]}", sorted(order))
        return str(order[found[2]])

    def create(self, step: dict[str, Any]) -> None:
        """Create an order and store it under its name."""
        wanted = self._filled(step["fields_"])
        answer = self._demo.create(step["merchant"], wanted)
        if answer["code"] != step["code"]:
            raise Failed({"code": step["code"]}, answer)
        if "as_" in step and answer["code"] == 1:
            self._orders[step["as_"]] = wanted | answer["data"]

    def pay(self, step: dict[str, Any]) -> None:
        """Choose the simulator's outcome for an order."""
        sent = {"order_no": self._order_no(step), "outcome": step["outcome"], "after": step.get("after", 0)}
        self._demo.data_of("POST", "/sandbox/pay", data=sent)

    def accept(self, step: dict[str, Any]) -> None:
        """Approve a withdrawal as an operator."""
        self._demo.data_of("POST", "/sandbox/accept", data={"order_no": self._order_no(step)})

    def inbox(self, step: dict[str, Any]) -> None:
        """Set the inbox's response."""
        self._demo.data_of("POST", "/sandbox/inbox/answers", data=_given(step, "answer", "times", "seconds"))

    def channel(self, step: dict[str, Any]) -> None:
        """Set the behaviour of a sandbox channel."""
        self._demo.data_of("POST", "/sandbox/channel", data=_given(step, "channel", "open", "payout"))

    def clock(self, step: dict[str, Any]) -> None:
        """Move the clock."""
        moved = self._demo.data_of("POST", "/sandbox/clock", data=_given(step, "seconds", "to"))
        if not moved["done"]:
            raise Failed("all that was due by then to be done within a minute", moved)

    def expect(self, step: dict[str, Any]) -> None:
        """Wait until everything is as expected."""
        expected = _given(step, "status", "exceptions", "callbacks", "balance")

        def read() -> dict[str, Any]:
            seen = self._demo.data_of("GET", f"/sandbox/orders/{self._order_no(step)}") if "order" in step else {}
            if "callbacks" in expected:
                seen["callbacks"] = _as_wanted(seen["callbacks"], expected["callbacks"])
            if "balance" in expected:
                seen["balance"] = self._changes(step["merchant"], expected["balance"])
            return {name: seen[name] for name in expected}

        if "exceptions" in expected:
            expected["exceptions"] = sorted(expected["exceptions"])
        _until_equal(read, expected, step["within"])

    def _changes(self, key: str, wanted: dict[str, str]) -> dict[str, str]:
        now = self._demo.data_of("GET", "/sandbox/balances")
        if key not in now:
            raise Failed(f"a merchant {key}", sorted(now))
        return {name: str(Decimal(now[key][name]) - Decimal(self._balances[key][name])) for name in wanted}

    def get(self, step: dict[str, Any]) -> None:
        """Request the merchant's own address until the response is as expected."""
        url, wanted = self._filled(step["url"]), self._filled(step["contains"])

        def read() -> str:
            try:
                answer = requests.get(url, timeout=10, allow_redirects=False)
            except OSError as error:
                return f"{type(error).__name__}: {error}"
            fits = answer.status_code == step["status"] and wanted in answer.text
            return expected if fits else f"{answer.status_code} {answer.text[:400]!r}"

        expected = f"{url} to answer {step['status']}" + (f" with {wanted!r}" if wanted else "")
        _until_equal(read, expected, step["within"])


def _given(step: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: step[name] for name in names if name in step}


def _as_wanted(seen: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """Return all callbacks, each with the expected facts only."""
    return {
        kind: {name: facts[name] for name in wanted.get(kind, ("state", "attempts"))} for kind, facts in seen.items()
    }


def summary_of(step: dict[str, Any]) -> str:
    """Return a step in one line."""
    if note := step.get("note"):
        return f"{step['do']}: {note}"
    facts = {name.rstrip("_"): value for name, value in step.items() if name not in HIDDEN}
    text = f"{step['do']}: " + ", ".join(f"{name} {_shown(value)}" for name, value in facts.items())
    return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}..."
