"""Send one message to one destination, and report the result in plain words."""

from __future__ import annotations

import json
import smtplib
import ssl
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

from urllib3.exceptions import HTTPError

from net import http
from runtime.state import current
from services.callbacks.test_callback import ERRORS, LATE
from services.errors import N_
from services.notifications import smtp
from services.notifications.destination_kinds import HTTP, Config, Kind
from services.notifications.messages import Message

TIMEOUT = 10.0
KEPT = 4096  # bytes of a response that are read
SHOWN = 300  # characters of a receiver's own words that are stored
REFUSED = N_("The receiver refused the message.")
STATUSES = {
    300: N_("The server redirects. Redirects are not followed: enter the final address."),
    401: N_("The server denied access. Check the address and the secret."),
    403: N_("The server denied access. Check the address and the secret."),
    404: N_("Not found. Check the path of the address."),
    500: N_("The server failed to process the message."),
}
# By error of an email; the first that fits.
SMTP: tuple[tuple[type[Exception], str], ...] = (
    (smtplib.SMTPAuthenticationError, N_("The SMTP server refused the user name or password.")),
    (smtplib.SMTPRecipientsRefused, N_("The SMTP server refused the recipients.")),
    (smtplib.SMTPSenderRefused, N_("The SMTP server refused the sender. Use the address of the SMTP account.")),
    (
        smtplib.SMTPNotSupportedError,
        N_("The SMTP server does not offer this encryption or sign-in. Try the other one."),
    ),
    (smtplib.SMTPServerDisconnected, N_("The SMTP server ended the connection. Check the port and the encryption.")),
    (smtplib.SMTPException, REFUSED),
    (ssl.SSLError, ERRORS["SSLError"]),
)


@dataclass(frozen=True)
class Outcome:
    """The result of one attempt: `problem` is in English for translation, empty after success.

    `detail` are the receiver's own words. Neither has an address or a secret of the destination.
    """

    problem: str = ""
    detail: str = ""


def send(kind: str, config: Config, message: Message) -> Outcome:
    """Send a message, in at most TIMEOUT seconds. No error is raised for a destination that does not accept it."""
    try:
        if kind == "email":
            smtp.send(config, message, TIMEOUT)
            return Outcome()
        return _post(HTTP[kind], config, message)
    except (OSError, ValueError, HTTPError, HTTPException) as error:
        return _failed(error)


def _post(kind: Kind, config: Config, message: Message) -> Outcome:
    request = kind.request(config, message)
    allowed = current().settings.private_callbacks_allowed
    with http.exchange(
        "POST", request.url, request.body, dict(request.headers), seconds=TIMEOUT, private_allowed=allowed
    ) as answer:
        start = answer.raw.read(KEPT, decode_content=True)
        return _judged(kind, answer.status_code, start)


def _judged(kind: Kind, status: int, start: bytes) -> Outcome:
    said = _object(start)
    if kind.done is None or not said:
        if 200 <= status < 300 and kind.done is None:
            return Outcome()
        return Outcome(STATUSES.get(status) or STATUSES.get(status // 100 * 100, REFUSED), f"HTTP {status}")
    name, value = kind.done
    if said.get(name) == value:
        return Outcome()
    code = said.get(kind.code)
    known = kind.reasons.get(code, REFUSED) if isinstance(code, int) else REFUSED
    return Outcome(known, f"{code}: {said.get(kind.why, '')}"[:SHOWN])


def _object(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _failed(error: Exception) -> Outcome:
    """Return the result of an attempt that raised. Texts of HTTP errors contain the address, so they are not kept."""
    for known, problem in SMTP:
        if isinstance(error, known):
            return Outcome(problem, _answer_of(error))
    name = type(error).__name__
    late = isinstance(error, TimeoutError) or "Timeout" in name
    return Outcome(LATE if late else ERRORS.get(name, ERRORS["ConnectionError"]), name)


def _answer_of(error: Exception) -> str:
    """Return the SMTP server's words."""
    said = getattr(error, "smtp_error", b"")
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    return f"{getattr(error, 'smtp_code', type(error).__name__)}: {text}"[:SHOWN]
