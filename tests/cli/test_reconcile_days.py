"""`tillbook reconcile` of a payment and its refund in the statements of two days: every difference is reported."""

import json
from datetime import datetime, timedelta, timezone

import pytest

from models.tables.order import Order
from tests.support import completed
from tests.upstreams.money_moves import Epay2

CHINA = timezone(timedelta(hours=8))
FIRST, SECOND = DAYS = ("2026-05-01", "2026-05-02")


@pytest.fixture(autouse=True)
def day(time_machine):
    """`day(SECOND)` moves the clock to noon of that day, in China; each test begins on the first day."""

    def at(text):
        time_machine.move_to(datetime.fromisoformat(f"{text} 12:00:00").replace(tzinfo=CHINA))

    at(FIRST)
    return at


@pytest.fixture
def reconcile(app, tmp_path):
    """`reconcile(day, *lines)`: the result for one day's statement; a line is (number, status, yuan, reference)."""

    def compare(day, *lines, options=(), channel=2):
        file = tmp_path / "statement.csv"
        rows = [f"{number},{status},{yuan},{day} 12:00:00,{reference}" for number, status, yuan, reference in lines]
        file.write_text("\n".join(("order_no,status,amount,time,reference", *rows, "")))
        arguments = ["reconcile", str(channel), str(file), "--since", day, "--until", day, "--json", *options]
        result = app.test_cli_runner().invoke(args=arguments)
        assert result.exit_code in (0, 3), result.output
        return json.loads(result.stdout)

    return compare


@pytest.fixture
def differences(reconcile):
    """`differences(day, *lines)`: the differences, each as (kind, line of the file, detail)."""

    def compare(*arguments, **options):
        found = reconcile(*arguments, **options)["differences"]
        return [(each["kind"], each["line"], each["detail"]) for each in found]

    return compare


@pytest.fixture
def kinds(differences):
    """`kinds(day, *lines)`: the kinds of the differences."""

    def compare(*arguments, **options):
        return [kind for kind, _, _ in differences(*arguments, **options)]

    return compare


@pytest.fixture
def deposit(api):
    """`deposit(kind)`: a deposit whose payment R-1 was reported, and the amount received, in fen."""
    amounts = {"exact": 10_000, "late": 10_000, "larger": 12_000, "smaller": 9_000}

    def paid(kind):
        order_no = api.buy().data["order_no"]
        if kind == "late":
            api.play(order_no, "fail")
        assert api.notice(order_no, amounts[kind], reference="R-1").status == 200
        return order_no, amounts[kind]

    return paid


def yuan(fen):
    return f"{fen // 100}.{fen % 100:02d}"


def settlements(kind):
    """The possible resolutions by an operator; "" for none."""
    if kind == "exact":
        return [""]
    return ["", "credit", "refund"] + (["complete"] if kind != "smaller" else [])


def lines_of(order_no, amount, parts, of_day, reference):
    """The lines of one day: the payment on the first, and refunds, in fen, by day."""
    paid = [(order_no, "paid", yuan(amount), reference)] if of_day == FIRST else []
    return paid + [(order_no, "refunded", yuan(fen), reference) for day, fen in parts if day == of_day]


@pytest.mark.parametrize("reference", ["R-1", ""])
@pytest.mark.parametrize("kind", ["exact", "late", "larger", "smaller"])
def test_two_days_differ_exactly_if_ledger_and_channel_differ(deposit, flask, reconcile, day, kind, reference):
    for settled in settlements(kind):
        for parts in ((), ((FIRST, "part"),), ((SECOND, "part"),), ((FIRST, "all"),), ((SECOND, "all"),)):
            day(FIRST)
            order_no, amount = deposit(kind)
            sizes = {"part": 4_000, "all": amount}
            back = [(of_day, sizes[size]) for of_day, size in parts]
            day(SECOND)
            if settled:
                flask("order", "settle", order_no, f"--{settled}", typed="y\n")
            # The amount that the channel must have according to the ledger.
            least = 0 if settled == "refund" else amount
            there = amount - sum(fen for _, fen in back)
            agree = least <= there <= amount and (settled or kind == "exact")
            found = [reconcile(each, *lines_of(order_no, amount, back, each, reference)) for each in DAYS]
            count = [each["order_no"] for view in found for each in view["differences"]].count(order_no)
            assert (count == 0) is bool(agree), (settled, parts, found)


@pytest.mark.parametrize("left", [0, 6_000])
def test_a_refund_after_a_credit_is_reported_until_the_reversal_is_resolved(
    api, deposit, flask, differences, day, left
):
    order_no, amount = deposit("late")
    flask("order", "settle", order_no, "--credit")
    day(SECOND)
    back = (order_no, "refunded", yuan(amount - left), "R-1")
    went_back = "the money went back there and is booked here; exceptions: late_payment (credit)"
    assert differences(SECOND, back) == [("status", 2, went_back)]
    api.notice(order_no, left, state="paid" if left else "failed", reference="R-1")
    is_open = "the exception about what went back is open; exceptions: late_payment (credit), reversed (open)"
    assert differences(SECOND, back) == [("status", 2, is_open)]
    flask("order", "settle", order_no, "--refund")
    assert differences(FIRST, (order_no, "paid", yuan(amount), "R-1")) == []
    assert differences(SECOND, back) == []
    assert [kind for kind, _, _ in differences(SECOND, back, (order_no, "refunded", "0.01", "R-1"))] == ["status"]


def test_an_open_exception_refunded_in_the_statement_is_reported(api, deposit, differences, flask):
    order_no, amount = deposit("late")
    back = (order_no, "refunded", yuan(amount), "R-1")
    (found,) = differences(SECOND, back)
    assert (found[0], "late_payment (open)" in found[2]) == ("status", True)
    api.notice(order_no, 0, state="failed", reference="R-1")  # closes it: returned
    assert differences(FIRST, (order_no, "paid", yuan(amount), "R-1")) == []
    assert differences(SECOND, back) == []
    assert differences(FIRST, (order_no, "paid", yuan(amount + 1), "R-1")) != []


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


def test_a_refund_of_unknown_amount_is_reported_until_it_is_resolved(api, differences, kinds, flask, day):
    waiting, credited = api.buy().data["order_no"], completed(api)
    day(SECOND)
    api.notice(waiting, 0, state="returned", reference="R-1")
    api.notice(credited, 0, state="returned", reference=f"SB{credited}")
    for status in ("paid", "refunded"):
        lines = [(waiting, status, "100.00", "R-1"), (credited, status, "100.00", f"SB{credited}")]
        found = differences(FIRST, *lines)
        assert [(kind, line) for kind, line, _ in found] == [("status", 2), ("status", 3)]
        assert ["wrong_amount (open)" in found[0][2], "reversed (open)" in found[1][2]] == [True, True]
    for order_no in (waiting, credited):
        flask("order", "settle", order_no, "--refund")
    assert kinds(FIRST, *lines) == []


def test_an_order_completed_with_a_larger_amount_is_compared_by_the_received_amount(deposit, flask, reconcile, day):
    order_no, _ = deposit("larger")
    day(SECOND)
    flask("order", "settle", order_no, "--complete", typed="y\n")
    found = reconcile(FIRST, (order_no, "paid", "120.00", "R-1"), options=("--fee-rate", "1", "--column", "fee=amount"))
    assert found["sums"]["here"] == {"in": "120.00", "out": "0.00", "fees": "1.20"}
    assert [(each["kind"], each["here"]) for each in found["differences"]] == [("fee", {"fee": "1.20"})]
    (missing,) = reconcile(FIRST)["differences"]
    assert (missing["kind"], missing["here"]["amount"]) == ("missing_there", "120.00")
    assert missing["detail"].startswith("completed with wrong_amount; told of here at 2026-05-01 12:00:00")
    assert reconcile(SECOND)["differences"] == []
    (smaller,) = reconcile(FIRST, (order_no, "paid", "100.00", "R-1"))["differences"]
    assert (smaller["kind"], smaller["here"]["amount"]) == ("amount", "120.00")


@pytest.mark.parametrize("kind", ["exact", "late"])
def test_an_amount_corrected_upwards_is_one_payment(api, deposit, flask, differences, day, kind):
    order_no, _ = deposit(kind)
    if kind == "late":
        flask("order", "settle", order_no, "--credit")
    day(SECOND)
    api.notice(order_no, 12_000, reference="R-1")
    flask("order", "settle", order_no, "--credit")
    for reference in ("R-1", ""):
        assert differences(FIRST, (order_no, "paid", "120.00", reference)) == []
        assert differences(SECOND) == []
        assert [kind for kind, _, _ in differences(FIRST, (order_no, "paid", "100.00", reference))] == ["amount"]
        assert [kind for kind, _, _ in differences(SECOND, (order_no, "refunded", "20.00", reference))] == ["status"]


def test_a_deposits_own_payment_is_missing_although_a_second_one_has_a_line(api, flask, differences):
    order_no = completed(api)
    api.notice(order_no, 10_000, reference="R-2")
    flask("order", "settle", order_no, "--refund")
    own, second = ((order_no, "paid", "100.00", reference) for reference in (f"SB{order_no}", "R-2"))
    assert differences(FIRST, own, second) == []
    assert [kind for kind, _, _ in differences(FIRST, second)] == ["missing_there"]


def test_manually_returned_money_may_be_refunded_on_any_day_in_parts(deposit, flask, kinds, day):
    order_no, _ = deposit("larger")
    flask("order", "settle", order_no, "--refund")
    day(SECOND)
    part, rest = ((order_no, "refunded", amount, "R-1") for amount in ("50.00", "70.00"))
    assert kinds(FIRST, (order_no, "paid", "120.00", "R-1")) == []
    assert (kinds(SECOND, part), kinds(SECOND, part, rest)) == ([], [])
    assert kinds(SECOND, part, rest, part) == ["status"]


# --- withdrawals


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
    differences = {line[1]: kinds(FIRST, line) for line in (paid, failed)}
    assert differences == {
        "paid": [] if final == "paid" else ["status"],
        "failed": [] if final == "failed" else ["status"],
    }


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
def test_a_cancelled_withdrawal_that_was_paid_is_missing(api, rejected, flask, reconcile, day, in_progress):
    if in_progress:
        api.notice(rejected, 10_000, state="open")
    api.notice(rejected, 10_000)
    day(SECOND)
    if not in_progress:
        assert reconcile(FIRST)["differences"] == []
        flask("order", "settle", rejected, "--complete")
    found = reconcile(FIRST)
    assert [(each["kind"], each["order_no"]) for each in found["differences"]] == [("missing_there", rejected)]
    assert found["sums"]["here"]["out"] == "100.00"
    assert reconcile(SECOND)["differences"] == []
    assert reconcile(FIRST, (rejected, "paid", "100.00", "R-1"))["differences"] == []


def test_a_withdrawal_of_the_demos_seed_that_stayed_at_paid_agrees(api, flask, kinds):
    order_no = api.sell().data["order_no"]
    flask("order", "accept", order_no)
    Order.update(status="paid", channel_reference="R-1").where(Order.order_no == order_no).execute()
    paid, back = paid_and(order_no, "refunded")
    assert (kinds(FIRST, paid), kinds(SECOND, back)) == ([], ["status"])


# --- reports of the channel without a line


@pytest.mark.parametrize("state", ["failed", "returned"])
def test_a_reversal_without_a_line_is_reported_while_it_is_open(api, differences, flask, day, state):
    order_no = completed(api)
    day(SECOND)
    api.notice(order_no, 0, state=state, reference=f"SB{order_no}")
    ((kind, line, detail),) = differences(SECOND)
    assert (kind, line) == ("missing_there", None)
    assert detail == "reported here as reversed at 2026-05-02 12:00:00; exceptions: reversed (open)"
    assert [kind for kind, _, _ in differences(SECOND, (order_no, "refunded", "100.00", f"SB{order_no}"))] == ["status"]
    flask("order", "settle", order_no, "--refund")
    assert differences(SECOND) == []


def test_a_partial_refund_before_the_credit_agrees_on_both_days(
    api, web_server, flask, flask_json, later, reconcile, day
):
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
    options = ("--column", "status=status", "--column", "paid=paid", "--column", "refunded=refunded")
    options += ("--column", "number=order_no", "--column", "amount=amount", "--column", "time=time")

    def kinds(day, *line):
        found = reconcile(day, (order_no, *line, ""), options=options, channel=channel)["differences"]
        return [each["kind"] for each in found]

    assert (kinds(FIRST, "paid", "100.00"), kinds(SECOND, "refunded", "40.00")) == ([], [])
    assert (kinds(FIRST, "paid", "60.00"), kinds(SECOND, "refunded", "40.01")) == (["amount"], ["status"])
