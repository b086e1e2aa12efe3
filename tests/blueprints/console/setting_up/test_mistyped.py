"""A password in a mistyped and refused value: only its author sees it again."""

import logging

import pytest

from models.db.base import database
from models.tables.operator import AuditEntry

SECRET = "c4n4ry"
ADDRESSES = [
    f"htps//me:{SECRET}@shop.example/hook",
    f"https:/me:{SECRET}@shop.example",
    f"ftp://me:{SECRET}@shop.example",
    f"//me:{SECRET}@shop.example",
    f"https://me:{SECRET}@shop.example:99999/",
    f"https://me:x/{SECRET}@shop.example",
    f"shop.example/hook?key={SECRET}",
    f"https://shop.example/hook ?key={SECRET}",
    f"{SECRET}",
]


@pytest.fixture
def kept(caplog):
    """`kept()`: records and log lines that contain the password."""
    caplog.set_level(logging.DEBUG)

    def look():
        entries = [f"{row.about} {row.key} {row.detail}" for row in AuditEntry.select()]
        return [text for text in (*entries, *(record.getMessage() for record in caplog.records)) if SECRET in text]

    return look


@pytest.mark.parametrize("path", ["merchant/demo", "merchant/new"])
def test_a_refused_callback_url_is_not_recorded(fill, viewer, page, kept, path):
    given = {"key": "shop", "name": "Shop"} if path.endswith("new") else {}
    for address in ADDRESSES:
        answer = fill(path, callback_url=address, **given)
        assert (answer.status_code, "Enter a URL, such as" in answer.text) == (422, True), address
        assert answer.text.count(SECRET) == 1, "in the field where its author typed it"
        assert kept() == []
        refused = page("audit/", client=viewer).rows[0]
        assert refused["Event"].startswith("Not done demo ")
        assert refused["Details"] == "Enter a URL, such as https://shop.example/paid."


def test_a_command_that_refuses_a_value_does_not_repeat_it(refuses, kept):
    for address in ADDRESSES:
        assert SECRET not in refuses("merchant", "set", "demo", "--callback-url", address), address
    said = refuses("channel", "set", "2", "--config", f"notice_secret=@{SECRET}")  # it begins like a file
    assert (SECRET in said, "notice_secret" in said, kept()) == (False, True, [])


def test_a_refused_network_or_name_is_not_recorded(fill, flask, kept):
    assert fill("merchant/demo", allowed_addresses=f"10.0.0.1,{SECRET}").status_code == 422
    for typed in (f"pa ss/{SECRET}", f"me:{SECRET}@shop.example"):
        assert fill("merchant/new", key=typed, name="Shop").status_code == 422
        assert fill("operators/", name=typed, password="Long-enough-8472", role="viewer").status_code == 422
        flask("operator", "add", typed, typed="Long-enough-8472\n", fails=True)
    assert kept() == []


@pytest.mark.parametrize("field", ["amount", "reference"])
def test_refused_values_of_an_action_are_not_recorded(desk, api, kept, field):
    order_no = api.buy(channel=3).data["order_no"]
    desk.act(order_no, "paid", **{field: f"{SECRET} " * 40})
    assert api.status(order_no) == "pending"
    assert AuditEntry.select().where(AuditEntry.key == order_no).count() == 2
    assert kept() == []


OLD = [
    (
        f"callback_url: https://shop.example/hook?key=*** -> htps//me:{SECRET}@shop.example; enabled: yes -> no",
        "callback_url: https://shop.example/hook?key=*** -> ***; enabled: yes -> no",
    ),
    (
        f"not done: a callback URL is an address like https://shop.example/paid, not 'htps//me:{SECRET}@shop.example'",
        "not done: a callback URL is an address like https://shop.example/paid",
    ),
    (f"name: a -> b; callback_url: - -> ftp://x/{SECRET}; events: - -> paid", None),
    (
        f"callback_url: - -> https://shop.example/hook?key={SECRET}",
        "callback_url: - -> https://shop.example/hook?key=***",
    ),
    ("name: x -> y; callback_url: /a -> /b", "name: x -> y; callback_url: /a -> /b"),
    (
        f"name: x -> y; allowed_addresses: - -> 10.0.0.0/8,{SECRET}; enabled: yes -> no",
        "name: x -> y; allowed_addresses: - -> 10.0.0.0/8,***; enabled: yes -> no",
    ),
    (
        f"not done: {SECRET} is no IP address, and no network like 10.0.0.0/8",
        "not done: *** is no IP address, and no network like 10.0.0.0/8",
    ),
    (f"not done: '{SECRET}' is no amount: write it like 12.50", "not done: *** is no amount: write it like 12.50"),
    ("balance 5.00", "balance 5.00"),
]


def test_the_upgrade_masks_records_of_earlier_versions(flask):
    for detail, _ in OLD:
        AuditEntry.add(who="demo", action="set merchant", about="merchant", key="demo", address="", detail=detail, at=1)
    for key in ("a.B_c@1-x", f"me:{SECRET}"):
        AuditEntry.add(who="demo", action="add operator", about="operator", key=key, address="", detail="", at=2)
    step = "%s" if database.is_shared else "?"
    database.execute_sql(f"DELETE FROM schema_migration WHERE name = {step}", ("0011_masked_audit",))
    assert "0011_masked_audit" in flask("db", "migrate").output
    masked = [row.detail for row in AuditEntry.select().where(AuditEntry.at == 1).order_by(AuditEntry.id)]
    assert not [detail for detail in masked if SECRET in detail]
    assert [(after, wanted) for after, (_, wanted) in zip(masked, OLD, strict=True) if wanted and after != wanted] == []
    keys = [row.key for row in AuditEntry.select().where(AuditEntry.at == 2).order_by(AuditEntry.id)]
    assert keys == ["a.B_c@1-x", "***"]
    for statement in ("UPDATE audit_entry SET who = 'x'", "DELETE FROM audit_entry"):
        with pytest.raises(Exception, match="append-only"):
            database.execute_sql(statement)
