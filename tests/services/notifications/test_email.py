"""E-mail: encrypted connections only, and refusals in plain words."""

import pytest

from services.notifications import destinations, sending
from tests.services.notifications.receiving import FACTS
from tests.support import https_certificate
from tests.upstreams.loopback import BareServer


@pytest.mark.parametrize("tls", [True, False], ids=["tls", "starttls"])
def test_a_message_reaches_all_recipients(mailbox, by_mail, look, low, tls):
    server = mailbox(tls=tls)
    by_mail(server)
    low()
    assert look() == 1
    (mail,) = server.mails
    assert mail["subject"] == "[Tillbook pay.example.com] 1 change"
    assert (mail["from"], mail["to"]) == ("ops@shop.example", "owner@shop.example, cfo@shop.example")
    assert mail["auto-submitted"] == "auto-generated"
    line, link = mail.get_content().splitlines()[:2]
    assert line.startswith("New: ")
    assert link == "https://pay.example.com/console/"
    assert all(encrypted for verb, encrypted in server.seen if verb in ("AUTH", "MAIL", "RCPT", "DATA"))


def test_chinese_texts_arrive(mailbox, by_mail):
    server = mailbox(tls=True)
    row = by_mail(server)
    destinations.change(row, {}, name="邮件", **FACTS | {"language": "zh"})
    assert destinations.test(destinations.find(row.id)).problem == ""
    assert "测试通知" in server.mails[0]["subject"]


def test_refusals_are_reported_in_plain_words(mailbox, by_mail):
    server = mailbox(tls=True)
    outcome = destinations.test(by_mail(server, password="wrong"))
    assert outcome.problem == "The SMTP server refused the user name or password."
    assert outcome.detail == "535: 5.7.8 authentication failed"
    absent = destinations.test(by_mail(server, port="1"))
    assert absent.problem == "Connection failed. Check the host name and that the server is running."
    for verb, problem in (
        ("RCPT", "refused the recipients"),
        ("MAIL", "refused the sender"),
        ("DATA", "The receiver refused"),
    ):
        server.refuses = {verb: "550 5.7.1 not here"}
        assert problem in destinations.test(by_mail(server)).problem
    assert server.mails == []


def test_no_password_is_sent_to_a_server_without_encryption(mailbox, by_mail):
    server = mailbox(tls=False)
    server.refuses["STARTTLS"] = "502 not implemented"
    assert destinations.test(by_mail(server)).problem
    assert "AUTH" not in {verb for verb, _ in server.seen}


@pytest.mark.parametrize("tls", [True, False], ids=["tls", "starttls"])
def test_a_certificate_of_another_name_is_refused(mailbox, by_mail, tmp_path, monkeypatch, tls):
    monkeypatch.setenv("SSL_CERT_FILE", str(https_certificate(tmp_path, "mail.example")))
    server = mailbox(tls=tls)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "mail.example.pem"))
    outcome = destinations.test(by_mail(server))
    assert "certificate" in outcome.problem
    assert "AUTH" not in {verb for verb, _ in server.seen}


def test_a_server_that_never_finishes_its_greeting_is_left(add, monkeypatch):
    """It sends short lines, so no single read takes long."""
    monkeypatch.setattr(sending, "TIMEOUT", 1.0)

    def greet(client, over):
        while not over.wait(0.05):
            client.sendall(b"220-wait\r\n")

    with BareServer(greet, listens=False) as server:
        account = {"host": "127.0.0.1", "port": str(server.port), "security": "starttls"}
        row = add("email", **account, sender="ops@shop.example", recipients="owner@shop.example")
        assert "ended the connection" in destinations.test(row).problem
