"""`tillbook order`: the operator's view of orders, and the operator's decisions."""

import pytest

MANUAL = 3
FEE = 60  # fen that the merchant `demo` pays on a deposit of 100 yuan


def test_the_list_is_newest_first_and_describes_each_order(flask_json, api, ahead):
    first = api.buy("12.50", channel=2, merchant_order_no="A-1").data
    ahead(1)
    second = api.sell("1.00", channel=MANUAL).data
    rows = flask_json("order", "list")
    assert [row["order_no"] for row in rows] == [second["order_no"], first["order_no"]]
    assert rows[1] == {
        "order_no": first["order_no"],
        "merchant": "demo",
        "channel": 2,
        "type": "buy",
        "status": "pending",
        "cny_amount": "12.50",
        "merchant_order_no": "A-1",
        "createtime": first["createtime"],
        "exceptions": "",
    }


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ((), {"buy", "sell", "paid", "other"}),
        (("--type", "sell"), {"sell"}),
        (("--type", "buy", "--merchant", "demo"), {"buy", "paid"}),
        (("--status", "completed"), {"paid"}),
        (("--merchant", "other"), {"other"}),
        (("--exceptions",), set()),
        (("--limit", "1"), {"other"}),
    ],
)
def test_the_list_is_filtered(flask_json, api, other, filters, found):
    api.buy(merchant_order_no="buy")
    api.sell(merchant_order_no="sell")
    api.play(api.buy(merchant_order_no="paid").data["order_no"], "success")
    other.buy(merchant_order_no="other")
    assert {row["merchant_order_no"] for row in flask_json("order", "list", *filters)} == found


def test_show_prints_the_whole_history(flask, flask_json, api):
    order_no = api.buy("100.00", merchant_order_no="A-1", customer_name="李四").data["order_no"]
    api.play(order_no, "success")
    order_details = flask_json("order", "show", order_no)
    assert [(line["from"], line["to"]) for line in order_details["history"]] == [
        ("", "pending"),
        ("pending", "paid"),
        ("paid", "confirmed"),
        ("confirmed", "completed"),
    ]
    assert {line["yuan"] for line in order_details["ledger"]} == {"99.40", "0.60", "-100.00"}
    assert [event["type"] for event in order_details["callbacks"]] == ["order.completed"]
    told = flask("order", "show", order_no).output
    assert all(text in told for text in (order_no, "A-1", "confirmed", "credit", "order.completed"))


def test_an_approved_withdrawal_is_confirmed_once(flask, refuses, api, withdrawal):
    assert "confirmed" in flask("order", "accept", withdrawal).output
    assert "Only a withdrawal that needs review" in refuses("order", "accept", withdrawal)
    assert api.status(withdrawal) == "confirmed"


def test_a_rejection_returns_the_reserve_and_is_in_the_history_with_its_reason(flask, flask_json, withdrawal, balances):
    assert balances() == (1_000_000 - 5_015, 5_015)
    flask("order", "reject", withdrawal, "--reason", "wrong card 卡号")
    assert balances() == (1_000_000, 0)
    last = flask_json("order", "show", withdrawal)["history"][-1]
    assert (last["to"], last["who"], last["why"]) == ("cancelled", "operator", "wrong card 卡号")


def test_an_approved_manual_withdrawal_can_still_be_rejected(flask, withdrawal, balances):
    flask("order", "accept", withdrawal)
    flask("order", "reject", withdrawal, "--reason", "the bank is closed")
    assert balances() == (1_000_000, 0)


def test_an_approved_withdrawal_that_a_channel_may_have_paid_cannot_be_rejected(flask, refuses, api, due):
    order_no = api.sell("50.00", channel=2).data["order_no"]
    flask("order", "accept", order_no)
    due.orders()
    assert "The service is processing" in refuses("order", "reject", order_no, "--reason", "late")
    assert api.status(order_no) == "confirmed"


def test_an_approved_withdrawal_that_was_not_sent_yet_can_be_rejected(flask, api, balances):
    order_no = api.sell("50.00", channel=2).data["order_no"]
    flask("order", "accept", order_no)
    flask("order", "reject", order_no, "--reason", "changed my mind")
    assert (api.status(order_no), balances()) == ("cancelled", (1_000_000, 0))


def test_a_manual_withdrawal_is_spent_once(flask, withdrawal, balances, api):
    flask("order", "accept", withdrawal)
    assert "completed" in flask("order", "paid", withdrawal, "--reference", "BANK-1").output
    assert "already recorded" in flask("order", "paid", withdrawal, "--reference", "BANK-1").output
    assert (api.status(withdrawal), balances()) == ("completed", (1_000_000 - 5_015, 0))


def test_a_manual_deposit_is_credited_once(flask, deposit, balances, api):
    assert "completed" in flask("order", "paid", deposit, "--reference", "BANK-1").output
    assert "already recorded" in flask("order", "paid", deposit, "--reference", "BANK-1").output
    assert (api.status(deposit), balances()) == ("completed", (1_000_000 + 10_000 - FEE, 0))


@pytest.mark.parametrize(
    ("command", "kind", "words"),
    [
        (("accept",), "deposit", "Only a withdrawal"),
        (("reject", "--reason", "x"), "deposit", "Only a withdrawal"),
        (("reject",), "withdrawal", "--reason"),
        (("paid",), "withdrawal", "Approve the withdrawal first"),
        (("settle", "--refund"), "deposit", "no such open exception"),
    ],
)
def test_an_action_that_does_not_fit_the_order_is_refused(request, refuses, flask_json, command, kind, words):
    order_no = request.getfixturevalue(kind)
    before = flask_json("order", "show", order_no)
    assert words in refuses("order", command[0], order_no, *command[1:])
    assert flask_json("order", "show", order_no) == before


def test_for_a_channel_that_reports_payments_an_operators_confirmation_is_refused(refuses, api):
    order_no = api.buy(channel=2).data["order_no"]
    assert "reports payments itself" in refuses("order", "paid", order_no)
    assert api.status(order_no) == "pending"


@pytest.mark.parametrize(
    "command", [("show",), ("accept",), ("reject", "--reason", "x"), ("paid",), ("settle", "--credit")]
)
def test_an_unknown_order_is_refused(refuses, command):
    assert "no order 123" in refuses("order", command[0], "123", *command[1:])
