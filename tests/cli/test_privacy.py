"""`tillbook privacy`: the data stored about one person is exported, and erased once all orders have ended."""

import json

import pytest

from models.tables.operator import AuditEntry
from models.tables.order import Order
from models.tables.outbox import Callback
from tests.all_interfaces import GATEWAY_A
from tests.support import CARD, PERSON

NAME = "李四光"


@pytest.fixture
def ended(api, flask, due, shop, later):
    """The numbers of a deposit by name and a withdrawal to a card, both ended."""
    deposit = api.buy(customer_name=NAME, merchant_order_no="M-1").data["order_no"]
    api.play(deposit, "success")
    withdrawal = api.sell("1.00", **GATEWAY_A).data["order_no"]
    flask("order", "accept", withdrawal)
    api.play(withdrawal, "success")
    due()
    later(100_000, times=3)
    due()
    return deposit, withdrawal


@pytest.fixture
def exported(flask):
    """`exported(...)`: the output of `privacy export`."""
    return lambda *arguments, **typed: json.loads(flask("privacy", "export", *arguments, **typed).stdout)


def test_an_export_has_everything_about_an_order_and_is_audited(ended, exported):
    deposit, withdrawal = exported(*ended)
    assert (deposit["order_no"], deposit["merchant_order_no"], deposit["status"]) == (ended[0], "M-1", "completed")
    assert (deposit["cny_amount"], deposit["personal_data"]) == ("100.00", {"customer_name": NAME})
    assert deposit["createtime"]
    assert withdrawal["personal_data"]["card_number"] == CARD["card_no"]
    assert withdrawal["personal_data"]["gatewaya_personal_data.cert_no"] == PERSON["cert_no"]
    entries = [(each.who, each.action, each.key) for each in AuditEntry.select().order_by(AuditEntry.id)]
    assert entries[-2:] == [("command line", "export personal data", order_no) for order_no in ended]


def test_the_notes_of_operators_are_exported_and_erased_on_request(ended, exported, flask):
    order_no = ended[0]
    flask("order", "note", order_no, f"call {NAME}")
    (order,) = exported(order_no)
    assert [each["text"] for each in order["notes"]] == [f"call {NAME}"]
    flask("privacy", "erase", order_no, "--yes")
    assert exported(order_no)[0]["notes"] == []


def test_orders_are_found_by_exact_name_and_card_from_a_file(ended, exported, tmp_path):
    (tmp_path / "card").write_text(CARD["card_no"] + "\n")

    def numbers(*arguments, **typed):
        return [order["order_no"] for order in exported(*arguments, **typed) if "order_no" in order]

    assert numbers("--name", NAME) == numbers("--name", "-", typed=f"{NAME}\n") == [ended[0]]
    assert numbers("--card", CARD["card_no"]) == numbers("--card", f"@{tmp_path}/card") == [ended[1]]
    assert numbers("--name", PERSON["name"]) == [ended[1]]
    assert numbers(ended[0], "--name", NAME, "--card", CARD["card_no"]) == list(ended)
    assert numbers("--name", NAME[:2]) == numbers("--card", CARD["card_no"][:-1]) == []


def test_a_search_finds_every_order_of_several_pages(api, exported, monkeypatch):
    monkeypatch.setattr("services.console.privacy.STEP", 3)
    placed = [api.buy(customer_name=name).data["order_no"] for name in [NAME, "王五"] * 4]
    assert [order["order_no"] for order in exported("--name", NAME)] == placed[::2]


def test_erasing_is_a_dry_run_unless_confirmed_and_then_the_search_finds_nothing(ended, flask, exported, rows):
    before = rows()
    shown = flask("privacy", "erase", *ended).stdout
    assert all(text in shown for text in (*ended, "--yes"))
    assert NAME not in shown
    assert rows() == before
    assert "2 of 2" in flask("privacy", "erase", *ended, "--yes").stdout
    assert exported("--name", NAME) == []
    (on_file,) = exported("--name", PERSON["name"], "--card", CARD["card_no"])
    assert on_file["current"], "the demo's own account"
    assert [order["personal_data"] for order in exported(*ended)] == [{}, {}]
    entries = [(each.who, each.key) for each in AuditEntry.select().where(AuditEntry.action == "erase")]
    assert entries == [("command line", order_no) for order_no in ended]
    assert "0 of 2" in flask("privacy", "erase", *ended, "--yes").stdout


def test_an_order_that_has_not_ended_is_refused_and_nothing_is_erased(ended, api, flask, rows):
    pending = api.buy(customer_name=NAME).data["order_no"]
    before = rows()["Order"]
    result = flask("privacy", "erase", ended[0], pending, "--yes", fails=True)
    assert f"{pending}: its status is pending" in result.stderr
    assert ended[0] not in result.stderr
    assert rows()["Order"] == before
    assert "pending" in flask("privacy", "erase", pending, fails=True).output


@pytest.mark.usefixtures("app")
def test_a_command_without_a_person_or_with_an_unknown_order_is_refused(refuses, tmp_path):
    assert "order numbers, --name or --card" in refuses("privacy", "export")
    assert "no order 1" in refuses("privacy", "erase", "1")
    assert "cannot be read" in refuses("privacy", "export", "--name", f"@{tmp_path}/none")


OLD, NEW = "6222020000000000777", "6222020000000000888"


@pytest.fixture
def on_file(flask_json):
    """The ids of two accounts on file of the merchant `other`: a replaced one, and the current one."""
    names = (("--card-number", OLD, "--real-name", NAME), ("--card-number", NEW, "--real-name", NAME))
    return [flask_json("account", "add", "other", *given)["id"] for given in names]


def test_accounts_on_file_are_exported_without_any_order_and_the_replaced_one_is_erased(
    on_file, exported, flask, flask_json
):
    first, second = exported("--name", NAME)
    assert (first["account"], first["merchant"], first["current"]) == (on_file[0], "other", False)
    assert (first["personal_data"]["card_number"], first["personal_data"]["real_name"]) == (OLD, NAME)
    assert (second["account"], second["current"]) == (on_file[1], True)
    assert [row["account"] for row in exported("--card", OLD)] == on_file[:1]
    assert "would be erased" in flask("privacy", "erase", "--name", NAME).stdout
    assert len(exported("--name", NAME)) == 2
    told = flask("privacy", "erase", "--name", NAME, "--yes").stdout
    assert f"account {on_file[0]} of other: erased" in told
    assert f"payout account {on_file[1]} of other: kept" in told
    assert [row["account"] for row in exported("--name", NAME)] == on_file[1:]
    listed = {row["id"]: row["card_number"] for row in flask_json("account", "list", "other")}
    assert listed == {on_file[0]: "", on_file[1]: "***************0888"}
    erased = AuditEntry.select().where(AuditEntry.action == "erase")
    assert [(each.about, each.key) for each in erased] == [("account", str(on_file[0]))]


def test_an_order_to_an_erased_account_on_file_is_still_readable(on_file, other, flask, due):
    flask("ledger", "adjust", "other", "100", "--reason", "money")
    flask("channel", "link", "3", "other")
    order_no = other.sell("1.00", channel=3).data["order_no"]
    flask("account", "add", "other", "--card-number", OLD, "--real-name", "王五")
    refused = flask("privacy", "erase", "--name", NAME, "--yes", fails=True).output
    assert f"{order_no}: its status is pending" in refused
    flask("order", "reject", order_no, "--reason", "no")
    due()
    Order.update(due_at=None).execute()
    Callback.update(state="delivered", due_at=None).execute()
    flask("privacy", "erase", "--name", NAME, "--yes")
    assert other.status(order_no) == "cancelled"
    assert set(json.loads(flask("order", "show", order_no, "--reveal", "--json").stdout)["account"].values()) == {""}
