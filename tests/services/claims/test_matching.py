"""Matching a statement's rows with open deposits: by number, otherwise by an amount that only one claim can have."""

from datetime import datetime

import pytest

from models.tables.channel import Channel
from models.tables.order import Order
from runtime import clock, money
from runtime.clock import CHINA
from services.errors import OperatorError
from services.security.audit import Actor
from services.statements import claims, layouts, received
from services.statements.claims import Outcome
from services.statements.layouts import Role
from services.statements.received import Kind, Movement
from services.withdrawals import bank_files
from tests.services import walks

MANUAL, DAY = 3, 86_400
NOW = object()


def payment(reference, amount, note="", since=NOW, kind=Kind.RECEIVED, **more):
    """A row of a statement, of the present minute."""
    return {"kind": kind, "amount": money.fen(amount), "reference": reference, "note": note, "since": since, **more}


def unclear(reference, amount, note=""):
    """A row that the reader does not understand."""
    return payment(reference, amount, note, kind=Kind.UNCLEAR, why=OperatorError("Unknown status."))


@pytest.fixture
def matched(app):
    """`matched(payment(...), ...)`: the result of a statement with these rows."""

    def line(at, since, seconds=60, **row):
        since = clock.now() if since is NOW else since
        return Movement(at=at, since=since, until=None if since is None else since + seconds - 1, **row)

    def match(*rows):
        return of([line(at, **row) for at, row in enumerate(rows, start=2)])

    return match


def of(lines):
    found = claims.match(Channel.get_by_id(MANUAL), lines)
    assert [row.line for row in found.rows] == lines  # each exactly once
    assert found.sums().rows == len(lines)
    return found


def pairs(found):
    return {row.line.reference: row.orders[0].order_no for row in found.matched}


def reasons(found, outcome=Outcome.TO_DECIDE):
    return {row.line.reference: row.why for row in found.of(outcome)}


def named(found):
    return {row.line.reference: [order.order_no for order in row.orders] for row in found.rows}


# By number


def test_a_number_in_the_note_matches_among_equal_amounts(claimed, matched):
    first, second = claimed("100.00"), claimed("100.00", merchant_order_no="SHOP-1001")
    found = matched(payment("B1", "100.00", f"订单{first}谢谢"), payment("B2", "100.00", "转账 SHOP-1001"))
    assert pairs(found) == {"B1": first, "B2": second}
    assert all(row.by_number for row in found.matched)


@pytest.mark.parametrize(
    "spell",
    [
        lambda number: f"{number[:8]} {number[8:]}",
        lambda number: f"{number[:20]}\u3000{number[20:]} 转账",
        lambda number: "".join(chr(ord(digit) + 0xFEE0) for digit in number),
        lambda number: f"NO{number}号",
        lambda number: f"{number[:8]}-{number[8:16]}-{number[16:]}",
    ],
    ids=["blank", "wide blank", "full-width digits", "joined", "dashes"],
)
def test_an_order_number_is_found_however_it_is_spelled(claimed, matched, spell):
    _, second = claimed("100.00"), claimed("100.00")
    assert pairs(matched(payment("B1", "100.00", spell(second)))) == {"B1": second}


def test_a_number_for_one_order_does_not_match_the_other_one_of_its_amount(claimed, matched):
    _, second = claimed("100.00"), claimed("100.00")
    found = matched(payment("B1", "100.00"), payment("B2", "100.00", second))
    assert pairs(found) == {"B2": second}
    assert reasons(found) == {"B1": claims.SEVERAL}


def test_an_unclaimed_deposit_matches_by_its_number_only(world, matched):
    order_no = world.api.buy("77.00", MANUAL).data["order_no"]
    assert reasons(matched(payment("B1", "77.00"))) == {"B1": claims.NOT_CLAIMED}
    assert pairs(matched(payment("B1", "77.00", order_no))) == {"B1": order_no}


def test_another_amount_for_a_named_order_needs_a_person(claimed, matched):
    order_no = claimed("88.00")
    claimed("80.00")
    found = matched(payment("B1", "80.00", order_no))
    assert reasons(found) == {"B1": claims.OTHER_AMOUNT}
    assert named(found) == {"B1": [order_no]}


def test_a_second_payment_for_an_order_is_not_confirmed_with_the_first(claimed, matched):
    order_no = claimed("88.00")
    found = matched(payment("B1", "88.00", order_no), payment("B2", "88.00", order_no))
    assert pairs(found) == {"B1": order_no}
    assert reasons(found) == {"B2": claims.PAID_BEFORE}


def test_a_payment_for_a_cancelled_order_is_not_another_orders(world, claimed, matched):
    order_no = walks.buy_claimed_and_dismissed(world)
    claimed("100.00")
    found = matched(payment("B1", "100.00", order_no))
    assert reasons(found) == {"B1": claims.ENDED}
    assert named(found) == {"B1": [order_no]}


def test_a_payment_for_an_order_of_another_channel_is_not_another_orders(world, claimed, matched):
    order_no = walks.buy_pending(world)
    claimed("100.00")
    found = matched(payment("B1", "100.00", order_no))
    assert reasons(found) == {"B1": claims.ELSEWHERE}
    assert named(found) == {"B1": [order_no]}


def test_a_payment_that_names_a_withdrawal_is_a_returned_payout(world, claimed, matched):
    claimed("100.00")
    order_no = walks.sell_paid_by_hand(world)
    assert reasons(matched(payment("B1", "100.00", f"退回 {order_no}"))) == {"B1": claims.A_PAYOUT}


def test_an_order_number_wins_over_a_merchants_number(claimed, matched):
    order_no = claimed("100.00")
    claimed("100.00", merchant_order_no=order_no)
    assert pairs(matched(payment("B1", "100.00", order_no))) == {"B1": order_no}


def test_a_note_with_two_order_numbers_is_not_certain(claimed, matched):
    first, second = claimed("100.00"), claimed("100.00")
    found = matched(payment("B1", "100.00", f"{first} {second}"))
    assert reasons(found) == {"B1": claims.NAMES_SEVERAL}
    assert named(found) == {"B1": [first, second]}


def test_an_order_with_an_open_exception_is_not_matched(world, matched):
    order_no = walks.deposit_claimed_and_wrong(world)
    assert reasons(matched(payment("B9", "100.00", order_no))) == {"B9": claims.IN_QUESTION}


def test_a_payment_older_than_the_order_it_names_is_not_its_payment(claimed, matched):
    order_no = claimed("88.00")
    assert reasons(matched(payment("B1", "88.00", order_no, clock.now() - DAY))) == {"B1": claims.TOO_EARLY}


# By a merchant's number


def test_one_merchant_number_of_several_orders_identifies_none(claimed, matched):
    claimed("100.00", merchant_order_no="SAME-NUMBER")
    claimed("60.00", merchant_order_no="SAME-NUMBER")
    assert reasons(matched(payment("B1", "100.00", "SAME-NUMBER"))) == {"B1": claims.NOT_UNIQUE}


@pytest.mark.parametrize("copy", ["SHOP-1001", "shop-1001", "Shop-1001", "ＳＨＯＰ-1001"])
def test_a_copied_number_does_not_get_another_shops_late_payment(world, other, claimed, matched, flask, copy):
    first = claimed("100.00", merchant_order_no="SHOP-1001")
    flask("order", "not-received", first)
    flask("channel", "link", MANUAL, "other")
    second = other.buy("100.00", MANUAL, merchant_order_no=copy).data["order_no"]
    walks.claim(world, second)
    found = matched(payment("B1", "100.00", "SHOP-1001"))
    assert found.matched == []
    assert set(named(found)["B1"]) == {first, second}


@pytest.mark.parametrize("note", ["shop-1001", "订单SHOP-1001，谢谢", "ＳＨＯＰ－１００１", "SHOP-1001/88"])
def test_a_merchants_number_is_found_in_any_case_and_width(claimed, matched, note):
    order_no = claimed("100.00", merchant_order_no="SHOP-1001")
    claimed("100.00")
    assert pairs(matched(payment("B1", "100.00", note))) == {"B1": order_no}


def test_a_longer_number_is_not_taken_for_the_shorter_one_in_it(claimed, matched):
    claimed("100.00", merchant_order_no="SHOP-1001")
    order_no = claimed("100.00", merchant_order_no="SHOP-10012")
    assert pairs(matched(payment("B1", "100.00", "SHOP-10012"))) == {"B1": order_no}


def test_a_number_that_may_be_cut_off_identifies_none_of_its_amount(claimed, matched):
    numbers = [claimed("100.00", merchant_order_no=number) for number in ("SHOP-1001", "SHOP-10012")]
    found = matched(payment("B1", "100.00", "SHOP-1001"))
    assert reasons(found) == {"B1": claims.MAY_NAME}
    assert named(found) == {"B1": numbers}


@pytest.mark.parametrize(
    ("number", "note"),
    [
        ("A-1", "A-1"),
        ("12", "订单12"),
        ("Ab9", "订单Ab9号"),
        ("ＳＨＯＰ100200", "转账ＳＨＯＰ100200"),
        ("SHOP#100/1", "转账SHOP#100/1谢谢"),
        ("订单 77/2026", "订单 77/2026"),
        ("SHOP#100/1", "shop#100/1"),
        ("SHOP-1001", "SHOP 1001"),
        ("SHOP-1001", "SHOP-10\n01"),
        ("SHOP-1001", "购买SHOP1001谢谢"),
        ("SHOP-1001", "XSHOP-1001X"),
        ("SHOP-1001-77", "SHOP-1001"),
        ("N" * 70, "N" * 40),
        ("X-20261126001", "20261126001"),
    ],
)
@pytest.mark.parametrize("is_open", [True, False], ids=["open", "ended"])
def test_what_may_name_an_order_is_not_matched_by_the_amount(claimed, matched, flask, number, note, is_open):
    order_no = claimed("60.00", merchant_order_no=number)
    if not is_open:
        flask("order", "not-received", order_no)
    claimed("100.00")
    found = matched(payment("B1", "100.00", note))
    assert found.matched == []
    assert named(found) == {"B1": [order_no]}


@pytest.mark.parametrize("note", ["(9/Z)", "订单9/z号", "9/Z 谢谢"])
def test_an_odd_number_of_an_open_order_is_not_matched_by_the_amount(claimed, matched, note):
    order_no = claimed("60.00", merchant_order_no="9/Z")
    claimed("100.00")
    assert named(matched(payment("B1", "100.00", note))) == {"B1": [order_no]}


@pytest.mark.parametrize("part", [slice(0, 14), slice(0, 23), slice(18, 24)], ids=["short", "long", "last digits"])
def test_a_part_of_an_order_number_is_not_matched_by_the_amount(claimed, matched, part):
    order_no = claimed("60.00")
    claimed("100.00")
    found = matched(payment("B1", "100.00", f"转账{order_no[part]}"))
    assert reasons(found) == {"B1": claims.MAY_NAME}
    assert order_no in named(found)["B1"]


def test_the_code_of_a_payout_file_is_not_matched_by_the_amount(world, claimed, matched):
    claimed("100.00")
    batch = bank_files.create("alipay", [walks.sell_accepted(world, MANUAL)], Actor("anna"))
    (line,) = bank_files.lines_of(batch)
    found = matched(payment("B1", "100.00", f"退汇 P{line.batch_id}-{line.line}"))
    assert named(found) == {"B1": [line.order.order_no]}
    assert found.matched == []


def test_a_number_that_too_many_orders_may_have_is_not_matched_by_the_amount(claimed, matched, monkeypatch):
    monkeypatch.setattr("models.queries.search.RARE", -1)
    claimed("100.00")
    assert reasons(matched(payment("B1", "100.00", "流水12345678"))) == {"B1": claims.MAY_NAME}


# By the amount


def test_the_only_claim_of_an_amount_matches_without_a_number(claimed, matched):
    claimed("100.00")
    order_no = claimed("88.00")
    found = matched(payment("B1", "88.00", "手机银行转账 尾号1234"))
    assert pairs(found) == {"B1": order_no}
    assert not found.matched[0].by_number


def test_several_claims_of_one_amount_are_never_matched_by_amount(claimed, matched):
    numbers = [claimed("100.00"), claimed("100.00")]
    found = matched(payment("B1", "100.00"), payment("B2", "100.00"))
    assert reasons(found) == {"B1": claims.SEVERAL, "B2": claims.SEVERAL}
    assert named(found)["B1"] == numbers


def test_an_unclaimed_deposit_of_the_same_amount_makes_a_claim_ambiguous(claimed, world, matched):
    claimed("88.00")
    world.api.buy("88.00", MANUAL)
    assert reasons(matched(payment("B1", "88.00"))) == {"B1": claims.SEVERAL}


@pytest.mark.parametrize(
    "second",
    [
        payment("B2", "88.00"),
        payment("B2", "88.00", since=None),
        unclear("B2", "88.00"),
        payment("B1", "88.00"),
    ],
    ids=["payment", "without a time", "unclear", "repeated"],
)
def test_several_rows_of_one_amount_are_not_matched_by_amount(claimed, matched, second):
    claimed("88.00")
    found = matched(payment("B1", "88.00"), second)
    assert found.matched == []
    assert found.rows[0].why == claims.SAME_AMOUNT


def test_a_payment_older_than_the_claim_is_not_its_payment(claimed, matched):
    claimed("88.00")
    early = payment("B1", "88.00", since=clock.now() - 120)
    assert reasons(matched(early)) == {"B1": claims.TOO_EARLY}


def test_a_payment_of_the_orders_day_without_its_time_is_not_matched_by_amount(claimed, matched):
    order_no = claimed("88.00")
    today = clock.now() - 40_000
    of_today = payment("B1", "88.00", since=today, seconds=86_400)
    assert reasons(matched(of_today)) == {"B1": claims.ONLY_DAY}
    named = payment("B1", "88.00", order_no, since=today, seconds=86_400)
    assert pairs(matched(named)) == {"B1": order_no}


def test_a_payment_without_a_readable_time_is_not_matched_by_amount(claimed, matched):
    order_no = claimed("88.00")
    assert reasons(matched(payment("B1", "88.00", since=None))) == {"B1": claims.NO_TIME}
    assert pairs(matched(payment("B1", "88.00", order_no, since=None))) == {"B1": order_no}


def test_a_payment_with_a_damaged_note_is_to_decide(claimed, matched):
    order_no = claimed("88.00", merchant_order_no="SHOP-1001")
    for note in ("订\ufffd", "SHOP-1001\ufffd", f"\ufffd {order_no}"):
        found = matched(payment("B1", "88.00", note))
        assert reasons(found) == {"B1": claims.DAMAGED_NOTE}
        assert named(found) == {"B1": [order_no]}


def test_a_payment_of_the_future_is_to_decide(claimed, matched):
    order_no = claimed("88.00")
    for note in ("", order_no):
        late = payment("B1", "88.00", note, since=clock.now() + 2 * DAY)
        assert reasons(matched(late)) == {"B1": claims.IN_THE_FUTURE}


@pytest.fixture(params=["claim", "late payment", "late payment that was credited", "another amount"])
def without_id(request, claimed, flask):
    """The order whose payment of 88.00 was recorded without a transaction ID."""
    order_no = claimed("99.00" if request.param == "another amount" else "88.00")
    if "late" in request.param:
        flask("order", "not-received", order_no)
    flask("order", "paid", order_no, "--amount", "88.00")
    if "credited" in request.param:
        flask("order", "resolve", order_no, "--credit")
    return order_no


def test_one_transfer_does_not_credit_a_second_deposit(without_id, claimed, matched):
    second = claimed("88.00")
    found = matched(payment("B1", "88.00"))
    assert reasons(found) == {"B1": claims.UNNUMBERED}
    assert named(found) == {"B1": [without_id]}
    assert pairs(matched(payment("B1", "88.00", second))) == {"B1": second}


def test_what_an_operator_typed_in_place_of_an_id_is_none(claimed, flask, matched):
    first = claimed("88.00")
    flask("order", "paid", first, "--reference", "B9")
    Order.update(channel_reference="-").where(Order.order_no == first).execute()  # recorded before 0.5.0
    claimed("88.00")
    assert reasons(matched(payment("B1", "88.00"))) == {"B1": claims.UNNUMBERED}


def test_a_confirmation_without_an_id_long_before_the_file_is_not_its_payment(claimed, matched, flask, ahead):
    flask("order", "paid", claimed("88.00"))
    ahead(10 * DAY)
    order_no = claimed("88.00")
    assert pairs(matched(payment("B1", "88.00"))) == {"B1": order_no}


def test_a_note_that_was_not_read_to_its_end_is_not_matched_by_amount(claimed, matched):
    claimed("88.00")
    assert reasons(matched(payment("B1", "88.00", "好" * received.LONGEST_NOTE))) == {"B1": claims.MAY_NAME}


def test_nothing_is_found_for_an_unknown_amount(matched):
    assert reasons(matched(payment("B1", "5.00", "x"))) == {"B1": claims.NOTHING}


# Recorded before


def test_a_payment_is_recorded_before_by_its_id_and_amount(claimed, flask, world, matched):
    order_no = claimed("88.00")
    flask("order", "paid", order_no, "--reference", "B1")
    claimed("88.00")
    found = matched(payment("B1", "88.00"))
    assert reasons(found, Outcome.RECORDED) == {"B1": ""}
    assert named(found) == {"B1": [order_no]}


def test_a_recorded_id_with_another_amount_is_to_decide(claimed, flask, matched):
    order_no = claimed("88.00")
    flask("order", "paid", order_no, "--reference", "B1")
    claimed("89.00")
    found = matched(payment("B1", "89.00"))
    assert reasons(found) == {"B1": claims.OTHER_RECORD}
    assert named(found) == {"B1": [order_no]}


def test_a_payment_of_another_amount_is_recorded_with_its_exception(world, flask, matched):
    order_no = walks.deposit_claimed_and_wrong(world)  # 99.00 of 100.00
    row = payment(f"BANK-{order_no}", "99.00")
    assert named(matched(row)) == {f"BANK-{order_no}": [order_no]}
    assert len(matched(row).of(Outcome.RECORDED)) == 1
    flask("order", "resolve", order_no, "--refund")
    assert len(matched(row).of(Outcome.RECORDED)) == 1


def test_a_transfer_for_two_orders_is_recorded_with_both(claimed, flask, matched):
    numbers = [claimed("30.00"), claimed("58.00")]
    for order_no in numbers:
        flask("order", "paid", order_no, "--reference", "B1", "--shared-reference")
    found = matched(payment("B1", "88.00"))
    assert sorted(named(found)["B1"]) == sorted(numbers)
    assert len(found.of(Outcome.RECORDED)) == 1


def test_a_payouts_id_is_not_a_recorded_payment(world, flask, matched):
    order_no = walks.sell_accepted(world, MANUAL)
    flask("order", "paid", order_no, "--reference", "B1")
    found = matched(payment("B1", "100.00"))
    assert reasons(found) == {"B1": claims.OTHER_RECORD}
    assert named(found) == {"B1": [order_no]}


def test_a_repeated_line_counts_once(claimed, matched):
    order_no = claimed("88.00")
    found = matched(payment("B1", "88.00", order_no), payment("B1", "88.00", order_no))
    assert pairs(found) == {"B1": order_no}
    assert [row.why for row in found.of(Outcome.TO_DECIDE)] == [claims.REPEATED]


def test_one_id_of_two_amounts_identifies_neither(claimed, matched):
    order_no = claimed("88.00")
    found = matched(payment("B1", "88.00", order_no), payment("B1", "80.00"))
    assert [row.why for row in found.rows] == [claims.REPEATED] * 2


# Reversals


@pytest.fixture
def read(app):
    """`read("B1,88.00,note", ...)`: the result of a file: transaction ID, amount, note, original ID, status."""
    names = ["id", "amount", "note", "original", "status", "time"]
    roles = [Role.REFERENCE, Role.SIGNED, Role.NOTE, Role.ORIGINAL, Role.STATUS, Role.TIME]

    def match(*lines):
        now = datetime.fromtimestamp(clock.now(), CHINA).strftime("%Y-%m-%d %H:%M:%S")
        padded = [",".join([*line.split(","), "", "", ""][:4]) for line in lines]
        rows = [f"{line},{'已退款' if 'returned' in line else '交易成功'},{now}" for line in padded]
        raw = "\n".join([",".join(names), *rows]).encode()
        return of(received.read(raw, [layouts.confirmed(names, roles)]).rows)

    return match


def outcomes(found):
    return [(row.outcome, row.why) for row in found.rows]


NOT_MONEY_IN, TO_DECIDE, RECORDED = Outcome.NOT_MONEY_IN, Outcome.TO_DECIDE, Outcome.RECORDED


@pytest.mark.parametrize("row", ["R1,-88.00,,B1", "B1,-88.00"], ids=["original", "same ID"])
@pytest.mark.parametrize("named", [True, False])
def test_a_claim_whose_payment_the_file_takes_back_is_to_decide(claimed, read, row, named):
    order_no = claimed("88.00")
    found = read(f"B1,88.00,{order_no if named else ''}", row)
    assert outcomes(found) == [(TO_DECIDE, received.TAKEN_BACK), (NOT_MONEY_IN, received.TAKES_BACK)]
    assert [order.order_no for order in found.rows[0].orders] == [order_no]


def test_a_payment_that_the_file_takes_back_and_nobody_waits_for_is_no_payment(read):
    assert outcomes(read("B1,88.00", "R1,-88.00,,B1")) == [
        (NOT_MONEY_IN, received.TAKEN_BACK),
        (NOT_MONEY_IN, received.TAKES_BACK),
    ]


@pytest.mark.parametrize("row", ["R1,-8.00,,B1", "B1,-8.00,冲正"], ids=["original", "same ID"])
def test_a_part_that_is_taken_back_leaves_both_rows_to_decide(claimed, read, row):
    order_no = claimed("88.00")
    found = read(f"B1,88.00,{order_no}", row)
    assert {row.outcome for row in found.rows} == {TO_DECIDE}
    assert [order.order_no for order in found.rows[0].orders] == [order_no]


def test_a_reversal_without_its_payment_stops_all_payments_of_its_amount(claimed, read):
    first, second = claimed("88.00"), claimed("70.00")
    found = read(f"B1,88.00,{first}", "B2,88.00", "R1,-88.00,冲正", f"B3,70.00,{second}")
    assert pairs(found) == {"B3": second}
    assert {row.line.reference for row in found.of(TO_DECIDE)} == {"B1", "B2", "R1"}


def test_an_amount_that_was_taken_back_once_does_not_identify_a_claim(claimed, read):
    claimed("88.00")
    found = read("B1,88.00", "R1,-88.00,,B1", "B2,88.00")
    assert reasons(found) == {"B1": received.TAKEN_BACK, "B2": claims.AMOUNT_TAKEN_BACK}


@pytest.fixture
def confirmed(claimed, flask):
    """The number of a deposit whose payment B1 of 88.00 was confirmed."""
    order_no = claimed("88.00")
    flask("order", "paid", order_no, "--reference", "B1")
    return order_no


@pytest.mark.parametrize(
    ("rows", "first"),
    [
        (["B1,88.00", "R1,-88.00,,B1"], RECORDED),
        (["R1,-88.00,,B1"], None),
        (["B1,-88.00"], None),
        (["R1,-8.00,,B1"], None),
        (["B1,88.00,returned"], None),
    ],
    ids=["same file", "later file", "same ID", "part", "by its status"],
)
def test_a_reversal_of_a_confirmed_payment_names_its_order(confirmed, read, rows, first):
    found = read(*rows)
    assert outcomes(found)[-1] == (TO_DECIDE, claims.TAKES_BACK_RECORDED)
    assert [order.order_no for order in found.rows[-1].orders] == [confirmed]
    assert [row.outcome for row in found.rows[:-1]] == ([first] if first else [])


@pytest.mark.parametrize("days", [0, 1])
def test_a_reversal_is_recorded_before_once_all_of_the_payment_is_recorded_as_taken_back(claimed, flask, read, days):
    flask("channel", "set", MANUAL, "--settlement-days", days)
    order_no = claimed("88.00")
    flask("order", "paid", order_no, "--reference", "B1")
    row = "R1,-88.00,,B1"
    assert read(row).rows[0].outcome is TO_DECIDE
    flask("order", "paid", order_no, "--reference", "B1", "--amount", "0")
    for found in (read(row), read("B1,88.00", row)):
        assert {each.outcome for each in found.rows} == {RECORDED}
        assert [order.order_no for order in found.rows[-1].orders] == [order_no]


def test_a_second_part_that_is_taken_back_is_to_decide_again(confirmed, flask, read):
    flask("order", "paid", confirmed, "--reference", "B1", "--amount", "80.00")
    found = read("B1,88.00", "R2,-8.00,,B1")
    assert outcomes(found) == [(RECORDED, ""), (TO_DECIDE, claims.TAKES_BACK_RECORDED)]


def test_a_reversal_without_an_id_names_the_recorded_payments_of_its_amount(confirmed, read):
    found = read("B1,88.00", "R1,-88.00,冲正")
    assert [row.outcome for row in found.rows] == [RECORDED, TO_DECIDE]
    assert [order.order_no for order in found.rows[1].orders] == [confirmed]


@pytest.mark.parametrize("kind", [Kind.NOT_MONEY_IN, Kind.UNCLEAR])
def test_a_file_that_contradicts_a_recorded_payment_names_its_order(confirmed, matched, kind):
    found = matched(payment("B1", "88.00", kind=kind, why=OperatorError("The money was not received.")))
    assert reasons(found) == {"B1": claims.CONTRADICTED}
    assert named(found) == {"B1": [confirmed]}


# Other rows, and the sums


def test_each_row_is_counted_once_and_the_sums_are_those_of_the_file(confirmed, claimed, matched):
    order_no = claimed("70.00")
    sent = payment("S1", "30.00", kind=Kind.NOT_MONEY_IN, why=OperatorError("Money was sent.")) | {"amount": -3_000}
    unreadable = payment("U2", "1.00", kind=Kind.UNCLEAR, why=OperatorError("Unreadable.")) | {"amount": None}
    found = matched(
        payment("B1", "88.00"), payment("B2", "70.00", order_no), sent, unclear("U1", "7.00", order_no), unreadable
    )
    assert [row.outcome for row in found.rows] == [RECORDED, Outcome.MATCHED, NOT_MONEY_IN, TO_DECIDE, TO_DECIDE]
    assert reasons(found)["U1"] == "Unknown status."
    assert named(found)["U1"] == [order_no]
    assert {outcome: found.sums(outcome) for outcome in Outcome} == {
        Outcome.MATCHED: (1, 7_000, 0),
        RECORDED: (1, 8_800, 0),
        NOT_MONEY_IN: (1, 0, 3_000),
        TO_DECIDE: (2, 700, 0),
    }
    assert found.sums() == (5, 16_500, 3_000)


def test_more_matches_than_one_confirmation_takes_wait_for_the_next_upload(claimed, matched, monkeypatch):
    monkeypatch.setattr(claims, "MOST_AT_ONCE", 1)
    first, second = claimed("10.00"), claimed("11.00")
    found = matched(payment("B1", "10.00"), payment("B2", "11.00"))
    assert pairs(found) == {"B1": first}
    assert reasons(found) == {"B2": claims.TOO_MANY}
    assert named(found)["B2"] == [second]


# What looks like a number, but is none or another one


@pytest.mark.parametrize("word", ["TRANSFER", "zhuanzhang-ok", "20261126", "2026-11-26"])
def test_a_word_that_anybody_may_write_is_no_number_of_a_merchant(claimed, matched, word):
    numbers = [claimed("100.00", merchant_order_no=word), claimed("100.00")]
    found = matched(payment("B1", "100.00", f"{word} 货款"))
    assert reasons(found) == {"B1": claims.MAY_NAME}
    assert named(found)["B1"] == numbers[:1]


@pytest.mark.parametrize("change", [lambda number: number[:-1] + "x", lambda number: number[:-4] + "9876"])
def test_a_mistyped_order_number_is_not_matched_by_the_amount(claimed, matched, change):
    order_no = claimed("60.00")
    claimed("100.00")
    assert reasons(matched(payment("B1", "100.00", f"订单{change(order_no)}"))) == {"B1": claims.MAY_NAME}


def test_a_recorded_id_of_a_payment_that_names_another_open_order_is_to_decide(claimed, flask, matched):
    first = claimed("88.00")
    flask("order", "paid", first, "--reference", "7001")
    second = claimed("88.00")
    found = matched(payment("7001", "88.00", second))
    assert reasons(found) == {"7001": claims.OTHER_ORDER}
    assert named(found) == {"7001": [first, second]}


def test_a_recorded_id_that_the_bank_uses_again_later_is_to_decide(claimed, flask, matched, ahead):
    order_no = claimed("88.00")
    flask("order", "paid", order_no, "--reference", "7001")
    at = clock.now()
    ahead(10 * DAY)
    found = matched(payment("7001", "88.00"))
    assert reasons(found) == {"7001": claims.LATER}
    assert named(found) == {"7001": [order_no]}
    assert len(matched(payment("7001", "88.00", since=at)).of(Outcome.RECORDED)) == 1


@pytest.mark.parametrize("typed", ["12345678", "00012345678", "b00012345678", "5678"])
def test_a_similar_id_of_a_recorded_payment_is_not_matched_by_the_amount(claimed, flask, matched, typed):
    first = claimed("88.00")
    flask("order", "paid", first, "--reference", typed)
    claimed("88.00")
    found = matched(payment("B00012345678", "88.00"))
    assert reasons(found) == {"B00012345678": claims.SIMILAR}
    assert named(found) == {"B00012345678": [first]}


def test_a_payment_that_another_channel_has_is_not_matched_again(claimed, world, flask, flask_json, matched):
    new = ("channel", "add", "--category", "gateway_b", "--driver", "manual", "--name", "Same account")
    there = flask_json(*new, "--config", "payee=Shop", "--config", "account=6222020000000000000")["id"]
    flask("channel", "link", there, "demo")
    first = world.api.buy("88.00", there).data["order_no"]
    flask("order", "paid", first, "--reference", "B1")
    second = claimed("88.00")
    for note in ("", second):
        found = matched(payment("B1", "88.00", note))
        assert reasons(found) == {"B1": claims.OTHER_CHANNEL}
        assert named(found) == {"B1": [first]}
    assert pairs(matched(payment("B2", "88.00"))) == {"B2": second}
