"""Every published client, unchanged, against the running service."""

import json

import pytest
from werkzeug import Response

from tests.clients.languages import LANGUAGES
from tests.support import free_port

pytestmark = pytest.mark.parametrize("language", LANGUAGES)


def answers(done):
    """The responses that a client printed, one in each line."""
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def test_it_creates_a_deposit_and_queries_it(language, client, live):
    created, found = answers(client.run(client.language.order, MERCHANT_URL=live.url))
    assert (created["code"], created["data"]["cny_amount"]) == (1, "100.00")
    assert found == live.api.detail(order_no=created["data"]["order_no"]).json
    assert found["data"]["merchant_order_no"] == created["data"]["merchant_order_no"] != ""


def test_it_shows_a_refusal_and_stops(language, client, live):
    settings = {"MERCHANT_URL": live.url, "MERCHANT_SECRET": "another"}
    (refused,) = answers(client.run(client.language.order, **settings))
    assert refused["code"] == 40102


def test_it_uses_the_merchant_of_the_environment(language, client, live):
    settings = {"MERCHANT_URL": live.url, "MERCHANT_KEY": "other", "MERCHANT_SECRET": "other-secret"}
    created, found = answers(client.run(client.language.order, **settings))
    assert found["data"]["order_no"] == created["data"]["order_no"]
    # It belongs to another merchant than `demo`.
    assert live.api.detail(order_no=created["data"]["order_no"]).code == 40401


@pytest.mark.parametrize("status", [302, 307])
def test_it_sends_its_signed_request_to_no_other_server(language, client, web_server, status):
    there = Response("", status, {"Location": web_server.url_for("/elsewhere")})
    web_server.expect_request("/merchant/createOrder").respond_with_response(there)
    web_server.expect_request("/elsewhere").respond_with_json({"code": 0, "msg": "from elsewhere", "data": None})
    done = client.run(client.language.order, MERCHANT_URL=web_server.url_for("").rstrip("/"))
    assert [request.path for request, _ in web_server.log] == ["/merchant/createOrder"]
    assert b"elsewhere" not in done.stdout


def test_it_fails_without_a_response(language, client):
    done = client.run(client.language.order, MERCHANT_URL=f"http://127.0.0.1:{free_port()}")
    assert done.returncode != 0
    assert done.stdout.decode().strip() == ""
    assert done.stderr
