"""`tillbook channel`, as an operator uses it."""

import json

import pytest


@pytest.fixture
def channel(flask_json):
    """`channel(1)` is the row in `channel list`."""
    return lambda number: next(row for row in flask_json("channel", "list") if row["id"] == number)


def _offered(api):
    return [row["id"] for row in api.call("getPayChannels").data["list"]]


def test_a_new_channel_accepts_orders_of_its_linked_merchants(flask, flask_json, api, other):
    new = flask_json("channel", "add", "--category", "gateway_b", "--driver", "trial", "--name", "New")["id"]
    assert api.buy(channel=new).code == 40403
    flask("channel", "link", new, "demo")
    assert (api.buy(channel=new).code, other.buy(channel=new).code) == (1, 40403)
    assert new in _offered(api)


def test_an_unlinked_channel_is_unavailable_to_that_merchant_only_and_open_orders_continue(flask, api, other):
    order_no = api.buy(channel=2).data["order_no"]
    flask("channel", "unlink", "2", "demo")
    assert (api.buy(channel=2).code, other.buy(channel=2).code) == (40403, 1)
    assert _offered(api) == [1, 3]
    api.play(order_no, "success")
    assert api.status(order_no) == "completed"


def test_linking_twice_is_linking_once(flask, channel):
    for _ in range(2):
        flask("channel", "link", "4", "demo")
    assert sorted(channel(4)["merchants"].split(",")) == ["demo", "other"]


def test_a_disabled_channel_accepts_no_new_orders(flask, api):
    flask("channel", "set", "2", "--disabled")
    assert api.buy(channel=2).code == 40403
    assert 2 not in _offered(api)
    flask("channel", "set", "2", "--enabled")
    assert api.buy(channel=2).code == 1


def test_changed_values_are_shown_and_others_stay(flask, channel):
    row = channel(2)
    for option, value, column, shown in (
        ("--name", "Renamed 新", "name", "Renamed 新"),
        ("--pay-method", "bank, wxpay", "pay_method", "wxpay,bank"),
        ("--min", "1", "min", "1.00"),
        ("--max", "200.5", "max", "200.50"),
        ("--passage-rate", "-0.25", "passage_rate", "-0.25"),
        ("--commission-rate", "0.3", "commission_rate", "0.30"),
        ("--cost", "0.6", "cost_rates", "wxpay=0.60,alipay=0.60,bank=0.60"),
        ("--cost", "alipay=0.38", "cost_rates", "wxpay=0.60,alipay=0.38,bank=0.60"),
        ("--cost", "bank=0", "cost_rates", "wxpay=0.60,alipay=0.38"),
        ("--deposit-rate", "10", "deposit_rate", "10.00"),
        ("--settlement-days", "1", "settlement_days", 1),
        ("--auto-accept-max", "50", "auto_accept_max", "50.00"),
        ("--hours", "22:00-02:00", "hours", "22:00-02:00"),
        ("--hours", "none", "hours", ""),
    ):
        flask("channel", "set", "2", option, value)
        row |= {column: shown}
        assert channel(2) == row


def test_a_channel_without_new_orders_is_shown_as_such_and_takes_them_again(flask, flask_json, channel):
    assert channel(2)["takes_orders"] is True
    flask("channel", "set", "2", "--no-new-orders")
    assert (channel(2)["takes_orders"], channel(2)["enabled"]) == (False, True)
    assert flask_json("channel", "show", "2")["takes_orders"] is False
    flask("channel", "set", "2", "--takes-orders")
    assert channel(2)["takes_orders"] is True
    base = ("channel", "add", "--category", "gateway_b", "--driver", "trial", "--name", "New")
    made = flask_json(*base, "--hours", "09:00-21:00", "--no-new-orders")
    assert (made["hours"], made["takes_orders"]) == ("09:00-21:00", False)


def test_one_channel_is_shown_with_its_groups_and_without_its_config(flask, flask_json, channel):
    group = flask_json("channel", "add", "--category", "gateway_b", "--driver", "group", "--name", "All")
    assert (group["pay_method"], group["min"], group["max"]) == ("", "", "")
    flask("group", "add", group["id"], "2")
    shown = flask_json("channel", "show", "2")
    times = {name: shown.pop(name) for name in ("createtime", "updatetime")}
    assert shown == channel(2)
    assert (shown["groups"], all(times.values())) == (str(group["id"]), True)
    said = flask("channel", "show", "2").stdout
    assert ("Sandbox B" in said, "sandbox-notice-secret" in said) == (True, False)
    assert channel(group["id"])["pay_method"] == "wxpay,alipay,bank"


def test_the_settlement_delay_of_a_group_and_its_channels_stays_the_same(flask, flask_json, refuses):
    group = flask_json("channel", "add", "--category", "gateway_b", "--driver", "group", "--name", "All")["id"]
    flask("channel", "set", group, "--settlement-days", "1")
    flask("channel", "set", "2", "--settlement-days", "1")
    flask("group", "add", group, "2")
    assert f"from group {group}" in refuses("channel", "set", "2", "--settlement-days", "0")
    assert "Remove its channels first" in refuses("channel", "set", group, "--settlement-days", "0")
    flask("channel", "set", "2", "--settlement-days", "1", "--name", "The same delay")
    flask("group", "remove", group, "2")
    flask("channel", "set", "2", "--settlement-days", "0")


def test_a_new_channel_has_the_given_costs_for_methods_of_its_driver_only(flask_json, refuses):
    base = ("channel", "add", "--category", "gateway_b", "--driver", "trial", "--name", "New")
    assert flask_json(*base)["cost_rates"] == ""
    costs = ("--cost", "0.6", "--cost", "alipay=0.38")
    assert flask_json(*base, *costs)["cost_rates"] == "wxpay=0.60,alipay=0.38,bank=0.60"
    wechat = ("channel", "add", "--category", "gateway_b", "--driver", "wechatpay", "--name", "New")
    assert "payment methods must be some of wxpay" in refuses(*wechat, "--cost", "alipay=0.6")


def test_one_field_of_the_config_is_changed_and_the_others_stay(flask, api):
    placed = api.buy(channel=2).data
    flask("channel", "set", "2", "--config", "open=refuse")
    assert api.buy(channel=2).code == 50201
    flask("channel", "set", "2", "--config", "open=accept")
    assert api.buy(channel=2).code == 1
    assert "sandbox-notice-secret" not in flask("channel", "list").output
    api.play(placed["order_no"], "success")
    assert api.status(placed["order_no"]) == "completed"


def test_the_config_comes_from_a_file_and_is_never_shown(flask, tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"payee": "Payee Ltd.", "account": "6222-9999"}), "utf-8")
    base = ("channel", "add", "--category", "gateway_b", "--driver", "manual", "--name", "New")
    said = flask(*base, "--config-file", file, "--config", "note=Quiet").output + flask("channel", "list").output
    assert not [value for value in ("Payee Ltd.", "6222-9999", "Quiet") if value in said]


def test_a_config_file_that_is_not_a_json_object_is_refused(refuses, tmp_path, nothing_changes):
    file = tmp_path / "config.json"
    for text in ("", "[1]", "null", '"x"', "{", "\udcff"):
        file.write_text(text, "utf-8", "surrogateescape")
        assert "config" in refuses("channel", "set", "2", "--name", "Changed", "--config-file", file), text


BAD_VALUES = [
    ("--min", "0", "min"),
    ("--min", "-5", "min"),
    ("--min", "0.001", "decimals"),
    ("--max", "1e99", "large"),
    ("--passage-rate", "-100.01", "percentage"),
    ("--commission-rate", "-1", "commission"),
    ("--cost", "-1", "percentage"),
    ("--cost", "100.01", "percentage"),
    ("--cost", "wxpay=", "percentage"),
    ("--cost", "wxpay=0.001", "percentage"),
    ("--cost", "cash=1", "payment methods"),
    ("--cost", "=", "percentage"),
    ("--deposit-rate", "101", "percentage"),
    ("--settlement-days", "-1", "--settlement-days"),
    ("--auto-accept-max", "-1", "accept"),
    ("--hours", "9-21", "09:00-21:00"),
    ("--hours", "09:00-24:00", "09:00-21:00"),
    ("--hours", "09:00-09:00", "09:00-21:00"),
    ("--pay-method", "", "payment methods"),
    ("--pay-method", "wxpay,cash", "payment methods"),
    ("--config", "secret", "NAME=VALUE"),
    ("--config", "secret=short", "secret"),
    ("--config", "nope=1", "nope"),
    ("--config", "payout=nope", "payout"),
]


@pytest.mark.parametrize(
    "command",
    [("set", "2"), ("add", "--category", "gateway_b", "--driver", "trial")],
    ids=lambda command: command[0],
)
def test_an_invalid_value_is_named_and_changes_nothing(refuses, nothing_changes, command):
    for option, value, word in BAD_VALUES:
        said = refuses("channel", *command, "--name", "Changed", option, value)
        assert word in said, (option, value)
        assert "CHECK constraint" not in said  # the operator's words, not the database's
    said = refuses("channel", *command, "--name", "Changed", "--min", "50", "--max", "5")
    assert "CHECK constraint" not in said


def test_an_unknown_channel_or_merchant_is_refused(refuses):
    for arguments, words in (
        (("set", "99", "--name", "x"), "no channel 99"),
        (("set", "99999999999999999999", "--name", "x"), "channel"),
        (("link", "99", "demo"), "no channel 99"),
        (("link", "2", "nobody"), "no merchant nobody"),
        (("unlink", "4", "demo"), "demo is not linked to channel 4"),
    ):
        assert words in refuses("channel", *arguments), arguments


@pytest.mark.parametrize("settings_of_app", [{"private_channels": False}])
def test_a_check_of_a_channel_at_a_private_address_names_the_setting(flask, refuses):
    config = {"base_url": "http://127.0.0.1:9/", "pid": "1000", "key": "secret", "version": "1"}
    pairs = [part for name, value in config.items() for part in ("--config", f"{name}={value}")]
    number = flask("channel", "add", "--category", "gateway_b", "--driver", "epay", "--name", "A", *pairs, "--json")
    said = refuses("channel", "check", json.loads(number.stdout)["id"])
    assert "127.0.0.1 was not called" in said
    assert "private_channels is not set" in said


@pytest.mark.parametrize("settings_of_app", [{"demo": False}])
def test_a_sandbox_channel_outside_demo_mode_is_neither_added_nor_enabled(demo, flask, refuses):
    base = ("channel", "add", "--category", "gateway_b", "--name", "New")
    assert "demo mode only" in refuses(*base, "--driver", "sandbox")
    assert "demo mode only" in refuses("channel", "set", "2", "--enabled")
    flask(*base, "--driver", "manual")
