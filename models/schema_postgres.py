"""Postgres triggers that protect append-only tables, count orders and raise the setup version."""

from collections.abc import Iterable

from models.tables.order_counts import BUCKET

# Percent signs are doubled: the driver reads single ones as placeholders.
_GUARD = """CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION '%% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$"""
_CELL = "merchant_id, order_type, status, bucket"
_COUNT = f"""ON CONFLICT ({_CELL}) DO UPDATE SET count = tally.count + EXCLUDED.count"""
# In a fixed order, so that two transactions that count at the same time don't wait for each other.
_COUNTED = f"""CREATE FUNCTION count_orders() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO tally ({_CELL}, count)
    SELECT merchant_id, order_type, status, seq / {BUCKET}, COUNT(*) FROM added GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
    {_COUNT};
    RETURN NULL;
END $$"""
_RECOUNTED = f"""CREATE FUNCTION recount_order() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE tally SET count = count - 1 WHERE merchant_id = OLD.merchant_id AND order_type = OLD.order_type
        AND status = OLD.status AND bucket = OLD.seq / {BUCKET};
    INSERT INTO tally ({_CELL}, count) VALUES (NEW.merchant_id, NEW.order_type, NEW.status, NEW.seq / {BUCKET}, 1)
    {_COUNT};
    RETURN NULL;
END $$"""
_REVISED = """CREATE FUNCTION move_revision() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE revision SET number = number + 1;
    RETURN NULL;
END $$"""


def statements(append_only: Iterable[str], revised: Iterable[str]) -> list[str]:
    """Return the statements that follow the tables.

    Args:
        append_only: the names of append-only tables.
        revised: the names of tables whose changes raise the setup version.
    """
    guards = [
        f'CREATE TRIGGER {name}_{what} BEFORE {verbs} ON "{name}" FOR EACH {each} EXECUTE FUNCTION refuse_change()'
        for name in append_only
        for what, verbs, each in (("no_change", "UPDATE OR DELETE", "ROW"), ("no_truncate", "TRUNCATE", "STATEMENT"))
    ]
    revisions = [
        f'CREATE TRIGGER {name}_revised AFTER INSERT OR UPDATE OR DELETE ON "{name}" '
        "FOR EACH STATEMENT EXECUTE FUNCTION move_revision()"
        for name in revised
    ]
    counts = [
        'CREATE TRIGGER order_counted AFTER INSERT ON "order" REFERENCING NEW TABLE AS added '
        "FOR EACH STATEMENT EXECUTE FUNCTION count_orders()",
        'CREATE TRIGGER order_recounted AFTER UPDATE OF status ON "order" FOR EACH ROW '
        "WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION recount_order()",
    ]
    # Leave room in the page for the next version of rows that every order changes.
    roomy = [f"ALTER TABLE {name} SET (fillfactor = 50)" for name in ("tally", "ledger_account")]
    return [_GUARD, _COUNTED, _RECOUNTED, _REVISED, *guards, *revisions, *counts, *roomy]
