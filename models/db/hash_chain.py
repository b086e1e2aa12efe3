"""How the entries of an account chain: the hash of each one covers the hash of the one before it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

# `repr` for what only a stranger's hand can have written: it has a hash then, though a wrong one.
_canonical = json.JSONEncoder(separators=(",", ":"), default=repr).encode


class Facts(NamedTuple):
    """The posting of an entry, as hashed: it gives the amount its meaning."""

    posting: int
    order_no: str | None
    purpose: str
    who: str
    memo: str
    createtime: int


@dataclass(slots=True)
class Chain:
    """The newest end of an account's chain: `number` entries from 1 on, `head` the hash of the last; "" where none."""

    kind: str
    owner: int
    number: int = 0
    head: str = ""

    def append(self, amount: int, facts: Facts) -> dict[str, Any]:
        """Lengthen it by an entry of `amount` fen: that entry's `number` and `hash`.

        The hash is the SHA-256, in hex, of a JSON array without spaces and in ASCII: the hash before, the
        account's kind and owner, the number, the amount, and the posting's facts. To change that is to chain
        every entry of every database again.
        """
        self.number += 1
        linked = _canonical([self.head, self.kind, self.owner, self.number, amount, *facts])
        self.head = sha256(linked.encode()).hexdigest()
        return {"number": self.number, "hash": self.head}
