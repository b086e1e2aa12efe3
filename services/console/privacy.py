"""The personal data of one person: which orders and accounts on file have it, and its erasure on request."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from models.db.writer import transaction
from models.tables.account import ReceivingAccount
from models.tables.order import Order
from services.console import erasure, timeline
from services.errors import OperatorError
from services.orders import create
from services.orders.after_restore import HERE
from services.security import audit, vault

STEP = 200  # orders that are decrypted at a time
NAMES = ("customer_name", "real_name", "gatewaya_card_info.card_name", "gatewaya_personal_data.name")
CARDS = ("card_number", "gatewaya_card_info.card_no")


def values_of(order: Order) -> dict[str, Any]:
    """The personal data of an order by field, decrypted; empty if there is none, or it was erased."""
    opened = create.personal_data(order)
    values: dict[str, Any] = opened.get("account", opened)
    return {name: value for name, value in values.items() if value}


def find(numbers: tuple[str, ...], name: str, card: str) -> list[str]:
    """The numbers of these orders, and of those with exactly this name or card number, without repeats.

    Raises:
        OperatorError: there is no such order number, or nothing was asked for.
    """
    if not (numbers or name or card):
        raise OperatorError("give order numbers, --name or --card")
    named = [timeline.find(number).order_no for number in numbers]
    return list(dict.fromkeys([*named, *_matching(name, card)]))


def _matching(name: str, card: str) -> Iterator[str]:
    """Decrypt all orders page by page; names and cards are encrypted, so no index can find them."""
    last = 0
    stored = (Order.customer_name != "") | (ReceivingAccount.details != "")
    every = Order.select(Order, ReceivingAccount).left_outer_join(ReceivingAccount).where(stored).order_by(Order.id)
    while (name or card) and (page := list(every.where(Order.id > last).limit(STEP))):
        for order in page:
            if _is_of(values_of(order), name, card):
                yield order.order_no
        last = page[-1].id


def _is_of(values: dict[str, Any], name: str, card: str) -> bool:
    """Have these values exactly this name, or this card number?"""
    is_named = name and name in (values.get(field) for field in NAMES)
    return bool(is_named or (card and card in (values.get(field) for field in CARDS)))


def details_of(account: ReceivingAccount) -> dict[str, Any]:
    """An account on file, decrypted."""
    details: dict[str, Any] = json.loads(vault.unseal(account.details))
    return details


def accounts(name: str, card: str) -> list[ReceivingAccount]:
    """The accounts on file with exactly this name or card number, by id."""
    stored = ReceivingAccount.on_file & (ReceivingAccount.details != "")
    rows = ReceivingAccount.select().where(stored).order_by(ReceivingAccount.id) if name or card else []
    return [row for row in rows if _is_of(details_of(row), name, card)]


def is_current(account: ReceivingAccount) -> bool:
    """Do the merchant's withdrawals go to it now?"""
    return bool(ReceivingAccount.of(account.merchant) == account)


def export_account(account: ReceivingAccount) -> dict[str, Any]:
    """All about an account on file, once the audit log says that it was exported."""
    audit.record(HERE, "export personal data", "account", str(account.id))
    facts = {"account": account.id, "merchant": account.merchant.key, "createtime": account.createtime}
    return facts | {"current": is_current(account), "personal_data": details_of(account)}


def export(order_no: str) -> Order:
    """The order, once the audit log says that its personal data was exported."""
    order = timeline.find(order_no)
    audit.record(HERE, "export personal data", "order", order_no)
    return order


def survey(numbers: list[str]) -> list[dict[str, Any]]:
    """What an erasure would do to each order: its number, status, stored fields, and why it is refused or empty."""
    orders = [timeline.find(number) for number in numbers]
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
def erase(numbers: list[str], on_file: Iterable[ReceivingAccount] = ()) -> int:
    """Erase the personal data of all these orders or of none; how many had any.

    Args:
        on_file: accounts to erase with them, except those that withdrawals go to now. Orders to them have their name
            and card, so they are among `numbers` if both were found by those.

    Raises:
        OperatorError: some have not ended; the text lists them.
    """
    orders = [timeline.find(number) for number in numbers]
    needed = erasure.needed_for(orders)
    if needed:
        refused = [f"  {order.order_no}: {needed[order.id]}" for order in orders if order.id in needed]
        raise OperatorError("\n".join(["nothing was erased, because these orders have not ended:", *refused]))
    erased = erasure.clear(orders)
    for order in erased:
        audit.record(HERE, "erase", "order", order.order_no)
    for account in on_file:
        if not is_current(account):
            ReceivingAccount.update(details="").where(ReceivingAccount.id == account.id).execute()
            audit.record(HERE, "erase", "account", str(account.id))
    return len(erased)
