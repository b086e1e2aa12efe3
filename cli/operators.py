"""`tillbook operator`: accounts of the console."""

from __future__ import annotations

import sys
from typing import Any

import click

from cli.output import Commands, json_option, picked, said, show, table, wanted_of
from models.tables.operator import ADMINISTRATOR, ROLES
from runtime.texts import N_
from services.security import audit, operators, second_factor
from services.security.audit import HERE

operator = Commands("operator", help="Console accounts: add, change, reset password or factor.")


def _password() -> str:
    """Ask twice for a password without showing it. Without a terminal, read a line of standard input."""
    if sys.stdin.isatty():
        return str(click.prompt(said(N_("Password")), hide_input=True, confirmation_prompt=True))
    return sys.stdin.readline().rstrip("\n")


@operator.command("add")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(ROLES),
    default=ADMINISTRATOR,
    show_default=True,
    help="Role. A viewer cannot change anything, an operator cannot change the setup.",
)
def add(name: str, role: str) -> None:
    """Add console account NAME. The command asks for its password."""
    password = _password()
    audit.act(HERE, "add operator", "operator", name, lambda: operators.add(name, password, role), role)
    click.echo(said(N_("%(name)s can now sign in at /console as %(role)s"), name=name, role=role))


@operator.command("password")
@click.argument("name")
def password(name: str) -> None:
    """Set a new password for account NAME. The command asks for it. All sessions of the account end."""
    found, new = operators.find(name), _password()
    audit.act(HERE, "set password", "operator", name, lambda: operators.set_password(found, new))
    click.echo(said(N_("password of %(name)s changed; all sessions ended"), name=name))


@operator.command("set")
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), help="New role.")
@click.option("--enabled/--disabled", default=None, help="Allow this account to sign in, or not.")
def change(name: str, role: str | None, enabled: bool | None) -> None:
    """Change account NAME. All its sessions end."""
    wanted = wanted_of({"role": role, "enabled": enabled})
    found = operators.find(name)
    told = [role] if role else []
    if enabled is not None:
        told.append(N_("account enabled") if enabled else N_("account disabled"))
    audit.act(HERE, "set operator", "operator", name, lambda: operators.change(found, **wanted), "; ".join(told))
    click.echo(said(N_("account %(name)s changed; all sessions ended"), name=name))


@operator.command("reset-factor")
@click.argument("name")
def reset_factor(name: str) -> None:
    """Turn off two-factor authentication for account NAME. All its sessions end."""
    found = operators.find(name)
    audit.act(HERE, "remove second factor", "operator", name, lambda: second_factor.reset(found))
    click.echo(said(N_("two-factor authentication of %(name)s turned off; all sessions ended"), name=name))


@operator.command("list")
@json_option
def every(as_json: bool) -> None:
    """List the console accounts."""
    with_factor = second_factor.of_all()
    views: list[dict[str, Any]] = [
        {
            **picked(row, "name", "role"),
            "enabled": bool(row.enabled),
            "second_factor": row.id in with_factor,
            **picked(row, "createtime", "seentime"),
        }
        for row in operators.every()
    ]
    show(views, as_json, lambda views: table(views, N_("no accounts yet: add one with `tillbook operator add NAME`")))
