"""After 0.3.0: mask mistyped values in the audit log, which may be passwords or keys."""

import re
from collections.abc import Callable
from typing import Any

BATCH = 1_000
# On SQLite, then on Postgres.
UNLOCK = {False: "DROP TRIGGER audit_entry_no_update", True: 'ALTER TABLE "audit_entry" DISABLE TRIGGER USER'}
LOCK = {
    False: 'CREATE TRIGGER audit_entry_no_update BEFORE UPDATE ON "audit_entry" '
    "BEGIN SELECT RAISE(ABORT, 'audit_entry is append-only'); END",
    True: 'ALTER TABLE "audit_entry" ENABLE TRIGGER USER',
}

NEXT = r"(.*?)(?=; (?:events|buy_rate|sell_rate|allowed_addresses|enabled|channels): |$)"
URL = re.compile(f"callback_url: {NEXT}", re.S)
NETWORKS = re.compile(f"allowed_addresses: {NEXT}", re.S)
NETWORK = re.compile(r"[0-9A-Fa-f.:/\s-]{0,64}")
REFUSED = re.compile(r"not done: .*(?= is no (?:IP address|amount)[,:])", re.S)
NAME = re.compile(r"[A-Za-z0-9_.@-]{0,64}")
USABLE = re.compile(r"-|https?://[A-Za-z0-9.:_\[\]-]+(/[^\s@;:'\"]*)?|/[^\s@;:'\"/][^\s@;:'\"]*")
QUOTED = re.compile(r"(a callback URL is an address like \S+), not .*", re.S)
VALUE = re.compile(r"([?&][^=&\s]+)=[^&\s]+")


def _shown(url: str) -> str:
    text = VALUE.sub(r"\1=***", url)
    return text if USABLE.fullmatch(text) else "***"


def _networks(text: str) -> str:
    return ",".join(part if NETWORK.fullmatch(part) else "***" for part in text.split(","))


def _change(name: str, shown: Callable[[str], str], values: str) -> str:
    return f"{name}: " + " -> ".join(map(shown, values.split(" -> ")))


def masked(about: str, key: str, detail: str) -> tuple[str, str]:
    """Return an entry's key and detail as they are recorded now: with possible passwords and keys replaced by ***."""
    detail = REFUSED.sub("not done: ***", QUOTED.sub(r"\1", detail))
    detail = URL.sub(lambda found: _change("callback_url", _shown, found[1]), detail)
    detail = NETWORKS.sub(lambda found: _change("allowed_addresses", _networks, found[1]), detail)
    is_name = about not in ("merchant", "operator") or NAME.fullmatch(key)
    return key if is_name else "***", detail


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    shared = bool(database.is_shared)
    mark = "%s" if shared else "?"
    database.execute_sql(UNLOCK[shared])
    find = f"""SELECT id, about, key, detail FROM "audit_entry" WHERE id > {mark} ORDER BY id LIMIT {BATCH}"""
    last = 0
    while rows := database.execute_sql(find, (last,)).fetchall():
        for row, about, key, detail in rows:
            if (new := masked(about, key, detail)) != (key, detail):
                database.execute_sql(
                    f'UPDATE "audit_entry" SET key = {mark}, detail = {mark} WHERE id = {mark}', (*new, row)
                )
        last = rows[-1][0]
    database.execute_sql(LOCK[shared])
