"""`tillbook group`: the members of groups of channels, as an operator sets them up."""

import pytest

B, D, MANUAL = "2", "4", "3"  # channels of the category gateway_b, and one of gateway_c
FREE = {"min": None, "max": None, "daily_amount": None, "daily_count": None, "hours": "", "weight": 1}


@pytest.fixture
def group(flask, flask_json):
    """A group without members, which the merchant demo may use."""
    made = flask_json("channel", "add", "--driver", "group", "--category", "gateway_b", "--name", "All", *MODE)
    flask("channel", "link", made["id"], "demo")
    return str(made["id"])


MODE = ("--config", "mode=weight")


@pytest.fixture
def members(flask_json, group):
    """`members()` are the rows of `group members`, by channel, in their order."""
    return lambda: {row["channel"]: row for row in flask_json("group", "members", group)["members"]}


def _limits(row):
    return {name: row[name] for name in FREE}


def test_a_group_is_a_channel_and_its_members_are_in_the_order_in_which_they_were_added(flask, group, members):
    assert flask("group", "members", group).stdout == "mode  weight\n\nThis group has no members.\n"
    for number in (B, D):
        assert flask("group", "add", group, number).stdout == f"channel {number} is now a member of group {group}\n"
    found = members()
    assert [(each, row["position"], row["name"]) for each, row in found.items()] == [
        (2, 1, "Sandbox B"),
        (4, 2, "Sandbox D"),
    ]
    assert all(_limits(row) == FREE and row["why_not"] == {} for row in found.values())
    assert "takes deposits" in flask("group", "members", group).stdout


def test_an_unknown_mode_is_refused(refuses):
    add = ("channel", "add", "--driver", "group", "--category", "gateway_b", "--name", "All")
    assert "mode: Must be one of: priority, weight" in refuses(*add, "--config", "mode=any")


def test_the_limits_of_a_member_are_set_shown_and_removed(flask, group, members):
    given = {"--min-amount": "10", "--max-amount": "500.50", "--daily-amount": "9,000", "--daily-count": "7"}
    given |= {"--hours": "22:00-06:00", "--weight": "30"}
    flask("group", "add", group, B, *(part for pair in given.items() for part in pair))
    shown = {"min": "10.00", "max": "500.50", "daily_amount": "9000.00", "daily_count": 7}
    assert _limits(members()[2]) == shown | {"hours": "22:00-06:00", "weight": 30}
    assert (members()[2]["today_amount"], members()[2]["today_count"]) == ("0.00", 0)
    flask("group", "set", group, B, "--max-amount", "600")
    assert _limits(members()[2]) == shown | {"max": "600.00", "hours": "22:00-06:00", "weight": 30}
    for option in given.keys() - {"--weight"}:
        flask("group", "set", group, B, option, "none")
    assert _limits(members()[2]) == FREE | {"weight": 30}
    assert (members()[2]["today_amount"], members()[2]["today_count"]) == (None, None)


def test_a_member_with_a_new_place_moves_the_others(flask, flask_json, group, members):
    third = flask_json("channel", "add", "--category", "gateway_b", "--driver", "trial", "--name", "Third")["id"]
    for number in (B, D):
        flask("group", "add", group, number)
    flask("group", "add", group, third, "--position", "1")
    assert list(members()) == [third, 2, 4]
    flask("group", "set", group, D, "--position", "1")
    assert list(members()) == [4, third, 2]
    flask("group", "set", group, D, "--position", "50")
    assert list(members()) == [third, 2, 4]
    flask("group", "remove", group, B)
    assert [(each, row["position"]) for each, row in members().items()] == [(third, 1), (4, 2)]


def test_only_a_channel_that_fits_becomes_a_member(flask, flask_json, refuses, group):
    flask("group", "add", group, B)
    assert "This channel is a member already." in refuses("group", "add", group, B)
    assert "must have the category of the group" in refuses("group", "add", group, MANUAL)
    assert "A group cannot be a member of a group." in refuses("group", "add", group, group)
    slow = ("--category", "gateway_b", "--driver", "trial", "--name", "Slow", "--settlement-days", "1")
    later = flask_json("channel", "add", *slow)["id"]
    assert "of the channel is T+1, and that of the group is T+0" in refuses("group", "add", group, later)
    assert f"channel {B} is not a group" in refuses("group", "add", B, D)
    assert f"channel {D} is not a member of group {group}" in refuses("group", "set", group, D, "--weight", "2")
    assert "no channel 99" in refuses("group", "add", group, "99")


@pytest.mark.usefixtures("demo")
def test_a_group_has_at_most_fifty_members(flask, flask_json, refuses, group):
    made = ("channel", "add", "--category", "gateway_b", "--driver", "sandbox", "--name", "One of many")
    for _ in range(50):
        flask("group", "add", group, flask_json(*made)["id"])
    assert "A group has at most 50 members." in refuses("group", "add", group, B)


def test_limits_that_no_deposit_can_meet_are_refused(flask, refuses, group):
    flask("group", "add", group, B, "--min-amount", "10")
    flask("channel", "set", B, "--max", "1000")

    def wrong(*options):
        return refuses("group", "set", group, B, *options)

    assert "minimum amount is above the maximum" in wrong("--max-amount", "9.99")
    assert "takes no amount between these limits" in wrong("--min-amount", "1000.01")
    assert "Must be greater than 0." in wrong("--daily-amount", "0")
    assert "Enter hours such as 09:00-21:00" in wrong("--hours", "9-21")
    assert "Specify at least one option." in wrong()
    for option, value in (("--weight", "0"), ("--weight", "1001"), ("--daily-count", "0"), ("--position", "0")):
        assert "not in the range" in wrong(option, value)


def test_the_reason_why_a_member_takes_nothing_now_is_shown(flask, time_machine, group, members):
    time_machine.move_to("2026-05-01T04:00:00Z")  # noon in China
    flask("group", "add", group, B, "--hours", "22:00-06:00")
    other_times = "The group uses this channel at other times of the day."
    assert members()[2]["why_not"] == dict.fromkeys(("wxpay", "alipay", "bank"), other_times)
    assert other_times in flask("group", "members", group).stdout
    time_machine.move_to("2026-05-01T15:00:00Z")
    assert members()[2]["why_not"] == {}
    flask("channel", "set", B, "--disabled")
    assert set(members()[2]["why_not"].values()) == {"The channel is disabled."}


def test_a_group_takes_no_withdrawals(flask, api, group):
    flask("group", "add", group, B)
    assert api.sell(channel=int(group)).data == {"paychannel_paymethod": ["This channel pays out by: -."]}


def test_a_daily_limit_counts_the_orders_of_today_that_were_placed_before(flask, api, time_machine, group, members):
    flask("group", "add", group, B)
    time_machine.move_to("2026-05-01T15:59:59Z")  # the last second of the day in China
    api.buy("40.00", channel=int(group))
    time_machine.move_to("2026-05-01T16:00:00Z")
    api.buy("100.00", channel=int(group))
    api.play(api.buy("50.00", channel=int(group)).data["order_no"], "success")
    flask("group", "set", group, B, "--daily-count", "3")
    assert (members()[2]["today_amount"], members()[2]["today_count"]) == ("150.00", 2)
    api.buy("1.00", channel=int(group))
    assert set(members()[2]["why_not"].values()) == {"Its daily limit is reached."}
    assert api.buy("1.00", channel=int(group)).code == 50300


def test_open_orders_of_a_removed_member_continue(flask, api, group):
    flask("group", "add", group, B)
    order_no = api.buy(channel=int(group)).data["order_no"]
    flask("group", "remove", group, B)
    api.play(order_no, "success")
    assert api.status(order_no) == "completed"
    assert api.buy(channel=int(group)).code != 1


def test_a_disabled_group_responds_as_a_disabled_channel(flask, api, group):
    flask("group", "add", group, B)
    flask("channel", "set", group, "--disabled")
    flask("channel", "set", B, "--disabled")
    of_group, of_channel = (api.buy(channel=int(each)).json for each in (group, B))
    assert of_group == of_channel
    assert of_group["code"] == 40403


def test_the_settlement_delay_of_a_group_with_members_and_of_its_members_cannot_change(flask, refuses, group):
    flask("group", "add", group, B)
    for number in (group, B):
        assert "Remove" in refuses("channel", "set", number, "--settlement-days", "1")
        flask("channel", "set", number, "--settlement-days", "0")
    flask("group", "remove", group, B)
    for number in (group, B):
        flask("channel", "set", number, "--settlement-days", "1")


def test_a_group_is_no_account_of_money(flask, flask_json, refuses, group):
    no_account = "A channel group has no account. Choose one of its channels."
    assert no_account in refuses("ledger", "record-balance", group, "100")
    assert no_account in refuses("ledger", "adjust", "demo", "1", "--reason", "gift", "--channel", group)
    assert no_account in refuses("reconcile", group, __file__)
    assert "offers no bills" in refuses("bill", "fetch", group, "2026-05-01")
    assert int(group) not in [row["channel"] for row in flask_json("ledger", "account-balances")]
    flask("ledger", "verify")


def test_the_check_of_a_group_says_that_its_members_are_checked(flask, group):
    flask("group", "add", group, B)
    assert "A channel group makes no calls. Test its members." in flask("channel", "check", group).stdout
