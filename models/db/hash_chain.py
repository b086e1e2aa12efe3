"""The hash chain of an account's entries: each entry's hash covers the hash of the previous entry."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

# `repr` handles values that only an outsider can have written. Their entry then has a hash, though a wrong one.
_canonical = json.JSONEncoder(separators=(",", ":"), default=repr).encode


class Facts(NamedTuple):
    """The facts of an entry's posting that its hash covers."""

    posting: int
    order_no: str | None
    purpose: str
    who: str
    memo: str
    createtime: int


@dataclass(slots=True)
class Chain:
    """The end of an account's chain: `number` is the count of entries, `head` the hash of the last ("" if there is
    none)."""

    kind: str
    owner: int
    number: int = 0
    head: str = ""

    def append(self, amount: int, facts: Facts) -> dict[str, Any]:
        """Append an entry of `amount` fen; return its `number` and `hash`.

        The hash is the SHA-256, in hex, of a JSON array in ASCII without spaces: the previous hash, the account's kind
        and owner, the number, the amount, and the posting's facts. Changing this format requires rehashing every entry
        of every database.
        """
        self.number += 1
        linked = _canonical([self.head, self.kind, self.owner, self.number, amount, *facts])
        self.head = sha256(linked.encode()).hexdigest()
        return {"number": self.number, "hash": self.head}
