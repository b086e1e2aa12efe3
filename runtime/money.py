"""Conversion between yuan as texts, which upstreams use, and integer fen."""

from __future__ import annotations

import re
from decimal import Decimal

_YUAN = re.compile(r"[0-9]{1,13}(\.[0-9]{1,8})?", re.ASCII)


def yuan(fen: int) -> str:
    """Format fen as yuan: 12.50 for 1250."""
    return f"{fen // 100}.{fen % 100:02d}"


def fen(text: str) -> int:
    """Parse yuan: 1250 for 12.5, 12.50 and 12.5000. Raises ValueError if it is not an amount in whole fen."""
    if not _YUAN.fullmatch(text):
        raise ValueError(f"not an amount in yuan: {text[:40]!r}")
    exact = Decimal(text) * 100
    if exact != int(exact):
        raise ValueError(f"not in whole fen: {text[:40]!r}")
    return int(exact)
