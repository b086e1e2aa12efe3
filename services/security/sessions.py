"""Sessions of the console: one row for each sign-in, which the service can end."""

from __future__ import annotations

import hashlib
import secrets
import time
from typing import Any

from peewee import DatabaseError

from models.db.writer import transaction
from models.tables.operator import Operator, PendingSignIn, Session
from services.platform import storage_health

IDLE_SECONDS = 3_600  # without a request, until a session ends
LONGEST_SECONDS = 12 * 3_600  # until a session ends in any case
PENDING_SECONDS = 300  # maximum time between the password and the code
CONFIRMED_SECONDS = 300  # for which a confirmation is valid
SEEN_EVERY = 60  # seconds between two writes of the time of the last request
MOST_OF_BROWSER = 200  # characters

# Times are the system clock's: moving the demo's clock does not end sessions.


def _now() -> int:
    return int(time.time())


def _valid(now: int) -> Any:
    return (Session.createtime > now - LONGEST_SECONDS) & (Session.seentime > now - IDLE_SECONDS)


def _unchanged(operator: Operator) -> Any:
    return (Operator.id == operator.id) & (Operator.session == operator.session) & Operator.enabled


def _hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


@transaction
def wait_for_code(operator: Operator) -> str | None:
    """Store that the account's password was correct and its code is missing, and delete expired sign-ins.

    Returns:
        the token for the cookie; the database has only its hash. None if the account's sessions were ended since
        `operator` was read.
    """
    now = _now()
    # Lock the row, so that a change of the account either happens before and is seen, or ends this sign-in, too.
    if not Operator.update(session=Operator.session).where(_unchanged(operator)).execute():
        return None
    PendingSignIn.delete().where(PendingSignIn.createtime <= now - PENDING_SECONDS).execute()
    token = secrets.token_hex(32)
    PendingSignIn.add(key=_hashed(token), operator_id=operator.id, createtime=now)
    return token


def waiting(token: str) -> Operator | None:
    """Return the account whose sign-in has this token and waits for its code, or None if it was used or has ended."""
    waits = (PendingSignIn.key == _hashed(token)) & (PendingSignIn.createtime > _now() - PENDING_SECONDS)
    found: Operator | None = Operator.select().join(PendingSignIn).where(waits, Operator.enabled).first()
    return found


@transaction
def begin(operator: Operator, address: str, browser: str, pending: str = "") -> str | None:
    """Start a session of an account after its sign-in, and delete expired ones.

    Args:
        pending: the token of a sign-in that waited for its code; it is used up.

    Returns:
        the token for the cookie; the database has only its hash. None if the account's sessions were ended since
        `operator` was read, for instance by a new password, or if the pending sign-in was used or has ended.
    """
    now = _now()
    # Lock the row, so that a change of the account either happens before and is seen, or ends this session, too.
    if not Operator.update(seentime=now).where(_unchanged(operator)).execute():
        return None
    Session.delete().where(
        (Session.createtime <= now - LONGEST_SECONDS) | (Session.seentime <= now - IDLE_SECONDS)
    ).execute()
    if pending and not PendingSignIn.delete().where(PendingSignIn.key == _hashed(pending)).execute():
        return None
    token = secrets.token_hex(32)
    Session.add(
        key=_hashed(token),
        operator_id=operator.id,
        createtime=now,
        seentime=now,
        confirmtime=0,
        address=address,
        browser="".join(filter(str.isprintable, browser))[:MOST_OF_BROWSER],
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
        try:
            _see(found, now)
        except DatabaseError as error:
            if not storage_health.report(error):  # it is logged only, so that pages can be read on a full disk
                raise
    return found


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
    """End the sessions of an account, except the one with the id `but`, and its sign-ins that wait for a code."""
    Session.delete().where(Session.operator == operator, Session.id != but).execute()
    PendingSignIn.delete().where(PendingSignIn.operator == operator).execute()


@transaction
def forget() -> None:
    """End the sessions and unfinished sign-ins of all accounts, for instance those from a backup."""
    for table in (Session, PendingSignIn):
        if table.table_exists():  # missing in backups of releases up to 0.4.0
            table.delete().execute()


@transaction
def confirm(session: Session) -> None:
    """Store that the operator has just given the password, or the second factor, again."""
    Session.update(confirmtime=_now()).where(Session.id == session.id).execute()


def is_confirmed(session: Session) -> bool:
    """Return whether the last confirmation is still valid."""
    return bool(session.confirmtime > _now() - CONFIRMED_SECONDS)
