"""Two applications in one process: each has its own settings, database, keys, limits and memory."""

from __future__ import annotations

import json
from contextvars import Context
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

import app
from models.tables.order import Order
from runtime import clock
from runtime.state import Runtime, current
from services.jobs import job_table
from services.sandbox import seeding
from services.security import vault
from tests.databases import disconnect, settings_of
from tests.support import Api, signed, through_flask, until


@pytest.fixture
def two(any_database: Any, tmp_path: Path) -> Any:
    """Two demos, with folders and databases of their own; the second allows one request a second."""
    made = []
    for name, limit in (("one", 1_000), ("two", 1)):
        made.append(app.create_app(settings_of(tmp_path / name, demo=True, requests_per_second=limit, verify_every=0)))
        seeding.seed_base()
    yield made
    for each in made:
        each.extensions["runtime"].enter()
        disconnect()


def _api(application: Flask) -> Api:
    return Api(through_flask(application.test_client()))


def _within(application: Flask) -> Runtime:
    application.extensions["runtime"].enter()
    return current()


def test_each_application_has_its_own_orders_nonces_limits_keys_and_metrics(two):
    one, other = two
    body = json.dumps(signed("getPayChannels", {})).encode()
    assert [_api(each).post("getPayChannels", body).code for each in (*two, one)] == [1, 1, 40104]
    line = 'orders_http_requests_total{code="40104",endpoint="getPayChannels",status="401"} 1.0'
    assert line in one.test_client().get("/metrics").text
    assert line not in other.test_client().get("/metrics").text
    order_no = _api(one).buy().data["order_no"]
    assert _api(one).detail(order_no=order_no).code == 1
    assert 42900 not in {_api(one).call("getPayChannels").code for _ in range(5)}
    until(lambda: _api(other).detail(order_no=order_no).code == 40401)
    assert 42900 in {_api(other).call("getPayChannels").code for _ in range(5)}

    tokens = []
    for each in two:
        _within(each)
        tokens.append(vault.encrypt("secret"))
    assert vault.decrypt(tokens[1]) == "secret"
    with pytest.raises(vault.VaultLocked):
        vault.decrypt(tokens[0])


def test_moving_the_clock_of_one_application_does_not_move_the_others(two):
    one, other = two
    before = clock.now()
    _within(one)
    clock.put_ahead(1_000)
    assert _within(other).ahead == 0
    assert clock.now() - before < 500
    _within(one)
    assert clock.now() - before >= 1_000


def test_the_jobs_of_one_application_work_on_its_own_orders_by_its_own_clock(two):
    one, other = two
    numbers = [_api(each).buy().data["order_no"] for each in two]
    stop = job_table.start(_within(one).settings)
    try:
        clock.put_ahead(86_400)
        _within(other)  # the newest one, which threads of the other must not use
        assert Order.get(Order.order_no == numbers[1]).status == "pending"
        _within(one)
        until(lambda: Order.get(Order.order_no == numbers[0]).status == "cancelled")
        _within(other)
        assert Order.get(Order.order_no == numbers[1]).status == "pending"
    finally:
        _within(one)
        stop()


def test_code_without_an_application_raises_an_error(monkeypatch):
    monkeypatch.setattr(Runtime, "_newest", None)
    with pytest.raises(LookupError, match="no application"):
        Context().run(current)
