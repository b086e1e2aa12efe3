"""Safe retry of createOrder while the first request is running, or after it failed."""

import threading
from collections import Counter

import pytest

from gateways.sandbox.driver import SandboxDriver
from models.db.base import database
from models.tables.order import Order
from tests.blueprints.api.test_idempotency import KEY, is_replay
from tests.support import Api, through_flask


class Crash(BaseException):
    """Ends the process."""


def test_while_the_first_request_runs_a_retry_is_40902(app, api, monkeypatch):
    reached, go_on, answers = threading.Event(), threading.Event(), []
    really_open = SandboxDriver.open_payment

    def slow(driver, payment):
        reached.set()
        assert go_on.wait(20)
        return really_open(driver, payment)

    def first():
        answers.append(Api(through_flask(app.test_client())).buy(headers=KEY))
        database.close()

    monkeypatch.setattr(SandboxDriver, "opens_locally", False)  # as a driver that calls an upstream over a network
    monkeypatch.setattr(SandboxDriver, "open_payment", slow)
    running = threading.Thread(target=first)
    running.start()
    assert reached.wait(20)
    refused = api.buy(headers=KEY)
    other_payload = api.buy("2.00", headers=KEY)
    go_on.set()
    running.join()
    assert (refused.status, refused.code, refused.data) == (409, 40902, None)
    assert other_payload.code == 42201
    assert api.buy(headers=KEY).text == answers[0].text


def test_many_at_once_create_one_order(app, api):
    answers, together = [], threading.Barrier(8)

    def place():
        own = Api(through_flask(app.test_client()))
        together.wait(20)
        answers.append(own.sell("1.00", headers=KEY))
        database.close()

    threads = [threading.Thread(target=place) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(Counter(answer.code for answer in answers)) <= {1, 40902}
    assert len({answer.data["order_no"] for answer in answers if answer.code == 1}) == 1
    assert Order.select().count() == 1


def test_after_a_crash_before_the_response_a_retry_finds_the_one_order(api, ahead, monkeypatch):
    def die(driver, payment):
        raise Crash

    with monkeypatch.context() as broken:
        broken.setattr(SandboxDriver, "opens_locally", False)
        broken.setattr(SandboxDriver, "open_payment", die)
        with pytest.raises(Crash):
            api.buy(merchant_order_no="A-1", headers=KEY)
    assert api.buy(merchant_order_no="A-1", headers=KEY).code == 40902  # it may still be running
    ahead(120)
    again = api.buy(merchant_order_no="A-1", headers=KEY)
    assert (again.code, is_replay(again)) == (1, True)
    assert api.listed(merchant_order_no="A-1").data["total"] == 1
    api.play(again.data["order_no"], "success")
    assert api.status(again.data["order_no"]) == "completed"


def test_a_key_is_kept_after_the_process_was_killed(service):
    first = service.api.sell("50.00", headers=KEY)
    service.kill()
    service.start()
    again = service.api.sell("50.00", headers=KEY)
    assert (is_replay(again), again.text) == (True, first.text)
    assert service.api.sell("51.00", headers=KEY).code == 42201
    assert service.api.listed().data["total"] == 1
