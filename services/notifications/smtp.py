"""Email by SMTP, always encrypted, with the address checks and the deadline of all outgoing calls."""

from __future__ import annotations

import smtplib
import socket
import ssl
from email.message import EmailMessage
from email.utils import formatdate
from typing import Any
from urllib.parse import urlsplit

from net.http import Limits, connect, limits
from runtime.state import current
from services.notifications.destination_kinds import Config, addresses
from services.notifications.messages import Message

LARGEST = 64 * 1024  # bytes of a text


class _Guarded(smtplib.SMTP):
    """Connects within the limits of the thread's exchange."""

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        carrier = connect(host, port, limits().at, private_allowed=limits().private_allowed)
        carrier.settimeout(timeout)
        limits().watch(self)
        return carrier


class _GuardedTls(smtplib.SMTP_SSL, _Guarded):
    """The same with TLS from the first byte: `SMTP_SSL` wraps the socket of the next class."""


def send(config: Config, message: Message, timeout: float) -> None:
    """Send a message to all recipients, in at most `timeout` seconds.

    Raises:
        OSError, ValueError: it was not accepted; smtplib's errors are OSErrors.
    """
    own_name = str(urlsplit(current().settings.public_url).hostname)  # smtplib would ask a name server for it
    options: dict[str, Any] = {"local_hostname": own_name, "timeout": timeout}
    context, address = ssl.create_default_context(), (config["host"], int(config["port"]))
    with Limits(timeout, private_allowed=current().settings.private_callbacks_allowed):
        if config["security"] == "tls":
            server: smtplib.SMTP = _GuardedTls(*address, context=context, **options)
        else:
            server = _Guarded(*address, **options)
        with server:
            if config["security"] == "starttls":
                server.starttls(context=context)
            if config["user"]:
                server.login(config["user"], config["password"])
            server.send_message(_mail(config, message, own_name))


def _mail(config: Config, message: Message, own_name: str) -> EmailMessage:
    mail = EmailMessage()
    mail["Subject"] = message.subject
    mail["From"] = config["sender"]
    mail["To"] = ", ".join(addresses(config["recipients"]))
    mail["Date"] = formatdate(message.at)
    mail["Message-ID"] = f"<{message.id}@{own_name}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(message.text(LARGEST).partition("\n")[2])
    return mail
