"""Notices and returns of orders whose host was removed from the account's list since."""

import pytest

from tests.pages import BACK


@pytest.fixture
def paid(shop, api):
    """`paid()`: the number of an order that the payer paid; its notice is due."""

    def pay(**changed):
        number = shop.mapi(**changed)["trade_no"]
        api.play(number, "success")
        return number

    return pay


@pytest.fixture
def remove(flask):
    """`remove()`: the operator replaces all hosts."""
    return lambda: flask("epay", "set", "demo", "--host", "elsewhere.example")


@pytest.fixture
def notice(flask_json):
    """`notice()`: the number and the state of the only notice."""

    def listed():
        (row,) = flask_json("callback", "list", "--merchant", "demo")
        return row["id"], row["state"]

    return listed


def test_nothing_is_sent_to_a_host_that_was_removed_until_it_is_allowed_again(
    paid, shop, due, remove, flask, ahead, notice, http, web_server
):
    number = paid()
    remove()
    due()
    assert web_server.log == []
    webhook_id, state = notice()
    assert state == "pending"
    assert "host of notify_url is not in the list of allowed hosts" in flask("callback", "show", webhook_id).output
    assert "127.0.0.1/back" not in http("GET", f"{BACK}?order_no={number}").headers.get("Location", "")
    flask("epay", "set", "demo", "--host", "LOCALHOST.", "--host", "127.0.0.1")  # in another form
    ahead(6)
    due()
    (received,) = shop.notices
    assert shop.is_ours(received)


def test_a_new_key_signs_nothing_for_an_old_host(paid, shop, due, remove, flask, ahead, web_server):
    shop.answers = ["not yet"]
    paid()
    due()
    flask("epay", "rotate", "demo", "--keep-hours", "0")
    remove()
    ahead(6)
    due()
    assert len(web_server.log) == 1


def test_a_failed_notice_is_sent_again_once_the_host_is_allowed(paid, shop, due, remove, flask, refuses, ahead, notice):
    paid()
    remove()
    for _ in range(8):
        due()
        ahead(11 * 3600)
    webhook_id, state = notice()
    assert state == "dead"
    why = "The host of notify_url is not in the list of allowed hosts. Allow it first: tillbook epay set demo --host"
    assert why in refuses("callback", "redeliver", webhook_id)
    flask("epay", "set", "demo", "--host", "localhost")
    flask("callback", "redeliver", webhook_id)
    due()
    assert shop.is_ours(shop.notices[0])
