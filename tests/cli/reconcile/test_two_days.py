"""`tillbook reconcile` of a payment and its refund in the statements of two days: every difference is reported."""

import pytest

from models.tables.order import Order
from tests.cli.reconcile.conftest import csv_of, line
from tests.support import completed
from tests.trial_service import Trial
from tests.upstreams.money_moves import Epay2

FIRST, SECOND = DAYS = ("2026-05-01", "2026-05-02")


@pytest.fixture(autouse=True)
def _refunds_are_made_at_the_channel(monkeypatch):
    """An operator returns money there; test_refunds.py has the refunds of this service."""
    monkeypatch.setattr(Trial, "refunds", False)


@pytest.fixture
def day(clock):
    """`day(SECOND)` moves the clock to noon of that day."""
    return lambda of: clock(f"{of} 12:00:00")


@pytest.fixture
def reconcile(differences):
    """`reconcile(day, *lines)`: the differences of one day; a line is (number, status, yuan, reference)."""

    def compare(day, *lines, **more):
        rows = [
            line(number, yuan, status=status, time=f"{day} 12:00:00", reference=reference)
            for number, status, yuan, reference in lines
        ]
        return differences(*rows, day=day, **more)

    return compare


@pytest.fixture
def kinds(reconcile):
    """`kinds(day, *lines)`: the kinds of the differences."""
    return lambda *arguments, **more: [each["kind"] for each in reconcile(*arguments, **more)]


@pytest.fixture
def deposit(api):
    """`deposit(kind)`: a deposit whose payment R-1 was reported, and the amount received, in fen."""
    amounts = {"exact": 10_000, "late": 10_000, "larger": 12_000, "smaller": 9_000}

    def paid(kind, reference="R-1"):
        order_no = api.buy().data["order_no"]
        if kind == "late":
            api.play(order_no, "fail")
        assert api.notice(order_no, amounts[kind], reference=reference).status == 200
        return order_no, amounts[kind]

    return paid


def yuan(fen):
    return f"{fen // 100}.{fen % 100:02d}"


RESOLUTIONS = {
    "exact": [""],
    "late": ["", "credit", "refund", "complete"],
    "larger": ["", "credit", "refund", "complete"],
    "smaller": ["", "credit", "refund"],
}


@pytest.mark.parametrize("kind", RESOLUTIONS)
def test_two_days_differ_exactly_if_ledger_and_channel_differ(deposit, flask, reconcile, day, kind):
    orders, agree, lines = {}, {}, {FIRST: [], SECOND: []}
    for settled in RESOLUTIONS[kind]:
        for refunded_on, part in ((None, 0), (FIRST, 4_000), (SECOND, 4_000), (FIRST, None), (SECOND, None)):
            reference = f"R-{len(orders)}"
            order_no, amount = deposit(kind, reference)
            back = amount if part is None else part
            orders[order_no] = settled, refunded_on, back
            lines[FIRST].append((order_no, "paid", yuan(amount), reference))
            if refunded_on:
                lines[refunded_on].append((order_no, "refunded", yuan(back), reference))
            # The amount that the channel must have according to the ledger.
            least = 0 if settled == "refund" else amount
            agree[order_no] = least <= amount - back and (settled or kind == "exact")
    day(SECOND)
    for order_no, (settled, _, _) in orders.items():
        if settled:
            flask("order", "settle", order_no, f"--{settled}", typed="y\n")
    for with_reference in (True, False):
        differ = set()
        for each in DAYS:
            rows = [(*row[:3], row[3] if with_reference else "") for row in lines[each]]
            differ |= {found["order_no"] for found in reconcile(each, *rows)}
        for order_no, story in orders.items():
            assert (order_no not in differ) is bool(agree[order_no]), (story, with_reference)


@pytest.mark.parametrize("left", [0, 6_000])
def test_a_refund_after_a_credit_is_reported_until_the_reversal_is_resolved(
    api, deposit, flask, reconcile, kinds, day, left
):
    order_no, amount = deposit("late")
    flask("order", "settle", order_no, "--credit")
    day(SECOND)
    back = (order_no, "refunded", yuan(amount - left), "R-1")
    (found,) = reconcile(SECOND, back)
    went_back = "the money went back there and is booked here; exceptions: late_payment (credit)"
    assert (found["kind"], found["line"], found["detail"]) == ("status", 2, went_back)
    api.notice(order_no, left, state="paid" if left else "failed", reference="R-1")
    (found,) = reconcile(SECOND, back)
    is_open = "the exception about what went back is open; exceptions: late_payment (credit), reversed (open)"
    assert (found["kind"], found["line"], found["detail"]) == ("status", 2, is_open)
    flask("order", "settle", order_no, "--refund")
    assert kinds(FIRST, (order_no, "paid", yuan(amount), "R-1")) == []
    assert kinds(SECOND, back) == []
    assert kinds(SECOND, back, (order_no, "refunded", "0.01", "R-1")) == ["status"]


def test_an_open_exception_refunded_in_the_statement_is_reported(api, deposit, reconcile, kinds):
    order_no, amount = deposit("late")
    back = (order_no, "refunded", yuan(amount), "R-1")
    (found,) = reconcile(SECOND, back)
    assert (found["kind"], "late_payment (open)" in found["detail"]) == ("status", True)
    api.notice(order_no, 0, state="failed", reference="R-1")  # closes it: returned
    assert kinds(FIRST, (order_no, "paid", yuan(amount), "R-1")) == []
    assert kinds(SECOND, back) == []
    assert kinds(FIRST, (order_no, "paid", yuan(amount + 1), "R-1")) != []


def test_money_refunded_before_its_credit_agrees_on_both_days(api, flask, kinds, day):
    flask("channel", "set", 2, "--settlement-days", 9)
    order_no = completed(api)
    day(SECOND)
    api.notice(order_no, 0, state="failed", reference=f"SB{order_no}")
    assert api.status(order_no) == "cancelled"
    for reference in (f"SB{order_no}", ""):
        assert kinds(FIRST, (order_no, "paid", "100.00", reference)) == []
        assert kinds(SECOND, (order_no, "refunded", "100.00", reference)) == []
    assert kinds(FIRST) == []


def test_a_refund_of_unknown_amount_is_reported_until_it_is_resolved(api, reconcile, kinds, flask, day):
    waiting, credited = api.buy().data["order_no"], completed(api)
    day(SECOND)
    api.notice(waiting, 0, state="returned", reference="R-1")
    api.notice(credited, 0, state="returned", reference=f"SB{credited}")
    for status in ("paid", "refunded"):
        lines = [(waiting, status, "100.00", "R-1"), (credited, status, "100.00", f"SB{credited}")]
        found = reconcile(FIRST, *lines)
        assert [(each["kind"], each["line"]) for each in found] == [("status", 2), ("status", 3)]
        assert "wrong_amount (open)" in found[0]["detail"]
        assert "reversed (open)" in found[1]["detail"]
    for order_no in (waiting, credited):
        flask("order", "settle", order_no, "--refund")
    assert kinds(FIRST, *lines) == []


def test_an_order_completed_with_a_larger_amount_is_compared_by_the_received_amount(
    deposit, flask, compared, reconcile, day
):
    order_no, _ = deposit("larger")
    day(SECOND)
    flask("order", "settle", order_no, "--complete", typed="y\n")
    content = csv_of(line(order_no, "120.00", time=f"{FIRST} 12:00:00", reference="R-1"))
    found = compared(content, "--since", FIRST, "--until", FIRST, "--fee-rate", "1", "--column", "fee=amount")
    assert found["sums"]["here"] == {"in": "120.00", "out": "0.00", "refunds": "0.00", "fees": "1.20"}
    assert [(each["kind"], each["here"]) for each in found["differences"]] == [("fee", {"fee": "1.20"})]
    (missing,) = reconcile(FIRST)
    assert (missing["kind"], missing["here"]["amount"]) == ("missing_there", "120.00")
    assert missing["detail"].startswith("completed with wrong_amount; told of here at 2026-05-01 12:00:00")
    assert reconcile(SECOND) == []
    (smaller,) = reconcile(FIRST, (order_no, "paid", "100.00", "R-1"))
    assert (smaller["kind"], smaller["here"]["amount"]) == ("amount", "120.00")


@pytest.mark.parametrize("kind", ["exact", "late"])
def test_an_amount_corrected_upwards_is_one_payment(api, deposit, flask, kinds, day, kind):
    order_no, _ = deposit(kind)
    if kind == "late":
        flask("order", "settle", order_no, "--credit")
    day(SECOND)
    api.notice(order_no, 12_000, reference="R-1")
    flask("order", "settle", order_no, "--credit")
    for reference in ("R-1", ""):
        assert kinds(FIRST, (order_no, "paid", "120.00", reference)) == []
        assert kinds(SECOND) == []
        assert kinds(FIRST, (order_no, "paid", "100.00", reference)) == ["amount"]
        assert kinds(SECOND, (order_no, "refunded", "20.00", reference)) == ["status"]


def test_a_deposits_own_payment_is_missing_although_a_second_one_has_a_line(api, flask, kinds):
    order_no = completed(api)
    api.notice(order_no, 10_000, reference="R-2")
    flask("order", "settle", order_no, "--refund")
    own, second = ((order_no, "paid", "100.00", reference) for reference in (f"SB{order_no}", "R-2"))
    assert kinds(FIRST, own, second) == []
    assert kinds(FIRST, second) == ["missing_there"]


def test_manually_returned_money_may_be_refunded_on_any_day_in_parts(deposit, flask, kinds, day):
    order_no, _ = deposit("larger")
    flask("order", "settle", order_no, "--refund")
    day(SECOND)
    part, rest = ((order_no, "refunded", amount, "R-1") for amount in ("50.00", "70.00"))
    assert kinds(FIRST, (order_no, "paid", "120.00", "R-1")) == []
    assert (kinds(SECOND, part), kinds(SECOND, part, rest)) == ([], [])
    assert kinds(SECOND, part, rest, part) == ["status"]


# Withdrawals


@pytest.fixture
def rejected(api, flask):
    """A rejected withdrawal of 100 yuan."""
    order_no = api.sell().data["order_no"]
    flask("order", "reject", order_no, "--reason", "no")
    return order_no


def paid_and(order_no, status, amount="100.00", reference="R-1"):
    return (order_no, "paid", amount, reference), (order_no, status, amount, reference)


@pytest.mark.parametrize("bounced", ["failed", "refunded"])
def test_a_rejected_withdrawal_deducted_later_is_compared_like_a_paid_one(api, rejected, flask, kinds, day, bounced):
    paid, back = paid_and(rejected, bounced)
    api.notice(rejected, 10_000)
    assert kinds(FIRST, paid) == ["status"]
    flask("order", "settle", rejected, "--complete")
    assert (kinds(FIRST, paid), kinds(SECOND, back)) == ([], ["status"])
    day(SECOND)
    api.notice(rejected, 10_000, state="failed")
    assert (kinds(FIRST, paid), kinds(SECOND, back)) == (["status"], ["status"])
    flask("order", "settle", rejected, "--credit")
    assert (kinds(FIRST, paid), kinds(SECOND, back), kinds(FIRST, paid, back)) == ([], [], [])


@pytest.mark.parametrize("final", ["paid", "failed"])
def test_a_withdrawal_reserved_again_is_compared_by_its_end(api, rejected, kinds, final):
    paid, failed = paid_and(rejected, "failed")
    api.notice(rejected, 10_000, state="open")
    assert (kinds(FIRST, paid), kinds(FIRST, failed)) == (["status"], ["status"])
    api.notice(rejected, 10_000, state=final)
    ends = ([], ["status"]) if final == "paid" else (["status"], [])
    assert (kinds(FIRST, paid), kinds(FIRST, failed)) == ends


def test_a_payout_of_a_rejected_withdrawal_that_bounced_agrees_on_both_days(api, rejected, kinds, day):
    paid, back = paid_and(rejected, "refunded")
    api.notice(rejected, 10_000)
    assert kinds(SECOND, back) == ["status"]
    day(SECOND)
    api.notice(rejected, 10_000, state="failed")
    assert (kinds(FIRST, paid), kinds(SECOND, back)) == ([], [])


def test_a_payout_credited_back_agrees_on_both_days(api, flask, later, kinds, day):
    order_no = api.sell().data["order_no"]
    flask("order", "accept", order_no)
    later(60, 2)
    paid, back = paid_and(order_no, "refunded", reference=f"SB{order_no}")
    assert (kinds(FIRST, paid), kinds(SECOND, back)) == ([], ["status"])
    day(SECOND)
    api.notice(order_no, 10_000, state="failed", reference=f"SB{order_no}")
    flask("order", "settle", order_no, "--credit")
    assert (kinds(FIRST, paid), kinds(SECOND, back)) == ([], [])


@pytest.mark.parametrize("in_progress", [True, False])
def test_a_cancelled_withdrawal_that_was_paid_is_missing(api, rejected, flask, compared, kinds, day, in_progress):
    if in_progress:
        api.notice(rejected, 10_000, state="open")
    api.notice(rejected, 10_000)
    day(SECOND)
    if not in_progress:
        assert kinds(FIRST) == []
        flask("order", "settle", rejected, "--complete")
    found = compared(csv_of(), "--since", FIRST, "--until", FIRST)
    assert [(each["kind"], each["order_no"]) for each in found["differences"]] == [("missing_there", rejected)]
    assert found["sums"]["here"]["out"] == "100.00"
    assert kinds(SECOND) == []
    assert kinds(FIRST, (rejected, "paid", "100.00", "R-1")) == []


def test_a_withdrawal_of_the_demos_seed_that_stayed_at_paid_agrees(api, flask, kinds):
    order_no = api.sell().data["order_no"]
    flask("order", "accept", order_no)
    Order.update(status="paid", channel_reference="R-1").where(Order.order_no == order_no).execute()
    paid, back = paid_and(order_no, "refunded")
    assert (kinds(FIRST, paid), kinds(SECOND, back)) == ([], ["status"])


# Reports of the channel without a line


@pytest.mark.parametrize("state", ["failed", "returned"])
def test_a_reversal_without_a_line_is_reported_while_it_is_open(api, reconcile, kinds, flask, day, state):
    order_no = completed(api)
    day(SECOND)
    api.notice(order_no, 0, state=state, reference=f"SB{order_no}")
    (found,) = reconcile(SECOND)
    assert (found["kind"], found["line"]) == ("missing_there", None)
    assert found["detail"] == "reported here as reversed at 2026-05-02 12:00:00; exceptions: reversed (open)"
    assert kinds(SECOND, (order_no, "refunded", "100.00", f"SB{order_no}")) == ["status"]
    flask("order", "settle", order_no, "--refund")
    assert kinds(SECOND) == []


def test_a_partial_refund_before_the_credit_agrees_on_both_days(api, web_server, flask, flask_json, later, kinds, day):
    platform = Epay2(web_server)
    pairs = [part for name, value in platform.config().items() for part in ("--config", f"{name}={value}")]
    new = ("channel", "add", "--category", "gateway_b", "--driver", "epay", "--name", "Upstream", *pairs)
    channel = flask_json(*new)["id"]
    flask("channel", "link", channel, "demo")
    order_no = api.buy(channel=channel).data["order_no"]
    later(900)
    platform.pay(order_no, 10_000)
    flask("order", "ask", order_no)
    day(SECOND)
    platform.give_back(order_no, 4_000, 6_000)
    flask("order", "ask", order_no)
    flask("order", "settle", order_no, "--credit")
    columns = ("status=status", "paid=paid", "refunded=refunded", "number=order_no", "amount=amount", "time=time")
    more = {"options": [part for column in columns for part in ("--column", column)], "channel": channel}
    for first, second, expected in (("100.00", "40.00", ([], [])), ("60.00", "40.01", (["amount"], ["status"]))):
        paid, back = (order_no, "paid", first, ""), (order_no, "refunded", second, "")
        assert (kinds(FIRST, paid, **more), kinds(SECOND, back, **more)) == expected
