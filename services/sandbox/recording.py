"""Records the actions in the demo as a scenario of steps, with the resulting states of the orders."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from models.tables.order import Order
from runtime import clock
from runtime.state import Part
from schemas.signature_fields import AUTH
from services.console import timeline
from services.errors import Code

MOST = 1_000  # steps; later ones are not recorded
LEAST_PAUSE = 2  # seconds between two steps that become a step of their own
KEPT_ANSWERS = (
    1,
    Code.CHANNEL_NOT_FOUND,
    Code.INSUFFICIENT_BALANCE,
    Code.NO_PAYOUT_ACCOUNT,
    Code.INVALID_FIELDS,
    Code.CHANNEL_FAILED,
)  # responses to createOrder that depend on the requested order


@dataclass(frozen=True)
class _Step:
    """An action, its order, and its time on the demo's clock."""

    facts: dict[str, Any]
    order_no: str
    at: int


_steps: Part[list[_Step]] = Part(list)


def begin() -> None:
    """Delete the recorded steps."""
    _steps().clear()


def count() -> int:
    """Return the number of recorded steps."""
    return len(_steps())


def note(facts: dict[str, Any], order_no: str = "") -> None:
    """Record a step in the format of scenarios, without the order's name."""
    if len(_steps()) < MOST:
        _steps().append(_Step(facts, order_no, clock.now()))


def keeps(answer: dict[str, Any]) -> bool:
    """Return whether a createOrder with this response is recorded: its body was parsed within the limits."""
    return answer["code"] in KEPT_ANSWERS and len(_steps()) < MOST


def note_created(body: bytes, answer: dict[str, Any]) -> None:
    """Record a createOrder and its response; null is the same as absent."""
    with suppress(ValueError):  # It is strict JSON, but Python's own parser rejects very long numbers.
        sent = json.loads(body)
        facts = {"do": "create", "merchant": sent.pop("api_key")}
        facts["fields"] = {name: value for name, value in sent.items() if name not in AUTH and value is not None}
        if answer["code"] == 1:
            note(facts, answer["data"]["order_no"])
        else:
            note(facts | {"code": answer["code"]})


def seen_of(order: Order) -> dict[str, Any]:
    """Return an order's status, the kinds of its open exceptions, and its callbacks by type: id, state and attempts."""
    whole = timeline.order_timeline(order)
    return {
        "order_no": order.order_no,
        "status": order.status,
        "exceptions": sorted(each.kind for each in whole.exceptions if each.resolution is None),
        "callbacks": {
            each.type: {"id": each.webhook_id, "state": each.state, "attempts": each.attempts}
            for each in whole.callbacks
        },
    }


def scenario() -> dict[str, Any]:
    """Return all recorded steps as `orders scenario run` reads them; the time between steps becomes a clock step."""
    kept = list(_steps())
    names: dict[str, str] = {}
    steps: list[dict[str, Any]] = []
    at = kept[0].at if kept else 0
    for step in kept:
        steps += _pause(step.at - at)
        at = step.at
        facts = dict(step.facts)
        if facts["do"] == "create" and step.order_no:
            names[step.order_no] = facts["as"] = f"order{len(names) + 1}"
        elif step.order_no not in names and step.order_no:
            continue  # it was created before the recording began
        elif step.order_no:
            facts["order"] = names[step.order_no]
        steps.append(facts)
    steps += _pause(clock.now() - at) if steps else []
    return {"name": "recorded", "steps": steps + [_expected(name, order_no) for order_no, name in names.items()]}


def _pause(seconds: int) -> list[dict[str, Any]]:
    return [{"do": "clock", "seconds": seconds}] if seconds >= LEAST_PAUSE else []


def _expected(name: str, order_no: str) -> dict[str, Any]:
    seen = seen_of(Order.get(Order.order_no == order_no))
    del seen["order_no"]
    for callback in seen["callbacks"].values():
        del callback["id"]
    return {"do": "expect", "order": name, **seen}
