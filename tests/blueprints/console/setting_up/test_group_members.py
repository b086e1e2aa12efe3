"""The members of a group of channels on its page: who is allowed to change them, their limits, their order."""

import pytest

from models.tables.channel import ChannelMember
from tests.blueprints.console.setting_up.filling import Page

B, D = 2, 4  # channels of the category gateway_b


@pytest.fixture
def group(fill):
    """A group with the mode `weight` and without members."""
    made = fill("channel/new?driver=group", name="All", category="gateway_b", config_mode="weight")
    assert made.status_code == 303, Page(made.text).problems
    return f"channel/{made.headers['Location'].rsplit('/', 1)[1]}"


@pytest.fixture
def add(fill, group):
    """`add(B, weight="3")`: add a channel to the group by the form."""

    def send(channel, **typed):
        answer = fill(f"{group}/members/new", channel=channel, **typed)
        assert answer.status_code == 303, Page(answer.text).problems

    return send


@pytest.fixture
def rows(page, group):
    """`rows()`: the rows of the table of members."""
    return lambda: page(group).rows


def test_channels_are_added_with_their_limits_and_shown_in_their_order(page, group, add, rows, audited):
    assert "This group has no channels yet" in page(group).text
    add(D)
    add(B, weight="30", min_amount="10", daily_amount="5,000", daily_count="20", hours="00:00-23:59")
    first, second = rows()
    assert (first["Channel"], first["Today"], first["Hours"]) == ("Sandbox D 4 Alipay", "no limit", "all day")
    assert second["Channel"] == "Sandbox B 2 WeChat Pay, Alipay, Bank transfer"
    assert (second["Weight"], second["Amount of a deposit (¥)"]) == ("30", "from 10.00")
    assert second["Today"] == "¥0.00 of ¥5,000.00 0 of 20 deposits"
    assert "demo add member channel 5 channel: - -> 2 Sandbox B; weight: - -> 30;" in audited()[-1]
    event = page("audit/").rows[0]
    assert event["Event"] == "demo added a channel to group All"
    assert "Daily amount: - → 5,000 ¥" in event["Details"]


def test_only_channels_that_fit_can_be_chosen(page, group, add, flask, console):
    choices = Page(page(f"{group}/members/new").html)
    assert choices.form().sent["channel"] == str(B)
    add(B)
    add(D)
    assert "No other channel fits" in page(f"{group}/members/new").text
    token = choices.form().sent["csrf_token"]
    refused = console.post(f"/console/{group}/members/new", data={"csrf_token": token, "channel": "1", "weight": "1"})
    assert refused.status_code == 422


def test_limits_are_changed_and_invalid_ones_are_shown_at_their_fields(fill, wrong, group, add, rows, page, audited):
    add(B)
    path = f"{group}/members/{B}"
    assert wrong(path, min_amount="10", max_amount="9") == {"min_amount": "The minimum amount is above the maximum."}
    assert wrong(path, hours="9-5") == {"hours": "Enter hours such as 09:00-21:00, or nothing for the whole day."}
    assert set(wrong(path, weight="0", daily_amount="0", daily_count="x")) == {"weight", "daily_amount", "daily_count"}
    before = audited()
    assert (fill(path).status_code, audited()) == (303, before), "an unchanged form changes nothing"
    fill(path, max_amount="500", weight="7")
    assert (rows()[0]["Amount of a deposit (¥)"], rows()[0]["Weight"]) == ("up to 500.00", "7")
    assert page("audit/").rows[0]["Details"].startswith("Channel: 2 Sandbox B; Weight: 1 → 7; Maximum")
    fill(path, max_amount="")
    assert rows()[0]["Amount of a deposit (¥)"] == "as the channel"


def test_a_change_by_someone_else_is_not_overwritten(console, group, add, flask):
    add(B)
    form = Page(console.get(f"/console/{group}/members/{B}").text).form()
    flask("group", "set", group.rsplit("/", 1)[1], B, "--weight", "9")
    answer = console.post(f"/console/{group}/members/{B}", data=form.fill({"weight": "5"}))
    assert "Someone else changed this in the meantime." in answer.text
    assert ChannelMember.get().weight == 9


def test_members_move_up_and_down_and_leave(console, page, send, group, add, rows):
    add(B)
    add(D)
    send(f"{group}/members/{D}/place", place="1")
    assert [row["Channel"][:9] for row in rows()] == ["Sandbox D", "Sandbox B"]
    assert send(f"{group}/members/{D}/place", place="x").status_code == 400
    send(f"{group}/members/{D}/remove")
    assert "Sandbox D is no longer in this group." in page(group).text
    assert [row["Channel"][:9] for row in rows()] == ["Sandbox B"]
    assert send(f"{group}/members/{D}/remove").status_code == 404
    page(f"{group}/members/{D}", status=404)
    page(f"channel/{B}/members/new", status=404)


def test_weights_are_shown_only_if_they_have_an_effect(fill, group, add, page, rows):
    add(B, weight="30")
    fill(group, config_mode="priority")
    assert "Weight" not in rows()[0]
    assert "The first channel that can take a deposit gets it." in page(group).text
    fill(f"{group}/members/{B}", max_amount="500")
    assert ChannelMember.get().weight == 30


def test_the_reason_why_a_channel_takes_nothing_is_shown(flask, group, add, rows):
    add(B)
    assert rows()[0]["Status"] == "Takes deposits"
    flask("channel", "set", B, "--disabled")
    assert rows()[0]["Status"] == "No deposits now The channel is disabled."


def test_viewers_see_the_members_and_change_nothing(viewer, page, send, group, add):
    add(B)
    shown = page(group, client=viewer)
    assert shown.rows[0]["Channel"].startswith("Sandbox B")
    assert "Add channel" not in shown.text
    for path in (f"{group}/members/new", f"{group}/members/{B}"):
        page(path, client=viewer, status=403)
    for path in (f"{group}/members/{B}/place", f"{group}/members/{B}/remove"):
        assert send(path, client=viewer, place="1").status_code == 403
    assert ChannelMember.select().count() == 1


def test_a_group_is_no_account_of_money(page, group, add):
    add(B)
    number = group.rsplit("/", 1)[1]
    page(f"account_balances/{number}", status=404)
    for path in ("account_balances/", "ledger/", "notifications/", "reconciliation/upload", "merchant/demo/adjust"):
        shown = page(path).html
        assert "Manual C" in shown, path
        assert ">All<" not in shown, path
        assert f"{number} · All" not in shown, path
