"""`tillbook ledger`: balances, the integrity check, and manual adjustments."""

import pytest

from models.db.base import database
from tests.databases import unguarded


@pytest.fixture
def books(flask_json):
    """The ledger's balances: of merchants, and of the operator in the displayed form."""
    return lambda: flask_json("ledger", "balances")


def test_balances_are_fen_by_merchant(books, api):
    api.sell("50.00")
    assert books() == {"demo": {"available": 994_990, "held": 5_010}, "other": {"available": 0, "held": 0}}


def test_the_table_shows_yuan_and_the_operators_own_accounts(flask, api):
    api.play(api.buy("100.00").data["order_no"], "success")
    lines = [line.split() for line in flask("ledger", "balances").output.splitlines()]
    assert ["demo", "10099.40", "0.00"] in lines
    assert ["fees", "0.60"] in lines
    assert ["clearing", "2", "-100.00"] in lines


def test_the_table_shows_the_account_of_each_head(flask, api):
    lines = [line.split() for line in flask("ledger", "heads").output.splitlines()]
    assert [line[-1] for line in lines if line[:2] == ["held", "2"]] == ["other"]
    assert "demo" not in [line[-1] for line in lines if line[:2] == ["clearing", "1"]]


@pytest.mark.parametrize(
    ("amount", "fen"), [("12.50", 1_250), ("-12.5", -1_250), ("-10000", -1_000_000), ("0.01", 1), ("1e2", 10_000)]
)
def test_an_adjustment_credits_or_deducts(flask, balances, amount, fen):
    said = flask("ledger", "adjust", "demo", amount, "--reason", "test").output
    assert balances() == (1_000_000 + fen, 0)
    assert f"available balance of demo: {balances()[0] / 100:.2f}" in said


@pytest.mark.parametrize(("through", "account"), [((), "fees"), (("--channel", "3"), "clearing 3")])
def test_the_other_side_of_an_adjustment_is_the_channel_or_the_operator(flask, through, account):
    flask("ledger", "adjust", "demo", "12.50", "--reason", "test", *through)
    lines = [line.strip() for line in flask("ledger", "balances").output.splitlines()]
    assert [line for line in lines if line.startswith(account) and line.endswith(" -12.50")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("demo", "0"), "AMOUNT"),
        (("demo", "1.005"), "decimals"),
        (("demo", "NaN"), "AMOUNT"),
        (("demo", "--5"), "AMOUNT"),
        (("demo", "1e30"), "AMOUNT"),
        (("demo", "-10000.01"), "is too low"),
        (("nobody", "5"), "no merchant nobody"),
        (("demo", "5", "--channel", "99"), "no channel 99"),
        (("demo", "5", "--channel", "0"), "0 is not in the range"),
        (("demo", "5", "--channel", "99999999999999999999"), "channel"),
        (("demo", "5", "--nope", "1"), ""),
    ],
)
def test_an_invalid_adjustment_moves_nothing(refuses, nothing_changes, arguments, words):
    assert words in refuses("ledger", "adjust", *arguments, "--reason", "test")


@pytest.mark.parametrize("reason", [("--reason", " "), ("--reason", ""), ()])
def test_an_adjustment_without_a_reason_moves_nothing(refuses, nothing_changes, reason):
    assert "reason" in refuses("ledger", "adjust", "demo", "5", *reason)


def test_a_consistent_ledger_passes(flask, flask_json, api):
    api.play(api.buy().data["order_no"], "success")
    api.sell()
    found = flask_json("ledger", "verify")
    assert len(found) >= 5
    assert not any(found.values())
    assert "FAILED" not in flask("ledger", "verify").stdout


DAMAGE = {
    "a balance that was changed": "UPDATE ledger_account SET balance = balance + 1 WHERE kind = 'fees'",
    "an entry that is gone": "DELETE FROM entry WHERE id = (SELECT MAX(id) FROM entry)",
    "an entry that was changed": "UPDATE entry SET amount = amount - 1 WHERE id = 1",
    "a completed deposit that was never credited": "UPDATE \"order\" SET status = 'completed' WHERE status = 'pending'",
    "a credit whose order is not completed": "UPDATE \"order\" SET status = 'paid' WHERE status = 'completed'",
    "a cancelled withdrawal that still holds": "UPDATE \"order\" SET status = 'cancelled' WHERE order_type = 2",
}


@pytest.mark.breaks_the_ledger
@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_found_and_the_status_is_1(flask, flask_json, api, instance, damage):
    api.play(api.buy().data["order_no"], "success")
    api.buy()
    api.sell()
    database.close()
    with unguarded(instance) as books:
        assert books.execute(DAMAGE[damage]).rowcount
    result = flask("ledger", "verify", fails=True)
    assert result.exit_code == 1
    assert "FAILED" in result.stdout
    assert flask("ledger", "verify", "--json", fails=True).exit_code == 1
