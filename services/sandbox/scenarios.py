"""Carrying a scenario out on a demo through its HTTP interface, signed as a merchant would."""

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
PATIENCE = 90  # seconds that one answer may take: a move of the clock takes up to a minute
LOOK_SECONDS = 0.1
LONGEST_LINE = 160  # characters of a step that are said
CREATE = "/merchant/createOrder"
UNSAID = ("do", "within", "merchant", "code")
_VALUE = re.compile(rf"\{{({NAME})\.({NAME})\}}")


class Failed(Exception):
    """A step that did not go as it should: what was expected, and what was seen."""

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

    def ask(self, method: str, path: str, **sent: Any) -> dict[str, Any]:
        """The envelope that it answers. Raises Failed: it does not."""
        try:
            answer = self._session.request(method, self.url + path, timeout=PATIENCE, allow_redirects=False, **sent)
            found: dict[str, Any] = answer.json()
        except (OSError, ValueError) as error:  # requests' own are OSErrors
            raise Failed(f"an answer of the demo at {self.url}{path}", f"{type(error).__name__}: {error}") from None
        return found

    def done(self, method: str, path: str, **sent: Any) -> Any:
        """The data of an answer that must be a success. Raises Failed."""
        answer = self.ask(method, path, **sent)
        if answer.get("code") != 1:
            raise Failed(f"{method} {path} to succeed", answer)
        return answer["data"]

    def create(self, key: str, wanted: dict[str, Any]) -> dict[str, Any]:
        """createOrder, signed."""
        body = wanted | {"api_key": key, "timestamp": int(time.time()), "nonce": secrets.token_hex(8)}
        text = signing.string_to_sign("createOrder", parse(json.dumps(body).encode()))
        return self.ask("POST", self._create_path, json=body | {"signature": signing.sign(SECRETS.get(key, ""), text)})

    @cached_property
    def _create_path(self) -> str:
        """Where createOrder is, as the demo's API prefix may be any."""
        paths = self.ask("GET", "/openapi.json").get("paths", {})
        return next((path for path in paths if path.endswith(CREATE)), CREATE)


def _until_equal(look: Callable[[], Any], expected: Any, within: int) -> None:
    """Look until it is as expected. Raises Failed."""
    give_up = time.monotonic() + within
    while (seen := look()) != expected:
        if time.monotonic() > give_up:
            raise Failed(expected, seen)
        time.sleep(LOOK_SECONDS)


class Run:
    """One run: the demo, the orders by their names, and the balances it began with."""

    def __init__(self, demo: Demo):
        self._demo = demo
        self._orders: dict[str, dict[str, Any]] = {}
        self._balances: dict[str, dict[str, str]] = {}

    def begin(self) -> None:
        """Let the inbox take what comes, and see what the merchants have. Raises Failed."""
        self._balances = self._demo.done("GET", "/sandbox/balances")
        self._demo.done("POST", "/sandbox/inbox/answers", data={"answer": "200"})

    def carry_out(self, step: dict[str, Any]) -> None:
        """Do a step, as the schema loaded it; its kind is the name of a method. Raises Failed."""
        getattr(self, step["do"])(step)

    def _order_no(self, step: dict[str, Any]) -> str:
        return str(self._orders[step["order"]]["order_no"])

    def _filled(self, value: Any) -> Any:
        """A text, or what holds texts, with `{name.field}` put in."""
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
        """Create an order and keep it under its name."""
        wanted = self._filled(step["fields_"])
        answer = self._demo.create(step["merchant"], wanted)
        if answer["code"] != step["code"]:
            raise Failed({"code": step["code"]}, answer)
        if "as_" in step and answer["code"] == 1:
            self._orders[step["as_"]] = wanted | answer["data"]

    def pay(self, step: dict[str, Any]) -> None:
        """Tell the simulator."""
        sent = {"order_no": self._order_no(step), "outcome": step["outcome"], "after": step.get("after", 0)}
        self._demo.done("POST", "/sandbox/pay", data=sent)

    def accept(self, step: dict[str, Any]) -> None:
        """As an operator."""
        self._demo.done("POST", "/sandbox/accept", data={"order_no": self._order_no(step)})

    def inbox(self, step: dict[str, Any]) -> None:
        """Have it fail, or not."""
        self._demo.done("POST", "/sandbox/inbox/answers", data=_given(step, "answer", "times", "seconds"))

    def channel(self, step: dict[str, Any]) -> None:
        """Have it behave."""
        self._demo.done("POST", "/sandbox/channel", data=_given(step, "channel", "open", "payout"))

    def clock(self, step: dict[str, Any]) -> None:
        """Move it."""
        moved = self._demo.done("POST", "/sandbox/clock", data=_given(step, "seconds", "to"))
        if not moved["done"]:
            raise Failed("all that was due by then to be done within a minute", moved)

    def expect(self, step: dict[str, Any]) -> None:
        """Wait until all of it is so."""
        expected = _given(step, "status", "exceptions", "callbacks", "balance")

        def look() -> dict[str, Any]:
            seen = self._demo.done("GET", f"/sandbox/orders/{self._order_no(step)}") if "order" in step else {}
            if "callbacks" in expected:
                seen["callbacks"] = _as_wanted(seen["callbacks"], expected["callbacks"])
            if "balance" in expected:
                seen["balance"] = self._changes(step["merchant"], expected["balance"])
            return {name: seen[name] for name in expected}

        if "exceptions" in expected:
            expected["exceptions"] = sorted(expected["exceptions"])
        _until_equal(look, expected, step["within"])

    def _changes(self, key: str, wanted: dict[str, str]) -> dict[str, str]:
        now = self._demo.done("GET", "/sandbox/balances")
        if key not in now:
            raise Failed(f"a merchant {key}", sorted(now))
        return {name: str(Decimal(now[key][name]) - Decimal(self._balances[key][name])) for name in wanted}

    def get(self, step: dict[str, Any]) -> None:
        """Look at the merchant's own address until it says what it should."""
        url, wanted = self._filled(step["url"]), self._filled(step["contains"])

        def look() -> str:
            try:
                answer = requests.get(url, timeout=10, allow_redirects=False)
            except OSError as error:
                return f"{type(error).__name__}: {error}"
            fits = answer.status_code == step["status"] and wanted in answer.text
            return expected if fits else f"{answer.status_code} {answer.text[:400]!r}"

        expected = f"{url} to answer {step['status']}" + (f" with {wanted!r}" if wanted else "")
        _until_equal(look, expected, step["within"])


def _given(step: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: step[name] for name in names if name in step}


def _as_wanted(seen: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """All callbacks that were made; of those that are expected, only what is said of them."""
    return {
        kind: {name: facts[name] for name in wanted.get(kind, ("state", "attempts"))} for kind, facts in seen.items()
    }


def told(step: dict[str, Any]) -> str:
    """A step in a line."""
    if note := step.get("note"):
        return f"{step['do']}: {note}"
    facts = {name.rstrip("_"): value for name, value in step.items() if name not in UNSAID}
    text = f"{step['do']}: " + ", ".join(f"{name} {_shown(value)}" for name, value in facts.items())
    return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}..."
