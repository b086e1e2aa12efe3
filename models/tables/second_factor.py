"""The second factor of an operator's account: the secret of an authenticator app, and recovery codes."""

from __future__ import annotations

from peewee import BigIntegerField, ForeignKeyField, TextField

from models.db.base import Table, Timestamp
from models.tables.operator import Operator


class SecondFactor(Table):
    """One account's app. `secret` is encrypted; `timecode` is that of the last code that was used (RFC 6238)."""

    operator = ForeignKeyField(Operator, unique=True)
    secret = TextField()
    timecode = BigIntegerField()
    createtime = Timestamp()


class RecoveryCode(Table):
    """A recovery code that was not used yet. `key` is its SHA-256."""

    operator = ForeignKeyField(Operator, index=False)
    key = TextField()


RecoveryCode.add_index(RecoveryCode.operator, RecoveryCode.key, name="recovery_code_key", unique=True)
