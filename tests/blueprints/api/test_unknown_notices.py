"""Notices about orders that the database does not have: genuine ones are listed, the others change nothing."""

import logging

import pytest

from models.db.base import database
from models.tables import unknown_notice
from services.channels import unknown_notices
from tests.support import sandbox_notice

LOST = "202611230000000000000001"


@pytest.fixture
def settings_of_app():
    return {"trusted_proxies": 1}


@pytest.fixture
def listed(flask_json):
    """`listed()`: the command's list, without times."""
    return lambda: [{n: v for n, v in row.items() if n != "at"} for row in flask_json("order", "unknown")]


@pytest.fixture
def counted(http):
    """`counted("verified")`: the counter of this result in the metrics."""

    def read(result):
        name = f'orders_unknown_notices_total{{result="{result}"}} '
        lines = [line for line in http("GET", "/metrics").text.splitlines() if line.startswith(name)]
        return float(lines[0].removeprefix(name)) if lines else 0

    return read


def test_a_genuine_notice_is_logged_and_listed_once_and_gets_a_failure_response(api, listed, caplog, flask, counted):
    with caplog.at_level(logging.WARNING):
        assert api.notice(LOST, 12_300, reference="R-7").code == 40401
    expected = {"channel": 1, "order_no": LOST, "state": "paid", "amount": "123.00", "reference": "R-7"}
    assert listed() == [expected]
    assert LOST in flask("order", "unknown").stdout
    assert LOST in caplog.text
    assert counted("verified") == 1
    for _ in range(2):
        api.notice(LOST, 12_300, reference="R-7")
    api.notice(LOST, 500, reference="R-2")
    assert [row["amount"] for row in listed()] == ["5.00", "123.00"]


def test_a_notice_that_is_forged_or_sent_to_another_address_is_not_listed(api, http, listed, counted, nothing_changes):
    assert api.notice(LOST, 12_300, secret="wrong").code == 40401
    assert counted("refused") == 1
    assert api.notice(LOST, 12_300, to="202611230000000000000002").code == 40401
    for path in ("1", "x" * 24, LOST + "0", "%E4%BD%A0"):  # no order number
        body, headers = sandbox_notice(path, 100)
        assert http("POST", f"/addons/paychannel/notify/{path}", body, headers).code == 40401
    assert listed() == []


def test_a_disabled_channels_notice_is_rejected(api, flask, listed, flask_json):
    for row in flask_json("channel", "list"):
        flask("channel", "set", row["id"], "--disabled")
    assert api.notice(LOST, 100).code == 40401
    assert listed() == []


def test_a_notice_whose_order_was_restored_is_not_listed(api, listed):
    order_no = api.buy().data["order_no"]
    database.execute_sql(
        "INSERT INTO unknown_notice (channel_id, order_no, state, amount, reference, at) "
        f"VALUES (1, '{order_no}', 'paid', 100, 'R', 1)"
    )
    assert listed() == []


def test_only_the_newest_are_kept(api, listed, monkeypatch):
    monkeypatch.setattr(unknown_notice, "KEPT", 3)
    for number in range(5):
        api.notice(LOST, 100 + number, reference=f"R-{number}")
    assert [row["reference"] for row in listed()] == ["R-4", "R-3", "R-2"]


@pytest.fixture
def send(http):
    """`send(number, address)`: the response to a genuine notice about a lost order from this address."""

    def notice(number, address):
        order_no = str(int(LOST) + number)
        body, headers = sandbox_notice(order_no, 100)
        path = f"/addons/paychannel/notify/{order_no}"
        return http("POST", path, body, {**headers, "X-Forwarded-For": address}).code

    return notice


def test_verified_notices_of_one_address_are_limited(send, listed, counted, clock):
    codes = {send(number, "203.0.113.5") for number in range(unknown_notices.PER_ADDRESS + 5)}
    assert codes == {40401}
    assert send(900, "203.0.113.6") == 40401
    assert len(listed()) == unknown_notices.PER_ADDRESS + 1
    assert counted("limited") == 5


def test_verified_notices_of_all_addresses_are_limited(send, monkeypatch, listed, clock):
    monkeypatch.setattr(unknown_notices, "TOGETHER", 4)
    unknown_notices._rates.forget()
    for number in range(6):
        send(number, f"203.0.113.{number}")
    assert len(listed()) == 4
