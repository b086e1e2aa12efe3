"""Ledger integrity check: entries are chained by hash, so manipulation past the database's guards is found."""

import hashlib
import json
import threading

import pytest

from models.db.base import database
from models.db.hash_chain import Chain, Facts
from services.ledger import integrity
from tests.databases import unguarded

CHAINED = "entries are chained without gaps up to the account's checkpoint"
KEPT = "entries go back to the heads that were kept"
ENTRIES = """SELECT entry.id, entry.account_id, kind, owner, entry.amount, posting_id, order_no, purpose, who, memo,
    posting.createtime FROM entry JOIN ledger_account ON ledger_account.id = entry.account_id
    JOIN posting ON posting.id = posting_id LEFT JOIN "order" ON "order".id = order_id ORDER BY entry.id"""


@pytest.fixture
def moved(api, flask):
    """The merchant's accounts have several entries, of orders and of manual adjustments."""
    api.play(api.buy("100.00").data["order_no"], "success")
    for yuan in ("3.00", "-1.00"):
        flask("ledger", "adjust", "demo", yuan, "--reason", "manual")
    api.sell("50.00")
    api.sell("20.00")


@pytest.fixture
def stranger(moved, instance):
    """`stranger(sql)` changes the database past all its guards."""

    def change(*statements):
        with unguarded(instance) as books:
            books.execute("DROP INDEX entry_account_id_number")
            for statement in statements:
                assert books.execute(statement).rowcount > 0

    return change


@pytest.fixture
def found(flask):
    """The failures that `tillbook ledger verify` finds, by check."""

    def run(*arguments):
        result = flask("ledger", "verify", "--json", *arguments, fails=True)
        assert result.exit_code == 1
        return {name: lines for name, lines in json.loads(result.stdout).items() if lines}

    return run


@pytest.fixture
def kept(moved, flask, tmp_path):
    """A checkpoint file that was stored elsewhere."""
    file = tmp_path / "heads.json"
    file.write_text(flask("ledger", "heads", "--json").stdout)
    return file


def test_an_auditor_can_verify_the_chains_from_the_rows_alone(moved, flask_json):
    heads = {}
    written = dict(database.execute_sql("SELECT id, hash FROM entry").fetchall())
    for entry, _, kind, owner, amount, *facts in database.execute_sql(ENTRIES).fetchall():
        number, before = heads.get((kind, owner), (0, ""))
        linked = json.dumps([before, kind, owner, number + 1, amount, *facts], separators=(",", ":"))
        heads[kind, owner] = number + 1, hashlib.sha256(linked.encode()).hexdigest()
        assert written[entry] == heads[kind, owner][1]
    shown = {(row["kind"], row["owner"]): (row["entries"], row["head"]) for row in flask_json("ledger", "heads")}
    assert {account: end for account, end in shown.items() if end != (0, "")} == heads
    assert shown["available", 1][0] == 6
    assert shown["available", 2] == (0, "")


def test_the_checkpoints_are_printed_as_a_table(moved, flask):
    lines = [line.split() for line in flask("ledger", "heads").output.splitlines()]
    assert lines[0] == ["kind", "owner", "entries", "head", "merchant"]
    assert lines[1][:3] == ["available", "1", "6"]
    assert len(lines[1][3]) == 64


MINE = "account_id = (SELECT id FROM ledger_account WHERE kind = 'available' AND owner = 1)"
ACCOUNT = "kind = 'available' AND owner = 1"
THIRD = f"(SELECT posting_id FROM entry WHERE {MINE} AND number = 3)"
FOURTH_CHANGED = "account available 1: entry 4 or its posting 4 was changed"
THIRD_CHANGED = "account available 1: entry 3 or its posting 3 was changed"
NEWEST = f"{MINE} AND number = 6"
LAST_GONE = f"DELETE FROM entry WHERE {NEWEST}"

DAMAGE = {
    "an amount": (f"UPDATE entry SET amount = amount + 1 WHERE {MINE} AND number = 3", THIRD_CHANGED),
    "an amount that is no number": (f"UPDATE entry SET amount = 'x' WHERE {MINE} AND number = 3", THIRD_CHANGED),
    "a number that is none": (
        f"UPDATE entry SET number = 'x' WHERE {MINE} AND number = 3",
        "account available 1: entry x comes after entry 2",
    ),
    "a count that is none": (
        f"UPDATE ledger_account SET entries = 'x' WHERE {ACCOUNT}",
        "account available 1 had x entries",
    ),
    "a hash": (f"UPDATE entry SET hash = 'x' WHERE {MINE} AND number = 3", THIRD_CHANGED),
    "who": (f"UPDATE posting SET who = 'nobody' WHERE id = {THIRD}", THIRD_CHANGED),
    "a memo": (f"UPDATE posting SET memo = 'else' WHERE id = {THIRD}", THIRD_CHANGED),
    "a memo that is no text": (f"UPDATE posting SET memo = x'00ff' WHERE id = {THIRD}", THIRD_CHANGED),
    "a purpose": (f"UPDATE posting SET purpose = 'gift' WHERE id = {THIRD}", THIRD_CHANGED),
    "a time": (f"UPDATE posting SET createtime = createtime - 1 WHERE id = {THIRD}", THIRD_CHANGED),
    "whose order": (f"UPDATE posting SET order_id = 1 WHERE id = {THIRD}", THIRD_CHANGED),
    "an order's number": ("UPDATE \"order\" SET order_no = '1' WHERE id = 1", "account available 1: entry 2 or its"),
    "an order is gone": ('DELETE FROM "order" WHERE id = 1', "account available 1: entry 2 or its posting 2"),
    "a posting is gone": (f"DELETE FROM posting WHERE id = {THIRD}", THIRD_CHANGED),
    "an entry's posting": (f"UPDATE entry SET posting_id = 2 WHERE {MINE} AND number = 3", "entry 3 or its posting 2"),
    "an entry is gone": (f"DELETE FROM entry WHERE {MINE} AND number = 3", "available 1: entry 4 comes after entry 2"),
    "the first is gone": (f"DELETE FROM entry WHERE {MINE} AND number = 1", "available 1: entry 2 comes after entry 0"),
    "the newest is gone": (LAST_GONE, "account available 1 had 6 entries, the last is entry 5"),
    "one is another account's": (
        f"UPDATE entry SET account_id = 6, number = 9 WHERE {MINE} AND number = 3",
        "account available 1: entry 4 comes after entry 2",
    ),
    "a head": (f"UPDATE ledger_account SET head = 'x' WHERE {ACCOUNT}", "available 1 does not end with its newest"),
    "a count": (f"UPDATE ledger_account SET entries = 7 WHERE {ACCOUNT}", "account available 1 had 7 entries"),
    "whose account": (f"UPDATE ledger_account SET owner = 9 WHERE {ACCOUNT}", "account available 9: entry 1 or its"),
}
# Manipulations of more than one statement, which only the hashes reveal.
THOROUGH = {
    "one is gone, the others moved up": (
        (
            f"DELETE FROM entry WHERE {MINE} AND number = 3",
            f"UPDATE entry SET number = number - 1 WHERE {MINE} AND number > 3",
            f"UPDATE ledger_account SET entries = 5 WHERE {ACCOUNT}",
        ),
        "account available 1: entry 3 or its posting 4 was changed",
    ),
    "the newest is gone, the count with it": (
        (LAST_GONE, f"UPDATE ledger_account SET entries = 5 WHERE {ACCOUNT}"),
        "account available 1 does not end with its newest entry, 5",
    ),
    "two changed places": (
        (f"UPDATE entry SET number = 7 - number WHERE {MINE} AND number IN (3, 4)",),
        "account available 1: entry 4 comes after entry 2",
    ),
    "two changed their amounts": (
        (f"UPDATE entry SET amount = 200 - amount WHERE {MINE} AND number IN (3, 4)",),
        FOURTH_CHANGED,
    ),
    "one is there twice": (
        (f"INSERT INTO entry SELECT 99, posting_id, account_id, amount, 6, hash FROM entry WHERE {NEWEST}",),
        "account available 1: entry 6 comes after entry 6",
    ),
}


# Values that only SQLite accepts, because its columns have no types.
UNTYPED = {"an amount that is no number", "a number that is none", "a count that is none", "a memo that is no text"}


@pytest.mark.breaks_the_ledger
@pytest.mark.parametrize(
    "damage", [pytest.param(each, marks=pytest.mark.sqlite if each in UNTYPED else ()) for each in DAMAGE]
)
def test_changes_past_the_guards_are_named(stranger, found, damage):
    statement, line = DAMAGE[damage]
    stranger(statement)
    assert line in "\n".join(found()[CHAINED])


@pytest.mark.breaks_the_ledger
@pytest.mark.parametrize("damage", THOROUGH)
def test_covered_up_changes_are_named(stranger, found, damage):
    statements, line = THOROUGH[damage]
    stranger(*statements)
    assert line in "\n".join(found()[CHAINED])


@pytest.mark.breaks_the_ledger
def test_one_changed_entry_is_one_line(stranger, found):
    stranger(DAMAGE["an amount"][0])
    assert found()[CHAINED] == [THIRD_CHANGED]


@pytest.mark.breaks_the_ledger
def test_the_output_for_people_has_the_line_too(stranger, flask):
    stranger(DAMAGE["a memo"][0])
    lines = flask("ledger", "verify", fails=True).stdout.splitlines()
    assert lines[lines.index(f"FAILED  {CHAINED}") + 1].strip() == THIRD_CHANGED


@pytest.mark.breaks_the_ledger
def test_a_hundred_findings_are_listed_and_the_others_counted(demo, stranger, flask, found):
    flask("seed", "--orders", "300")
    stranger("UPDATE posting SET memo = 'x'")
    entries = database.execute_sql("SELECT COUNT(*) FROM entry").fetchone()[0]
    lines = found()[CHAINED]
    assert len(lines) == 101
    assert lines[-1] == f"and {entries - 100} more"


# Checkpoints that were stored elsewhere


def _rewrite(instance):
    """Chain the whole ledger again, as someone with the file and the knowledge could."""
    with unguarded(instance) as books:
        chains = {}
        for entry, account, kind, owner, amount, *facts in books.execute(ENTRIES).fetchall():
            link = chains.setdefault(account, Chain(kind, owner)).append(amount, Facts(*facts))
            books.execute("UPDATE entry SET number = ?, hash = ? WHERE id = ?", (link["number"], link["hash"], entry))
        for account, chain in chains.items():
            end = (chain.number, chain.head, account)
            books.execute("UPDATE ledger_account SET entries = ?, head = ? WHERE id = ?", end)
        books.execute(
            "UPDATE ledger_account SET balance ="
            " (SELECT COALESCE(SUM(amount), 0) FROM entry WHERE account_id = ledger_account.id)"
        )


MANUAL = "(SELECT MAX(id) FROM posting WHERE memo = 'manual')"


def test_a_growing_ledger_still_matches_the_stored_checkpoints(kept, api, flask, flask_json):
    api.play(api.buy("100.00").data["order_no"], "success")
    found = flask_json("ledger", "verify", "--against", kept)
    assert found[KEPT] == []
    assert KEPT not in flask_json("ledger", "verify")
    assert f"ok      {KEPT}" in flask("ledger", "verify", "--against", kept).stdout


@pytest.mark.breaks_the_ledger
def test_only_stored_checkpoints_reveal_a_completely_rewritten_ledger(kept, stranger, instance, flask, found):
    stranger("UPDATE posting SET memo = 'never you mind' WHERE memo = 'manual'")
    _rewrite(instance)
    assert "FAILED" not in flask("ledger", "verify").stdout
    assert found("--against", kept) == {
        KEPT: [
            "account available 1: entry 6 was replaced",
            "account fees 0: entry 3 was replaced",
        ]
    }


@pytest.mark.breaks_the_ledger
def test_only_stored_checkpoints_reveal_a_deleted_newest_posting(flask, stranger, instance, kept, tmp_path, found):
    flask("ledger", "adjust", "demo", "5.00", "--reason", "manual")
    later = tmp_path / "later.json"
    later.write_text(flask("ledger", "heads", "--json").stdout)
    stranger(f"DELETE FROM entry WHERE posting_id = {MANUAL}", f"DELETE FROM posting WHERE id = {MANUAL}")
    _rewrite(instance)
    assert "FAILED" not in flask("ledger", "verify").stdout
    assert "FAILED" not in flask("ledger", "verify", "--against", kept).stdout
    assert found("--against", later)[KEPT] == [
        "account available 1: entry 7 is missing",
        "account fees 0: entry 4 is missing",
    ]


@pytest.mark.breaks_the_ledger
def test_a_deleted_account_is_named(kept, stranger, found):
    stranger("DELETE FROM ledger_account WHERE kind = 'clearing' AND owner = 4")
    assert found("--against", kept) == {KEPT: ["account clearing 4 is missing"]}


@pytest.mark.parametrize("text", ["", "[]", "{}", "7", "[7]", '[{"kind": "available"}]', "heads", "\udcff"])
def test_a_file_without_checkpoints_is_refused(refuses, tmp_path, text):
    file = tmp_path / "heads.json"
    file.write_bytes(text.encode(errors="surrogateescape"))
    assert "tillbook ledger checkpoints --json" in refuses("ledger", "verify", "--against", file)


def test_a_missing_file_is_refused(refuses, tmp_path):
    assert "No such file" in refuses("ledger", "verify", "--against", tmp_path / "heads.json")


# While the service runs


def test_many_entries_are_read_in_batches(demo, flask, flask_json):
    flask("seed", "--orders", "2500")
    assert database.execute_sql("SELECT COUNT(*) FROM entry").fetchone()[0] > integrity.ENTRIES_AT_ONCE
    assert not any(flask_json("ledger", "verify").values())


def test_the_ledger_is_checked_as_of_one_moment_while_others_write(api, balances):
    def write():
        for _ in range(60):
            api.sell("1.00")
        database.close()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while writer.is_alive():
            assert not [lines for _, lines in integrity.verify() if lines]
    finally:
        writer.join()
    assert balances()[1] == 60 * 100


@pytest.mark.breaks_the_ledger
def test_a_reserve_without_its_withdrawal_is_found(moved, stranger, found):
    stranger('UPDATE "order" SET order_type = 1 WHERE order_type = 2 AND amount = 2000')
    assert found()["reserved balances equal the open withdrawals"] == [
        "account held 1 has 7014 fen, but the open withdrawals sum to 5010"
    ]
