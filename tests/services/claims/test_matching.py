"""Matching a statement's payments with open deposits: by number, otherwise by an amount that only one claim has."""

from datetime import datetime

from gateways.base import CHINA
from models.tables.channel import Channel
from services.claims import matching
from services.statements import received
from tests.services import walks

MANUAL = 3


def matched(*lines, head="流水号,收入金额,附言,交易时间"):
    """The result of a statement with these lines."""
    now = f"{datetime.now(CHINA):%Y-%m-%d %H:%M:%S}"
    timed = [line if line.count(",") == 3 else f"{line},{now}" for line in lines]
    return matching.match(Channel.get_by_id(MANUAL), received.read("\n".join([head, *timed]).encode()).rows)


def pairs(found):
    return {match.line.reference: match.order.order_no for match in found.matched}


def reasons(unmatched):
    return {each.line.reference: each.why for each in unmatched}


def test_a_number_in_the_note_matches_among_equal_amounts(claimed):
    first, second = claimed("100.00"), claimed("100.00", merchant_order_no="SHOP-1001")
    found = matched(f"B1,100.00,订单{first}谢谢", "B2,100.00,转账 SHOP-1001")
    assert pairs(found) == {"B1": first, "B2": second}


def test_the_only_claim_of_an_amount_matches_without_a_note(claimed):
    claimed("100.00")
    order_no = claimed("88.00")
    assert pairs(matched("B1,88.00,")) == {"B1": order_no}


def test_several_claims_of_one_amount_are_never_matched_by_amount(claimed):
    numbers = {claimed("100.00"), claimed("100.00")}
    found = matched("B1,100.00,", "B2,100.00,")
    assert found.matched == []
    assert reasons(found.ambiguous) == {"B1": matching.SEVERAL, "B2": matching.SEVERAL}
    assert {order.order_no for order in found.ambiguous[0].orders} == numbers


def test_several_payments_of_one_amount_are_not_matched_by_amount(claimed):
    claimed("88.00")
    found = matched("B1,88.00,", "B2,88.00,")
    assert found.matched == []
    assert reasons(found.ambiguous) == {"B1": matching.SAME_AMOUNT, "B2": matching.SAME_AMOUNT}


def test_a_number_for_one_order_does_not_match_the_other_one_of_its_amount(claimed):
    _, second = claimed("100.00"), claimed("100.00")
    found = matched("B1,100.00,", f"B2,100.00,{second}")
    assert pairs(found) == {"B2": second}
    assert reasons(found.ambiguous) == {"B1": matching.SEVERAL}


def test_one_merchant_number_of_several_orders_is_no_unique_reference(claimed):
    claimed("100.00", merchant_order_no="SAME-NUMBER")
    claimed("100.00", merchant_order_no="SAME-NUMBER")
    assert reasons(matched("B1,100.00,SAME-NUMBER").ambiguous) == {"B1": matching.SEVERAL}


def test_an_unclaimed_deposit_matches_by_its_number_only(world):
    order_no = world.api.buy("77.00", MANUAL).data["order_no"]
    assert reasons(matched("B1,77.00,").ambiguous) == {"B1": matching.NOT_CLAIMED}
    assert pairs(matched(f"B1,77.00,{order_no}")) == {"B1": order_no}


def test_an_unclaimed_deposit_of_the_same_amount_makes_a_claim_ambiguous(claimed, world):
    claimed("88.00")
    world.api.buy("88.00", MANUAL)
    assert reasons(matched("B1,88.00,").ambiguous) == {"B1": matching.SEVERAL}


def test_another_amount_for_a_named_order_needs_a_person(claimed):
    order_no = claimed("88.00")
    found = matched(f"B1,80.00,{order_no}")
    assert reasons(found.ambiguous) == {"B1": matching.OTHER_AMOUNT}
    assert found.ambiguous[0].orders[0].order_no == order_no


def test_a_second_payment_for_an_order_is_not_confirmed_with_the_first(claimed):
    order_no = claimed("88.00")
    found = matched(f"B1,88.00,{order_no}", f"B2,88.00,{order_no}")
    assert pairs(found) == {"B1": order_no}
    assert reasons(found.ambiguous) == {"B2": matching.PAID_BEFORE}


def test_a_payment_for_a_cancelled_order_names_it(world, flask):
    order_no = walks.buy_claimed_and_dismissed(world)
    found = matched(f"B1,100.00,{order_no}")
    assert reasons(found.unmatched) == {"B1": matching.ENDED}
    assert found.unmatched[0].orders[0].order_no == order_no


def test_a_payment_older_than_the_claim_is_not_its_payment(claimed):
    claimed("88.00")
    assert reasons(matched("B1,88.00,,2020-01-01 10:00:00").ambiguous) == {"B1": matching.TOO_EARLY}


def test_an_order_with_an_open_exception_is_not_matched(world):
    order_no = walks.deposit_claimed_and_wrong(world)
    assert reasons(matched(f"B9,100.00,{order_no}").ambiguous) == {"B9": matching.IN_QUESTION}


def test_a_recorded_transaction_id_is_not_matched_again(claimed, flask, world):
    order_no = claimed("88.00")
    flask("order", "paid", order_no, "--reference", "B1")
    claimed("88.00")
    found = matched("B1,88.00,")
    assert [line.reference for line in found.recorded] == ["B1"]
    assert found.matched == []
    walks.deposit_claimed_and_wrong(world)  # its reference is with its exception
    wrong = f"BANK-{world.flask_json('order', 'list')[0]['order_no']}"
    assert [line.reference for line in matched(f"{wrong},99.00,").recorded] == [wrong]


def test_deposits_of_other_channels_do_not_match(world):
    order_no = walks.buy_pending(world)
    found = matched(f"B1,100.00,{order_no}")
    assert reasons(found.unmatched) == {"B1": matching.NOTHING}


def test_a_repeated_line_counts_once(claimed):
    order_no = claimed("88.00")
    found = matched(f"B1,88.00,{order_no}", f"B1,88.00,{order_no}")
    assert pairs(found) == {"B1": order_no}
    assert reasons(found.unmatched) == {"B1": matching.REPEATED}


def test_more_matches_than_one_confirmation_takes_wait_for_the_next_upload(claimed, monkeypatch):
    monkeypatch.setattr(matching, "MOST", 1)
    first, second = claimed("10.00"), claimed("11.00")
    found = matched("B1,10.00,", "B2,11.00,")
    assert pairs(found) == {"B1": first}
    assert reasons(found.ambiguous) == {"B2": matching.TOO_MANY}
    assert found.ambiguous[0].orders[0].order_no == second
