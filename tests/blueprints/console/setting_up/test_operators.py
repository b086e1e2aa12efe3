"""The page of the team: new accounts, their roles, and the last administrator, who can't be removed."""

import time

import pytest

from models.tables.operator import Operator, Session
from services.errors import OperatorError
from services.security import operators
from tests.blueprints.console.setting_up.filling import Page

NEW = {"name": "cashier", "role": "administrator", "password": "a long password", "again": "a long password"}


@pytest.fixture
def row(page):
    """`row("viewer")`: the line of an account."""
    return lambda name: next(each for each in page("operators/").rows if each["User name"].split()[0] == name)


@pytest.fixture
def act(send):
    """`act("viewer", "disable")`: press one of an account's buttons."""
    return lambda name, word: send(f"operators/{operators.find(name).id}/change", change=word)


def test_an_account_is_added_and_may_sign_in(fill, row, viewer, page, audited, everywhere):
    assert fill("operators/", **NEW).status_code == 303
    assert (row("cashier")["Role"], row("cashier")["Status"]) == ("Administrator", "Enabled")
    assert operators.sign_in("cashier", "a long password")
    assert audited()[-1] == "demo add operator operator cashier administrator"
    assert "a long password" not in everywhere("operators/")
    assert row("cashier")["Last seen"] == "never"
    assert "never" not in (row("viewer")["Last seen"], row("demo")["Last seen"])
    earlier = int(time.time()) - 120
    Session.update(seentime=earlier).execute()
    Operator.update(seentime=earlier).execute()
    page("orders/", client=viewer)
    assert operators.find("viewer").seentime > earlier, "a request after a minute counts"
    assert operators.find("demo").seentime == earlier


def test_an_invalid_value_is_reported_at_its_field(wrong, flask_json):
    before = flask_json("operator", "list")
    simple = "This password is easy to guess. Use a longer one, such as four unrelated words."
    for field, typed, words in (
        ("name", {"name": "demo"}, "User name demo is already taken. Choose another name."),
        ("name", {"name": "a b"}, "User names have 1 to 64 letters, digits, _ . @ or -."),
        ("password", {"password": "short"}, "Field must be between 10 and 200 characters long."),
        ("password", {"password": "aaaaaaaaaaaa", "again": "aaaaaaaaaaaa"}, simple),
        ("again", {"again": "another password"}, "The passwords do not match."),
        ("role", {"role": "owner"}, "Not a valid choice."),
    ):
        assert wrong("operators/", **NEW | typed)[field] == words
    assert flask_json("operator", "list") == before


def test_roles_and_disabling_take_effect_immediately_and_end_sessions(act, row, viewer, sign_in, page, audited, send):
    page("operators/", client=viewer)
    assert act("viewer", "operator").status_code == 303
    assert row("viewer")["Role"] == "Operator"
    assert viewer.get("/console/operators/").status_code == 302
    act("viewer", "disable")
    assert row("viewer")["Status"] == "Disabled"
    assert operators.sign_in("viewer", "viewer-password") is None
    act("viewer", "enable")
    assert operators.sign_in("viewer", "viewer-password")
    act("viewer", "viewer")
    assert row("viewer")["Role"] == "Viewer"
    again = sign_in("viewer")
    act("viewer", "end")
    assert again.get("/console/").status_code == 302
    told = [line.removeprefix("demo ").split(" operator viewer")[0] for line in audited() if line.startswith("demo ")]
    assert told[-5:] == ["make operator", "disable operator", "enable operator", "make viewer", "end sessions"]
    for account, word in ((99, "end"), (1, "nope"), (10**20, "nope")):
        assert send(f"operators/{account}/change", change=word).status_code == 404


def test_administrators_cannot_lock_themselves_out(act, row, page):
    for word in ("disable", "operator", "viewer"):
        act("demo", word)
        assert "You cannot do this to your own account" in page("operators/").text, word
        assert (row("demo")["Role"], row("demo")["Status"]) == ("Administrator", "Enabled")


@pytest.mark.parametrize("change", [{"enabled": False}, {"role": "operator"}, {"role": "viewer"}])
def test_the_last_administrator_cannot_be_removed_by_anyone(fill, change):
    fill("operators/", **NEW)
    demo, cashier = operators.find("demo"), operators.find("cashier")
    operators.change(demo, **change, by="cashier")
    operators.change(demo, enabled=True, role="administrator", by="cashier")
    operators.change(cashier, enabled=False, by="demo")  # whose simultaneous request comes after this
    with pytest.raises(OperatorError, match="the last administrator account"):
        operators.change(demo, **change, by="cashier")
    assert operators.find("demo").enabled


def test_a_new_password_for_another_account_ends_its_sessions(fill, wrong, viewer, console, page):
    path = f"operators/{operators.find('viewer').id}/password"
    assert wrong(path, password="a new password", again="another one") == {"again": "The passwords do not match."}
    assert fill(path, password="a new password", again="a new password").status_code == 303
    assert viewer.get("/console/").status_code == 302
    assert operators.sign_in("viewer", "a new password")
    own = console.get(f"/console/operators/{operators.find('demo').id}/password")
    assert own.headers["Location"] == "/console/password"


def test_a_viewer_sees_the_accounts_without_forms(viewer, page):
    shown = page("operators/", client=viewer)
    assert (shown.column("User name"), len(Page(shown.html).forms)) == (["demo", "viewer (you)"], 3)
