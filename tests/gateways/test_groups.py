"""Deposits through a group of channels: who gets them, when the next member does, and where the money is then."""

import re
from pathlib import Path

import pytest

from services.channels import bulkhead, groups
from tests.backups import Backup
from tests.upstreams.epay import KINDS

GUIDE = Path("docs/guides/groups.md")
held = set()


def line(failure):
    """The test holds what the guide's table says about this failure."""
    held.add(failure)
    return lambda test: test


def test_a_group_gives_each_deposit_to_its_first_member_while_that_one_works(api, members, order):
    made = members(2)
    answers = [api.buy(channel=made.group) for _ in range(3)]
    assert [each.code for each in answers] == [1, 1, 1]
    assert (len(made.platforms[0].orders), len(made.platforms[1].orders)) == (3, 0)
    found = order(answers[0].data["order_no"])
    assert (found.channel, found.group) == (made.channels[0], made.group)


def test_the_channel_list_shows_a_group_like_a_channel_with_the_methods_of_its_members(api, members, flask):
    made = members(2)
    flask("channel", "set", made.channels[0], "--pay-method", "wxpay")
    flask("channel", "set", made.channels[1], "--pay-method", "alipay")
    (shown,) = [each for each in api.call("getPayChannels", {}).data["list"] if each["id"] == made.group]
    assert (shown["name"], shown["pay_method"]) == ("Group", "wxpay,alipay")
    assert api.buy(channel=made.group, paychannel_paymethod="alipay").code == 1
    assert len(made.platforms[1].orders) == 1
    assert api.buy(channel=made.group, paychannel_paymethod="bank").code == 42200


@line("The channel refuses clearly, and the payer has seen nothing")
def test_a_member_that_refuses_clearly_is_replaced_by_the_next(api, members, order):
    made = members(3)
    made.platforms[0].kinds = made.platforms[1].kinds = ()
    answer = api.buy(channel=made.group)
    assert answer.code == 1
    order_no = answer.data["order_no"]
    assert [len(each.orders) for each in made.platforms] == [0, 0, 1]
    assert list(made.platforms[2].orders) == [f"{order_no}_3"]
    assert order(order_no).channel == made.channels[2]
    made.platforms[2].pay(f"{order_no}_3")
    assert made.platforms[2].notice(f"{order_no}_3", "1").to(api.send, order_no).status == 200
    assert api.status(order_no) == "completed"


@line("No other channel can take the order")
def test_if_all_members_refuse_the_order_is_cancelled(api, members):
    made = members(2)
    for platform in made.platforms:
        platform.kinds = ()
    assert api.buy(channel=made.group, merchant_order_no="A-1").code == 50201
    assert api.detail(merchant_order_no="A-1").data["status"] == "cancelled"


@line("The channel cannot be reached: nothing was sent")
def test_a_member_that_cannot_be_reached_is_replaced_by_the_next(api, members, cut_off, order):
    made = members(2)
    cut_off(made.channels[0])
    answer = api.buy(channel=made.group)
    assert (answer.code, len(made.platforms[1].orders)) == (1, 1)
    found = order(answer.data["order_no"])
    assert found.channel == made.channels[1]
    assert found.tried == [{"channel": "Platform 0", "detail": "no response from 127.0.0.1: ConnectionError"}]


@line("The channel takes the request and gives no usable response")
@pytest.mark.parametrize("fault", ["lost", "half", "garbage", "unheard", "broken"])
def test_after_an_unknown_outcome_no_other_member_gets_the_order(api, members, order, fault):
    made = members(2)
    made.platforms[0].fails(fault)
    answer = api.buy(channel=made.group)
    assert (answer.code, api.status(answer.data["order_no"])) == (1, "pending")
    assert order(answer.data["order_no"]).channel == made.channels[0]
    assert made.platforms[1].orders == {}


def test_a_payment_that_is_refused_when_its_page_is_viewed_is_opened_at_the_next_member(api, members, payer, order):
    made = members(2, open_on_view="true")
    made.platforms[0].kinds = ()
    order_no = api.buy(channel=made.group).data["order_no"]
    page = payer("pc").opens(order_no)
    assert list(made.platforms[1].orders) == [f"{order_no}_2"]
    assert made.platforms[1].orders[f"{order_no}_2"]["trade_no"] in page or payer("pc").is_ready(order_no)
    made.platforms[1].pay(f"{order_no}_2")
    made.platforms[1].notice(f"{order_no}_2", "1").to(api.send, order_no)
    assert order(order_no).channel == made.channels[1]


@line("The channel fails after a payer has seen a payment")
def test_once_a_payer_saw_a_payment_no_other_member_gets_the_order(api, members, payer, order):
    made = members(2, open_on_view="true")
    order_no = api.buy(channel=made.group).data["order_no"]
    payer("pc").opens(order_no)
    made.platforms[0].kinds = ()
    payer("mobile").opens(order_no)
    assert order(order_no).channel == made.channels[0]
    assert made.platforms[1].orders == {}


@line("The channel stops taking orders before the payer opens the page")
def test_a_member_that_was_disabled_before_the_page_was_viewed_is_replaced(api, members, payer, flask, order):
    made = members(2, open_on_view="true")
    order_no = api.buy(channel=made.group).data["order_no"]
    flask("channel", "set", made.channels[0], "--disabled")
    payer("pc").opens(order_no)
    assert (order(order_no).channel, made.platforms[0].orders) == (made.channels[1], {})
    assert len(made.platforms[1].orders) == 1


def test_after_an_unknown_outcome_a_view_of_the_page_does_not_replace_the_member(api, members, payer, flask, order):
    made = members(2)
    made.platforms[0].fails("lost")
    order_no = api.buy(channel=made.group).data["order_no"]
    flask("channel", "set", made.channels[0], "--disabled")
    payer("pc").opens(order_no)
    assert (order(order_no).channel, made.platforms[1].orders) == (made.channels[0], {})


@line("Money arrives only at a channel that had refused the order")
def test_money_at_a_member_that_had_refused_is_found_and_credited_there(api, members, order, due, ahead):
    made = members(2)
    refusing, other = made.platforms
    refusing.kinds = ()
    order_no = api.buy(channel=made.group).data["order_no"]
    refusing.has_after_all(other, order_no)
    assert refusing.notice(order_no, "1").to(api.send, order_no).status == 200
    due.orders()
    assert (api.status(order_no), order(order_no).channel) == ("completed", made.channels[0])
    assert f"{order_no}_2" in other.orders


@line("Money arrives at two channels")
def test_two_payments_at_two_members_are_one_credit_and_one_exception(api, members, order, due, exceptions, balances):
    made = members(2)
    refusing, other = made.platforms
    refusing.kinds = ()
    before = balances()
    order_no = api.buy(channel=made.group).data["order_no"]
    other.pay(f"{order_no}_2")
    other.notice(f"{order_no}_2", "1").to(api.send, order_no)
    assert api.status(order_no) == "completed"
    refusing.has_after_all(other, order_no)
    refusing.notice(order_no, "1").to(api.send, order_no)
    assert exceptions() == {order_no: "paid_twice"}
    assert balances()[0] == before[0] + 9_940
    assert order(order_no).channel == made.channels[1]


def test_a_member_cannot_report_the_payment_of_another_one(api, members):
    made = members(2)
    made.platforms[0].kinds = ()
    order_no = api.buy(channel=made.group).data["order_no"]
    made.platforms[0].orders[f"{order_no}_2"] = dict(made.platforms[1].orders[f"{order_no}_2"], status="1")
    assert made.platforms[0].notice(f"{order_no}_2", "1").to(api.send, order_no).status == 400
    assert api.status(order_no) == "pending"


def test_a_daily_limit_is_never_exceeded_and_an_order_that_ends_unpaid_leaves_its_room(api, members, flask, ahead, due):
    made = members(2, limits=("--daily-count", "2"))
    flask("group", "set", made.group, made.channels[1], "--daily-count", "1", "--daily-amount", "150")
    orders = [api.buy(channel=made.group) for _ in range(4)]
    assert [each.code for each in orders] == [1, 1, 1, 50300]
    assert [len(each.orders) for each in made.platforms] == [2, 1]
    assert orders[3].headers["Retry-After"] == "30"
    ahead(1_000)
    due.orders()
    assert api.status(orders[0].data["order_no"]) == "cancelled"
    assert api.buy(channel=made.group).code == 1


@pytest.mark.parametrize("limit", [("--daily-amount", "150"), ("--daily-count", "1")])
def test_a_daily_limit_holds_although_there_was_room_a_moment_ago(api, members, monkeypatch, limit):
    made = members(2, limits=limit)
    monkeypatch.setattr(groups, "why_full", lambda *_: "")  # another host took the room since
    assert [api.buy("100.00", made.group).code for _ in range(3)] == [1, 1, 50300]
    assert [len(each.orders) for each in made.platforms] == [1, 1]


def test_an_amount_that_no_member_ever_takes_is_an_invalid_field(api, members, flask):
    made = members(2)
    flask("group", "set", made.group, made.channels[0], "--max-amount", "100")
    flask("group", "set", made.group, made.channels[1], "--min-amount", "500", "--max-amount", "1000")
    assert api.buy("100.00", made.group).code == 1
    assert api.buy("500.00", made.group).code == 1
    assert [len(each.orders) for each in made.platforms] == [1, 1]
    gap = api.buy("200.00", made.group)
    assert (gap.code, gap.data) == (
        42200,
        {"cny_amount": ["This channel accepts 100.00 yuan or less, and 500.00 yuan or more."]},
    )
    assert api.buy("1000.01", made.group).data == {"cny_amount": ["This channel accepts 0.01 to 1000.00 yuan."]}


@pytest.mark.parametrize("settings_of_app", [{"requests_per_second": 10**6}])
def test_members_share_the_deposits_by_their_weights(api, members, flask):
    made = members(2, mode="weight")
    flask("group", "set", made.group, made.channels[0], "--weight", "9")
    assert {api.buy(channel=made.group).code for _ in range(60)} == {1}
    first, second = (len(each.orders) for each in made.platforms)
    assert first > second > 0


def test_no_withdrawal_goes_through_a_group(api, members):
    assert api.sell("50.00", members(1).group).code == 42200


@line("The channel was left out after many failures")
def test_a_member_that_keeps_failing_is_left_out_then_tried_by_one_order_and_used_again_once_it_works(
    api, members, ahead, order
):
    made = members(2)
    failing, other = made.platforms
    failing.kinds = ()
    for _ in range(7):
        assert api.buy(channel=made.group).code == 1
    assert (len(failing.calls), len(other.orders)) == (5, 7)
    ahead(61)
    trial = api.buy(channel=made.group).data["order_no"]
    api.buy(channel=made.group)
    assert (len(failing.calls), len(other.orders)) == (6, 9)
    assert order(trial).tried[0]["channel"] == "Platform 0"
    failing.kinds = KINDS
    ahead(61 + 300)
    for _ in range(3):
        api.buy(channel=made.group)
    assert (len(failing.orders), len(other.orders)) == (3, 9)


@line("The channel is disabled, takes no new orders, is outside its hours or at its limit")
def test_the_history_names_each_member_that_was_left_out_with_the_reason(api, members, flask, order):
    made = members(3)
    flask("channel", "set", made.channels[0], "--disabled")
    flask("channel", "set", made.channels[1], "--no-new-orders")
    found = order(api.buy(channel=made.group).data["order_no"])
    assert found.tried == [
        {"channel": "Platform 0", "detail": "The channel is disabled."},
        {"channel": "Platform 1", "detail": "The channel takes no new orders."},
    ]


def test_if_no_member_is_open_the_merchant_may_try_later(api, members, flask):
    made = members(2)
    for channel in made.channels:
        flask("channel", "set", channel, "--no-new-orders")
    answer = api.buy(channel=made.group)
    assert (answer.code, answer.headers["Retry-After"], answer.data) == (50300, "30", None)
    flask("channel", "set", made.group, "--disabled")
    assert api.buy(channel=made.group).code == 40403


@line("Too many requests wait for the channel already")
def test_too_many_waiting_calls_at_a_member_are_no_reason_to_wait_for_it(api, members, order, monkeypatch):
    made = members(2)
    monkeypatch.setitem(bulkhead._waiting(), made.channels[0], 1_000)
    assert order(api.buy(channel=made.group).data["order_no"]).channel == made.channels[1]


def test_a_payment_that_another_browser_opened_meanwhile_keeps_the_order_at_its_member(
    api, members, payer, order, monkeypatch
):
    made = members(2, open_on_view="true")
    order_no = api.buy(channel=made.group).data["order_no"]

    def opened_and_then_left_out(_):
        monkeypatch.undo()
        payer("mobile").opens(order_no)
        return "The channel is left out after failures."

    monkeypatch.setattr(groups, "why_not_passed_on", opened_and_then_left_out)
    payer("pc").opens(order_no)
    assert (order(order_no).channel, made.platforms[1].orders) == (made.channels[0], {})


def test_an_order_goes_to_the_fourth_member_if_three_cannot_be_reached(api, members, cut_off, order):
    made = members(4)
    for channel in made.channels[:3]:
        cut_off(channel)
    found = order(api.buy(channel=made.group).data["order_no"])
    assert (found.channel, [each["channel"] for each in found.tried]) == (
        made.channels[3],
        ["Platform 0", "Platform 1", "Platform 2"],
    )


def test_a_group_without_members_is_listed_without_methods_and_takes_no_deposits(api, members):
    made = members(0)
    (shown,) = [each for each in api.call("getPayChannels", {}).data["list"] if each["id"] == made.group]
    assert (shown["pay_method"], api.buy(channel=made.group).code) == ("", 42200)


def test_a_method_by_which_no_member_can_be_paid_is_an_invalid_field(api, members, add_channel, flask):
    made = members(0)
    flask("group", "add", made.group, add_channel("manual", {"account": "6222"}))
    answer = api.buy(channel=made.group, paychannel_paymethod="wxpay")
    assert (answer.code, list(answer.data)) == (42200, ["paychannel_paymethod"])
    assert api.buy(channel=made.group, paychannel_paymethod="bank").code == 1


@line("The database was restored after the order was created")
def test_an_order_from_before_a_restore_stays_at_its_member(app, instance, tmp_path, api, members, payer, order):
    made = members(2, open_on_view="true")
    order_no = api.buy(channel=made.group).data["order_no"]
    backup = Backup(instance, tmp_path)
    payer("pc").opens(order_no)
    backup.restore()
    made.platforms[0].kinds = ()
    payer("pc").opens(order_no)
    assert (order(order_no).channel, made.platforms[1].orders) == (made.channels[0], {})


def test_each_line_of_the_guide_has_a_test():
    table = GUIDE.read_text().partition("## What happens when a channel fails")[2].partition("\n## ")[0]
    first = [row.split(" | ")[0].removeprefix("| ") for row in table.splitlines() if row.startswith("| ")][1:]
    assert {re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", each) for each in first} == held


@pytest.mark.sqlite  # Postgres also needs its locks
def test_a_group_of_any_size_costs_one_statement_more_than_its_channel(api, add_channel, flask, flask_json, caplog):
    manual = ("--pay-method", "bank")
    channels = [add_channel("manual", {"account": "6222"}, *manual, "--name", f"Account {at}") for at in range(20)]
    numbers = {}
    for size in (2, 20):
        new = ("channel", "add", "--category", "gateway_b", "--driver", "group", "--name", f"Group of {size}")
        numbers[size] = flask_json(*new)["id"]
        flask("channel", "link", numbers[size], "demo")
        for channel in channels[:size]:
            flask("group", "add", numbers[size], channel)

    def statements(channel):
        api.buy(channel=channel, paychannel_paymethod="bank")  # what is read once is known now
        caplog.clear()
        with caplog.at_level("DEBUG", logger="peewee"):
            assert api.buy(channel=channel, paychannel_paymethod="bank").code == 1
        told = [record.getMessage() for record in caplog.records if record.name == "peewee"]
        return len([each for each in told if "revision" not in each])  # whether the cache is read again depends on time

    alone = statements(channels[0])
    assert [statements(numbers[size]) - alone for size in (2, 20)] == [1, 1]
