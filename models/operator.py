"""Operators of the console: their accounts, and the log of what they did there."""

from __future__ import annotations

from peewee import BooleanField, Check, TextField

from models.base import Table, Timestamp

VIEWER, OPERATOR = ROLES = ("viewer", "operator")


class Operator(Table):
    """One account. `password` is a hash; `session` is what its sessions carry, so that a new one ends them all."""

    name = TextField(unique=True)
    password = TextField()
    role = TextField(constraints=[Check("role IN ('viewer', 'operator')")])
    session = TextField(unique=True)
    enabled = BooleanField(default=True)
    createtime = Timestamp()
    updatetime = Timestamp()


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
