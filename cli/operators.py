"""`orders operator`: who may use the console."""

from __future__ import annotations

import sys
from typing import Any

import click

from cli.output import Commands, json_option, show, table
from models.tables.operator import OPERATOR, ROLES
from services.security import audit, operators, second_factor
from services.security.audit import HERE

operator = Commands("operator", help="Accounts of the console, and what each may do.")


def _password() -> str:
    """What is typed twice, unseen; or the first line of standard input, where that is no terminal."""
    if sys.stdin.isatty():
        return str(click.prompt("Password", hide_input=True, confirmation_prompt=True))
    return sys.stdin.readline().rstrip("\n")


@operator.command("add")
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), default=OPERATOR, show_default=True, help="A viewer changes nothing.")
def add(name: str, role: str) -> None:
    """Add the account NAME; asks for its password."""
    password = _password()
    audit.act(HERE, "add operator", "operator", name, lambda: operators.add(name, password, role), role)
    click.echo(f"{name} may sign in at /console as {role}")


@operator.command("password")
@click.argument("name")
def password(name: str) -> None:
    """Give the account NAME a new password; asks for it. Its sessions end."""
    found, new = operators.find(name), _password()
    audit.act(HERE, "set password", "operator", name, lambda: operators.set_password(found, new))
    click.echo(f"{name} has a new password, and is signed out everywhere")


@operator.command("set")
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), help="What it may do.")
@click.option("--enabled/--disabled", default=None, help="A disabled account can't sign in.")
def change(name: str, role: str | None, enabled: bool | None) -> None:
    """Change the account NAME. Its sessions end."""
    if role is None and enabled is None:
        raise click.UsageError("say what to change")
    found = operators.find(name)
    said = ", ".join([*([role] if role else []), *([["disabled", "enabled"][enabled]] if enabled is not None else [])])
    audit.act(HERE, "set operator", "operator", name, lambda: operators.change(found, role=role, enabled=enabled), said)
    click.echo(f"{name} is changed, and signed out everywhere")


@operator.command("reset-factor")
@click.argument("name")
def reset_factor(name: str) -> None:
    """Turn two-factor authentication off for NAME. Its sessions end."""
    found = operators.find(name)
    audit.act(HERE, "remove second factor", "operator", name, lambda: second_factor.reset(found))
    click.echo(f"{name} now signs in with the password only, and is signed out everywhere")


@operator.command("list")
@json_option
def every(as_json: bool) -> None:
    """List the accounts."""
    with_factor = second_factor.of_all()
    views: list[dict[str, Any]] = [
        {
            "name": row.name,
            "role": row.role,
            "enabled": bool(row.enabled),
            "second_factor": row.id in with_factor,
            "createtime": row.createtime,
        }
        for row in operators.every()
    ]
    show(views, as_json, lambda views: table(views, "no account: make one with `orders operator add NAME`"))
