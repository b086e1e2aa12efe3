"""HTTP to an upstream, by its own address and proxy. Each call has a deadline, and every failure is an unknown
outcome."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import requests
from urllib3.exceptions import HTTPError

from gateways.base import BadNotice, ChannelUnknown, Finding, Problem
from net.http import MOST, USER_AGENT, Adapter, AddressRefused, Limits
from net.urls import http_parts
from runtime.state import current
from runtime.texts import N_

# Seconds: for a connection, for each read, and for one call as a whole.
CONNECT, READ, WHOLE = 5.0, 10.0, 12.0
# Of a file that an upstream offers: the seconds of its download, and its bytes as they are sent.
FILE_SECONDS, FILE_BYTES = 120.0, 64 * 2**20
CLOCKS_DIFFER = 60  # seconds by which this machine's clock may differ from an upstream's

FORM = "application/x-www-form-urlencoded"
# The charsets in which upstreams send text, by the names that they give them. GB18030 contains the older two.
CHARSETS = {"utf-8": "utf-8", "utf8": "utf-8", **dict.fromkeys(("gbk", "gb2312", "gb18030"), "gb18030")}
# Schemes that a browser would run or show itself instead of opening an app.
NO_APPS = ("", "about", "blob", "data", "file", "javascript", "vbscript", "view-source")


def printable(text: object) -> str:
    """Return an upstream's text for a line of history: printable, at most 200 characters."""
    shown = "".join(char if char.isprintable() else " " for char in str(text))
    return shown if len(shown) <= 200 else f"{shown[:200]}..."


@dataclass(frozen=True)
class Reply:
    """The response of a server, which may be another one than the upstream."""

    host: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    def not_the_api(self, why: str) -> ChannelUnknown:
        """Return the error for a response that the upstream's API does not send."""
        text = N_("HTTP %(status)s from %(host)s: %(why)s") % {"status": self.status, "host": self.host, "why": why}
        return ChannelUnknown(text, problem=Problem.NOT_THE_API, host=self.host, status=str(self.status))

    def text(self) -> tuple[str, str]:
        """Return the text, and the charset that turns any part of it into the bytes received.

        The charset is the one in the Content-Type. Without one it is UTF-8, or GBK if the bytes are no UTF-8.

        Raises:
            ValueError: another charset, or the bytes are not in it.
        """
        named = re.search(r"charset\s*=\s*[\"']?([^\s\"';]+)", self.headers.get("Content-Type") or "", re.IGNORECASE)
        if named and named[1].lower() not in CHARSETS:
            raise ValueError(N_("unknown charset %(charset)s") % {"charset": repr(named[1])})
        if named:
            charset = CHARSETS[named[1].lower()]
            return self.body.decode(charset), charset
        try:
            return self.body.decode(), "utf-8"
        except UnicodeDecodeError:
            return self.body.decode("gb18030"), "gb18030"

    def json(self) -> dict[str, Any]:
        """Return the response's JSON object, with each number as the text in the response. Raises ChannelUnknown."""
        try:
            value = json.loads(self.body, parse_int=str, parse_float=str, parse_constant=str)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise self.not_the_api(N_("no JSON object"))
        return value


def _problem(error: Exception) -> Problem:
    """Return the problem behind an error of a request."""
    if "gaierror" in repr(error) or "NameResolutionError" in repr(error):
        return Problem.NO_SUCH_HOST
    if isinstance(error, requests.exceptions.ProxyError):
        return Problem.PROXY
    if isinstance(error, requests.exceptions.SSLError):
        return Problem.TLS
    return Problem.TIMEOUT if isinstance(error, (requests.exceptions.Timeout, TimeoutError)) else Problem.NO_CONNECTION


class Upstream:
    """One channel's upstream. Safe for several threads."""

    def __init__(self, base: str, proxy: str = ""):
        """`base`: the beginning of its addresses; `proxy`: the proxy for its calls, or ""."""
        self._base = base.rstrip("/")
        self._host = urlsplit(base).hostname
        self._proxies = {"http": proxy, "https": proxy} if proxy else {}
        self._adapter = Adapter(pool_connections=2, pool_maxsize=8)
        self._date, self._heard = "", 0.0  # the Date header of the last response, and when it was received

    def address(self, path: str, query: Mapping[str, str] | None = None) -> str:
        """Return the full address of a path."""
        return f"{self._base}/{path.lstrip('/')}" + (f"?{urlencode(query)}" if query else "")

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        form: Mapping[str, str] | None = None,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        most: int = MOST,
    ) -> Reply:
        """Send one request; return the whole response, whatever its status, of at most `most` bytes.

        Raises:
            ChannelUnknown: no response, or none in time, or the address is private and must not be called. The text
            names the host only, because addresses may contain a key.
        """
        all_headers = dict(headers or {})
        if form is not None:
            body = urlencode(form).encode()
            all_headers["Content-Type"] = FORM
        reply = self._exchange(method, self.address(path, query), body, all_headers, WHOLE, most)
        self._date, self._heard = reply.headers.get("Date", ""), time.time()
        encoding = reply.headers.get("Content-Encoding", "")
        if encoding.lower() not in ("", "identity"):  # a few bytes could expand to any size
            raise ChannelUnknown(
                N_("%(host)s uses an unexpected encoding: %(encoding)s")
                % {"host": self._host, "encoding": printable(encoding)}
            )
        return reply

    def file_address(self, address: str, hosts: Collection[str]) -> str:
        """Return the address of a file that the upstream named, if the file may be fetched from there.

        Args:
            address: https at one of `hosts` or of their subdomains, or at this upstream's own scheme, host and port.

        Raises:
            ChannelUnknown: another address.
        """
        parts = http_parts(address) if address.isascii() and address.isprintable() else None
        host = (parts and parts.hostname) or ""
        is_own = parts is not None and parts[:2] == urlsplit(self._base)[:2]
        is_upstreams = address.startswith("https://") and parts is not None and parts.netloc == host
        is_upstreams &= any(re.fullmatch(rf"([a-z0-9-]+\.)*{re.escape(each)}", host) for each in hosts)
        if not (is_own or is_upstreams) or " " in address:
            shown = printable(address.partition("?")[0])  # the rest is a password for the file
            raise ChannelUnknown(N_("the channel named another host for the file: %(address)s") % {"address": shown})
        return address

    def download(self, address: str, headers: Mapping[str, str] | None = None) -> bytes:
        """Return the file at a `file_address`, as it was sent. Redirects are not followed.

        Raises:
            ChannelUnknown: no response in time, a status other than 200, or too many bytes.
        """
        reply = self._exchange("GET", address, b"", headers or {}, FILE_SECONDS, FILE_BYTES)
        if reply.status != 200:
            raise reply.not_the_api(N_("no file"))
        return reply.body

    def _exchange(
        self, method: str, address: str, body: bytes, headers: Mapping[str, str], seconds: float, most: int
    ) -> Reply:
        """Send one request; return the response with the body as it was sent. Raises ChannelUnknown."""
        host = str(urlsplit(address).hostname)
        # Operators enter the addresses of channels and proxies, so private ones need a setting.
        limits = Limits(seconds, private_allowed=current().settings.private_channels_allowed, most=most)
        try:
            all_headers = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity", **headers}
            request = requests.Request(method, address, all_headers, data=body or None).prepare()
            with (
                limits,
                self._adapter.send(request, stream=True, timeout=(CONNECT, READ), proxies=self._proxies) as answer,
            ):
                received = b"".join(answer.raw.stream(decode_content=False))
                return Reply(host, answer.status_code, answer.headers, received)
        except AddressRefused as refusal:
            text = N_("%(host)s was not called: %(why)s, and private_channels is not set") % {
                "host": host,
                "why": refusal,
            }
            raise ChannelUnknown(text, problem=Problem.PRIVATE, sent=False, host=host) from None
        except (OSError, ValueError, HTTPError, HTTPException) as error:  # those of requests are OSErrors
            text = N_("no response from %(host)s: %(error)s") % {"host": host, "error": type(error).__name__}
            raise ChannelUnknown(text, problem=_problem(error), sent=limits.sent, host=host) from None

    def clock(self) -> Finding:
        """Return by how much this machine's clock differs from the upstream's, by its last response."""
        try:
            off = round(self._heard - parsedate_to_datetime(self._date).timestamp())
        except ValueError:
            return Finding("clock", None, N_("The channel returned no time."))
        if abs(off) <= CLOCKS_DIFFER:
            return Finding("clock", True, N_("In sync with the channel."))
        return Finding(
            "clock",
            False,
            N_("%(off)s seconds off the channel's clock. Correct this machine's clock."),
            {"off": f"{off:+}"},
        )

    def get(self, path: str, query: Mapping[str, str]) -> Reply:
        """GET with a query string. Raises ChannelUnknown."""
        return self.call("GET", path, query=query)

    def post(self, path: str, form: Mapping[str, str]) -> Reply:
        """POST a form. Raises ChannelUnknown."""
        return self.call("POST", path, form=form)


def read_form(raw: bytes, charset: str = "utf-8") -> dict[str, str]:
    """Parse a form or a query string. With `latin-1`, each character of the result is one byte.

    Raises:
        BadNotice: it is not in this charset, or repeats a name.
    """
    try:
        text = raw.decode(charset)
        pairs = parse_qsl(text, keep_blank_values=True, encoding=charset, errors="strict", max_num_fields=100)
    except ValueError:
        raise BadNotice(N_("it is not a valid form")) from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise BadNotice(N_("a field is repeated"))
    return fields


def web_address(text: str) -> str:
    """Return an address that a payer may be sent to. Raises ChannelUnknown."""
    return _link(text, _scheme(text) in ("http", "https"))


def app_link(text: str) -> str:
    """Return a link that opens an app. Raises ChannelUnknown."""
    return _link(text, _scheme(text) not in NO_APPS)


def _scheme(text: str) -> str:
    try:
        return urlsplit(text).scheme
    except ValueError:
        return ""


def _link(text: str, usable: bool) -> str:
    if not usable or not text.isprintable() or " " in text or len(text) > 2000:
        raise ChannelUnknown(N_("the channel returned an invalid address: %(address)s") % {"address": printable(text)})
    return text


def is_for_a_code(text: str) -> bool:
    """Return whether a QR code can show this: text, not an image and not too long."""
    return bool(text) and text.isprintable() and len(text.encode()) <= 1000 and not text.startswith("data:")
