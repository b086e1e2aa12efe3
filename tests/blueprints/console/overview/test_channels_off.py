"""A channel whose new payments fail: an urgent alert with buttons, and a card on the channel's page."""

import pytest

from models.tables.channel import Channel
from services.channels import health
from services.merchants import cache
from tests.blueprints.console.overview.parts import alerts

REFUSED = "the merchant is limited"


@pytest.fixture(autouse=True)
def _looks(monkeypatch):
    monkeypatch.setattr(cache, "FRESH", -1)  # check the database for changes each time


@pytest.fixture
def fail(app):
    """`fail("wxpay")`: five payments by this method fail at channel 2."""

    def record(method="wxpay", times=5):
        for _ in range(times):
            health.record(2, method, REFUSED)

    return record


@pytest.fixture
def group(flask, flask_json):
    """The number of a group of the channels 2 and 4."""
    chosen = ("--driver", "group", "--category", "gateway_b", "--name", "All", "--config", "mode=priority")
    made = str(flask_json("channel", "add", *chosen)["id"])
    for channel in ("2", "4"):
        flask("group", "add", made, channel)
    return made


def test_a_failing_channel_is_one_urgent_alert(overview, verified, fail, ahead):
    fail(times=4)
    assert alerts(overview()) is None
    fail("wxpay", times=1)
    fail("alipay")
    severity, text = alerts(overview())
    assert severity == "urgent"
    assert text.startswith(
        "Urgent Sandbox B: new payments fail (Alipay, WeChat Pay). Failed: 10 of the last 10. "
        "Last reason: the merchant is limited."
    )
    assert "Orders that name this channel still try it." in text
    assert text.count("Sandbox B") == 1
    ahead(125)
    assert "Sandbox B: new payments have failed for 2 minutes (Alipay, WeChat Pay)." in alerts(overview())[1]


def test_the_alert_says_whether_groups_have_another_channel(overview, verified, fail, group, flask):
    fail("alipay")
    assert "Orders go through other channels of All." in alerts(overview())[1]
    flask("channel", "set", "4", "--disabled")
    assert "Orders through All stop." in alerts(overview())[1]


def test_the_alert_has_buttons_for_administrators(overview, verified, fail, send, page):
    fail()
    shown = overview()
    assert '<form method="post" action="/console/channel/2/try">' in shown.html
    assert '<form method="post" action="/console/channel/2/disable">' in shown.html
    assert "/channel/2/disable" not in overview(name="viewer").html
    answer = send("channel/2/disable")
    assert (answer.status_code, answer.location) == (303, "/console/channel/2")
    assert not Channel.get_by_id(2).enabled
    assert "Channel disabled." in page("channel/2").text
    assert alerts(overview()) is None
    assert page("audit/").column("Event")[0] == "demo changed the enabled of Sandbox B from yes to no"


def test_a_viewer_cannot_disable_a_channel(send, viewer):
    assert send("channel/2/disable", client=viewer).status_code == 403
    assert Channel.get_by_id(2).enabled


def test_the_alert_ends_with_a_success_after_the_pause(overview, verified, fail, ahead):
    fail()
    health.record(2, "wxpay", "")
    assert alerts(overview())
    ahead(61)
    health.record(2, "wxpay", "")
    assert alerts(overview()) is None


def test_the_lists_of_channels_and_members_show_a_failing_channel(page, fail, ahead, group):
    def state():
        return next(row["Status"] for row in page("channels/").rows if row["Channel"] == "Sandbox B")

    def of_member():
        return page(f"channel/{group}").rows[0]["Status"]

    assert (state(), of_member()) == ("Enabled", "Takes deposits")
    fail("wxpay")
    fail("alipay")
    assert state() == "Payments fail"
    assert of_member() == "Only Bank transfer WeChat Pay, Alipay: The channel is left out after failures."
    ahead(61)
    assert (state(), of_member()) == ("Payments fail", "Payments fail The next order of a group tries it again.")


def test_the_page_of_a_channel_shows_its_state(page, fail, ahead, group):
    assert "No payment failed to open in the last 15 minutes." in page("channel/2").text
    fail(times=1)
    assert "WeChat Pay Failed: 1 of the last 1. Last reason: the merchant is limited" in page("channel/2").text
    fail(times=4)
    assert "Groups use other channels until" in page("channel/2").text
    ahead(61)
    assert "The next order of a group tries it again." in page("channel/2").text
    ahead(901)
    assert "No order has tried the channel in the last 15 minutes." in page("channel/2").text
