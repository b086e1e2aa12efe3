"""HTTP to addresses that merchants choose: no redirects, proxies or private targets, and a deadline for each call."""

from __future__ import annotations

import threading
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter

from net.http import Guarded, pools
from runtime import settings
from services.security import masking

_local = threading.local()
USER_AGENT = f"Tillbook/{settings.VERSION}"


POOLS = {private_allowed: pools(Guarded, private_allowed=private_allowed) for private_allowed in (False, True)}


def _adapter(private_allowed: bool) -> HTTPAdapter:
    """Return this thread's adapter, with its open connections."""
    kept = _local.__dict__.setdefault("adapters", {})
    if private_allowed not in kept:
        kept[private_allowed] = HTTPAdapter(pool_connections=4, pool_maxsize=1)  # each of many threads has its own
        kept[private_allowed].poolmanager.pool_classes_by_scheme = POOLS[private_allowed]
    return kept[private_allowed]


def send(
    method: str, url: str, body: bytes, headers: dict[str, str], *, timeout: float, private_allowed: bool
) -> requests.Response:
    """Send a request to an address; return the response with an unread body.

    An adapter alone keeps no cookies, follows no redirect and ignores .netrc and proxies; a session around it would
    double the cost of a call.

    Args:
        timeout: seconds for connecting and for each read.
        private_allowed: otherwise only public addresses are called (net/ip_addresses.py).

    Raises:
        AddressRefused, requests.RequestException, ValueError: no response, or no usable address.
    """
    request = requests.Request(method, url, {**headers, "User-Agent": USER_AGENT}, data=body or None).prepare()
    if urlsplit(str(request.url)).scheme.lower() not in POOLS[private_allowed]:
        raise requests.exceptions.InvalidSchema(f"no http or https address: {masking.address(url)}")
    return _adapter(private_allowed).send(request, stream=True, timeout=(timeout, timeout))
