"""Send one message to one destination by HTTP or SMTP, and report the result in plain words."""

from __future__ import annotations

import json
import smtplib
import socket
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate
from http.client import HTTPException
from urllib.parse import urlsplit

from urllib3.exceptions import HTTPError

from net import http
from runtime.state import current
from services.callbacks.test_callback import ERRORS, LATE
from services.errors import N_
from services.notifications.destination_kinds import HTTP, Config, HttpKind, addresses
from services.notifications.messages import Message

TIMEOUT = 10.0
KEPT = 4096  # bytes of a response that are read
LARGEST = 64 * 1024  # bytes of the text of an email
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
            _send_email(config, message)
            return Outcome()
        return _post(HTTP[kind], config, message)
    except (OSError, ValueError, HTTPError, HTTPException) as error:
        for known, problem in SMTP:
            if isinstance(error, known):
                said = getattr(error, "smtp_error", b"")  # the server's own words
                text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
                code = getattr(error, "smtp_code", type(error).__name__)
                return Outcome(problem, f"{code}: {text}"[:SHOWN])
        # Texts of HTTP errors contain the address, so they are not kept.
        name = type(error).__name__
        late = isinstance(error, TimeoutError) or "Timeout" in name
        return Outcome(LATE if late else ERRORS.get(name, ERRORS["ConnectionError"]), name)


def _post(kind: type[HttpKind], config: Config, message: Message) -> Outcome:
    request = kind.request(config, message)
    allowed = current().settings.private_callbacks_allowed
    with http.exchange(
        "POST", request.url, request.body, dict(request.headers), seconds=TIMEOUT, private_allowed=allowed
    ) as answer:
        start = answer.raw.read(KEPT, decode_content=True)
        status = answer.status_code
    try:
        said = json.loads(start)
    except ValueError:
        said = None
    if kind.done is None and 200 <= status < 300:
        return Outcome()
    if kind.done is None or not said or not isinstance(said, dict):
        return Outcome(STATUSES.get(status) or STATUSES.get(status // 100 * 100, REFUSED), f"HTTP {status}")
    name, value = kind.done
    if said.get(name) == value:
        return Outcome()
    code = said.get(kind.code)
    known = kind.reasons.get(code, REFUSED) if isinstance(code, int) else REFUSED
    return Outcome(known, f"{code}: {said.get(kind.why, '')}"[:SHOWN])


class _Guarded(smtplib.SMTP):
    """Connects within the limits of the thread's exchange."""

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        limits = http.limits()
        carrier = http.connect(host, port, limits.at, private_allowed=limits.private_allowed)
        carrier.settimeout(timeout)
        limits.watch(self)
        return carrier


class _GuardedTls(smtplib.SMTP_SSL, _Guarded):
    """The same with TLS from the first byte: `SMTP_SSL` wraps the socket of the next class."""


def _send_email(config: Config, message: Message) -> None:
    """Send a message to all recipients by SMTP, always encrypted.

    Raises:
        OSError, ValueError: it was not accepted; smtplib's errors are OSErrors.
    """
    own_name = str(urlsplit(current().settings.public_url).hostname)  # smtplib would ask a name server for it
    mail = EmailMessage()
    mail["Subject"] = message.subject
    mail["From"] = config["sender"]
    mail["To"] = ", ".join(addresses(config["recipients"]))
    mail["Date"] = formatdate(message.at)
    mail["Message-ID"] = f"<{message.id}@{own_name}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(message.text(LARGEST).partition("\n")[2])
    host, port, context = config["host"], int(config["port"]), ssl.create_default_context()
    with http.Limits(TIMEOUT, private_allowed=current().settings.private_callbacks_allowed):
        if config["security"] == "tls":
            server: smtplib.SMTP = _GuardedTls(host, port, own_name, timeout=TIMEOUT, context=context)
        else:
            server = _Guarded(host, port, own_name, timeout=TIMEOUT)
        with server:
            if config["security"] == "starttls":
                server.starttls(context=context)
            if config["user"]:
                server.login(config["user"], config["password"])
            server.send_message(mail)
