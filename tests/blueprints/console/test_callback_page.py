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


def test_the_page_shows_the_callback_and_every_attempt(desk, shop, webhook_id, flask_json, due, ahead):
    shop.answers(500, "not now")
    seen = desk.see(f"callback/{webhook_id}")
    order_no = flask_json("callback", "show", webhook_id)["order_no"]
    for text in ("order.completed", "Delivered", order_no, shop.url, "webhook-signature", "generated when sent"):
        assert text in seen.text
    assert "thank you" in seen.text
    assert '"type": "order.completed"' in seen.text
    desk.send(seen.actions[next(iter(seen.actions))])
    due.callbacks()
    again = desk.see(f"callback/{webhook_id}").text
    assert "500" in again
    assert "not now" in again
    assert "Waiting" in again


def test_a_redirect_is_named_with_its_target_and_what_to_do(desk, api, shop, flask_json, due):
    shop.answers(302, headers={"Location": "/hook/"})
    completed(api)
    due.callbacks()
    (row,) = flask_json("callback", "list")
    seen = desk.see(f"callback/{row['id']}").text
    host = shop.url.removesuffix("/demo")
    assert f"The server redirects to {host}/hook/. Redirects are not followed: enter the final address." in seen
    assert "HTTP 302: redirect, not followed" in desk.see("callbacks/").text


def test_it_is_redelivered_with_the_same_id(desk, shop, webhook_id, due):
    seen = desk.see(f"callback/{webhook_id}")
    (form,) = seen.actions.values()
    assert desk.send(form) == ("good", "1 callback queued for redelivery.")
    due.callbacks()
    assert [received.webhook_id for received in shop.got] == [webhook_id, webhook_id]
    assert "redelivered callback" in desk.see(f"callback/{webhook_id}").text


def test_an_outdated_page_is_refused(desk, shop, webhook_id, due):
    (form,) = desk.see(f"callback/{webhook_id}").actions.values()
    desk.send(form)
    category, text = desk.send(form)
    assert category == "bad"
    assert "Reload and try again" in text


def test_the_values_in_the_address_are_masked(desk, api, flask, flask_json, due):
    flask("merchant", "set", "demo", "--callback-url", "http://127.0.0.1:1/hook?token=sesame&shop=open")
    completed(api)
    due.callbacks()
    (row,) = flask_json("callback", "list")
    seen = desk.see(f"callback/{row['id']}")
    assert "http://127.0.0.1:1/hook?token=***&shop=***" in seen.text
    assert "no response" in seen.text
    assert "sesame" not in seen.html


def test_the_response_of_the_merchants_server_is_escaped(desk, shop, webhook_id, due):
    shop.answers(500, SCRIPT)
    seen = desk.see(f"callback/{webhook_id}")
    desk.send(next(iter(seen.actions.values())))
    due.callbacks()
    again = desk.see(f"callback/{webhook_id}")
    assert SCRIPT in again.text
    assert SCRIPT not in again.html


def test_a_viewer_sees_it_and_cannot_redeliver(desk, viewer, webhook_id, page, rows):
    assert "order.completed" in page(f"callback/{webhook_id}", client=viewer).text
    form = next(iter(desk.see(f"callback/{webhook_id}").actions.values()))
    form["csrf_token"] = page(client=viewer).fields["csrf_token"]
    before = rows()
    assert viewer.post(form.url, data=form).status_code == 403
    assert rows() == before


def test_an_unknown_callback_is_not_found(console):
    assert console.get("/console/callback/msg_1").status_code == 404
