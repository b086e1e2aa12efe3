"""A callback's page: its content, its address, every attempt, and redelivery."""

import pytest

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
    assert desk.send(form) == ("good", "1 callback queued for redelivery.")
    category, text = desk.send(form)
    assert (category, "Reload and try again" in text) == ("bad", True), "an outdated page"
    due.callbacks()
    assert [received.webhook_id for received in shop.got] == [webhook_id, webhook_id]
    again = desk.see(f"callback/{webhook_id}")
    assert [text for text in ("500", "Waiting", "redelivered callback", SCRIPT) if text not in again.text] == []
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
