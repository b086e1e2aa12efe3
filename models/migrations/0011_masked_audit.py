"""After 0.3.0: passwords and keys of mistyped callback URLs are masked in the audit log."""

import re

BATCH = 1_000
REFUSE = "BEGIN SELECT RAISE(ABORT, 'audit_entry is append-only'); END"
OPEN = {False: ("DROP TRIGGER audit_entry_no_update",), True: ('ALTER TABLE "audit_entry" DISABLE TRIGGER USER',)}
GUARD = {
    False: (f'CREATE TRIGGER audit_entry_no_update BEFORE UPDATE ON "audit_entry" {REFUSE}',),
    True: ('ALTER TABLE "audit_entry" ENABLE TRIGGER USER',),
}

URL = re.compile(r"callback_url: (.*?)(?=; (?:events|buy_rate|sell_rate|allowed_addresses|enabled|channels): |$)", re.S)
USABLE = re.compile(r"-|https?://[A-Za-z0-9.:_\[\]-]+(/[^\s@;:'\"]*)?|/[^\s@;:'\"/][^\s@;:'\"]*")
QUOTED = re.compile(r"(a callback URL is an address like \S+), not .*", re.S)
VALUE = re.compile(r"([?&][^=&\s]+)=[^&\s]+")


def _shown(url):
    text = VALUE.sub(r"\1=***", url)
    return text if USABLE.fullmatch(text) else "***"


def masked(detail):
    """An entry's detail with what may be a password or key replaced by ***."""
    detail = QUOTED.sub(r"\1", detail)
    return URL.sub(lambda found: "callback_url: " + " -> ".join(map(_shown, found[1].split(" -> "))), detail)


def up(migrator, database):
    """Apply it; the runner's transaction holds it all."""
    shared = bool(database.is_shared)
    mark = "%s" if shared else "?"
    for statement in OPEN[shared]:
        database.execute_sql(statement)
    find = (
        f"""SELECT id, detail FROM "audit_entry" WHERE id > {mark} AND about = 'merchant' ORDER BY id LIMIT {BATCH}"""
    )
    last = 0
    while rows := database.execute_sql(find, (last,)).fetchall():
        for row, detail in rows:
            if (new := masked(detail)) != detail:
                database.execute_sql(f'UPDATE "audit_entry" SET detail = {mark} WHERE id = {mark}', (new, row))
        last = rows[-1][0]
    for statement in GUARD[shared]:
        database.execute_sql(statement)
