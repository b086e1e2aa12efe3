"""The life of an order: every row of the status table, every legal transition, and every illegal one."""

import itertools

import pytest

from models.db.writer import transaction
from models.tables.order import Order
from services.orders import lifecycle
from services.orders.reasons import Why, because, own_words
from tests.services import walks

STATUSES = ("pending", "paid", "confirmed", "completed", "cancelled")
LEGAL = {
    "buy": {
        "pending": {"paid", "cancelled"},
        "paid": {"confirmed", "cancelled"},
        "confirmed": {"completed", "cancelled"},
        "cancelled": {"completed"},
    },
    "sell": {"pending": {"confirmed", "cancelled"}, "confirmed": {"paid", "cancelled"}, "paid": {"completed"}},
}
CREATED = ("merchant", "", "pending")
START = 1_000_000


@pytest.mark.breaks_the_ledger
@pytest.mark.parametrize("kind", LEGAL)
def test_a_step_is_legal_or_it_does_not_happen(api, order_details, kind):
    order_no = getattr(api, kind)().data["order_no"]
    for before, after in itertools.product(STATUSES, STATUSES):
        Order.update(status=before).where(Order.order_no == order_no).execute()
        details = order_details(order_no)
        order = Order.get(Order.order_no == order_no)
        moved = transaction(lifecycle.transition)(order, after, "operator", own_words("to see"))
        assert moved is (after in LEGAL[kind].get(before, ())), (before, after)
        left = order_details(order_no)
        if not moved:
            assert left == details, (before, after)
            continue
        line = left["history"][-1]
        assert (line["who"], line["why"], line["from"], line["to"]) == ("operator", "to see", before, after)
        assert left["status"] == after


def test_of_two_steps_from_the_same_status_one_happens(api, steps):
    order_no = api.sell().data["order_no"]
    first, second = (Order.get(Order.order_no == order_no) for _ in range(2))
    assert transaction(lifecycle.transition)(first, "confirmed", "operator", because(Why.ACCEPTED), due_at=1) is True
    assert transaction(lifecycle.transition)(second, "cancelled", "operator", own_words("rejected")) is False
    assert steps(order_no) == [CREATED, ("operator", "pending", "confirmed")]


# Each row of the table, with its history and its postings


ACCEPTED = [CREATED, ("operator", "pending", "confirmed")]
PAID_OUT = [*ACCEPTED, ("channel", "confirmed", "paid"), ("service", "paid", "completed")]
PAID_BY_HAND = [*ACCEPTED, ("operator", "confirmed", "paid"), ("service", "paid", "completed")]
TO_CONFIRMED = [CREATED, ("channel", "pending", "paid"), ("channel", "paid", "confirmed")]
TO_COMPLETED = [*TO_CONFIRMED, ("service", "confirmed", "completed")]
CLAIMED = [CREATED, ("payer", "pending", "paid")]
PROVEN = [*CLAIMED, ("operator", "paid", "confirmed"), ("service", "confirmed", "completed")]
ROWS = [
    (walks.buy_pending, "pending", [CREATED], (START, 0)),
    (walks.buy_claimed, "paid", CLAIMED, (START, 0)),
    (walks.buy_confirmed, "confirmed", TO_CONFIRMED, (START, 0)),
    (walks.buy_paid, "completed", TO_COMPLETED, (START + 9_940, 0)),
    (walks.buy_found_by_asking, "completed", TO_COMPLETED, (START + 9_940, 0)),
    (walks.buy_claimed_and_proven, "completed", PROVEN, (START + 9_940, 0)),
    (walks.buy_claimed_and_dismissed, "cancelled", [*CLAIMED, ("operator", "paid", "cancelled")], (START, 0)),
    (walks.buy_expired, "cancelled", [CREATED, ("service", "pending", "cancelled")], (START, 0)),
    (walks.buy_refused, "cancelled", [CREATED, ("channel", "pending", "cancelled")], (START, 0)),
    (walks.buy_failed, "cancelled", [CREATED, ("channel", "pending", "cancelled")], (START, 0)),
    (walks.sell_pending, "pending", [CREATED], (START - 5_010, 5_010)),
    (walks.sell_accepted, "confirmed", ACCEPTED, (START - 5_010, 5_010)),
    (walks.sell_accepted_by_rule, "confirmed", [CREATED, ("service", "pending", "confirmed")], (START - 5_010, 5_010)),
    (walks.sell_paid_out, "completed", PAID_OUT, (START - 5_010, 0)),
    (walks.sell_paid_by_hand, "completed", PAID_BY_HAND, (START - 5_015, 0)),
    (walks.sell_rejected, "cancelled", [CREATED, ("operator", "pending", "cancelled")], (START, 0)),
    (walks.sell_failed, "cancelled", [*ACCEPTED, ("channel", "confirmed", "cancelled")], (START, 0)),
    (walks.sell_given_up_by_hand, "cancelled", [*ACCEPTED, ("operator", "confirmed", "cancelled")], (START, 0)),
]


@pytest.mark.parametrize(("walk", "status", "moves", "money"), ROWS, ids=[row[0].__name__ for row in ROWS])
def test_a_walk_ends_as_in_the_table_each_step_has_its_callback_and_an_ended_order_does_not_change(
    world, flask, order_details, steps, now, walk, status, moves, money
):
    flask("merchant", "set", "demo", "--events", "paid,confirmed")
    order_no = walk(world)
    assert (steps(order_no), now(order_no)) == (moves, (status, money, {}))
    events = [callback["type"] for callback in order_details(order_no)["callbacks"]]
    assert events == [f"order.{after}" for _, _, after in moves[1:]]
    if status in ("completed", "cancelled"):
        flask("order", "accept", order_no, fails=True)
        flask("order", "reject", order_no, "--reason", "too late", fails=True)
        walks.claim(world, order_no)
        world.later(100_000)
        assert (steps(order_no), now(order_no)) == (moves, (status, money, {}))


@pytest.mark.parametrize("walk", [walks.buy_paid, walks.sell_paid_out])
def test_a_repeated_notice_changes_nothing_and_is_acknowledged(world, api, order_details, walk):
    order_no = walk(world)
    details = order_details(order_no)
    fen = 10_000 if details["order_type"] == 1 else 5_000
    again = api.notice(order_no, fen, reference=details["channel_reference"])
    assert (again.status, again.text) == (200, "success")
    assert order_details(order_no) == details


def test_the_reason_of_a_rejection_is_in_the_history(world, order_details):
    assert order_details(walks.sell_given_up_by_hand(world))["history"][-1]["why"] == "no such card"
