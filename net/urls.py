"""Addresses of web servers as text."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit


def http_parts(text: str) -> SplitResult | None:
    """Return the parts of an http or https address with a host; None for any other text."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        return None
    return parts if usable else None
