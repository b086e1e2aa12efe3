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
BY_NUMBER, BY_AMOUNT, RECORDED = "matched by number", "matched by amount", "recorded before"


def payment(reference, amount, note="", since=NOW, kind=Kind.RECEIVED, **more):
    """A row of a statement, of the present minute."""
    return {"kind": kind, "amount": money.fen(amount), "reference": reference, "note": note, "since": since, **more}


def unclear(reference, amount, note=""):
    """A row that the reader does not understand."""
    return payment(reference, amount, note, kind=Kind.UNCLEAR, why=OperatorError("Unknown status."))


def match(lines):
    found = claims.match(Channel.get_by_id(MANUAL), lines)
    assert [row.line for row in found.rows] == lines  # each exactly once
    assert found.sums().rows == len(lines)
    return found


def told(found):
    """Each row: how it matches, or why it does not, and its orders."""

    def how(row):
        match row.outcome:
            case Outcome.MATCHED:
                return BY_NUMBER if row.by_number else BY_AMOUNT
            case Outcome.RECORDED:
                return RECORDED
            case Outcome.NOT_MONEY_IN:
                return f"not money in: {row.why}"
        return row.why

    return [(how(row), [order.order_no for order in row.orders]) for row in found.rows]


def movements(rows):
    def line(at, since, seconds=60, **row):
        since = clock.now() if since is NOW else since
        return Movement(at=at, since=since, until=None if since is None else since + seconds - 1, **row)

    return [line(at, **row) for at, row in enumerate(rows, start=2)]


@pytest.fixture
def matched(app):
    """`matched(payment(...), ...)`: the result of the rows of a statement, each as (how or why, orders)."""
    return lambda *rows: told(match(movements(rows)))


# By number


def test_a_number_in_the_note_decides_among_equal_amounts(world, claimed, matched):
    first, second = claimed("100.00"), claimed("100.00", merchant_order_no="SHOP-1001")
    third, fourth = claimed("101.00"), claimed("101.00")
    unclaimed = world.api.buy("77.00", MANUAL).data["order_no"]
    assert matched(
        payment("B1", "100.00", f"订单{first}谢谢"),
        payment("B2", "100.00", "转账 SHOP-1001"),
        payment("B3", "101.00"),
        payment("B4", "101.00", fourth),
        payment("B5", "77.00"),
        payment("B6", "77.00", unclaimed),
        payment("B7", "100.00", f"{first} {third}"),
        payment("B8", "100.00", first),
    ) == [
        (BY_NUMBER, [first]),
        (BY_NUMBER, [second]),
        (claims.SEVERAL, [third, fourth]),
        (BY_NUMBER, [fourth]),
        (claims.NOT_CLAIMED, [unclaimed]),
        (BY_NUMBER, [unclaimed]),
        (claims.NAMES_SEVERAL, [first, third]),
        (claims.PAID_BEFORE, [first]),
    ]


def test_a_payment_that_names_an_order_is_never_another_orders(world, claimed, matched):
    """Each has the amount of the only claim of 100 yuan."""
    claimed("100.00")
    of_88, dismissed, elsewhere = claimed("88.00"), walks.buy_claimed_and_dismissed(world), walks.buy_pending(world)
    paid_out, in_question = walks.sell_paid_by_hand(world), walks.deposit_claimed_and_wrong(world)
    assert matched(
        payment("B1", "100.00", of_88),
        payment("B2", "100.00", dismissed),
        payment("B3", "100.00", elsewhere),
        payment("B4", "100.00", f"退回 {paid_out}"),
        payment("B5", "100.00", in_question),
        payment("B6", "88.00", of_88, clock.now() - DAY),
        payment("B7", "88.00", of_88, clock.now() + 2 * DAY),
    ) == [
        (claims.OTHER_AMOUNT, [of_88]),
        (claims.ENDED, [dismissed]),
        (claims.ELSEWHERE, [elsewhere]),
        (claims.A_PAYOUT, [paid_out]),
        (claims.IN_QUESTION, [in_question]),
        (claims.TOO_EARLY, [of_88]),
        (claims.IN_THE_FUTURE, [of_88]),
    ]


def test_a_number_is_found_however_it_is_spelled(claimed, matched):
    claimed("100.00")
    ours, theirs = claimed("100.00"), claimed("100.00", merchant_order_no="SHOP-1001")
    for spelled in (
        f"{ours[:8]} {ours[8:]}",
        f"{ours[:20]}\u3000{ours[20:]} 转账",
        "".join(chr(ord(digit) + 0xFEE0) for digit in ours),
        f"NO{ours}号",
        f"{ours[:8]}-{ours[8:16]}-{ours[16:]}",
    ):
        assert matched(payment("B1", "100.00", spelled)) == [(BY_NUMBER, [ours])], spelled
    for spelled in ("shop-1001", "订单SHOP-1001，谢谢", "ＳＨＯＰ－１００１", "SHOP-1001/88"):
        assert matched(payment("B1", "100.00", spelled)) == [(BY_NUMBER, [theirs])], spelled


# By a merchant's number


def test_an_order_number_wins_over_a_merchants_number_and_a_longer_one_over_a_shorter(claimed, matched):
    order_no = claimed("100.00")
    claimed("100.00", merchant_order_no=order_no)
    claimed("90.00", merchant_order_no="SHOP-2002")
    longer = claimed("90.00", merchant_order_no="SHOP-20023")
    rows = payment("B1", "100.00", order_no), payment("B2", "90.00", "SHOP-20023")
    assert matched(*rows) == [(BY_NUMBER, [order_no]), (BY_NUMBER, [longer])]


def test_a_number_of_several_orders_or_one_that_may_be_cut_off_identifies_none(claimed, matched):
    same = [claimed(amount, merchant_order_no="SAME-NUMBER") for amount in ("100.00", "60.00")]
    longer = [claimed("90.00", merchant_order_no=number) for number in ("SHOP-1001", "SHOP-10012")]
    assert matched(payment("B1", "100.00", "SAME-NUMBER"), payment("B2", "90.00", "SHOP-1001")) == [
        (claims.NOT_UNIQUE, same),
        (claims.MAY_NAME, longer),
    ]


@pytest.mark.parametrize("copy", ["SHOP-1001", "shop-1001", "Shop-1001", "ＳＨＯＰ-1001"])
def test_a_copied_number_does_not_get_another_shops_late_payment(world, other, claimed, matched, flask, copy):
    first = claimed("100.00", merchant_order_no="SHOP-1001")
    flask("order", "not-received", first)
    flask("channel", "link", MANUAL, "other")
    second = other.buy("100.00", MANUAL, merchant_order_no=copy).data["order_no"]
    walks.claim(world, second)
    ((why, orders),) = matched(payment("B1", "100.00", "SHOP-1001"))
    assert why not in (BY_NUMBER, BY_AMOUNT)
    assert set(orders) == {first, second}


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
def test_what_may_name_an_order_is_not_matched_by_the_amount(claimed, matched, flask, number, note):
    order_no = claimed("60.00", merchant_order_no=number)
    claimed("100.00")

    def is_left_to_an_operator():
        ((why, orders),) = matched(payment("B1", "100.00", note))
        return why not in (BY_NUMBER, BY_AMOUNT) and orders == [order_no]

    assert is_left_to_an_operator()
    flask("order", "not-received", order_no)
    assert is_left_to_an_operator()  # also if the order has ended


@pytest.mark.parametrize("word", ["TRANSFER", "zhuanzhang-ok", "20261126", "2026-11-26"])
def test_a_word_that_anybody_may_write_is_no_number_of_a_merchant(claimed, matched, word):
    order_no = claimed("100.00", merchant_order_no=word)
    claimed("100.00")
    assert matched(payment("B1", "100.00", f"{word} 货款")) == [(claims.MAY_NAME, [order_no])]


def test_an_odd_number_and_parts_and_misspellings_of_numbers_are_not_matched_by_the_amount(claimed, matched):
    odd, ours = claimed("60.00", merchant_order_no="9/Z"), claimed("60.01")
    claimed("100.00")
    for note in ("(9/Z)", "订单9/z号", "9/Z 谢谢"):
        ((why, orders),) = matched(payment("B1", "100.00", note))
        assert (why not in (BY_NUMBER, BY_AMOUNT), orders) == (True, [odd]), note
    for part in (ours[:14], ours[:23], ours[18:]):
        ((why, orders),) = matched(payment("B1", "100.00", f"转账{part}"))
        assert (why, ours in orders) == (claims.MAY_NAME, True), part
    for mistyped in (f"{ours[:-1]}x", f"{ours[:-4]}9876"):
        ((why, _),) = matched(payment("B1", "100.00", f"订单{mistyped}"))
        assert why == claims.MAY_NAME, mistyped


def test_the_code_of_a_payout_file_is_not_matched_by_the_amount(world, claimed, matched):
    claimed("100.00")
    batch = bank_files.create("alipay", [walks.sell_accepted(world, MANUAL)], Actor("anna"))
    (line,) = bank_files.lines_of(batch)
    ((why, orders),) = matched(payment("B1", "100.00", f"退汇 P{line.batch_id}-{line.line}"))
    assert (why not in (BY_NUMBER, BY_AMOUNT), orders) == (True, [line.order.order_no])


def test_a_number_that_too_many_orders_may_have_is_not_matched_by_the_amount(claimed, matched, monkeypatch):
    monkeypatch.setattr("models.queries.search.RARE", -1)
    order_no = claimed("100.00")
    assert matched(payment("B1", "100.00", "流水12345678")) == [(claims.MAY_NAME, [order_no])]


# By the amount


def test_only_one_claim_and_one_payment_of_an_amount_match(claimed, world, matched):
    numbers = [claimed(f"{amount}.00") for amount in (88, 89, 89, 90, 91, 92, 93, 94)]
    only, first, second, claim, older, of_the_day, timeless, future = numbers
    unclaimed = world.api.buy("90.00", MANUAL).data["order_no"]
    today, now = {"since": clock.now() - 40_000, "seconds": DAY}, clock.now()
    assert matched(
        payment("B1", "88.00", "手机银行转账 尾号1234"),
        payment("B2", "89.00"),
        payment("B3", "89.00"),
        payment("B4", "90.00"),
        payment("B5", "91.00", since=now - 120),
        payment("B6", "92.00", **today),
        payment("B7", "93.00", since=None),
        payment("B8", "94.00", since=now + 2 * DAY),
        payment("B9", "5.00", "x"),
    ) == [
        (BY_AMOUNT, [only]),
        (claims.SEVERAL, [first, second]),
        (claims.SEVERAL, [first, second]),
        (claims.SEVERAL, [claim, unclaimed]),
        (claims.TOO_EARLY, [older]),
        (claims.ONLY_DAY, [of_the_day]),
        (claims.NO_TIME, [timeless]),
        (claims.IN_THE_FUTURE, [future]),
        (claims.NOTHING, []),
    ]
    # Their numbers identify two of them.
    named = payment("B6", "92.00", of_the_day, **today), payment("B7", "93.00", timeless, since=None)
    assert matched(*named) == [(BY_NUMBER, [of_the_day]), (BY_NUMBER, [timeless])]


def test_several_rows_of_one_amount_are_not_matched_by_amount(claimed, matched):
    claimed("88.00")
    for second in (
        payment("B2", "88.00"),
        payment("B2", "88.00", since=None),
        unclear("B2", "88.00"),
        payment("B1", "88.00"),  # repeated
    ):
        (why, _), (other, _) = matched(payment("B1", "88.00"), second)
        assert why == claims.SAME_AMOUNT
        assert other not in (BY_NUMBER, BY_AMOUNT)


def test_a_note_that_is_damaged_or_not_read_to_its_end_is_to_decide(claimed, matched):
    order_no = claimed("88.00", merchant_order_no="SHOP-1001")
    for note in ("订\ufffd", "SHOP-1001\ufffd", f"\ufffd {order_no}"):
        assert matched(payment("B1", "88.00", note)) == [(claims.DAMAGED_NOTE, [order_no])], note
    assert matched(payment("B1", "88.00", "好" * received.LONGEST_NOTE)) == [(claims.MAY_NAME, [order_no])]


@pytest.mark.parametrize("kind", ["claim", "late payment", "late payment that was credited", "another amount"])
def test_a_transfer_recorded_without_its_id_does_not_credit_a_second_deposit(claimed, matched, flask, ahead, kind):
    without_id = claimed("99.00" if kind == "another amount" else "88.00")
    if "late" in kind:
        flask("order", "not-received", without_id)
    flask("order", "paid", without_id, "--amount", "88.00")
    if "credited" in kind:
        flask("order", "resolve", without_id, "--credit")
    second = claimed("88.00")
    assert matched(payment("B1", "88.00")) == [(claims.UNNUMBERED, [without_id])]
    assert matched(payment("B1", "88.00", second)) == [(BY_NUMBER, [second])]
    ahead(10 * DAY)  # a confirmation long before the file is not its payment
    assert matched(payment("B1", "88.00")) == [(BY_AMOUNT, [second])]


def test_what_an_operator_typed_in_place_of_an_id_is_none(claimed, flask, matched):
    first = claimed("88.00")
    flask("order", "paid", first, "--reference", "B9")
    Order.update(channel_reference="-").where(Order.order_no == first).execute()  # recorded before 0.5.0
    claimed("88.00")
    assert matched(payment("B1", "88.00")) == [(claims.UNNUMBERED, [first])]


@pytest.mark.parametrize(
    "objection", [claims.UNNUMBERED, claims.SIMILAR, claims.IN_THE_FUTURE, claims.AMOUNT_TAKEN_BACK]
)
@pytest.mark.parametrize("note", ["", "\ufffd", "9 8", "part"], ids=["several", "damaged", "both", "part"])
def test_what_speaks_against_a_payment_leaves_no_choice_between_claims(claimed, flask, app, objection, note):
    typed = {claims.UNNUMBERED: [], claims.SIMILAR: ["--reference", "12345678"]}
    if objection in typed:
        flask("order", "paid", claimed("88.00"), *typed[objection])
    first, second = claimed("88.00"), claimed("88.00")
    note = {"9 8": f"{first} {second}", "part": second[:23]}.get(note, note)
    at = clock.now() + (5 * DAY if objection == claims.IN_THE_FUTURE else 0)
    rows = [payment("B0012345678", "88.00", note, since=at)]
    channel = Channel.get_by_id(MANUAL)

    def choosable(row):
        return [order.order_no for order in row.orders if row.may_be_for(order, channel)]

    if objection == claims.AMOUNT_TAKEN_BACK:
        assert choosable(match(movements(rows)).rows[0]), "without the reversal"
        rows.append(payment("R1", "88.00", kind=Kind.TAKEN_BACK, why=OperatorError("Taken back.")) | {"amount": -8_800})
    row = match(movements(rows)).rows[0]
    assert (row.why, choosable(row)) == (objection, [])


# Recorded before


@pytest.fixture
def recorded(claimed, flask):
    """`recorded("B1")`: the number of a deposit whose payment of 88.00 was confirmed with this transaction ID."""

    def confirm(reference, amount="88.00"):
        order_no = claimed(amount)
        flask("order", "paid", order_no, "--reference", reference)
        return order_no

    return confirm


def test_a_payment_is_recorded_before_by_its_id_and_amount(recorded, claimed, world, flask, matched):
    first, other_amount, payout = recorded("B1"), recorded("B2"), walks.sell_accepted(world, MANUAL)
    flask("order", "paid", payout, "--reference", "B3")
    both = [claimed("30.00"), claimed("58.00")]
    for order_no in both:
        flask("order", "paid", order_no, "--reference", "B4", "--shared-reference")
    waiting = claimed("88.00")
    assert matched(
        payment("B1", "88.00"),
        payment("B2", "89.00"),
        payment("B3", "100.00"),
        payment("B4", "88.00"),
        payment("B1", "88.00", waiting),
    ) == [
        (RECORDED, [first]),
        (claims.OTHER_RECORD, [other_amount]),
        (claims.OTHER_RECORD, [payout]),
        (RECORDED, both),
        (claims.OTHER_ORDER, [first, waiting]),
    ]


def test_a_payment_of_another_amount_is_recorded_with_its_exception(world, flask, matched):
    order_no = walks.deposit_claimed_and_wrong(world)  # 99.00 of 100.00
    row = payment(f"BANK-{order_no}", "99.00")
    assert matched(row) == [(RECORDED, [order_no])]
    flask("order", "resolve", order_no, "--refund", "--reference", "BACK-1")
    assert matched(row) == [(RECORDED, [order_no])]


def test_the_transfer_of_returned_money_is_no_payment_of_a_claim(claimed, world, flask, matched, ahead):
    payout, waiting = walks.sell_accepted(world, MANUAL), claimed("50.00")
    flask("order", "paid", payout, "--reference", "OUT-1")
    flask("order", "returned", payout, "--yes", "--reference", "RET-1")
    sent_back = walks.deposit_claimed_and_wrong(world)
    flask("order", "resolve", sent_back, "--refund", "--reference", "BACK-1")
    at = clock.now()
    for _ in range(2):
        assert matched(
            payment("RET-1", "50.00", since=at),
            payment("RET-1", "99.00", since=at),
            payment("RET-1", "50.00", waiting, since=at),
            payment("RET-1", "50.00", since=at + 10 * DAY),
            payment("BACK-1", "50.00", since=at),
        ) == [
            (RECORDED, [payout]),
            (claims.RETURNED_MONEY, [payout]),
            (claims.OTHER_ORDER, [payout, waiting]),
            (claims.RETURNED_MONEY, [payout]),
            (claims.RETURNED_MONEY, [sent_back]),
        ]
        ahead(10 * DAY)
    assert matched(payment("RET-2", "50.00")) == [(BY_AMOUNT, [waiting])]


def test_a_repeated_line_counts_once_and_one_id_of_two_amounts_identifies_neither(claimed, matched):
    order_no = claimed("88.00")
    row = payment("B1", "88.00", order_no)
    assert matched(row, row) == [(BY_NUMBER, [order_no]), (claims.REPEATED, [order_no])]
    assert matched(row, payment("B1", "80.00")) == [(claims.REPEATED, [order_no]), (claims.REPEATED, [])]


def test_a_recorded_id_that_the_bank_uses_again_later_is_to_decide(recorded, matched, ahead):
    order_no, at = recorded("7001"), clock.now()
    ahead(10 * DAY)
    assert matched(payment("7001", "88.00")) == [(claims.LATER, [order_no])]
    assert matched(payment("7001", "88.00", since=at)) == [(RECORDED, [order_no])]


@pytest.mark.parametrize("typed", ["12345678", "00012345678", "b00012345678", "5678"])
def test_a_similar_id_of_a_recorded_payment_is_not_matched_by_the_amount(recorded, claimed, matched, typed):
    first = recorded(typed)
    claimed("88.00")
    assert matched(payment("B00012345678", "88.00")) == [(claims.SIMILAR, [first])]


def test_a_payment_that_another_channel_has_is_not_matched_again(claimed, world, flask, flask_json, matched):
    new = ("channel", "add", "--category", "gateway_b", "--driver", "manual", "--name", "Same account")
    there = flask_json(*new, "--config", "qr_wxpay=wxp://own-static-code")["id"]
    flask("channel", "link", there, "demo")
    first = world.api.buy("88.00", there).data["order_no"]
    flask("order", "paid", first, "--reference", "B1")
    second = claimed("88.00")
    for note in ("", second):
        assert matched(payment("B1", "88.00", note)) == [(claims.OTHER_CHANNEL, [first])]
    assert matched(payment("B2", "88.00")) == [(BY_AMOUNT, [second])]


# Reversals


@pytest.fixture
def read(app):
    """`read("B1,88.00,note", ...)`: the result of a file: transaction ID, amount, note, original ID, status."""
    names = ["id", "amount", "note", "original", "status", "time"]
    roles = [Role.REFERENCE, Role.SIGNED, Role.NOTE, Role.ORIGINAL, Role.STATUS, Role.TIME]

    def rows(*lines):
        now = datetime.fromtimestamp(clock.now(), CHINA).strftime("%Y-%m-%d %H:%M:%S")
        padded = [",".join([*line.split(","), "", "", ""][:4]) for line in lines]
        rows = [f"{line},{'已退款' if 'returned' in line else '交易成功'},{now}" for line in padded]
        raw = "\n".join([",".join(names), *rows]).encode()
        return told(match(received.read(raw, [layouts.confirmed(names, roles)]).rows))

    return rows


TAKES_BACK = (f"not money in: {received.TAKES_BACK}", [])


@pytest.mark.parametrize("row", ["R1,-88.00,,B1", "B1,-88.00"], ids=["original", "same ID"])
def test_a_claim_whose_payment_the_file_takes_back_is_to_decide(claimed, read, row):
    order_no = claimed("88.00")
    for note in (order_no, ""):
        assert read(f"B1,88.00,{note}", row) == [(received.TAKEN_BACK, [order_no]), TAKES_BACK]


def test_a_payment_that_the_file_takes_back_and_nobody_waits_for_is_no_payment(read):
    assert read("B1,88.00", "R1,-88.00,,B1") == [(f"not money in: {received.TAKEN_BACK}", []), TAKES_BACK]


@pytest.mark.parametrize("row", ["R1,-8.00,,B1", "B1,-8.00,冲正"], ids=["original", "same ID"])
def test_a_part_that_is_taken_back_leaves_both_rows_to_decide(claimed, read, row):
    order_no = claimed("88.00")
    (why, orders), (back, _) = read(f"B1,88.00,{order_no}", row)
    assert orders == [order_no]
    assert not {why, back} & {BY_NUMBER, BY_AMOUNT, RECORDED}
    assert "not money in" not in why + back


def test_a_reversal_without_its_payment_stops_all_payments_of_its_amount(claimed, read):
    first, second = claimed("88.00"), claimed("70.00")
    *stopped, other = read(f"B1,88.00,{first}", "B2,88.00", "R1,-88.00,冲正", f"B3,70.00,{second}")
    assert other == (BY_NUMBER, [second])
    for why, _ in stopped:
        assert why not in (BY_NUMBER, BY_AMOUNT)
        assert "not money in" not in why


def test_an_amount_that_was_taken_back_once_does_not_identify_a_claim(claimed, read):
    order_no = claimed("88.00")
    assert read("B1,88.00", "R1,-88.00,,B1", "B2,88.00") == [
        (received.TAKEN_BACK, [order_no]),
        TAKES_BACK,
        (claims.AMOUNT_TAKEN_BACK, [order_no]),
    ]


def test_a_reversal_of_a_confirmed_payment_names_its_order(recorded, flask, read):
    order_no = recorded("B1")
    takes_back = (claims.TAKES_BACK_RECORDED, [order_no])
    assert read("B1,88.00", "R1,-88.00,,B1") == [(RECORDED, [order_no]), takes_back]
    for row in ("R1,-88.00,,B1", "B1,-88.00", "R1,-8.00,,B1", "B1,88.00,returned"):  # in a later file
        assert read(row) == [takes_back], row
    without_id = read("B1,88.00", "R1,-88.00,冲正")
    assert [orders for _, orders in without_id] == [[order_no], [order_no]]
    assert without_id[0][0] == RECORDED != without_id[1][0]
    # A part that is recorded as taken back does not explain a second one.
    flask("order", "paid", order_no, "--reference", "B1", "--amount", "80.00")
    assert read("B1,88.00", "R2,-8.00,,B1") == [(RECORDED, [order_no]), takes_back]


@pytest.mark.parametrize("days", [0, 1])
def test_a_reversal_is_recorded_before_once_all_of_the_payment_is_recorded_as_taken_back(recorded, flask, read, days):
    flask("channel", "set", MANUAL, "--settlement-days", days)
    order_no, row = recorded("B1"), "R1,-88.00,,B1"
    assert read(row) == [(claims.TAKES_BACK_RECORDED, [order_no])]
    flask("order", "paid", order_no, "--reference", "B1", "--amount", "0")
    assert read(row) == [(RECORDED, [order_no])]
    assert read("B1,88.00", row) == [(RECORDED, [order_no])] * 2


@pytest.mark.parametrize("kind", [Kind.NOT_MONEY_IN, Kind.UNCLEAR])
def test_a_file_that_contradicts_a_recorded_payment_names_its_order(recorded, matched, kind):
    order_no = recorded("B1")
    row = payment("B1", "88.00", kind=kind, why=OperatorError("The money was not received."))
    assert matched(row) == [(claims.CONTRADICTED, [order_no])]


# Other rows, and the sums


def test_each_row_is_counted_once_and_the_sums_are_those_of_the_file(recorded, claimed):
    confirmed, order_no = recorded("B1"), claimed("70.00")
    sent = payment("S1", "30.00", kind=Kind.NOT_MONEY_IN, why=OperatorError("Money was sent.")) | {"amount": -3_000}
    unreadable = payment("U2", "1.00", kind=Kind.UNCLEAR, why=OperatorError("Unreadable.")) | {"amount": None}
    rows = payment("B1", "88.00"), payment("B2", "70.00", order_no), sent, unclear("U1", "7.00", order_no), unreadable
    found = match(movements(rows))
    assert told(found) == [
        (RECORDED, [confirmed]),
        (BY_NUMBER, [order_no]),
        ("not money in: Money was sent.", []),
        ("Unknown status.", [order_no]),
        ("Unreadable.", []),
    ]
    assert {outcome: found.sums(outcome) for outcome in Outcome} == {
        Outcome.MATCHED: (1, 7_000, 0),
        Outcome.RECORDED: (1, 8_800, 0),
        Outcome.NOT_MONEY_IN: (1, 0, 3_000),
        Outcome.TO_DECIDE: (2, 700, 0),
    }
    assert found.sums() == (5, 16_500, 3_000)


def test_more_matches_than_one_confirmation_takes_wait_for_the_next_upload(claimed, matched, monkeypatch):
    monkeypatch.setattr(claims, "MOST_AT_ONCE", 1)
    first, second = claimed("10.00"), claimed("11.00")
    rows = payment("B1", "10.00"), payment("B2", "11.00")
    assert matched(*rows) == [(BY_AMOUNT, [first]), (claims.TOO_MANY, [second])]
