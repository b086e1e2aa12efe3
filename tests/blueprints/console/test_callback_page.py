"""The redelivery of many callbacks from their list; a callback's page: its content, its address, every attempt."""

import re

import pytest

from blueprints.console.pages import callbacks
from services.operations import redelivery
from tests.support import completed

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def webhook_id(api, flask_json, due):
    """The webhook id of the callback of a completed deposit, after one attempt."""
    order_no = completed(api)
    due.callbacks()
    return next(row["id"] for row in flask_json("callback", "list") if row["order_no"] == order_no)


def test_the_page_shows_every_attempt_and_redelivers_once_with_the_same_id(
    desk, shop, webhook_id, flask_json, due, console
):
    shop.answers(500, SCRIPT)
    seen = desk.see(f"callback/{webhook_id}")
    order_no = flask_json("callback", "show", webhook_id)["order_no"]
    for text in ("Delivered", order_no, shop.url, "webhook-signature", "generated when sent", "thank you"):
        assert text in seen.text
    assert '"type": "order.completed"' in seen.text
    (form,) = seen.actions.values()
    assert desk.send(form) == ("good", "1 callback will be resent.")
    category, text = desk.send(form)
    assert (category, "Reload and try again" in text) == ("bad", True), "an outdated page"
    due.callbacks()
    assert [received.webhook_id for received in shop.got] == [webhook_id, webhook_id]
    again = desk.see(f"callback/{webhook_id}")
    assert [text for text in ("500", "Waiting", "resent callback", SCRIPT) if text not in again.text] == []
    assert SCRIPT not in again.html
    assert console.get("/console/callback/msg_1").status_code == 404


def test_a_redirect_is_named_with_its_target_and_what_to_do(desk, api, shop, flask_json, due):
    shop.answers(302, headers={"Location": "/hook/"})
    completed(api)
    due.callbacks()
    (row,) = flask_json("callback", "list")
    seen = desk.see(f"callback/{row['id']}").text
    host = shop.url.removesuffix("/demo")
    assert f"The server redirects to {host}/hook/. Redirects are not followed: enter the final address." in seen
    assert "HTTP 302: redirect, not followed" in desk.see("callbacks/").text


def test_the_values_in_the_address_are_masked(desk, api, flask, flask_json, due):
    flask("merchant", "set", "demo", "--callback-url", "http://127.0.0.1:1/hook?token=sesame&shop=open")
    completed(api)
    due.callbacks()
    (row,) = flask_json("callback", "list")
    seen = desk.see(f"callback/{row['id']}")
    assert "http://127.0.0.1:1/hook?token=***&shop=***" in seen.text
    assert "no response" in seen.text
    assert "sesame" not in seen.html


# Several at once


@pytest.fixture
def failed(api, shop, due, monkeypatch):
    """The numbers of six orders, more than a page, whose callbacks failed; then the merchant's server works again."""
    monkeypatch.setitem(callbacks.CALLBACKS.__dict__, "limit", 4)
    shop.answers(410)
    orders = [completed(api) for _ in range(6)]
    due.callbacks()
    shop.answers(200)
    shop.got.clear()
    return orders


@pytest.fixture
def confirm(page, send):
    """`confirm("flt_state=dead")`: resend all with these filters, as the list offers it; return the page then."""

    def resent(query, before=lambda: None):
        (asked,) = [url for label, url in page(f"callbacks/?{query}").links.items() if label.startswith("Resend")]
        shown = page(asked.removeprefix("/console/"))
        before()
        fields = dict(re.findall(r'name="(pending|delivered|dead)" value="([^"]*)"', shown.html))
        (target,) = [url for label, url in shown.sends.items() if label.startswith("Resend")]
        return page(send(target.removeprefix("/console/"), **fields).location.removeprefix("/console/"))

    return resent


def sent(shop):
    return sorted(each.event["data"]["order_no"] for each in shop.got)


def test_all_failed_callbacks_of_a_filter_are_resent_in_three_clicks_from_the_overview(
    page, send, console, shop, due, failed, confirm, other
):
    completed(other)
    delivered = page("").links["View callbacks"].removeprefix("/console/callbacks/?")  # the first click
    asked = page(f"callbacks/?{delivered}").links["Resend all 6"].removeprefix("/console/")
    told = ("Resend 6 callbacks", "Demo Shop 演示商户 6", "Failed 6")
    assert [text for text in told if text not in page(asked).text] == []
    shown = confirm(delivered)
    assert "6 callbacks will be resent." in shown.text
    assert {row["Status"] for row in shown.rows} == {"Waiting"}, "the list shows them, in their new state"
    due.callbacks()
    due.callbacks()
    assert sent(shop) == sorted(failed)
    assert (page("audit/").rows[0]["Event"], page("audit/").rows[0]["Details"]) == (
        "demo resent several callbacks at once",
        "6 dead",
    )
    assert "Resend all" not in page("callbacks/?flt_merchant=demo").text, "nothing is left to resend"


def test_delivered_callbacks_are_resent_only_if_the_filter_selects_them(page, api, shop, due, confirm):
    order_no = completed(api)
    due.callbacks()
    assert "Resend all" not in page("callbacks/").text
    assert "Delivered callbacks are among them." in page("callbacks/resend-all?flt_state=delivered").text
    confirm("flt_state=delivered&flt_merchant=demo")
    due.callbacks()
    assert sent(shop) == [order_no, order_no]


def test_only_what_was_shown_and_has_not_changed_since_is_resent(api, shop, due, flask, flask_json, failed, confirm):
    resent_by_another = flask_json("callback", "list", "--state", "dead", "--limit", "1")[0]["id"]

    def meanwhile():
        flask("callback", "redeliver", resent_by_another)
        due.callbacks()
        shop.answers(410)
        completed(api)
        due.callbacks()
        shop.answers(200)
        shop.got.clear()

    shown = confirm("flt_state=dead", meanwhile)
    assert "5 callbacks will be resent. 1 callback changed meanwhile and was not resent." in shown.text
    assert len(shown.rows) == 1, "the one that failed meanwhile"
    assert (
        "No callbacks to resend."
        in confirm("flt_state=dead", lambda: flask("callback", "redeliver", "--state", "dead")).text
    )


def test_selected_callbacks_are_resent_whatever_their_state(page, send, api, shop, due, failed):
    shown = page("callbacks/?flt_state=dead")
    box, other_box = re.findall(r'<input type="checkbox" name="webhook_id" value="([^"]+)"', shown.html)[:2]
    asked = page(f"callbacks/resend?flt_state=dead&webhook_id={box}&webhook_id={other_box}")
    assert "Resend 2 callbacks" in asked.text
    ids = re.search(r'name="dead" value="([^"]*)"', asked.html)[1]
    answer = send(asked.sends["Resend 2 callbacks"].removeprefix("/console/"), dead=ids)
    assert answer.location == "/console/callbacks/?flt_state=dead"
    due.callbacks()
    assert sorted(each.webhook_id for each in shop.got) == sorted([box, other_box])
    page("callbacks/resend", status=302)
    assert "Select at least one callback." in page("callbacks/").text


def test_a_redelivery_takes_a_limited_number_and_says_that_more_are_left(page, failed, confirm, monkeypatch):
    monkeypatch.setattr(redelivery, "MOST", 4)
    monkeypatch.setattr(redelivery, "AT_ONCE", 3)
    assert "Resend the oldest 4" in page("callbacks/").links
    assert "More callbacks match than can be resent at once, which is 4." in page("callbacks/resend-all").text
    assert "Resend all 2" in confirm("").links
    assert "Resend all" not in confirm("").text


def test_callbacks_without_an_address_are_named_on_the_confirmation_page(page, failed, flask):
    flask("merchant", "set", "demo", "--callback-url", "")
    text = page("callbacks/resend-all?flt_state=dead").text
    assert "6 callbacks: demo has no callback URL. Set one first." in text
    assert "No callbacks to resend." in text


def test_viewers_cannot_resend_and_an_odd_form_resends_nothing(page, viewer, send, failed):
    assert "Resend" not in page("callbacks/", client=viewer).text
    for path in ("callbacks/resend-all", "callbacks/resend?webhook_id=x"):
        page(path, client=viewer, status=403)
    assert send("callbacks/resend", client=viewer, dead="1").status_code == 403
    for odd in ("", "x", "1,2", "-1", "9" * 30, "9" * 19, "0", "1.2"):
        assert send("callbacks/resend", delivered=odd).status_code == 303, odd
    assert "Resend all 6" in page("callbacks/?flt_state=dead").links
    assert page("callbacks/resend?webhook_id=msg_1").text.count("No callbacks to resend.") == 1
