"""The sandbox: the effect on a deposit of each outcome, chosen by `POST /sandbox/pay`."""

import pytest

START = 1_000_000
NOTHING, PAID = (START, 0), (START + 9_940, 0)
SANDBOX, MANUAL = 2, 3
FORM = {"Content-Type": "application/x-www-form-urlencoded"}

pytestmark = pytest.mark.usefixtures("demo")

# outcome; immediate status; status after enough status checks
OUTCOMES = [
    ("success", ("completed", PAID, ""), ("completed", PAID, "")),
    ("fail", ("cancelled", NOTHING, ""), ("cancelled", NOTHING, "")),
    ("silent", ("pending", NOTHING, ""), ("completed", PAID, "")),
    ("duplicate", ("completed", PAID, ""), ("completed", PAID, "")),
    ("late", ("cancelled", NOTHING, "late_payment"), ("cancelled", NOTHING, "late_payment")),
    ("wrong_amount", ("pending", NOTHING, "wrong_amount"), ("pending", NOTHING, "wrong_amount")),
    ("timeout", ("pending", NOTHING, ""), ("completed", PAID, "")),
]


@pytest.mark.parametrize(("outcome", "at_once", "finally_"), OUTCOMES)
def test_each_outcome_has_its_effect_on_a_deposit(api, later, balances, exceptions, outcome, at_once, finally_):
    order_no = api.buy().data["order_no"]
    played = api.play(order_no, outcome)
    assert (played.code, played.data) == (1, {"order_no": order_no, "outcome": outcome, "status": at_once[0]})
    assert (api.status(order_no), balances(), exceptions().get(order_no, "")) == at_once
    later(300, times=5)
    assert (api.status(order_no), balances(), exceptions().get(order_no, "")) == finally_


@pytest.mark.parametrize(
    ("first", "second", "result"),
    [
        ("success", "late", ("completed", PAID, "")),
        ("duplicate", "success", ("completed", PAID, "")),
        ("success", "fail", ("completed", PAID, "reversed")),
        ("fail", "success", ("cancelled", NOTHING, "late_payment")),
        ("silent", "late", ("completed", PAID, "")),  # money received before the expiry is found first
        ("timeout", "late", ("completed", PAID, "")),
    ],
)
def test_a_second_outcome_changes_no_payment(api, later, balances, exceptions, first, second, result):
    order_no = api.buy().data["order_no"]
    api.play(order_no, first)
    assert api.play(order_no, second).data["status"] == result[0]
    later(1_000)
    assert (api.status(order_no), balances(), exceptions().get(order_no, "")) == result


def test_a_browser_returns_to_the_payment_page(api):
    order_no = api.buy().data["order_no"]
    page = FORM | {"Accept": "text/html,application/xhtml+xml;q=0.9"}
    answer = api.send("POST", "/sandbox/pay", f"order_no={order_no}&outcome=success".encode(), page)
    assert (answer.status, api.status(order_no)) == (303, "completed")
    assert answer.headers["Location"].endswith(f"/addons/paychannel/pay/index?order_no={order_no}&played=success")


def test_an_unknown_outcome_is_refused(api):
    order_no = api.buy().data["order_no"]
    for outcome in ("", "SUCCESS", "paid", "success,fail"):
        refused = api.play(order_no, outcome)
        assert (refused.status, refused.code, list(refused.data)) == (422, 42200, ["outcome"])
    assert api.status(order_no) == "pending"


def test_an_order_of_another_driver_is_refused(api):
    manual = api.buy(channel=MANUAL).data["order_no"]
    refused = [api.play(order_no, "success").code for order_no in (manual, "1" * 24, "")]
    assert refused == [42200, 40401, 40401]
    assert api.status(manual) == "pending"


@pytest.mark.parametrize(("outcome", "at_once", "finally_"), OUTCOMES)
def test_each_outcome_has_its_effect_on_a_deposit_that_a_group_passed_on(
    api, flask, flask_json, later, balances, exceptions, outcome, at_once, finally_
):
    new = ("channel", "add", "--category", "gateway_b", "--driver")
    refusing = flask_json(*new, "sandbox", "--name", "Refusing", "--config", "open=refuse")["id"]
    accepting = flask_json(*new, "sandbox", "--name", "Accepting")["id"]
    group = flask_json(*new, "group", "--name", "Group")["id"]
    flask("channel", "link", group, "demo")
    for member in (refusing, accepting):
        flask("group", "add", group, member)
    order_no = api.buy(channel=group).data["order_no"]
    assert flask_json("order", "show", order_no)["channel"] == accepting
    api.play(order_no, outcome)
    assert (api.status(order_no), balances(), exceptions().get(order_no, "")) == at_once
    later(300, times=5)
    assert (api.status(order_no), balances(), exceptions().get(order_no, "")) == finally_
