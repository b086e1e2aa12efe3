"""Operators of the console: accounts, sessions, second factors, and the audit log."""

from __future__ import annotations

import json

from peewee import BigIntegerField, BooleanField, Check, ForeignKeyField, IntegerField, TextField

from models.db.base import Table, Timestamp
from models.tables.order import Order

# Each role includes the rights of those before it.
VIEWER, OPERATOR, ADMINISTRATOR = ROLES = ("viewer", "operator", "administrator")


class Operator(Table):
    """One account. `password` is a hash; `session` changes whenever its sessions end.

    `seentime` is the time of its last request, to the minute; null before the first.
    """

    name = TextField(unique=True)
    password = TextField()
    role = TextField(constraints=[Check("role IN ('viewer', 'operator', 'administrator')")])
    session = TextField(unique=True)
    enabled = BooleanField(default=True)
    createtime = Timestamp()
    updatetime = Timestamp()
    seentime = Timestamp(null=True)


class Session(Table):
    """One sign-in. `key` is the SHA-256 of the token in its cookie.

    `seentime` is the time of the last request, to the minute; `confirmtime` that of the last confirmation, 0 for none.
    """

    key = TextField(unique=True)
    operator = ForeignKeyField(Operator)
    createtime = Timestamp()
    seentime = Timestamp()
    confirmtime = Timestamp()
    address = TextField()
    browser = TextField()


class PendingSignIn(Table):
    """A sign-in whose password was correct and whose code is missing. Deleted once it is used, ended or expired.

    `key` is the SHA-256 of the token in its cookie.
    """

    key = TextField(unique=True)
    operator = ForeignKeyField(Operator)
    createtime = Timestamp()


class AuditEntry(Table):
    """An action in the console, performed or refused. Append-only.

    `who` is the operator's name; `about` and `key` identify the object, such as `order` and its number. `changed` is a
    JSON list of the changed fields, each as name, old and new value; null if there are none.
    """

    who = TextField()
    action = TextField()
    about = TextField(default="")
    key = TextField(default="")
    detail = TextField(default="")
    address = TextField(default="")
    at = Timestamp()
    changed = TextField(null=True)


AuditEntry.add_index(AuditEntry.about, AuditEntry.key, AuditEntry.id, name="audit_entry_about")


class FailedSignIn(Table):
    """Failed sign-ins from an address (an IPv6 /64) in an hour: wrong passwords, and wrong codes after a correct one.

    `hour` is the Unix time at which it began. The address is empty for those above the limit of addresses per hour.
    """

    address = TextField()
    hour = Timestamp()
    passwords = IntegerField(default=0)
    codes = IntegerField(default=0)


FailedSignIn.add_index(FailedSignIn.hour, FailedSignIn.address, name="failed_sign_in_hour", unique=True)


class SignInTry(Table):
    """Tries in an hour: of a password within a session, or of a code after the password.

    `who` is a session, a known device or an account; `hour` is the Unix time at which the hour began.
    """

    who = TextField()
    hour = Timestamp()
    tries = IntegerField()


SignInTry.add_index(SignInTry.hour, SignInTry.who, name="sign_in_try_hour", unique=True)


class SavedView(Table):
    """The filters of a list under a name: `query` is the query string of the list's address."""

    operator = ForeignKeyField(Operator, index=False)
    list_name = TextField()
    name = TextField()
    query = TextField()
    createtime = Timestamp()


SavedView.add_index(SavedView.operator, SavedView.list_name, SavedView.name, name="saved_view_name", unique=True)


class SecondFactor(Table):
    """An operator's authenticator app. `secret` is encrypted; `timecode` is that of the last code used (RFC 6238)."""

    operator = ForeignKeyField(Operator, unique=True)
    secret = TextField()
    timecode = BigIntegerField()
    createtime = Timestamp()


class RecoveryCode(Table):
    """An unused recovery code. `key` is its SHA-256."""

    operator = ForeignKeyField(Operator, index=False)
    key = TextField()


RecoveryCode.add_index(RecoveryCode.operator, RecoveryCode.key, name="recovery_code_key", unique=True)


class PayoutRequest(Table):
    """A request to act on a withdrawal: `who` made it, `given` is its parameters as JSON.

    It is void once the order's status is no longer `status`.
    """

    order = ForeignKeyField(Order, index=False)
    action = TextField(constraints=[Check("action IN ('approve', 'paid')")])
    given = TextField()
    status = TextField()
    who = TextField()
    at = Timestamp()

    @property
    def asked(self) -> dict[str, str]:
        """The parameters, by name."""
        return dict(json.loads(self.given))


PayoutRequest.add_index(PayoutRequest.order, name="payout_request_order", unique=True)
