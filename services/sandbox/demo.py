"""The introduction to the demo: addresses, keys, and a signed request to paste."""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import time
from pathlib import Path
from typing import Any

from net.ip_addresses import address_of
from runtime.settings import ROOT
from schemas.strict_json import parse
from services.sandbox.seeding import MERCHANTS, OPERATORS
from services.security import signing

PREFIX = Path(sys.prefix)
ORDER = "HELLO-1"  # the merchant's number of the order


def command(project: Path = ROOT, prefix: Path = PREFIX) -> str:
    """Return how one runs `tillbook` here: in the project folder, as one file, outside a container, installed."""
    if (project / ".venv").is_dir():
        return ".venv/bin/tillbook"
    if one_file := os.environ.get("PEX"):
        return f"python3 {one_file}"
    is_image = (prefix / "healthy.py").exists()  # of the image only
    return f"docker exec {socket.gethostname()} tillbook" if is_image else "tillbook"


def _signed_order(end: str = "") -> dict[str, Any]:
    """Return the body of a new deposit of the demo merchant. `end` is added to the string to sign, which is wrong."""
    body: dict[str, Any] = {
        "order_type": 1,
        "cny_amount": "100.00",
        "paychannel_id": 2,
        "paychannel_paymethod": "wxpay",
        "merchant_order_no": ORDER,
        "api_key": MERCHANTS[0]["key"],
        "timestamp": int(time.time()),
        "nonce": secrets.token_hex(8),
    }
    text = signing.string_to_sign("createOrder", parse(json.dumps(body).encode()))
    return body | {"signature": signing.sign(MERCHANTS[0]["secret"], text + end)}


def signed_wrongly() -> str:
    """Return such a body whose signed text wrongly ends with a newline."""
    return json.dumps(_signed_order(end="\n"), indent=2)


def signed_curl(url: str, api_prefix: str) -> str:
    """Return a shell command that creates a deposit as the demo merchant; it works once, within five minutes.

    It prints the response, then the pay_url on a line of its own.
    """
    body = json.dumps(_signed_order())
    curl = f"curl -s {url}{api_prefix}/merchant/createOrder -H 'Content-Type: application/json' -d '{body}'"
    return rf"""{curl} | sed -n -e p -e 's/.*"pay_url": *"\([^"]*\)".*/\1/p'"""


def tour(url: str, api_prefix: str) -> dict[str, str]:
    """Return the values of the landing page: a fresh signed order, and the operator's name and password."""
    name, password, _ = OPERATORS[0]
    return {"curl": signed_curl(url, api_prefix), "name": name, "password": password}


def exposed(host: str) -> str:
    """Return the warning for a demo that listens on this address, "" if only this machine can reach it.

    A container cannot know where its port is published.
    """
    address = address_of(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return ""
    return (
        f"Demo mode listens on {host}. The demo's keys and passwords are public: anyone who reaches it can sign in and "
        "send callbacks to addresses in your network. Set host to 127.0.0.1. In a container, publish the port on "
        "127.0.0.1 only, as compose.yaml does."
    )


def banner(url: str, api_prefix: str) -> str:
    """Return the text that `tillbook demo` prints."""
    name, password, _ = OPERATORS[0]
    keys = "\n".join(f"  {merchant['key']:<6} secret {merchant['secret']}" for merchant in MERCHANTS)
    return f"""
Tillbook, demo mode: no real money is moved.

  Tour       {url}/                (begin here: an order from start to finish)
  API        {url}{api_prefix}/merchant/...
  Console    {url}/console         (sign in as {name} with {password})
  Simulator  {url}/sandbox         (outcomes, clock, failures)
  Inbox      {url}/sandbox/inbox   (receives the demo merchant's callbacks)
  Signing    {url}/sandbox/sign    (explains a wrong signature line by line)
  Regions    {url}/addons/paychannel/channel.gatewaya/provinceList
  Docs       {url}/docs            (the API reference; for tools: /openapi.json)
  Health     {url}/healthz

API keys:
{keys}

Create a deposit. This command works once, within five minutes; `{command()} demo-curl` prints a new one.

{signed_curl(url, api_prefix)}

Open the pay_url in a browser and pay. The callback then appears in the inbox.
Press Ctrl-C to stop.
"""
