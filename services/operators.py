"""Accounts of the console: passwords, roles, and what ends their sessions."""

from __future__ import annotations

import re
import secrets
from functools import cache

from werkzeug.security import check_password_hash, generate_password_hash

import business_clock
from models.base import database
from models.operator import OPERATOR, ROLES, VIEWER, Operator
from models.writer import transaction
from services import sessions
from services.errors import N_, NotPossible

NAME = re.compile(r"[A-Za-z0-9_.@-]{1,64}")
LEAST_CHARACTERS, MOST_CHARACTERS = 10, 200


@cache
def _nobody() -> str:
    """What an unknown name's password is compared with, so that it takes as long as a known one's."""
    return generate_password_hash(secrets.token_hex(16))


def _hash(password: str, name: str) -> str:
    if not LEAST_CHARACTERS <= len(password) <= MOST_CHARACTERS:
        said = N_("a password has %(least)s to %(most)s characters")
        raise NotPossible(said, {"password": [said]}, least=str(LEAST_CHARACTERS), most=str(MOST_CHARACTERS))
    if name.lower() in password.lower() and len(password) < len(name) + 8:
        said = N_("the password is too much like the name")
        raise NotPossible(said, {"password": [said]})
    if len(set(password)) < 5:
        said = N_("the password repeats too few characters")
        raise NotPossible(said, {"password": [said]})
    return generate_password_hash(password)


def add(name: str, password: str, role: str = OPERATOR, at: int | None = None) -> Operator:
    """Add an account; `role` is viewer or operator. Raises NotPossible."""
    if not NAME.fullmatch(name):
        said = N_("an operator's name has 1 to 64 letters, digits, _ . @ or -")
        raise NotPossible(said, {"name": [said]})
    if role not in ROLES:
        raise NotPossible(f"roles are {', '.join(ROLES)}")
    return _insert(name, _hash(password, name), role, at or business_clock.now())


@transaction
def _insert(name: str, hashed: str, role: str, now: int) -> Operator:
    database.alone("operators")
    if Operator.select().where(Operator.name == name).exists():
        said = N_("there is an operator %(name)s already")
        raise NotPossible(said, {"name": [said]}, name=name)
    facts = {"session": secrets.token_hex(16), "createtime": now, "updatetime": now}
    return Operator.create(name=name, password=hashed, role=role, **facts)


def find(name: str) -> Operator:
    """The account of this name. Raises NotPossible."""
    found = Operator.get_or_none(Operator.name == name)
    if found is None:
        raise NotPossible(f"no operator {name}")
    return found


def every() -> list[Operator]:
    """All accounts, by name."""
    return list(Operator.select().order_by(Operator.name))


def set_password(operator: Operator, password: str) -> None:
    """Give an account a new password, which ends its sessions. Raises NotPossible."""
    _change(operator, password=_hash(password, operator.name))


@transaction
def change(operator: Operator, *, role: str | None = None, enabled: bool | None = None, by: str | None = None) -> None:
    """Change an account's role, or switch it off or on; either ends its sessions.

    Args:
        by: the account that wants it: it can't shut itself out, nor leave nobody who may act. None: the command line,
            which can always make another account.

    Raises:
        NotPossible
    """
    if role is not None and role not in ROLES:
        raise NotPossible(f"roles are {', '.join(ROLES)}")
    if by is not None and (role == VIEWER or enabled is False):
        _check_somebody_may_act(operator, by)
    given = {"role": role, "enabled": enabled}
    _change(operator, **{name: value for name, value in given.items() if value is not None})


def _check_somebody_may_act(operator: Operator, by: str) -> None:
    if operator.name == by:
        raise NotPossible(N_("nobody can shut out themselves: ask another operator"))
    database.alone("operators")
    others = Operator.select().where(Operator.role == OPERATOR, Operator.enabled, Operator.id != operator.id)
    if not others.exists():
        raise NotPossible(N_("this is the last account that may act: make another one first"))


def end_sessions(operator: Operator) -> None:
    """Sign an account out everywhere."""
    _change(operator)


@transaction
def _change(operator: Operator, **facts: object) -> None:
    facts |= {"session": secrets.token_hex(16), "updatetime": business_clock.now()}
    Operator.update(facts).where(Operator.id == operator.id).execute()
    sessions.end_all(operator)
    for name, value in facts.items():
        setattr(operator, name, value)


def password_holds(operator: Operator, password: str) -> bool:
    """Is this the account's password?"""
    return check_password_hash(operator.password, password[:MOST_CHARACTERS])


def sign_in(name: str, password: str) -> Operator | None:
    """The account with this name and password; None, after as long, where there is none or it is switched off."""
    found = Operator.get_or_none(Operator.name == name)
    holds = check_password_hash(found.password if found else _nobody(), password[:MOST_CHARACTERS])
    return found if found and holds and found.enabled else None
