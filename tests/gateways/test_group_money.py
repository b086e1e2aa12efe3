"""Money at several members of a group: each payment is booked, questioned and refunded at its own channel."""

import pytest

from models.tables.channel import ChannelHealth, MemberDay
from models.tables.ledger import CLEARING, LedgerAccount
from models.tables.order import Order
from services.channels import bulkhead, health
from services.deposits import attempts
from tests.upstreams.epay import KINDS


@pytest.fixture
def passed_on(api, members):
    """`passed_on()`: a group of two, and the number of a deposit that the first member refused.

    With `is_paid`, it is paid at the second one.
    """

    def place(is_paid=False, **options):
        made = members(2, **options)
        first, second = made.platforms
        first.kinds = ()
        order_no = api.buy(channel=made.group).data["order_no"]
        if is_paid:
            second.pay(f"{order_no}_2")
            second.notice(f"{order_no}_2").to(api.send, order_no)
        return made, order_no

    return place


@pytest.fixture
def where(order, flask_json):
    """`where(order_no)`: the status, the channel, and each open exception with its channel."""

    def read(order_no):
        found = order(order_no)
        questioned = [(each["kind"], each["channel"]) for each in found.exceptions if not each["resolution"]]
        return found.status, found.channel, questioned

    return read


@pytest.fixture
def clearing(app):
    """`clearing()`: the balances of the accounts of the new channels in fen, without those of 0."""

    def read():
        mine = (LedgerAccount.kind == CLEARING, LedgerAccount.owner > 4)
        accounts = LedgerAccount.select().where(*mine, LedgerAccount.balance != 0)
        return {each.owner: each.balance for each in accounts}

    return read


def test_two_payments_that_one_check_finds_are_each_at_their_own_member(passed_on, where, due, ahead):
    made, order_no = passed_on()
    refusing, other = made.platforms
    refusing.has_after_all(other, order_no)
    other.pay(f"{order_no}_2")
    ahead(61)
    due.orders()
    status, channel, questioned = where(order_no)
    assert status == "completed"
    assert {channel, *(at for _, at in questioned)} == set(made.channels)
    assert [kind for kind, _ in questioned] == ["paid_twice"]


def test_a_part_of_the_money_at_one_member_does_not_take_the_payment_at_the_other(passed_on, where, due, ahead):
    made, order_no = passed_on()
    refusing, other = made.platforms
    refusing.has_after_all(other, order_no, money="1.00")
    other.pay(f"{order_no}_2")
    ahead(61)
    due.orders()
    assert where(order_no)[:2] == ("completed", made.channels[1])
    assert where(order_no)[2] in ([("wrong_amount", made.channels[0])], [("paid_twice", made.channels[0])])


def test_late_payments_at_both_members_stay_where_they_are(passed_on, where, due, ahead):
    made, order_no = passed_on()
    refusing, other = made.platforms
    refusing.has_after_all(other, order_no, status="0")
    ahead(1_000)
    due.orders()
    refusing.pay(order_no)
    other.pay(f"{order_no}_2")
    for seconds in (700, 3_600, 90_000):
        ahead(seconds)
        due.orders()
    status, _, questioned = where(order_no)
    assert (status, sorted(questioned)) == ("cancelled", [("late_payment", each) for each in made.channels])


def test_one_payment_of_a_refusing_member_for_two_orders_is_credited_once(passed_on, api, where, due, balances):
    made, first = passed_on()
    second = api.buy(channel=made.group).data["order_no"]
    refusing, other = made.platforms
    before = balances()[0]
    for order_no in (first, second):
        refusing.has_after_all(other, order_no)
        refusing.orders[order_no]["trade_no"] = "ONE-PAYMENT"
        refusing.notice(order_no).to(api.send, order_no)
        due.orders()
    assert balances()[0] - before == 9_940
    assert where(second)[2] == [("shared_reference", made.channels[0])]


def test_a_second_payment_is_refunded_by_the_member_that_has_it(passed_on, api, where, due, flask):
    made, order_no = passed_on(is_paid=True)
    refusing, other = made.platforms
    refusing.has_after_all(other, order_no)
    refusing.notice(order_no).to(api.send, order_no)
    assert where(order_no) == ("completed", made.channels[1], [("paid_twice", made.channels[0])])
    flask("order", "resolve", order_no, "--refund")
    due.orders()
    assert (len(refusing.refunds), len(other.refunds)) == (1, 0)
    assert where(order_no) == ("completed", made.channels[1], [])


def test_an_operator_credits_a_second_payment_to_the_account_of_its_own_channel(passed_on, api, due, flask, clearing):
    made, order_no = passed_on(is_paid=True)
    refusing, other = made.platforms
    refusing.has_after_all(other, order_no, money="30.00")
    refusing.notice(order_no).to(api.send, order_no)
    flask("order", "resolve", order_no, "--credit")
    assert clearing() == {made.channels[0]: -3_000, made.channels[1]: -10_000}


def test_an_order_that_an_operator_completes_belongs_to_the_member_with_its_money(
    passed_on, due, ahead, flask, where, clearing
):
    made, order_no = passed_on(limits=("--daily-count", "5"))
    refusing, other = made.platforms
    refusing.has_after_all(other, order_no, money="150.00")
    ahead(61)
    due.orders()
    flask("order", "resolve", order_no, "--complete", typed="y\n")
    assert where(order_no)[:2] == ("completed", made.channels[0])
    assert clearing() == {made.channels[0]: -15_000}
    assert {(day.member.channel_id, day.count) for day in MemberDay.select()} == {
        (made.channels[0], 1),
        (made.channels[1], 0),
    }


def test_money_at_a_refusing_member_is_found_although_the_present_one_has_no_status_checks(
    passed_on, api, where, due, ahead, flask
):
    made, order_no = passed_on()
    flask("channel", "set", made.channels[1], "--config", "no_status_checks=true", "--same-account")
    flask("channel", "set", made.channels[0], "--config", "ask_again=true", "--same-account")
    refusing, other = made.platforms
    refusing.has_after_all(other, order_no)
    assert refusing.notice(order_no).to(api.send, order_no).status == 200
    due.orders()
    assert where(order_no)[:2] == ("completed", made.channels[0])


def test_two_members_with_one_account_each_get_the_notices_of_their_own_numbers(passed_on, api, where, flask):
    made, order_no = passed_on()
    refusing, other = made.platforms
    other.key = refusing.key
    flask("channel", "set", made.channels[1], "--config", f"key={refusing.key}", "--same-account")
    refusing.has_after_all(other, order_no)
    assert refusing.notice(order_no).to(api.send, order_no).status == 200
    assert where(order_no)[:2] == ("completed", made.channels[0])


def test_a_browser_that_read_the_order_before_it_was_passed_on_opens_nothing(api, members, payer, order, monkeypatch):
    made = members(2, open_on_view="true")
    first, second = made.platforms
    order_no = api.buy(channel=made.group).data["order_no"]
    begun = attempts._begun

    def late(*arguments):
        monkeypatch.undo()
        first.kinds = ()
        payer("mobile").opens(order_no)
        first.kinds = KINDS
        return begun(*arguments)

    monkeypatch.setattr(attempts, "_begun", late)
    payer("pc").opens(order_no)
    assert (list(first.orders), len(second.orders), order(order_no).channel) == ([], 1, made.channels[1])


def test_a_member_without_room_counts_nothing(api, members, order, monkeypatch):
    made = members(3, limits=("--daily-count", "5"))
    made.platforms[0].kinds = ()
    real = health.begin_trial
    monkeypatch.setattr(
        health, "begin_trial", lambda channel, method: channel != made.channels[1] and real(channel, method)
    )
    assert order(api.buy(channel=made.group).data["order_no"]).channel == made.channels[2]
    counts = {day.member.channel_id: day.count for day in MemberDay.select()}
    assert counts.get(made.channels[1], 0) == 0


def test_calls_that_this_host_did_not_make_say_nothing_about_a_channel(api, members, monkeypatch):
    made = members(2)
    monkeypatch.setitem(bulkhead._waiting(), 999, 1_000)  # another channel is slow
    for _ in range(6):
        api.buy(channel=made.group)
    assert not ChannelHealth.select().exists()


def test_the_account_of_a_member_does_not_change_while_an_order_that_it_refused_is_watched(passed_on, flask):
    made, _ = passed_on()
    flask("channel", "set", made.channels[0], "--config", "pid=2002", fails=True)


def test_orders_that_all_members_refuse_turn_none_of_them_off(api, members):
    made = members(2)
    for platform in made.platforms:
        platform.kinds = ("alipay",)  # what this merchant wants is impossible
    assert {api.buy(channel=made.group, paychannel_paymethod="wxpay").code for _ in range(6)} == {50201}
    assert not ChannelHealth.select().exists()


@pytest.fixture
def much_later(ahead, due):
    """`much_later()`: all status checks of the next days were done."""

    def wait():
        for _ in range(30):
            ahead(3_600)
            due.orders()

    return wait


def test_money_at_a_member_is_found_although_all_refused_the_order(api, members, where, much_later):
    made = members(2)
    first, second = made.platforms
    first.kinds = second.kinds = ()
    order_no = api.buy(channel=made.group).data["order_no"]
    second.orders[f"{order_no}_2"] = {"trade_no": "T", "type": "wxpay", "name": "x", "money": "100.00", "pid": "1001"}
    first.has_after_all(second, order_no)
    second.orders.clear()
    much_later()
    assert where(order_no)[::2] == ("cancelled", [("late_payment", made.channels[0])])


def test_money_at_a_refusing_member_is_found_although_the_last_one_closed_its_payment(
    api, members, flask, where, ahead, due, much_later
):
    made = members(2)
    refusing, other = made.platforms
    pairs = [part for name, value in other.config("2").items() for part in ("--config", f"{name}={value}")]
    flask("channel", "set", made.channels[1], *pairs, "--same-account")
    refusing.kinds = ()
    order_no = api.buy(channel=made.group).data["order_no"]
    ahead(1_000)
    due.orders()
    assert where(order_no) == ("cancelled", made.channels[1], [])
    refusing.has_after_all(other, order_no)
    much_later()
    assert where(order_no)[2] == [("late_payment", made.channels[0])]


@pytest.mark.parametrize("with_notice", [True, False])
def test_two_payments_with_one_number_at_two_members_are_two_payments(passed_on, api, where, much_later, with_notice):
    made, order_no = passed_on(is_paid=True)
    refusing, other = made.platforms
    refusing.has_after_all(other, order_no)
    refusing.orders[order_no]["trade_no"] = other.orders[f"{order_no}_2"]["trade_no"]
    if with_notice:
        refusing.notice(order_no).to(api.send, order_no)
    much_later()
    assert where(order_no) == ("completed", made.channels[1], [("paid_twice", made.channels[0])])


def test_of_two_payments_with_one_number_the_one_that_its_member_lost_is_missing(passed_on, api, where, flask):
    made, order_no = passed_on(is_paid=True)
    refusing, other = made.platforms
    refusing.has_after_all(other, order_no)
    refusing.orders[order_no]["trade_no"] = other.orders[f"{order_no}_2"]["trade_no"]
    refusing.notice(order_no).to(api.send, order_no)
    other.orders[f"{order_no}_2"]["status"] = "0"
    flask("order", "check", order_no)
    assert where(order_no)[2] == [("paid_twice", made.channels[0]), ("reversed", made.channels[1])]


def test_an_order_that_an_operator_completes_has_the_cost_of_the_member_with_its_money(
    passed_on, flask, ahead, due, api
):
    made, order_no = passed_on()
    refusing, other = made.platforms
    flask("channel", "set", made.channels[0], "--cost", "1.00")
    ahead(1_000)
    due.orders()
    refusing.has_after_all(other, order_no)
    refusing.notice(order_no).to(api.send, order_no)
    flask("order", "resolve", order_no, "--complete", typed="y\n")
    order = Order.get(Order.order_no == order_no)
    assert (order.channel_id, order.cost_amount) == (made.channels[0], 100)
