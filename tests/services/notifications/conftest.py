"""Destinations of notifications, and the jobs that write and send messages."""

from itertools import count

import pytest

from models.tables.notification import Notification
from services.ledger import scheduled_checks
from services.notifications import delivery, destinations, watch
from tests.services.notifications.receiving import FACTS, PASSWORD, USER, Mailbox, Robot
from tests.support import InlinePool, https_certificate

CHANNEL = 2
LARGE = 10**14


@pytest.fixture
def settings_of_app():
    """The receivers are on this machine."""
    return {"private_callbacks": True, "site_url": "https://pay.example.com"}


@pytest.fixture(autouse=True)
def _ledger_checked(app):
    """The seeded ledger was checked, so no finding exists yet."""
    scheduled_checks.record("test", {}, 1.0)


@pytest.fixture
def robot(web_server):
    """A robot of a group, which accepts everything."""
    return Robot(web_server)


@pytest.fixture
def add(app):
    """`add("wecom", url=...)` adds a destination; `about` has its facts."""

    numbers = count(1)

    def made(kind, name="", about=None, **config):
        return destinations.add(kind, config, name=name or f"{kind} {next(numbers)}", **FACTS | (about or {}))

    return made


@pytest.fixture
def group(add, robot):
    """A WeCom group that receives everything."""
    return add("wecom", "Operations", url=f"{robot.url}?key=secret-key")


@pytest.fixture
def look(app):
    """`look()` runs both jobs; returns the number of attempts."""

    def run():
        watch.evaluate()
        return delivery.sweep(InlinePool())

    return run


@pytest.fixture
def told(look, robot):
    """`told()` runs both jobs; returns the lines that the robot received, without subject and link."""

    def run():
        robot.got.clear()
        look()
        return [line for got in robot.got for line in got.content["text"]["content"].splitlines()[1:-1]]

    return run


@pytest.fixture
def low():
    """`low()` makes a channel's balance too low, which is an urgent finding; `low(False)` ends that."""

    def change(is_low=True):
        destinations.set_balance_limits({CHANNEL: LARGE if is_low else 0})

    return change


@pytest.fixture
def outbox(app):
    """`outbox()`: all messages, the oldest first."""
    return lambda: list(Notification.select().order_by(Notification.id))


@pytest.fixture
def mailbox(tmp_path, monkeypatch):
    """`mailbox(tls=True)`: an SMTP server whose certificate is trusted."""
    certificate = https_certificate(tmp_path, "127.0.0.1")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    started = []

    def start(*, tls):
        started.append(Mailbox(certificate, tls=tls))
        return started[-1]

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


@pytest.fixture
def by_mail(add):
    """`by_mail(mailbox)`: a destination with an account at this server."""

    def made(server, **config):
        account = {"host": "127.0.0.1", "port": str(server.port), "security": "tls" if server.tls else "starttls"}
        account |= {"user": USER, "password": PASSWORD}
        mail = {"sender": USER, "recipients": "owner@shop.example, cfo@shop.example"}
        return add("email", **account | mail | config)

    return made
