"""`tillbook order`: the operator's view of orders, and the operator's decisions, also about their exceptions."""

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


def test_the_list_is_filtered(flask_json, api, other):
    api.buy(merchant_order_no="buy")
    api.sell(merchant_order_no="sell")
    api.play(api.buy(merchant_order_no="paid").data["order_no"], "success")
    other.buy(merchant_order_no="other")
    found = {
        (): {"buy", "sell", "paid", "other"},
        ("--type", "sell"): {"sell"},
        ("--type", "buy", "--merchant", "demo"): {"buy", "paid"},
        ("--status", "completed"): {"paid"},
        ("--merchant", "other"): {"other"},
        ("--exceptions",): set(),
        ("--limit", "1"): {"other"},
    }
    for filters, numbers in found.items():
        assert {row["merchant_order_no"] for row in flask_json("order", "list", *filters)} == numbers, filters


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


def test_a_withdrawal_is_approved_and_paid_once(flask, refuses, withdrawal, balances, api):
    assert "confirmed" in flask("order", "accept", withdrawal).output
    assert "Only a withdrawal that needs review" in refuses("order", "accept", withdrawal)
    assert (api.status(withdrawal), balances()) == ("confirmed", (1_000_000 - 5_015, 5_015))
    assert "completed" in flask("order", "paid", withdrawal, "--reference", "BANK-1").output
    assert "already recorded" in flask("order", "paid", withdrawal, "--reference", "BANK-1").output
    assert (api.status(withdrawal), balances()) == ("completed", (1_000_000 - 5_015, 0))


def test_a_manual_deposit_is_credited_once(flask, deposit, balances, api):
    assert "completed" in flask("order", "paid", deposit, "--reference", "BANK-1").output
    assert "already recorded" in flask("order", "paid", deposit, "--reference", "BANK-1").output
    assert (api.status(deposit), balances()) == ("completed", (1_000_000 + 10_000 - FEE, 0))


@pytest.mark.parametrize(("channel", "is_approved"), [(MANUAL, False), (MANUAL, True), (2, True)])
def test_a_rejection_returns_the_reserve_and_is_in_the_history_with_its_reason(
    api, flask, order_details, balances, channel, is_approved
):
    order_no = api.sell("50.00", channel=channel).data["order_no"]
    assert balances() != (1_000_000, 0)
    if is_approved:  # and not sent yet
        flask("order", "accept", order_no)
    flask("order", "reject", order_no, "--reason", "wrong card 卡号")
    assert balances() == (1_000_000, 0)
    last = order_details(order_no)["history"][-1]
    assert (last["to"], last["who"], last["why"]) == ("cancelled", "operator", "wrong card 卡号")


def test_an_approved_withdrawal_that_a_channel_may_have_paid_cannot_be_rejected(flask, refuses, api, due):
    order_no = api.sell("50.00", channel=2).data["order_no"]
    flask("order", "accept", order_no)
    due.orders()
    assert "The service is processing" in refuses("order", "reject", order_no, "--reason", "late")
    assert api.status(order_no) == "confirmed"


def test_an_action_that_does_not_fit_the_order_is_refused(api, deposit, withdrawal, refuses, rows):
    at_channel = api.buy(channel=2).data["order_no"]
    before = rows()
    for command, order_no, more, words in (
        ("accept", deposit, (), "Only a withdrawal"),
        ("reject", deposit, ("--reason", "x"), "Only a withdrawal"),
        ("reject", withdrawal, (), "--reason"),
        ("paid", withdrawal, (), "Approve the withdrawal first"),
        ("settle", deposit, ("--refund",), "no such open exception"),
        ("paid", at_channel, (), "reports payments itself"),
        *(("paid", deposit, ("--amount", amount), "--amount") for amount in ("-5", "-0.01", "1.005", "abc", "1e99")),
        *((command, "123", (), "no order 123") for command in ("show", "accept", "paid")),
        ("reject", "123", ("--reason", "x"), "no order 123"),
        ("settle", "123", ("--credit",), "no order 123"),
    ):
        assert words in refuses("order", command, order_no, *more), (command, more)
    assert rows() == before


# Exceptions


SENT_BACK = ("--refund", "--reference", "BACK-1")


@pytest.mark.parametrize(("how", "credited"), [(("--credit",), 4_000 - 24), (SENT_BACK, 0)])
def test_a_wrong_amount_credits_nothing_until_it_is_resolved_once(
    flask, flask_json, refuses, deposit, balances, how, credited
):
    assert "wrong_amount" in flask("order", "paid", deposit, "--amount", "40").output
    (row,) = flask_json("order", "list", "--exceptions")
    assert (row["order_no"], row["status"], row["exceptions"]) == (deposit, "pending", "wrong_amount")
    unclear = [(), ("--credit", "--refund"), ("--complete",), ("--cancel",), ("--credit", "--exception", "99")]
    for impossible in unclear:
        refuses("order", "settle", deposit, *impossible)
    assert (flask_json("order", "list", "--exceptions"), balances()) == ([row], (1_000_000, 0))
    flask("order", "settle", deposit, *how)
    assert balances() == (1_000_000 + credited, 0)
    assert flask_json("order", "list", "--exceptions") == []
    assert flask_json("order", "show", deposit)["status"] == "cancelled"
    assert "no such open exception" in refuses("order", "settle", deposit, *how)
    assert balances() == (1_000_000 + credited, 0)


def test_one_of_several_exceptions_is_named(flask, order_details, refuses, deposit, balances, open_exceptions):
    for amount, reference in (("40", "BANK-1"), ("60", "BANK-2")):
        flask("order", "paid", deposit, "--amount", amount, "--reference", reference)
    assert "choose one with --exception" in refuses("order", "settle", deposit, "--refund")
    second = order_details(deposit)["exceptions"][1]["id"]
    flask("order", "settle", deposit, "--credit", "--exception", second)
    assert open_exceptions(deposit) == [("wrong_amount", "40.00")]
    assert balances() == (1_000_000 + 6_000 - 36, 0)


def test_a_second_payment_without_a_reference_must_be_named(flask, refuses, deposit, open_exceptions):
    flask("order", "paid", deposit, "--amount", "40")
    assert "--reference" in refuses("order", "paid", deposit, "--amount", "60")
    flask("order", "settle", deposit, "--refund", "--reference", "BACK-1")
    assert "--reference" in refuses("order", "paid", deposit)
    flask("order", "paid", deposit, "--reference", "BANK-2")  # the order has ended
    flask("order", "paid", deposit, "--amount", "60", "--reference", "BANK-3")
    assert open_exceptions(deposit) == [("late_payment", "100.00"), ("late_payment", "60.00")]


def test_after_a_payment_with_a_reference_the_next_needs_none(flask, deposit, open_exceptions):
    flask("order", "paid", deposit, "--amount", "40", "--reference", "BANK-1")
    flask("order", "settle", deposit, "--refund", "--reference", "BACK-1")
    flask("order", "paid", deposit)
    assert open_exceptions(deposit) == [("late_payment", "100.00")]


def test_a_payout_of_a_wrong_amount_is_completed_or_cancelled_by_the_operator(flask, withdrawal, balances, api):
    flask("order", "accept", withdrawal)
    assert "payout_conflict" in flask("order", "paid", withdrawal, "--amount", "49").output
    assert balances() == (1_000_000 - 5_015, 5_015)
    flask("order", "settle", withdrawal, "--cancel")
    assert (api.status(withdrawal), balances()) == ("cancelled", (1_000_000, 0))
