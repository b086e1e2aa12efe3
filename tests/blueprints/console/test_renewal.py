"""A page that renews itself: it does not prolong the session, and takes no message from another page."""

import re

from models.tables.operator import Operator, Session

LIVE = {"X-Live": "1"}


def test_a_renewed_page_does_not_prolong_the_session(console, ahead):
    seen = Session.get().seentime
    for _ in range(3):
        ahead(1_190)
        assert console.get("/console/", headers=LIVE).status_code == 200
    assert Session.get().seentime == seen
    assert Operator.get(name="demo").seentime <= seen
    ahead(60)
    assert console.get("/console/", headers=LIVE).status_code == 302


def test_a_page_that_is_opened_prolongs_the_session(console, ahead):
    for _ in range(3):
        ahead(1_800)
        assert console.get("/console/").status_code == 200


def test_a_renewed_page_sets_no_cookie_and_leaves_a_message_to_the_page_that_is_opened(console, send, page):
    send("factor/remove", password="wrong")
    renewed = console.get("/console/factor", headers=LIVE)
    assert "Set-Cookie" not in renewed.headers
    assert 'class="notice bad"' in page("factor").html


def test_the_title_and_the_menu_have_the_number_of_items_to_do(page, api):
    assert "<title>Overview" in page().html
    api.sell("45.00")
    shown = page("orders/")
    assert re.search(r"<title>\(1\) Orders . Tillbook</title>", shown.html)
    assert '<span id="count-payouts" data-live><b class="count">1</b></span>' in shown.html


def test_only_pages_that_can_be_requested_again_renew_themselves(page, send, app):
    assert "data-poll" in page("password").html
    refused = send("password", present="wrong", new="wrong", again="other")
    assert refused.status_code == 200
    assert "data-poll" not in refused.text
    assert "data-poll" not in app.test_client().get("/console/login").text
