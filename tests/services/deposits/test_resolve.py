"""Money that the rules can't settle: always visible, resolved once by an operator, never twice."""

import pytest

from tests.services.walks import (
    deposit_claimed_and_paid_more,
    deposit_late_and_of_half,
    deposit_late_by_hand,
    deposit_paid_twice,
    deposit_too_small,
    deposit_wrong_by_hand,
    payout_although_rejected,
    payout_failed_after_all,
    payout_made_twice,
    payout_of_wrong_amount,
    payout_wrong_by_hand,
    played,
)

START = 1_000_000


@pytest.fixture
def settle(flask):
    """`settle(order_no, "credit")`; with `fails=True` it returns the text of the refusal."""

    def command(order_no, how, *more, fails=False):
        return flask("order", "settle", order_no, f"--{how}", *more, fails=fails).output

    return command


# walk; kind, reported amount; status and balance while it is open; credits of each resolution
SPENT, BACK = (START - 5_010, 0), (START, 0)
CASES = [
    (played("late"), "late_payment", "100.00", "cancelled", START, {"credit": 9_940, "refund": 0}),
    (deposit_late_and_of_half, "late_payment", "50.00", "cancelled", START, {"credit": 4_970, "refund": 0}),
    (deposit_late_by_hand, "late_payment", "100.00", "cancelled", START, {"credit": 9_940, "refund": 0}),
    (played("wrong_amount"), "wrong_amount", "101.00", "pending", START, {"credit": 10_039, "refund": 0}),
    (deposit_too_small, "wrong_amount", "99.99", "pending", START, {"credit": 9_939, "refund": 0}),
    (deposit_wrong_by_hand, "wrong_amount", "99.00", "pending", START, {"credit": 9_841, "refund": 0}),
    (deposit_paid_twice, "paid_twice", "100.00", "completed", START + 9_940, {"credit": 9_940, "refund": 0}),
]
ENDS = {"pending": "cancelled", "cancelled": "cancelled", "completed": "completed"}
# walk; reported amount; status while it is open; status and balance after each resolution (None: refused)
PAYOUTS = [
    (payout_of_wrong_amount, "51.00", "confirmed", {"complete": ("completed", SPENT), "cancel": None}),
    (
        payout_wrong_by_hand,
        "40.00",
        "confirmed",
        {"complete": ("completed", (START - 5_015, 0)), "cancel": ("cancelled", BACK)},
    ),
    (
        payout_although_rejected,
        "50.00",
        "cancelled",
        {"complete": ("cancelled", (START - 5_015, 0)), "cancel": ("cancelled", BACK)},
    ),
    (payout_made_twice, "50.00", "completed", {"complete": ("completed", SPENT), "cancel": None}),
]


def _name(value):
    return getattr(value, "__name__", "")


def _by_way(cases):
    return [
        pytest.param(*case[:-1], how, end, id=f"{case[0].__name__} {how}")
        for case in cases
        for how, end in case[-1].items()
    ]


@pytest.mark.parametrize(
    ("walk", "kind", "amount", "status", "money", "ways"), CASES, ids=lambda v: getattr(v, "__name__", "")
)
def test_a_deposits_unexpected_money_is_visible_and_moves_nothing(
    world, api, order_details, exceptions, balances, walk, kind, amount, status, money, ways
):
    order_no = walk(world)
    assert exceptions() == {order_no: kind}
    [told] = order_details(order_no)["exceptions"]
    assert (told["kind"], told["amount"], told["resolution"]) == (kind, amount, None)
    assert any(kind in line["why"] for line in order_details(order_no)["history"])
    assert (api.status(order_no), balances()) == (status, (money, 0))


@pytest.mark.parametrize(("walk", "kind", "amount", "status", "money", "how", "credited"), _by_way(CASES))
def test_a_deposits_unexpected_money_is_credited_or_refunded_once(
    world, api, settle, order_details, exceptions, balances, walk, kind, amount, status, money, how, credited
):
    order_no = walk(world)
    settle(order_no, "cancel", fails=True)
    settle(order_no, how)
    after = (money + credited, 0)
    assert (api.status(order_no), balances(), exceptions()) == (ENDS[status], after, {})
    assert order_details(order_no)["exceptions"][0]["resolution"] == how
    for again in ("credit", "refund"):
        settle(order_no, again, fails=True)
    world.later(10_000)
    assert (api.status(order_no), balances(), exceptions()) == (ENDS[status], after, {})


@pytest.mark.parametrize(("walk", "amount", "status", "ways"), PAYOUTS, ids=_name)
def test_a_payout_that_contradicts_its_order_is_visible(
    world, api, order_details, exceptions, walk, amount, status, ways
):
    order_no = walk(world)
    assert exceptions() == {order_no: "payout_conflict"}
    [told] = order_details(order_no)["exceptions"]
    assert (told["kind"], told["amount"], told["resolution"]) == ("payout_conflict", amount, None)
    world.later(10_000)
    assert api.status(order_no) == status


@pytest.mark.parametrize(("walk", "amount", "status", "how", "end"), _by_way(PAYOUTS))
def test_a_payout_conflict_is_completed_or_cancelled_once(
    world, api, settle, exceptions, balances, walk, amount, status, how, end
):
    order_no = walk(world)
    settle(order_no, "credit", fails=True)
    settle(order_no, how, fails=end is None)
    if end is None:
        assert (api.status(order_no), exceptions()) == (status, {order_no: "payout_conflict"})
        return
    for again in ("complete", "cancel"):
        settle(order_no, again, fails=True)
    assert (api.status(order_no), balances(), exceptions()) == (*end, {})


@pytest.mark.parametrize(("how", "money"), [("credit", BACK), ("complete", SPENT)])
def test_a_completed_withdrawal_that_bounced_is_credited_back_or_left(
    world, api, settle, exceptions, balances, how, money
):
    order_no = payout_failed_after_all(world)
    assert (exceptions(), balances()) == ({order_no: "reversed"}, SPENT)
    settle(order_no, "cancel", fails=True)
    settle(order_no, how)
    settle(order_no, how, fails=True)
    assert (api.status(order_no), balances(), exceptions()) == ("completed", money, {})


def test_a_withdrawal_that_bounced_twice_is_credited_back_once(world, api, flask, settle, order_details, balances):
    order_no = payout_failed_after_all(world)
    assert api.notice(order_no, 5_000, state="failed", reference="R-3").status == 200
    first, second = (exception["id"] for exception in order_details(order_no)["exceptions"])
    flask("order", "settle", order_no, "--credit", "--exception", first)
    flask("order", "settle", order_no, "--credit", "--exception", second, fails=True)
    assert balances() == BACK


def test_a_manually_credited_deposit_is_not_completed_by_more_money(world, flask, api, exceptions, balances):
    order_no = deposit_wrong_by_hand(world)
    flask("order", "settle", order_no, "--credit")
    before = balances()
    flask("order", "paid", order_no, "--reference", "BANK-2")
    assert (balances(), len(exceptions())) == (before, 1)


def test_a_credit_uses_the_orders_own_rate(world, flask, settle, balances):
    order_no = played("late")(world)
    flask("merchant", "set", "demo", "--buy-rate", "50")
    settle(order_no, "credit")
    assert balances() == (START + 9_940, 0)


def test_an_order_without_an_exception_has_nothing_to_resolve(world, settle):
    settle(played("success")(world), "credit", fails=True)


def test_resolving_requires_a_resolution(world, flask):
    flask("order", "settle", played("late")(world), fails=True)


# --- completing an order whose customer paid late, or too much


def complete(flask, order_no, **more):
    return flask("order", "settle", order_no, "--complete", "--yes", **more)


def test_a_late_payment_completes_its_cancelled_order(world, api, flask, order_details, balances, exceptions):
    flask("channel", "set", 2, "--settlement-days", 1)
    order_no = played("late")(world)
    complete(flask, order_no)
    assert (api.status(order_no), balances(), exceptions()) == ("completed", (START + 9_940, 0), {})
    assert [each["type"] for each in order_details(order_no)["callbacks"]] == ["order.cancelled", "order.completed"]
    assert api.detail(order_no=order_no).data["merchant_actual_amount"] == 9_940
    complete(flask, order_no, fails=True)
    api.notice(order_no, 10_000, reference=f"SB{order_no}")
    assert exceptions() == {}


@pytest.mark.parametrize("walk", [played("wrong_amount"), deposit_claimed_and_paid_more])
def test_a_larger_payment_completes_its_order_with_the_received_amount(
    world, api, flask, order_details, balances, walk
):
    order_no = walk(world)
    complete(flask, order_no)
    assert balances() == (START + 10_039, 0)
    order = api.detail(order_no=order_no).data
    assert (order["status"], order["cny_amount"], order["service_amount"]) == ("completed", "100.00", 61)
    assert order["merchant_actual_amount"] == 10_039
    steps = [line["to"] for line in order_details(order_no)["history"] if line["from"] != line["to"]]
    assert steps == ["pending", "paid", "confirmed", "completed"]
    entries = {(each["account"], each["yuan"]) for each in order_details(order_no)["ledger"]}
    assert entries == {("available", "100.39"), ("fees", "0.61"), ("clearing", "-101.00")}
    flask("ledger", "verify")


def test_a_refund_of_a_completed_larger_payment_is_a_reversal(world, api, flask, order_details):
    order_no = played("wrong_amount")(world)
    complete(flask, order_no)
    api.notice(order_no, 10_000, reference=f"SB{order_no}")
    assert (order_details(order_no)["exceptions"][-1]["kind"], order_details(order_no)["exceptions"][-1]["amount"]) == (
        "reversed",
        "1.00",
    )


@pytest.mark.parametrize("walk", [deposit_too_small, deposit_late_and_of_half, deposit_paid_twice])
def test_an_order_is_not_completed_with_less_money_or_twice(world, flask, rows, walk):
    order_no = walk(world)
    before = rows()
    complete(flask, order_no, fails=True)
    assert rows() == before


def test_the_callback_is_shown_before_an_order_is_completed(world, api, flask):
    order_no = played("late")(world)
    told = flask("order", "settle", order_no, "--complete", typed="n\n", fails=True).output
    assert '"type":"order.completed"' in told
    assert '"status":"completed"' in told
    assert "received: 100.00, to be credited: 99.40" in told
    assert api.status(order_no) == "cancelled"
    assert "completed" in flask("order", "settle", order_no, "--complete", typed="y\n").output


def test_a_cancelled_payout_of_a_manual_channel_stays_cancelled(world, balances, exceptions):
    before = balances()
    order_no = payout_wrong_by_hand(world)
    world.flask("order", "resolve", order_no, "--cancel")
    for seconds in (600, 3_600, 86_400):
        world.later(seconds)
        assert (balances(), exceptions()) == (before, {})
    assert world.flask_json("order", "show", order_no)["due_at"] is None
