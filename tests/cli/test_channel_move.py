"""`tillbook channel move`: all merchants of one channel use another one."""

import json

import pytest

from models.tables.operator import AuditEntry


@pytest.fixture(autouse=True)
def _same_methods(flask):
    flask("channel", "set", "4", "--pay-method", "wxpay,alipay,bank")


@pytest.fixture
def types(flask_json):
    """`types("demo")`: the channels by type of a merchant's epay gateway."""
    return lambda key: flask_json("epay", "show", key)["types"]


def _epay(flask, key, *types):
    flask("epay", "enable", key, "--host", "shop.example", *(part for each in types for part in ("--type", each)))


def test_without_yes_it_only_shows_what_would_change(flask, rows):
    flask("channel", "set", "4", "--settlement-days", "1", "--max", "500", "--passage-rate", "0.3")
    before = rows()
    said = flask("channel", "move", "2", "4").stdout
    lines = [line.split() for line in said.splitlines()]
    assert ["settlement_days", "0", "1"] in lines
    assert ["passage_rate", "-0.10", "0.30"] in lines
    assert ["amounts", "0.01-1000000.00", "0.01-500.00"] in lines
    assert (["demo"] in lines, ["other"] in lines) == (True, True)
    assert "repeat with --yes" in said
    assert rows() == before


def test_all_merchants_get_the_other_channel_and_lose_this_one_while_its_orders_go_on(
    flask, flask_json, api, other, merchants_of
):
    order_no = api.buy(channel=2).data["order_no"]
    done = flask_json("channel", "move", "2", "4", "--yes")
    assert ([row["merchant"] for row in done["merchants"]], done["moved"]) == (["demo", "other"], True)
    assert (merchants_of(2), merchants_of(4)) == ([""], ["demo", "other"])
    assert [each.buy(channel=4).code for each in (api, other)] == [1, 1]
    assert [each.buy(channel=2).code for each in (api, other)] == [40403, 40403]
    api.play(order_no, "success")
    assert api.status(order_no) == "completed"


def test_merchants_can_keep_this_channel_so_that_requests_that_name_it_go_on(flask, api, merchants_of):
    flask("channel", "move", "2", "4", "--keep", "--yes")
    assert (merchants_of(2), merchants_of(4)) == (["demo", "other"], ["demo", "other"])
    assert [api.buy(channel=each).code for each in (2, 4)] == [1, 1]


@pytest.mark.parametrize("keep", [(), ("--keep",)], ids=["replaced", "kept"])
def test_the_types_of_epay_gateways_lead_to_the_other_channel(flask, types, keep):
    _epay(flask, "demo", "alipay=2", "wxpay=1", "wxpay=2", "qqpay=2:wxpay")
    _epay(flask, "other")
    flask("channel", "move", "2", "4", *keep, "--yes")
    assert types("demo") == "alipay=4:alipay,wxpay=1:wxpay,wxpay=4:wxpay,qqpay=4:wxpay"
    assert types("other") == "by payment method"


def test_a_type_that_has_both_channels_has_the_other_one_once(flask, types):
    _epay(flask, "other", "alipay=2", "alipay=4", "bank=4")
    flask("channel", "move", "2", "4", "--yes")
    assert types("other") == "alipay=4:alipay,bank=4:bank"


def test_a_type_whose_method_the_other_channel_lacks_stays_and_never_becomes_all_channels(flask, flask_json, types):
    flask("channel", "set", "4", "--pay-method", "wxpay,bank")
    _epay(flask, "demo", "alipay=2")
    shown = flask_json("channel", "move", "2", "4")
    assert [row["unusable"] for row in shown["settings"] if row["name"] == "deposits"] == ["alipay"]
    assert {row["merchant"]: row["unusable"] for row in shown["merchants"]} == {"demo": "alipay", "other": ""}
    flask("channel", "move", "2", "4", "--yes")
    assert types("demo") == "alipay=2:alipay"


def test_merchants_can_be_moved_to_a_group_with_this_channel_as_a_member(flask, flask_json, api):
    group = flask_json("channel", "add", "--category", "gateway_b", "--driver", "group", "--name", "All")["id"]
    flask("group", "add", group, "2")
    shown = flask_json("channel", "move", "2", group)["settings"]
    assert {"name": "withdrawals", "from": "wxpay,alipay,bank", "to": "", "unusable": "wxpay,alipay,bank"} in shown
    flask("channel", "move", "2", group, "--keep", "--yes")
    assert [api.buy(channel=each).code for each in (2, group)] == [1, 1]


def test_a_move_that_stops_all_payments_is_refused(flask, flask_json, refuses, rows):
    group = flask_json("channel", "add", "--category", "gateway_b", "--driver", "group", "--name", "All")["id"]
    before = rows()
    for target, words in (("2", "another channel"), ("99", "no channel 99"), (group, "Payers cannot pay")):
        assert words in refuses("channel", "move", "2", target, "--yes"), target
    flask("channel", "unlink", "4", "other")
    assert "has no merchants" in refuses("channel", "move", "4", "2", "--yes")
    flask("channel", "link", "4", "other")
    flask("channel", "set", "4", "--disabled")
    assert "Channel 4 is disabled" in refuses("channel", "move", "2", "4", "--yes")
    assert rows()["ChannelLink"] == before["ChannelLink"]


def test_a_move_is_recorded_in_the_audit_log(flask, app):
    flask("channel", "move", "2", "4", "--keep", "--yes")
    flask("channel", "move", "2", "4", "--yes")
    found = [(row.who, row.action, row.about, row.key, row.detail) for row in AuditEntry.select()]
    about = ("channel", "2", "channel: 4; merchant: demo, other")
    assert found == [("command line", "share merchants", *about), ("command line", "move merchants", *about)]


def test_a_channel_that_takes_no_orders_now_is_named(flask):
    flask("channel", "set", "4", "--no-new-orders")
    assert "The channel takes no new orders." in flask("channel", "move", "2", "4").stdout
    assert json.loads(flask("channel", "move", "2", "4", "--json").stdout)["moved"] is False
