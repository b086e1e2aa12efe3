"""Amounts as texts and as integer fen: the one place that formats yuan, and reads it as upstreams write it."""

from __future__ import annotations

import re
from decimal import Decimal

_YUAN = re.compile(r"[0-9]{1,13}(\.[0-9]{1,8})?", re.ASCII)


def hundredths(value: int) -> str:
    """Format fen as yuan, or basis points as percent, for other systems and for fields: "-1234.50" for -123450."""
    return f"{'-' if value < 0 else ''}{abs(value) // 100}.{abs(value) % 100:02d}"


def grouped(fen: int | None) -> str:
    """Format fen as yuan for people: "-1,234.50" for -123450; empty for None."""
    return "" if fen is None else f"{'-' if fen < 0 else ''}{abs(fen) // 100:,}.{abs(fen) % 100:02d}"


def fen(text: str) -> int:
    """Parse yuan: 1250 for 12.5, 12.50 and 12.5000. Raises ValueError if it is not an amount in whole fen."""
    if not _YUAN.fullmatch(text):
        raise ValueError(f"not an amount in yuan: {text[:40]!r}")
    exact = Decimal(text) * 100
    if exact != int(exact):
        raise ValueError(f"not in whole fen: {text[:40]!r}")
    return int(exact)
