"""Operators' accounts in the console: passwords, roles, and the end of their sessions."""

from __future__ import annotations

import hashlib
import re
import secrets

from models.db.base import database
from models.db.writer import transaction
from models.tables.operator import ADMINISTRATOR, ROLES, Operator, SecondFactor
from runtime import clock
from services.errors import N_, OperatorError
from services.security import passwords, sessions

NAME = re.compile(r"[A-Za-z0-9_.@-]{1,64}")


def add(name: str, password: str, role: str = ADMINISTRATOR) -> Operator:
    """Add an account; `role` is one of ROLES. Raises OperatorError."""
    passwords.check_strength(password, name)
    return seed(name, password, role, clock.now())


def seed(name: str, password: str, role: str, at: int) -> Operator:
    """Add an account with a weak password, such as the demo's, which is published. Raises OperatorError."""
    if not NAME.fullmatch(name):
        raise OperatorError(N_("User names have 1 to 64 letters, digits, _ . @ or -."), "name")
    if role not in ROLES:
        raise OperatorError(N_("role must be one of %(names)s"), names=", ".join(ROLES))
    return _insert(name, passwords.hashed(password), role, at)


@transaction
def _insert(name: str, hashed: str, role: str, now: int) -> Operator:
    database.advisory_lock("operators")
    if Operator.select().where(Operator.name == name).exists():
        raise OperatorError(N_("User name %(name)s is already taken. Choose another name."), "name", name=name)
    facts = {"session": secrets.token_hex(16), "createtime": now, "updatetime": now}
    return Operator.create(name=name, password=hashed, role=role, **facts)


def find(name: str) -> Operator:
    """Return the account of this name. Raises OperatorError."""
    found = Operator.get_or_none(Operator.name == name)
    if found is None:
        raise OperatorError(N_("no operator %(name)s"), name=name)
    return found


def every() -> list[Operator]:
    """Return all accounts, by name."""
    return list(Operator.select().order_by(Operator.name))


def set_password(operator: Operator, password: str) -> None:
    """Give an account a new password, which ends its sessions. Raises OperatorError."""
    passwords.check_strength(password, operator.name)
    _change(operator, password=passwords.hashed(password))


@transaction
def change(operator: Operator, *, role: str | None = None, enabled: bool | None = None, by: str | None = None) -> None:
    """Change an account's role, or disable or enable it; either ends its sessions.

    Args:
        by: the account that requests it. It can't lock itself out or remove the last enabled administrator.
            None: the command line, which can always add an account.

    Raises:
        OperatorError
    """
    if role is not None and role not in ROLES:
        raise OperatorError(N_("role must be one of %(names)s"), names=", ".join(ROLES))
    if by is not None and (role not in (None, ADMINISTRATOR) or enabled is False):
        if operator.name == by:
            raise OperatorError(N_("You cannot do this to your own account. Ask another administrator."))
        database.advisory_lock("operators")
        others = Operator.select().where(Operator.role == ADMINISTRATOR, Operator.enabled, Operator.id != operator.id)
        if not others.exists():
            raise OperatorError(N_("This is the last administrator account. Add another administrator first."))
    given = {"role": role, "enabled": enabled}
    _change(operator, **{name: value for name, value in given.items() if value is not None})


def end_sessions(operator: Operator) -> None:
    """Sign an account out everywhere."""
    _change(operator)


@transaction
def _change(operator: Operator, **facts: object) -> None:
    facts |= {"session": secrets.token_hex(16), "updatetime": clock.now()}
    Operator.update(facts).where(Operator.id == operator.id).execute()
    sessions.end_all(operator)
    for name, value in facts.items():
        setattr(operator, name, value)


def sign_in(name: str, password: str, *, known: bool = False) -> Operator | None:
    """Return the account with this name and password, or None if there is none or it is disabled.

    The refusal takes as long as a success. A password that was hashed with an older method is hashed again.

    Args:
        known: from a device on which the account has signed in before.

    Raises:
        ApiError: Code.TOO_MANY_REQUESTS, too many hashes wait.
    """
    found = Operator.get_or_none(Operator.name == name)
    if not passwords.is_correct(found and found.password, password, known=known) or not found.enabled:
        return None
    if passwords.is_older(found.password):
        _store_again(found, passwords.hashed(password))
    return found


@transaction
def _store_again(operator: Operator, stored: str) -> None:
    unchanged = (Operator.id == operator.id) & (Operator.password == operator.password)
    Operator.update(password=stored, updatetime=clock.now()).where(unchanged).execute()
    operator.password = stored


def mark(name: str) -> str:
    """Return the hash that a device stores of an account; empty if there is no such account.

    It changes with the password, and when a second factor is set up: an earlier sign-in required the password only.
    """
    query = Operator.select(Operator.password, SecondFactor.createtime).left_outer_join(SecondFactor)
    for password, since in query.where(Operator.name == name).tuples():
        return hashlib.sha256(f"{name} {password}{since or ''}".encode()).hexdigest()[:32]
    return ""
