"""Sessions of the console: one row for each sign-in, which the service can end."""

from __future__ import annotations

import hashlib
import secrets
import time
from typing import Any

from peewee import DatabaseError

from models.db.writer import transaction
from models.tables.operator import Operator, Session
from services.platform import storage_health

IDLE_SECONDS = 3_600  # without a request, until a session ends
LONGEST_SECONDS = 12 * 3_600  # until a session ends in any case
CONFIRMED_SECONDS = 300  # for which a confirmation is valid
SEEN_EVERY = 60  # seconds between two writes of the time of the last request
MOST_OF_BROWSER = 200  # characters

# Times are the system clock's: moving the demo's clock does not end sessions.


def _now() -> int:
    return int(time.time())


def _valid(now: int) -> Any:
    return (Session.createtime > now - LONGEST_SECONDS) & (Session.seentime > now - IDLE_SECONDS)


def _hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


@transaction
def begin(operator: Operator, address: str, browser: str) -> str | None:
    """Start a session of an account after its sign-in, and delete expired ones.

    Returns:
        the token for the cookie; the database has only its hash. None if the account's sessions were ended since
        `operator` was read, for instance by a new password.
    """
    now = _now()
    # Lock the row, so that a change of the account either happens before and is seen, or ends this session, too.
    same = (Operator.id == operator.id) & (Operator.session == operator.session) & Operator.enabled
    if not Operator.update(seentime=now).where(same).execute():
        return None
    Session.delete().where(
        (Session.createtime <= now - LONGEST_SECONDS) | (Session.seentime <= now - IDLE_SECONDS)
    ).execute()
    token = secrets.token_hex(32)
    Session.add(
        **{"key": _hashed(token), "operator_id": operator.id, "createtime": now, "seentime": now, "confirmtime": 0},
        **{"address": address, "browser": "".join(filter(str.isprintable, browser))[:MOST_OF_BROWSER]},
    )
    return token


def find(token: str, seen: bool = True) -> Session | None:
    """Return the session of this token with its account, or None if it has ended or the account is disabled.

    Args:
        seen: whether the account's owner sent the request; a page that renews itself does not prolong the session.
    """
    now = _now()
    query = Session.select(Session, Operator).join(Operator)
    found: Session | None = query.where(Session.key == _hashed(token), _valid(now), Operator.enabled).first()
    if seen and found and found.seentime <= now - SEEN_EVERY:
        _note_seen(found, now)
    return found


def _note_seen(session: Session, now: int) -> None:
    """Store the time of a request. A write error is logged only, so that pages can be read on a full disk."""
    try:
        _see(session, now)
    except DatabaseError as error:
        if not storage_health.report(error):
            raise


@transaction
def _see(session: Session, now: int) -> None:
    Session.update(seentime=now).where(Session.id == session.id, Session.seentime < now).execute()
    Operator.update(seentime=now).where(Operator.id == session.operator_id).execute()


def of(operator: Operator) -> list[Session]:
    """Return the sessions of an account, the one used last first."""
    own = Session.select().where(Session.operator == operator, _valid(_now()))
    return list(own.order_by(Session.seentime.desc(), Session.id))


@transaction
def end(operator: Operator, session_id: int) -> bool:
    """End one session of this account; return False if there is none with this id."""
    return bool(Session.delete().where(Session.operator == operator, Session.id == session_id).execute())


@transaction
def end_all(operator: Operator, but: int = 0) -> None:
    """End the sessions of an account, except the one with the id `but`."""
    Session.delete().where(Session.operator == operator, Session.id != but).execute()


@transaction
def forget() -> None:
    """End the sessions of all accounts, for instance those from a backup."""
    Session.delete().execute()


@transaction
def confirm(session: Session) -> None:
    """Store that the operator has just given the password, or the second factor, again."""
    Session.update(confirmtime=_now()).where(Session.id == session.id).execute()


def is_confirmed(session: Session) -> bool:
    """Return whether the last confirmation is still valid."""
    return bool(session.confirmtime > _now() - CONFIRMED_SECONDS)
