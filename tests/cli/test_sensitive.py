"""No secret or personal data has to be on a command line."""

import click
import pytest

from cli.sensitive import Sensitive
from tests.cli.test_help import COMMANDS

SECRET = ("secret", "password", "card", "callback_url", "real_name", "theirs")
ALSO = {("db copy", "url"), ("privacy export", "name")}


def test_each_parameter_that_may_be_a_secret_can_come_from_a_file():
    secret = {
        f"{name} {each.name}": each
        for name, command in COMMANDS.items()
        for each in command.params
        if any(word in each.name for word in SECRET) or (name, each.name) in ALSO
    }
    assert len(secret) >= 8
    for name, each in secret.items():
        assert isinstance(each.type, (Sensitive, click.File, click.Path)) or getattr(each, "is_flag", False), name


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "value.txt"
        path.write_text(f"{text}\n", "utf-8")
        return f"@{path}"

    return write


def test_a_value_comes_from_a_file_or_from_standard_input(flask, flask_json, file):
    def address():
        return flask_json("merchant", "show", "demo")["callback_url"]

    flask("merchant", "set", "demo", "--callback-url", file("https://shop.example/hook?key=one"))
    assert address() == "https://shop.example/hook?key=one"
    flask("merchant", "set", "demo", "--callback-url", "-", typed="https://shop.example/hook?key=two\n")
    assert address() == "https://shop.example/hook?key=two"
    card = file("6222020000000000999")
    flask("account", "add", "demo", "--card-number", card, "--real-name", "-", typed="李四光\n")
    assert [row["card_number"][-4:] for row in flask_json("account", "list", "demo")].count("0999") == 1


def test_a_file_that_cannot_be_read_is_refused_without_its_name(flask):
    said = flask("merchant", "set", "demo", "--callback-url", "@n0where", fails=True).output
    assert "cannot be read" in said
    assert "n0where" not in said


@pytest.mark.sqlite
def test_a_password_in_an_address_that_is_refused_is_not_repeated(refuses):
    for url in (
        "postgresql://orders:c4n@c4n4ry@127.0.0.1:1/orders",
        "postgresql://orders:c4n/c4n4ry@127.0.0.1:1/orders",
        "postgresql://orders:c4n%c4n4ry@127.0.0.1:1/orders",
        "postgresql://orders:c4n=@c4n4ry@127.0.0.1:1/orders",
        "mysql://orders:c4n4ry@127.0.0.1:1/orders",
        "host=127.0.0.1 port=1 password=c4n c4n4ry",
    ):
        said = refuses("db", "copy", url)
        assert "postgresql://user:password@host/database" in said
        assert "c4n4ry" not in said


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_value_that_is_refused_is_not_repeated(refuses, language, request):
    if language == "zh":
        request.getfixturevalue("chinese")
    for command in (
        ("order", "list", "--limit", "c4n4ry"),
        ("order", "list", "--limit=c4n4ry"),
        ("order", "list", "--status", "c4n4ry"),
        ("callback", "redeliver", "--since", "c4n4ry"),
        ("merchant", "set", "demo", "--buy-rate", "c4n4ry"),
        ("ledger", "verify", "--against", "c4n4ry"),
        ("db", "restore", "c4n4ry"),
        ("reconcile", "c4n4ry", "-"),
        ("sign", "createOrder", "--body", "c4n4ry"),
        ("vault", "rotate", "c4n4ry"),
        ("channel", "set", "2", "--config", '{"key": "c4n4ry", "address": "a=b"}'),
        ("epay", "set", "demo", "--type", "c4n4ry"),
    ):
        assert "c4n4ry" not in refuses(*command), command
