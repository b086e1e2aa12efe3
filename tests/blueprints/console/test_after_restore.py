"""The console's first page reports paused payouts after a restore, and payments that the database lacks."""

import pytest

LOST = "202611230000000000000001"


@pytest.fixture
def overview_has(page, sign_in):
    """`overview_has(text)`: whether the first page contains this. Signs in each time, since a restore ends sessions."""
    return lambda text: text in page(client=sign_in("demo")).html


def test_the_first_page_shows_what_is_paused_until_the_operator_resumes(flask, overview_has):
    assert not overview_has("Restored from a backup")
    flask("db", "mark-restored")
    assert overview_has("Restored from a backup")
    assert overview_has("tillbook db resume")
    flask("db", "resume")
    assert not overview_has("Restored from a backup")


def test_the_first_page_counts_notices_about_unknown_orders(api, overview_has):
    api.notice(LOST, 100)
    assert overview_has("1 verified notice refers to an unknown order.")


def test_a_merchant_can_subscribe_to_credited_and_refunded(flask, flask_json, page):
    flask("merchant", "set", "demo", "--events", "credited,refunded")
    assert flask_json("merchant", "show", "demo")["events"] == "credited,refunded,completed,cancelled"
    html = page("merchant/demo").html
    assert 'value="credited"' in html
    assert 'value="refunded"' in html
