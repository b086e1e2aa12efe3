"""Operators of the console: their accounts, and the log of what they did there."""

from __future__ import annotations

from peewee import BooleanField, Check, ForeignKeyField, TextField

from models.db.base import Table, Timestamp

VIEWER, OPERATOR = ROLES = ("viewer", "operator")


class Operator(Table):
    """One account. `password` is a hash; `session` changes whenever its sessions end."""

    name = TextField(unique=True)
    password = TextField()
    role = TextField(constraints=[Check("role IN ('viewer', 'operator')")])
    session = TextField(unique=True)
    enabled = BooleanField(default=True)
    createtime = Timestamp()
    updatetime = Timestamp()


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


class AuditEntry(Table):
    """What somebody did, or was refused, in the console. Append-only.

    `who` is the operator's name, `about` and `key` say what it was done to: `order` and its number.
    """

    who = TextField()
    action = TextField()
    about = TextField(default="")
    key = TextField(default="")
    detail = TextField(default="")
    address = TextField(default="")
    at = Timestamp()


AuditEntry.add_index(AuditEntry.about, AuditEntry.key, AuditEntry.id, name="audit_entry_about")
