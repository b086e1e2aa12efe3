"""Moving the demo's clock ahead: due work happens in its order, and signed calls continue to work."""

import json
from itertools import pairwise
from urllib.parse import urlencode

import pytest

from app import create_app
from models.db.base import database
from runtime import clock
from tests.databases import settings_of
from tests.support import DemoService, completed, through_flask, until

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
DAY = 86_400


@pytest.fixture(autouse=True)
def _the_machines_time_again():
    yield
    clock.put_ahead(0)


def post(service, path, **fields):
    return service.api.send("POST", f"/sandbox/{path}", urlencode(fields).encode(), FORM)


def seen(service, order_no):
    return service.api.send("GET", f"/sandbox/orders/{order_no}").data


def test_deposits_are_checked_expire_and_are_paid_at_their_time_and_signed_calls_continue(service):
    first = service.api.buy().data
    moved = post(service, "clock", to="next").data
    (event,) = moved["events"]
    assert (event["event"], event["order_no"]) == ("check", first["order_no"]), "although it changed nothing"
    assert post(service, "clock", seconds=890 - moved["ahead"]).data["done"]
    assert service.api.status(first["order_no"]) == "pending"
    moved = post(service, "clock", seconds=15).data
    assert (moved["done"], moved["ahead"]) == (True, 905)
    assert service.api.status(first["order_no"]) == "cancelled"
    (arrived,) = service.api.send("GET", f"/sandbox/inbox.json?order_no={first['order_no']}").data["list"]
    assert arrived["verified"]  # by the machine's clock, as at a merchant's server

    second = service.api.detail(order_no=service.api.buy().data["order_no"]).data
    order_no = second["order_no"]
    assert second["createtime"] - service.api.detail(order_no=first["order_no"]).data["createtime"] >= 905
    service.api.send("POST", "/sandbox/pay", f"order_no={order_no}&outcome=success&after=300".encode(), FORM)
    post(service, "clock", seconds=200)
    assert service.api.status(order_no) == "pending"
    assert order_no in service.api.send("GET", "/sandbox").text
    post(service, "clock", seconds=101)
    assert service.api.status(order_no) == "completed"


def test_a_move_to_the_next_due_time_suffices_for_a_withdrawal(service):
    order_no = service.api.sell("10.00").data["order_no"]
    assert post(service, "accept", order_no=order_no).data["status"] == "confirmed"
    did = []
    for _ in range(4):
        if service.api.status(order_no) == "completed":
            break
        moved = post(service, "clock", to="next").data
        assert moved["done"]
        assert moved["before"] <= moved["now"]
        did += moved["events"]
    assert service.api.status(order_no) == "completed"
    last = [event for event in did if event["event"] == "status"][-1]
    assert (last["order_no"], last["after"]) == (order_no, "completed")
    assert post(service, "accept", order_no=order_no).code == 42200


def test_moves_report_the_attempts_of_a_callback_and_one_long_move_makes_all_of_them(service):
    post(service, "inbox/answers", answer="500", times=2)
    order_no = completed(service.api)
    until(lambda: seen(service, order_no)["callbacks"]["order.completed"]["attempts"] == 1)
    tried = {"event": "callback", "order_no": order_no, "type": "order.completed"}
    for status in (500, 200):
        moved = post(service, "clock", to="callback").data
        assert [{**event, "at": 0} for event in moved["events"]] == [{**tried, "status": status, "at": 0}]
    refused = post(service, "clock", to="callback")
    assert (refused.code, refused.json["msg"]) == (42200, "invalid fields: no callback is due")

    post(service, "inbox/answers", answer="500")
    order_no = completed(service.api)
    assert post(service, "clock", seconds=2 * DAY).data["done"]
    callback = seen(service, order_no)["callbacks"]["order.completed"]
    assert (callback["state"], callback["attempts"]) == ("dead", 8)
    shown = json.loads(service.flask("callback", "show", callback["id"], "--json").stdout)
    pauses = [after["at"] - before["at"] for before, after in pairwise(shown["tries"])]
    for pause, wanted in zip(pauses, (5, 300, 1_800, 7_200, 18_000, 36_000, 36_000), strict=True):
        assert wanted * 0.9 - 1 <= pause <= wanted * 1.1 + 3


@pytest.mark.usefixtures("slow")
def test_the_offset_survives_a_restart_and_applies_to_commands(instance):
    running = DemoService(instance).start()
    post(running, "clock", seconds=10 * DAY)
    running.stop()
    running.start()
    try:
        assert running.api.send("GET", "/sandbox/clock").data["ahead"] == 10 * DAY
        order_no = running.api.sell("10.00").data["order_no"]
        del running.environ["ORDERS_DEMO"]
        running.flask("order", "accept", order_no)
        until(lambda: running.api.status(order_no) == "completed")
        history = json.loads(running.flask("order", "show", order_no, "--json").stdout)["history"]
        assert history[1]["at"] >= history[0]["at"]
    finally:
        running.stop()


@pytest.fixture
def real(tmp_path, http):
    """The folder of another database, with the records of this demo, whose clock is a minute ahead."""
    assert http("POST", "/sandbox/clock", b"seconds=60", FORM).data["ahead"] == 60
    folder = tmp_path / "real"
    folder.mkdir()
    (folder / "sandbox.sqlite").write_bytes((tmp_path / "instance" / "sandbox.sqlite").read_bytes())
    yield folder
    database.close()


def test_outside_the_demo_no_clock_is_moved(real, instance):
    app = create_app(settings_of(real))
    assert clock.ahead() == 0
    assert through_flask(app.test_client())("POST", "/sandbox/clock", b"seconds=60", FORM).code == 40404
    database.close()
    create_app(settings_of(instance, demo=True))
    assert clock.ahead() == 60


def test_the_time_of_a_database_with_real_merchants_is_the_machines_whatever_the_settings(real):
    app = create_app(settings_of(real))
    assert app.test_cli_runner().invoke(args=["merchant", "add", "real", "--name", "Real Shop"]).exit_code == 0
    database.close()
    create_app(settings_of(real, demo=True))
    assert clock.ahead() == 0


def test_unreadable_records_do_not_prevent_a_start(any_database, tmp_path, caplog):
    folder = tmp_path / "real"
    folder.mkdir()
    (folder / "sandbox.sqlite").write_bytes(b"no database" * 100)
    create_app(settings_of(folder))
    assert "sandbox.sqlite cannot be read" in caplog.text
    assert clock.ahead() == 0
    database.close()


@pytest.mark.parametrize(
    "form", [b"", b"seconds=-1", b"seconds=x", b"to=noon", b"seconds=1&to=next", b"seconds=99999999"]
)
def test_an_invalid_move_is_refused(http, form):
    assert http("POST", "/sandbox/clock", form, FORM).code == 42200
    assert clock.ahead() == 0


def test_the_clock_can_be_ten_years_ahead_at_most(http):
    codes = [http("POST", "/sandbox/clock", b"seconds=31622400", FORM).code for _ in range(11)]
    assert codes == [1] * 10 + [42200]


def test_without_due_work_a_move_to_the_next_is_refused(http):
    answer = http("POST", "/sandbox/clock", b"to=next", FORM)
    assert (answer.code, answer.json["msg"], answer.data) == (42200, "invalid fields: Nothing is scheduled.", None)
