"""Amounts: yuan as `Decimal`, fen as `int`, never rounded, never as float."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

CENT = Decimal("0.01")


def _exact(amount: Decimal | str) -> Decimal:
    try:
        value = Decimal(amount)
        exact = value.quantize(CENT)
    except InvalidOperation:
        raise ValueError(f"not an amount of yuan: {amount!r}") from None
    if exact != value:
        raise ValueError(f"an amount has at most two decimals: {amount!r}")
    return exact


def amount_text(amount: Decimal | str) -> str:
    """Return the text of an amount in yuan for a request: `"12.50"`.

    Raises:
        TypeError: a float is not exact, and an int may be yuan or fen.
        ValueError: it is not a number, or has more than two decimals.
    """
    if not isinstance(amount, (Decimal, str)):
        raise TypeError(f"an amount is a Decimal or a str in yuan, not {type(amount).__name__}: {amount!r}")
    return str(_exact(amount))


def fen(amount: Decimal | str) -> int:
    """Convert yuan to fen: `fen("12.50")` is 1250."""
    return int(_exact(amount_text(amount)) * 100)


def yuan(fen: int) -> Decimal:
    """Convert fen to yuan: `yuan(1250)` is `Decimal("12.50")`."""
    if not isinstance(fen, int):
        raise TypeError(f"fen are an int, not {type(fen).__name__}: {fen!r}")
    return Decimal(fen).scaleb(-2)
