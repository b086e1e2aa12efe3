"""Redirects as responses to callbacks: they are not followed. The operator enters the final address."""

from __future__ import annotations

from urllib.parse import urljoin

from schemas.messages import N_, Message
from services.security import masking

NOT_MODIFIED = 304
_HEADER = "Location: "
_CURE = N_("The server redirects. Redirects are not followed: enter the final address.")
_CURE_TO = N_("The server redirects to %(address)s. Redirects are not followed: enter the final address.")


def is_redirect(status: int | None) -> bool:
    """Return whether the response leads to another address."""
    return status is not None and 300 <= status < 400 and status != NOT_MODIFIED


def with_target(status: int, url: str, location: str | None, start: str) -> str:
    """Return what is stored of a response: that of a redirect begins with a line that has the masked target.

    Args:
        url: the address that was called; `location` may be relative to it.
        start: the start of the response's body.
    """
    if not is_redirect(status) or not location:
        return start
    try:
        target = masking.address(urljoin(url, location))
    except ValueError:  # not an address
        target = masking.HIDDEN
    return f"{_HEADER}{target}\n{start}"


def problem(status: int | None, answer: str) -> str:
    """Return what to do if a stored response is a redirect, as a text to translate; otherwise ""."""
    if not is_redirect(status):
        return ""
    first = answer.partition("\n")[0]
    target = first.removeprefix(_HEADER) if first.startswith(_HEADER) else masking.HIDDEN
    return _CURE if target == masking.HIDDEN else Message(_CURE_TO, address=target)
