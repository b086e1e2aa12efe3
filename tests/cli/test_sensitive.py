"""No secret or personal data has to be on a command line."""

import click
import pytest

import cli
from cli.sensitive import Sensitive

SECRET = ("secret", "password", "card", "callback_url", "real_name", "theirs")


def parameters(group, path=()):
    """Each parameter of each command, by command and name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from parameters(command, (*path, name))
        else:
            yield from ((" ".join((*path, name)), each) for each in command.params)


def test_each_parameter_that_may_be_a_secret_can_come_from_a_file(app):
    commands = cli.commands()
    found = {f"{command} {each.name}": each for command, each in parameters(commands)}
    secret = {
        name: each
        for name, each in found.items()
        if any(word in name.rsplit(" ", 1)[1] for word in SECRET) or name in ("db copy url", "privacy export name")
    }
    assert len(secret) >= 8
    wrong = [
        name
        for name, each in secret.items()
        if not isinstance(each.type, (Sensitive, click.File, click.Path)) and not getattr(each, "is_flag", False)
    ]
    assert wrong == []


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "value.txt"
        path.write_text(f"{text}\n", "utf-8")
        return f"@{path}"

    return write


def test_a_callback_url_comes_from_a_file_or_from_standard_input(flask, flask_json, file):
    flask("merchant", "set", "demo", "--callback-url", file("https://shop.example/hook?key=one"))
    assert flask_json("merchant", "show", "demo")["callback_url"] == "https://shop.example/hook?key=one"
    flask("merchant", "set", "demo", "--callback-url", "-", typed="https://shop.example/hook?key=two\n")
    assert flask_json("merchant", "show", "demo")["callback_url"] == "https://shop.example/hook?key=two"


def test_an_account_comes_from_a_file_and_from_standard_input(flask, flask_json, file):
    card = file("6222020000000000999")
    flask("account", "add", "demo", "--card-number", card, "--real-name", "-", typed="李四光\n")
    assert [row["card_number"][-4:] for row in flask_json("account", "list", "demo")].count("0999") == 1


def test_a_file_that_cannot_be_read_is_refused_without_its_name(flask):
    said = flask("merchant", "set", "demo", "--callback-url", "@n0where", fails=True).output
    assert "cannot be read" in said
    assert "n0where" not in said


@pytest.mark.sqlite
@pytest.mark.usefixtures("app")
@pytest.mark.parametrize(
    "url",
    [
        "postgresql://orders:c4n@c4n4ry@127.0.0.1:1/orders",
        "postgresql://orders:c4n/c4n4ry@127.0.0.1:1/orders",
        "postgresql://orders:c4n%c4n4ry@127.0.0.1:1/orders",
        "postgresql://orders:c4n=@c4n4ry@127.0.0.1:1/orders",
        "mysql://orders:c4n4ry@127.0.0.1:1/orders",
        "host=127.0.0.1 port=1 password=c4n c4n4ry",
    ],
)
def test_a_password_in_an_address_that_is_refused_is_not_repeated(refuses, url):
    said = refuses("db", "copy", url)
    assert "postgresql://user:password@host/database" in said
    assert "c4n4ry" not in said


@pytest.mark.usefixtures("app")
@pytest.mark.parametrize(
    "command",
    [
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
    ],
    ids=" ".join,
)
def test_a_value_that_is_refused_is_not_repeated(refuses, command):
    assert "c4n4ry" not in refuses(*command)
