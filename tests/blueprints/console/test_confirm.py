"""What shows or changes secrets, balances or accounts needs the password again, once every five minutes."""

import pytest

from models.operator import AuditEntry, Session

OWN = "demo-password"
NEEDED = [
    ("POST", "merchant/demo/reveal", "merchant/demo"),
    ("POST", "merchant/demo/rotate/api", "merchant/demo"),
    ("POST", "merchant/demo/rotate/callback", "merchant/demo"),
    ("GET", "merchant/demo/adjust", "merchant/demo/adjust"),
    ("POST", "merchant/demo/adjust", "merchant/demo/adjust"),
    ("GET", "merchant/demo/account", "merchant/demo/account"),
    ("POST", "merchant/demo/account", "merchant/demo/account"),
    ("POST", "operators/", "operators/"),
    ("POST", "operators/2/operator", "operators/"),
    ("GET", "operators/2/password", "operators/2/password"),
    ("POST", "operators/2/password", "operators/2/password"),
]


@pytest.fixture
def console(sign_in):
    """The operator `demo`, signed in, who has not given the password again."""
    return sign_in("demo", confirmed=False)


@pytest.fixture
def confirm(send):
    """`confirm(password)`: the answer to the form."""
    return lambda password=OWN, page="/": send(f"confirm?next={page}", password=password)


def entries():
    return [row.action for row in AuditEntry.select().order_by(AuditEntry.id)]


@pytest.mark.parametrize(("method", "path", "back"), NEEDED)
def test_it_asks_for_the_password_first_and_leads_back_to_the_page(method, path, back, console, send, confirm):
    asked = console.get(f"/console/{path}") if method == "GET" else send(path)
    assert (asked.status_code, asked.location) == (303, f"/console/confirm?next=/{back}")
    assert entries() == ["sign in"], "nothing was done"
    there = confirm(page=f"/{back}")
    assert (there.status_code, there.location) == (303, f"/console/{back}")
    again = console.get(f"/console/{path}") if method == "GET" else send(path)
    assert "/confirm" not in (again.location or "")


def test_an_orders_personal_data_is_revealed_only_after_a_confirmation(api, console, send, confirm):
    order_no = api.buy(customer_name="Zhang San").data["order_no"]
    asked = send(f"order/{order_no}/reveal")
    assert asked.location == f"/console/confirm?next=/order/{order_no}"
    confirm()
    assert "Zhang San" in send(f"order/{order_no}/reveal").text
    assert entries()[-2:] == ["confirm identity", "reveal"]


def test_a_wrong_password_confirms_nothing(console, send, confirm):
    refused = confirm("wrong-password")
    assert refused.status_code == 401
    assert "The password is incorrect." in refused.text
    assert "/confirm" in send("merchant/demo/reveal").location


def test_guesses_are_counted_with_those_at_the_sign_in(console, confirm):
    assert [confirm(f"guess-{number}").status_code for number in range(11)] == [401] * 10 + [429]
    assert confirm().status_code == 429


def test_a_confirmation_ends_after_five_minutes(console, send, confirm, ahead):
    confirm()
    ahead(290)
    assert send("merchant/demo/reveal").status_code == 200
    ahead(20)
    assert "/confirm" in send("merchant/demo/reveal").location


def test_a_confirmation_is_valid_for_its_own_session_only(sign_in, console, send, confirm):
    elsewhere = sign_in("demo", confirmed=False)
    confirm()
    assert "/confirm" in send("merchant/demo/reveal", client=elsewhere).location
    assert Session.select().where(Session.confirmtime > 0).count() == 1


def test_it_leads_to_no_other_site(console, confirm):
    for page in ("https://evil.example", "//evil.example", "/%5Cevil.example"):
        assert confirm(page=page).location == "/console/"


def test_a_viewer_is_refused_and_not_asked(viewer, send):
    assert send("merchant/demo/reveal", client=viewer).status_code == 403
    assert viewer.get("/console/merchant/demo/adjust").status_code == 403
