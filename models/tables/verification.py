"""The runs of the ledger's verification, and what each found."""

from __future__ import annotations

import json

from peewee import BigIntegerField, Check, TextField

from models.db.base import Table, Timestamp

HOLDS, OFF, FAILED = ("holds", "off", "failed")


class Verification(Table):
    """One run. `beat` is its last sign of life; `outcome` is null while it runs, `failed` where it came to no end.

    `found` is a JSON object of those checks that found something to be off: `{check: [lines]}`.
    """

    who = TextField()
    started = Timestamp()
    beat = Timestamp()
    milliseconds = BigIntegerField(null=True)
    entries = BigIntegerField()
    outcome = TextField(null=True, constraints=[Check("outcome IN ('holds', 'off', 'failed')")])
    found = TextField(default="{}")

    @property
    def off(self) -> dict[str, list[str]]:
        """What was off, by check."""
        return {name: lines for name, lines in json.loads(self.found).items() if lines}
