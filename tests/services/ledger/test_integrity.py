"""Ledger integrity check: balances, orders and hash chains agree, so changes past the database's guards are found."""

import hashlib
import json
import threading

import pytest

from models.db.base import database
from models.db.hash_chain import Chain, Facts
from services.ledger import integrity
from tests import applications, databases
from tests.databases import unguarded
from tests.support import Api, through_flask

CHAINED = "entries are chained without gaps up to the account's checkpoint"
WHOLE = "every entry has a posting and an account"
ZERO = "postings sum to zero"
SUMS = "balances equal their entries"
MOVES = "postings match their orders"
HELD = "reserved balances equal the open withdrawals and refunds"
CREDITED = "completed deposits are credited, no others"
SPENT = "completed withdrawals are spent, no others"
RELEASED = "cancelled withdrawals are released, no others"
KEPT = "entries go back to the heads that were kept"
ENTRIES = """SELECT entry.id, entry.account_id, kind, owner, entry.amount, posting_id, order_no, purpose, who, memo,
    posting.createtime FROM entry JOIN ledger_account ON ledger_account.id = entry.account_id
    JOIN posting ON posting.id = posting_id LEFT JOIN "order" ON "order".id = order_id ORDER BY entry.id"""


@pytest.fixture(scope="module")
def moved(seeded, tmp_path_factory):
    """An instance whose ledger has an order of each kind that moves money, and two adjustments; and the numbers."""
    folder = databases.copied(seeded, tmp_path_factory.mktemp("moved") / "instance")
    app = applications.with_settings(databases.settings_of(folder))
    api, command = Api(through_flask(app.test_client())), app.test_cli_runner()

    def run(*arguments):
        assert command.invoke(args=arguments).exit_code == 0

    numbers = {"credited": api.buy().data["order_no"]}
    api.play(numbers["credited"], "success")
    for yuan in ("3.00", "-1.00"):
        run("ledger", "adjust", "demo", yuan, "--reason", "manual")
    for name in ("held", "spent", "returned"):
        numbers[name] = api.sell("50.00", channel=3).data["order_no"]
    numbers["unpaid"] = api.buy().data["order_no"]
    run("order", "accept", numbers["spent"])
    run("order", "paid", numbers["spent"], "--reference", "B-1")
    run("order", "reject", numbers["returned"], "--reason", "no")
    databases.close()
    return folder, numbers


@pytest.fixture
def instance(moved, tmp_path):
    return databases.copied(moved[0], tmp_path / "instance")


@pytest.fixture
def stranger(app, moved, instance):
    """`stranger(sql, ...)` changes the database past all its guards; `:held` is the number of that order."""

    def change(*statements):
        with unguarded(instance) as books:
            books.execute("DROP INDEX entry_account_id_number")
            for statement in statements:
                used = {name: number for name, number in moved[1].items() if f":{name}" in statement}
                assert books.execute(statement, used).rowcount > 0

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
def kept(flask, tmp_path):
    """A checkpoint file that was stored elsewhere."""
    file = tmp_path / "heads.json"
    file.write_text(flask("ledger", "heads", "--json").stdout)
    return file


def test_an_auditor_can_verify_the_chains_from_the_rows_alone(flask, flask_json):
    heads = {}
    written = dict(database.execute_sql("SELECT id, hash FROM entry").fetchall())
    for entry, _, kind, owner, amount, *facts in database.execute_sql(ENTRIES).fetchall():
        number, before = heads.get((kind, owner), (0, ""))
        linked = json.dumps([before, kind, owner, number + 1, amount, *facts], separators=(",", ":"))
        heads[kind, owner] = number + 1, hashlib.sha256(linked.encode()).hexdigest()
        assert written[entry] == heads[kind, owner][1]
    shown = {(row["kind"], row["owner"]): (row["entries"], row["head"]) for row in flask_json("ledger", "heads")}
    assert {account: end for account, end in shown.items() if end != (0, "")} == heads
    assert shown["available", 1][0] == 8
    assert shown["available", 2] == (0, "")
    lines = [line.split() for line in flask("ledger", "heads").output.splitlines()]
    assert lines[0] == ["kind", "owner", "entries", "head", "merchant"]
    assert lines[1] == ["available", "1", "8", shown["available", 1][1], "demo"]
    assert [line[-1] for line in lines if line[:2] == ["held", "2"]] == ["other"]
    assert "demo" not in [line[-1] for line in lines if line[:2] == ["clearing", "1"]]


def test_a_consistent_ledger_passes(flask, flask_json):
    assert "FAILED" not in flask("ledger", "verify").stdout
    checks = flask_json("ledger", "verify")
    assert set(checks) >= {CHAINED, WHOLE, ZERO, SUMS, MOVES, HELD, CREDITED, SPENT, RELEASED}
    assert not any(checks.values())


# Damage that balances and orders reveal

ONLY = "(SELECT id FROM posting WHERE purpose = '{0}' ORDER BY id DESC LIMIT 1)"
CREDIT, HOLD, ADJUSTMENT = (ONLY.format(purpose) for purpose in ("credit", "hold", "adjustment"))
TO_CREDIT, TO_HOLD = (f"posting_id = {posting} AND amount > 0" for posting in (CREDIT, HOLD))
TO_FEES = "account_id = (SELECT id FROM ledger_account WHERE kind = 'fees')"
STATUS = "UPDATE \"order\" SET status = '{}' WHERE order_no = :{}"
ENTRY, BALANCE = "UPDATE entry SET", "UPDATE ledger_account SET balance ="
ADDED = f"INSERT INTO entry (posting_id, account_id, amount, number, hash) VALUES ({CREDIT}, 1, 1, 99, '')"
ENTRIES_OFF = {CHAINED, ZERO, SUMS, MOVES}
INCONSISTENT = {
    "an entry changed": (f"{ENTRY} amount = amount + 1 WHERE {TO_CREDIT}", ENTRIES_OFF),
    "an entry gone": (f"DELETE FROM entry WHERE {TO_CREDIT}", ENTRIES_OFF),
    "an entry moved": (f"{ENTRY} {TO_FEES} WHERE {TO_HOLD}", {CHAINED, SUMS, MOVES}),
    "an entry added": (ADDED, ENTRIES_OFF),
    "a posting gone, its entries left": (f"DELETE FROM posting WHERE id = {ADJUSTMENT}", {CHAINED, WHOLE}),
    "a balance changed": (f"{BALANCE} balance + 1 WHERE kind = 'available' AND owner = 1", {SUMS}),
    "an operator's balance changed": (f"{BALANCE} balance - 1 WHERE kind = 'fees'", {SUMS}),
    "a channel's balance changed": (f"{BALANCE} 0 WHERE kind = 'clearing' AND owner = 2", {SUMS}),
    "a balance below zero": (f"{BALANCE} -1 WHERE kind = 'available' AND owner = 2", {SUMS}),
    "a hold changed": (f"{BALANCE} balance + 1 WHERE kind = 'held' AND owner = 1", {SUMS, HELD}),
    "an account gone": ("DELETE FROM ledger_account WHERE kind = 'clearing' AND owner = 2", {WHOLE}),
    "completed, not credited": (STATUS.format("completed", "unpaid"), {CREDITED}),
    "credited, not completed": (STATUS.format("confirmed", "credited"), {CREDITED}),
    "credited, cancelled": (STATUS.format("cancelled", "credited"), {CREDITED}),
    "spent, not completed": (STATUS.format("paid", "spent"), {SPENT, HELD}),
    "completed, not spent": (STATUS.format("completed", "held"), {SPENT, HELD}),
    "cancelled, not returned": (STATUS.format("cancelled", "held"), {RELEASED, HELD}),
    "returned, not cancelled": (STATUS.format("pending", "returned"), {RELEASED, HELD}),
    "an open one's amount": ('UPDATE "order" SET merchant_actual_amount = 1 WHERE order_no = :held', {MOVES, HELD}),
    "a reserve without its withdrawal": ('UPDATE "order" SET order_type = 1 WHERE order_no = :held', {HELD}),
}


@pytest.mark.breaks_the_ledger
@pytest.mark.parametrize("damage", INCONSISTENT)
def test_each_kind_of_damage_is_found_by_each_check_that_it_violates(stranger, found, damage):
    statement, checks = INCONSISTENT[damage]
    stranger(statement)
    lines = found()
    assert set(lines) == checks
    if damage == "a reserve without its withdrawal":
        assert lines[HELD] == ["account held 1 has 5015 fen, but the open withdrawals and refunds sum to 0"]


# Damage that the hash chains reveal

MINE = "account_id = (SELECT id FROM ledger_account WHERE kind = 'available' AND owner = 1)"
ACCOUNT = "UPDATE ledger_account SET {} WHERE kind = 'available' AND owner = 1"
THIRD_ENTRY = f"{MINE} AND number = 3"
THIRD = f"(SELECT posting_id FROM entry WHERE {THIRD_ENTRY})"
THIRD_CHANGED = "account available 1: entry 3 or its posting 3 was changed"
THIRD_GONE = "account available 1: entry 4 comes after entry 2"
NEWEST = f"{MINE} AND number = 8"
NEWEST_GONE = f"DELETE FROM entry WHERE {NEWEST}"
CHANGED = {
    "an amount": ([f"{ENTRY} amount = amount + 1 WHERE {THIRD_ENTRY}"], THIRD_CHANGED),
    "a hash": ([f"{ENTRY} hash = 'x' WHERE {THIRD_ENTRY}"], THIRD_CHANGED),
    "who": ([f"UPDATE posting SET who = 'nobody' WHERE id = {THIRD}"], THIRD_CHANGED),
    "a memo": ([f"UPDATE posting SET memo = 'else' WHERE id = {THIRD}"], THIRD_CHANGED),
    "a purpose": ([f"UPDATE posting SET purpose = 'gift' WHERE id = {THIRD}"], THIRD_CHANGED),
    "a time": ([f"UPDATE posting SET createtime = createtime - 1 WHERE id = {THIRD}"], THIRD_CHANGED),
    "whose order": ([f"UPDATE posting SET order_id = 1 WHERE id = {THIRD}"], THIRD_CHANGED),
    "an order's number": (["UPDATE \"order\" SET order_no = '1' WHERE id = 1"], "account available 1: entry 2 or its"),
    "an order is gone": (['DELETE FROM "order" WHERE id = 1'], "account available 1: entry 2 or its posting 2"),
    "a posting is gone": ([f"DELETE FROM posting WHERE id = {THIRD}"], THIRD_CHANGED),
    "an entry's posting": ([f"{ENTRY} posting_id = 2 WHERE {THIRD_ENTRY}"], "entry 3 or its posting 2"),
    "an entry is gone": ([f"DELETE FROM entry WHERE {THIRD_ENTRY}"], THIRD_GONE),
    "the first is gone": ([f"DELETE FROM entry WHERE {MINE} AND number = 1"], "entry 2 comes after entry 0"),
    "the newest is gone": ([NEWEST_GONE], "account available 1 had 8 entries, the last is entry 7"),
    "one is another account's": ([f"{ENTRY} account_id = 6, number = 9 WHERE {THIRD_ENTRY}"], THIRD_GONE),
    "a head": ([ACCOUNT.format("head = 'x'")], "available 1 does not end with its newest"),
    "a count": ([ACCOUNT.format("entries = 9")], "account available 1 had 9 entries"),
    "whose account": ([ACCOUNT.format("owner = 9")], "account available 9: entry 1 or its"),
    # Manipulations of more than one statement, which only the hashes reveal.
    "one is gone, the others moved up": (
        [
            f"DELETE FROM entry WHERE {THIRD_ENTRY}",
            f"{ENTRY} number = number - 1 WHERE {MINE} AND number > 3",
            ACCOUNT.format("entries = 7"),
        ],
        "account available 1: entry 3 or its posting 4 was changed",
    ),
    "the newest is gone, the count with it": (
        [NEWEST_GONE, ACCOUNT.format("entries = 7")],
        "account available 1 does not end with its newest entry, 7",
    ),
    "two changed places": ([f"{ENTRY} number = 7 - number WHERE {MINE} AND number IN (3, 4)"], THIRD_GONE),
    "two changed their amounts": (
        [f"{ENTRY} amount = 200 - amount WHERE {MINE} AND number IN (3, 4)"],
        "account available 1: entry 4 or its posting 4 was changed",
    ),
    "one is there twice": (
        [f"INSERT INTO entry SELECT 99, posting_id, account_id, amount, 8, hash FROM entry WHERE {NEWEST}"],
        "account available 1: entry 8 comes after entry 8",
    ),
}
# Values that only SQLite accepts, because its columns have no types.
UNTYPED = {
    "an amount that is no number": ([f"{ENTRY} amount = 'x' WHERE {THIRD_ENTRY}"], THIRD_CHANGED),
    "a number that is none": ([f"{ENTRY} number = 'x' WHERE {THIRD_ENTRY}"], "entry x comes after entry 2"),
    "a count that is none": ([ACCOUNT.format("entries = 'x'")], "account available 1 had x entries"),
    "a memo that is no text": ([f"UPDATE posting SET memo = x'00ff' WHERE id = {THIRD}"], THIRD_CHANGED),
}


@pytest.mark.breaks_the_ledger
@pytest.mark.parametrize("damage", [*CHANGED, *(pytest.param(each, marks=pytest.mark.sqlite) for each in UNTYPED)])
def test_changes_past_the_guards_are_named(stranger, found, damage):
    statements, line = (CHANGED | UNTYPED)[damage]
    stranger(*statements)
    assert line in "\n".join(found()[CHAINED])


@pytest.mark.breaks_the_ledger
def test_one_changed_entry_is_one_line_also_for_people(stranger, found, flask):
    stranger(*CHANGED["an amount"][0])
    assert found()[CHAINED] == [THIRD_CHANGED]
    lines = flask("ledger", "verify", fails=True).stdout.splitlines()
    assert lines[lines.index(f"FAILED  {CHAINED}") + 1].strip() == THIRD_CHANGED


@pytest.mark.breaks_the_ledger
def test_findings_are_listed_up_to_a_limit_and_the_others_counted(stranger, found, monkeypatch):
    monkeypatch.setattr(integrity, "LINES", 3)
    stranger("UPDATE posting SET memo = 'x'")
    entries = database.execute_sql("SELECT COUNT(*) FROM entry").fetchone()[0]
    *listed, more = found()[CHAINED]
    assert (len(listed), more) == (3, f"and {entries - 3} more")


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
        books.execute(f"{BALANCE} (SELECT COALESCE(SUM(amount), 0) FROM entry WHERE account_id = ledger_account.id)")


def test_a_growing_ledger_still_matches_the_stored_checkpoints(kept, api, flask, flask_json):
    api.play(api.buy("100.00").data["order_no"], "success")
    assert flask_json("ledger", "verify", "--against", kept)[KEPT] == []
    assert KEPT not in flask_json("ledger", "verify")
    assert f"ok      {KEPT}" in flask("ledger", "verify", "--against", kept).stdout


@pytest.mark.breaks_the_ledger
def test_only_stored_checkpoints_reveal_a_completely_rewritten_ledger(kept, stranger, instance, flask, found):
    stranger("UPDATE posting SET memo = 'never you mind' WHERE memo = 'manual'")
    _rewrite(instance)
    assert "FAILED" not in flask("ledger", "verify").stdout
    replaced = ["account available 1: entry 8 was replaced", "account fees 0: entry 4 was replaced"]
    assert found("--against", kept) == {KEPT: replaced}


@pytest.mark.breaks_the_ledger
def test_only_stored_checkpoints_reveal_a_deleted_newest_posting(flask, kept, stranger, instance, tmp_path, found):
    flask("ledger", "adjust", "demo", "5.00", "--reason", "manual")
    later = tmp_path / "later.json"
    later.write_text(flask("ledger", "heads", "--json").stdout)
    manual = "(SELECT MAX(id) FROM posting WHERE memo = 'manual')"
    stranger(f"DELETE FROM entry WHERE posting_id = {manual}", f"DELETE FROM posting WHERE id = {manual}")
    _rewrite(instance)
    assert "FAILED" not in flask("ledger", "verify").stdout
    assert "FAILED" not in flask("ledger", "verify", "--against", kept).stdout
    missing = ["account available 1: entry 9 is missing", "account fees 0: entry 5 is missing"]
    assert found("--against", later)[KEPT] == missing


@pytest.mark.breaks_the_ledger
def test_a_deleted_account_is_named(kept, stranger, found):
    stranger("DELETE FROM ledger_account WHERE kind = 'clearing' AND owner = 4")
    assert found("--against", kept) == {KEPT: ["account clearing 4 is missing"]}


def test_a_file_without_checkpoints_is_refused(refuses, tmp_path):
    file = tmp_path / "heads.json"
    assert "No such file" in refuses("ledger", "verify", "--against", file)
    for text in ("", "[]", "{}", "7", "[7]", '[{"kind": "available"}]', "heads", "\udcff"):
        file.write_bytes(text.encode(errors="surrogateescape"))
        assert "tillbook ledger checkpoints --json" in refuses("ledger", "verify", "--against", file), text


def test_the_ledger_is_checked_as_of_one_moment_while_others_write(api, balances):
    def write():
        assert api.sell("1.00").code == 1
        database.close()

    found = []
    for _, lines in integrity.verify():
        found += lines
        writer = threading.Thread(target=write)
        writer.start()
        writer.join()
    assert found == []
    assert balances()[1] == 5_015 + len(integrity.CHECKS) * 100
