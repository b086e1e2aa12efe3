"""Sensitive values of an order: masked for everybody, opened for an operator, who is written down before."""

from __future__ import annotations

from models.tables.order import Order
from services.orders import create
from services.security import audit, masking


def _values(order: Order) -> dict[str, str]:
    opened = create.personal_data(order)
    values: dict[str, str] = opened.get("account", opened)
    return {name: str(value) for name, value in values.items() if value}


def masked(order: Order) -> dict[str, str]:
    """The customer's name (deposit) or the account to pay to (withdrawal) by field, masked."""
    return masking.masked(_values(order))


def reveal(order: Order, actor: audit.Actor) -> dict[str, str]:
    """The same in full, once the audit log says who saw it."""
    audit.record(actor, "reveal", "order", order.order_no)
    return _values(order)


def account_ending(order: Order) -> str:
    """The last digits of the account that a withdrawal goes to, masked before them; "" of a deposit."""
    return "" if order.is_buy else masked(order).get("card_number", "")
