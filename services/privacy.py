"""The personal data of one person: which orders have it, and its erasure on request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from models.account import ReceivingAccount
from models.order import Order
from models.writer import transaction
from services import audit, erasure, ordering, story
from services.after_restore import HERE
from services.errors import NotPossible

STEP = 200  # orders that are decrypted at a time
NAMES = ("customer_name", "real_name", "gatewaya_card_info.card_name", "gatewaya_personal_data.name")
CARDS = ("card_number", "gatewaya_card_info.card_no")


def values_of(order: Order) -> dict[str, Any]:
    """The personal data of an order by field, decrypted; empty if there is none, or it was erased."""
    opened = ordering.personal_data(order)
    values: dict[str, Any] = opened.get("account", opened)
    return {name: value for name, value in values.items() if value}


def find(numbers: tuple[str, ...], name: str, card: str) -> list[str]:
    """The numbers of these orders, and of those with exactly this name or card number, without repeats.

    Raises:
        NotPossible: there is no such order number, or nothing was asked for.
    """
    if not (numbers or name or card):
        raise NotPossible("give order numbers, --name or --card")
    named = [story.find(number).order_no for number in numbers]
    return list(dict.fromkeys([*named, *_matching(name, card)]))


def _matching(name: str, card: str) -> Iterator[str]:
    """Decrypt all orders page by page; names and cards are encrypted, so no index can find them."""
    last = 0
    stored = (Order.customer_name != "") | (ReceivingAccount.details != "")
    every = Order.select(Order, ReceivingAccount).left_outer_join(ReceivingAccount).where(stored).order_by(Order.id)
    while (name or card) and (page := list(every.where(Order.id > last).limit(STEP))):
        for order in page:
            values = values_of(order)
            is_named = name and name in (values.get(field) for field in NAMES)
            if is_named or (card and card in (values.get(field) for field in CARDS)):
                yield order.order_no
        last = page[-1].id


def export(order_no: str) -> Order:
    """The order, once the audit log says that its personal data was exported."""
    order = story.find(order_no)
    audit.record(HERE, "export personal data", "order", order_no)
    return order


def survey(numbers: list[str]) -> list[dict[str, Any]]:
    """What an erasure would do to each order: its number, status, stored fields, and why it is refused or empty."""
    orders = [story.find(number) for number in numbers]
    needed = erasure.needed_for(orders)
    return [
        {
            "order_no": order.order_no,
            "status": order.status,
            "fields": len(values_of(order)),
            "on_file": bool(order.account_id and order.account.on_file),
            "refused": needed.get(order.id, ""),
        }
        for order in orders
    ]


@transaction
def erase(numbers: list[str]) -> int:
    """Erase the personal data of all these orders or of none; how many had any.

    Raises:
        NotPossible: some have not ended; the text lists them.
    """
    orders = [story.find(number) for number in numbers]
    needed = erasure.needed_for(orders)
    if needed:
        refused = [f"  {order.order_no}: {needed[order.id]}" for order in orders if order.id in needed]
        raise NotPossible("\n".join(["nothing was erased, because these orders have not ended:", *refused]))
    erased = erasure.clear(orders)
    for order in erased:
        audit.record(HERE, "erase", "order", order.order_no)
    return len(erased)
