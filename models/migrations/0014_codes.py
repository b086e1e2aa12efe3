"""After 0.3.0: store reasons as codes with arguments, and the history line that opened each exception."""

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

BATCH = 10_000
# The sentences that releases up to 0.3.0 wrote, by actor. All other text was written by an operator or a channel.
STEPS = {
    "merchant: created": "created",
    "seed: seeded": "seeded",
    "operator: accepted": "accepted",
    "service: accepted by rule": "accepted_by_rule",
    "payer: the payer says that it is paid": "claimed",
    "operator: marked paid": "marked_paid",
    "channel: notice": "notice",
    "channel: the channel was asked": "channel_asked",
    "service: the channel was asked": "channel_asked",
    "service: settled": "settled",
    "service: the settlement delay is over": "settlement_delay_over",
    "service: expired": "expired",
    "operator: paid an amount that does not match": "wrong_amount_ended",
}
Coded = tuple[str, dict[str, str]]  # a code and its arguments
CAUSES: dict[str, Coded] = {
    "paid an amount that does not match": ("paid_other_amount", {}),
    "paid after it was cancelled": ("paid_after_end", {}),
    "paid once more, under another number": ("paid_again", {}),
    "paid after an operator had credited other money": ("paid_after_credit", {}),
    "paid out an amount that does not match": ("payout_other_amount", {}),
}
for status in ("pending", "paid", "confirmed", "completed", "cancelled"):
    CAUSES[f"paid out although {status}"] = ("payout_unexpected", {"status": status})
    CAUSES[f"failed although {status}"] = ("payout_returned", {"status": status})
SILENCE, REFUSED = "unknown_outcome", "refused: "

REFUSE = "BEGIN SELECT RAISE(ABORT, 'history is append-only'); END"
# On SQLite, then on Postgres.
UNLOCK = {False: "DROP TRIGGER history_no_update", True: 'ALTER TABLE "history" DISABLE TRIGGER USER'}
IN_PLACE = {
    False: (
        """CREATE TABLE "coded_history" ("id" INTEGER NOT NULL PRIMARY KEY,
        "order_id" INTEGER NOT NULL,
        "before" TEXT NOT NULL,
        "after" TEXT NOT NULL,
        "who" TEXT NOT NULL,
        "at" INTEGER NOT NULL,
        "code" TEXT NOT NULL,
        "args" TEXT,
        FOREIGN KEY ("order_id") REFERENCES "order" ("id"))""",
        'INSERT INTO "coded_history" SELECT id, order_id, "before", "after", who, at, code, args FROM "history"',
        'DROP TABLE "history"',
        'ALTER TABLE "coded_history" RENAME TO "history"',
        'CREATE INDEX "history_order_id" ON "history" ("order_id")',
        f'CREATE TRIGGER history_no_update BEFORE UPDATE ON "history" {REFUSE}',
        f'CREATE TRIGGER history_no_delete BEFORE DELETE ON "history" {REFUSE}',
        'CREATE TRIGGER history_no_replace BEFORE INSERT ON "history" '
        f'WHEN EXISTS (SELECT 1 FROM "history" WHERE id = NEW.id) {REFUSE}',
        """CREATE TABLE "coded_exception" ("id" INTEGER NOT NULL PRIMARY KEY,
        "order_id" INTEGER NOT NULL,
        "kind" TEXT NOT NULL,
        "amount" INTEGER NOT NULL,
        "reference" TEXT NOT NULL,
        "createtime" INTEGER NOT NULL,
        "resolution" TEXT,
        "resolved_by" TEXT,
        "resolvedtime" INTEGER,
        "code" TEXT NOT NULL,
        "args" TEXT,
        "returned" INTEGER,
        "history_id" INTEGER,
        FOREIGN KEY ("order_id") REFERENCES "order" ("id"),
        FOREIGN KEY ("history_id") REFERENCES "history" ("id"))""",
        'INSERT INTO "coded_exception" SELECT id, order_id, kind, amount, reference, createtime, resolution, '
        'resolved_by, resolvedtime, code, args, returned, history_id FROM "payment_exception"',
        'DROP TABLE "payment_exception"',
        'ALTER TABLE "coded_exception" RENAME TO "payment_exception"',
        'CREATE INDEX "payment_exception_order_id" ON "payment_exception" ("order_id")',
        'CREATE INDEX "exception_open" ON "payment_exception" ("createtime") WHERE ("resolution" IS NULL)',
        'CREATE UNIQUE INDEX "exception_same_money" ON "payment_exception" ("order_id", "reference", "kind") '
        'WHERE ("resolution" IS NULL)',
        'CREATE INDEX "exception_reference" ON "payment_exception" ("reference", "order_id") '
        "WHERE (\"reference\" != '')",
    ),
    True: (
        'ALTER TABLE "history" DROP COLUMN "why", ALTER COLUMN "code" SET NOT NULL',
        'ALTER TABLE "history" ENABLE TRIGGER USER',
        'ALTER TABLE "payment_exception" DROP COLUMN "detail", ALTER COLUMN "code" SET NOT NULL, '
        'ADD FOREIGN KEY ("history_id") REFERENCES "history" ("id")',
    ),
}


def _cause(kind: str, detail: str) -> Coded:
    """Return why an exception was opened, as a code and its arguments."""
    return ("no_answer", {"text": detail}) if kind == SILENCE else CAUSES.get(detail, ("text", {"text": detail}))


def _reason(line: tuple[int, str, str], exceptions: Iterable[dict[str, Any]]) -> Coded:
    """Return why a history line was written, as a code and its arguments.

    An exception of the order that the line opened gets the line's id.
    """
    number, who, why = line
    for each in exceptions:
        told = why.removeprefix(f"exception {each['kind']}: ")
        if told == why:
            continue
        if who == "service" and not each["line"] and (each["kind"] == SILENCE or told == each["detail"]):
            each["line"] = number
            return _cause(each["kind"], told)
        if who == each["who"] and told == each["resolution"]:
            each["who"] = None  # another line is about another exception
            return "exception_settled", {name: each[name] for name in ("kind", "exception", "resolution")}
    if who == "channel" and why.startswith(REFUSED):
        return "refused", {"text": why.removeprefix(REFUSED)}
    return "text", {"text": why}


def _stored(args: dict[str, str]) -> str | None:
    return json.dumps(args, ensure_ascii=False, separators=(",", ":")) if args else None


def up(migrator: Any, database: Any) -> None:
    """Apply the step on SQLite and on Postgres, in the runner's transaction."""
    shared = bool(database.is_shared)

    def run(sql: str, *values: object) -> Any:
        return database.execute_sql(sql.replace("?", "%s") if shared else sql, values)

    run(UNLOCK[shared])
    run(f'ALTER TABLE "payment_exception" ADD COLUMN "history_id" {"BIGINT" if shared else "INTEGER"}')
    # The service's own sentences become codes.
    cases = [value for case in STEPS.items() for value in case]
    whens = "WHEN ? THEN ? " * len(STEPS)
    run(f"UPDATE history SET code = CASE who || ': ' || why {whens}END WHERE code IS NULL", *cases)
    # All other lines get a code with arguments, and exceptions the line that opened them.
    exceptions: dict[int, list[dict[str, Any]]] = defaultdict(list)
    found = run("SELECT id, order_id, kind, detail, resolution, resolved_by FROM payment_exception WHERE code IS NULL")
    for row, order, kind, detail, resolution, who in found.fetchall():
        about = {"kind": kind, "exception": str(row), "resolution": resolution}
        exceptions[order].append({**about, "detail": detail, "who": who, "line": None})
    find = f"SELECT id, order_id, who, why FROM history WHERE code IS NULL AND id > ? ORDER BY id LIMIT {BATCH}"
    last = 0
    while lines := run(find, last).fetchall():
        for number, order, who, why in lines:
            code, args = _reason((number, who, why), exceptions.get(order, ()))
            run("UPDATE history SET code = ?, args = ? WHERE id = ?", code, _stored(args), number)
        last = lines[-1][0]
    for each in (each for several in exceptions.values() for each in several):
        code, args = _cause(each["kind"], each["detail"])
        new = (code, _stored(args), each["line"], int(each["exception"]))
        run("UPDATE payment_exception SET code = ?, args = ?, history_id = ? WHERE id = ?", *new)
    # Lines that had a code already named their exception in it.
    for number, text in run("SELECT id, args FROM history WHERE args LIKE ?", '%"opened":%').fetchall():
        args = json.loads(text)
        if exception := args.pop("opened", None):
            del args["kind"]
            run("UPDATE history SET args = ? WHERE id = ?", _stored(args), number)
            run("UPDATE payment_exception SET history_id = ? WHERE id = ?", number, int(exception))
    for statement in IN_PLACE[shared]:
        run(statement)
