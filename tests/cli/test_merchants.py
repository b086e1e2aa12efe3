"""`tillbook merchant` and `tillbook account`, as an operator uses them."""

import pytest

from tests.support import Api


def test_a_new_merchant_gets_secrets_of_its_own_that_are_printed_once(flask, flask_json, http):
    first = flask_json("merchant", "add", "first")
    made = flask_json("merchant", "add", "shop", "--name", "Shop 小店", "--buy-rate", "1.25", "--sell-rate", "0.5")
    flask("channel", "link", "2", "shop")
    assert Api(http, "shop", made["api_secret"]).buy("100.00").data["service_amount"] == 125
    assert set(made) == {"key", "api_secret", "callback_secret", "buy_rate", "sell_rate"}
    fees = [(each.pop("buy_rate"), each.pop("sell_rate")) for each in (first, made)]
    assert fees == [("0.00", "0.00"), ("1.25", "0.50")]
    assert len({*first.values(), *made.values()}) == 6
    assert made["callback_secret"].startswith("whsec_")
    assert flask_json("merchant", "show", "shop")["callback_secret"] == made["callback_secret"]  # can be read again
    for command in (("show", "shop"), ("show", "shop", "--json"), ("list",), ("list", "--json")):
        assert made["api_secret"] not in flask("merchant", *command).output


def test_the_list_shows_the_set_values(flask, flask_json):
    flask(
        *("merchant", "set", "demo", "--name", "New 新", "--callback-url", "https://shop.example/hook"),
        *("--events", "paid", "--buy-rate", "2", "--sell-rate", "0", "--allow", "10.0.0.0/8, ::1"),
    )
    demo = flask_json("merchant", "list")[0]
    assert demo == {
        "key": "demo",
        "name": "New 新",
        "enabled": True,
        "buy_rate": "2.00",
        "sell_rate": "0.00",
        "callback_url": "https://shop.example/hook",
        "events": "paid,completed,cancelled",
        "allowed_addresses": "10.0.0.0/8,::1/128",
        "refunds": "off",
        "refund_auto_max": "0.00",
        "refund_fees": "keep",
    }
    assert "New 新" in flask("merchant", "list").output


def test_the_refunds_of_a_merchant_are_set_and_shown(flask, flask_json):
    flask(
        *("merchant", "set", "demo", "--refunds", "automatic", "--refund-auto-max", "50.00"),
        *("--refund-fees", "full-only"),
    )
    shown = flask_json("merchant", "show", "demo")
    assert (shown["refunds"], shown["refund_auto_max"], shown["refund_fees"]) == ("automatic", "50.00", "full-only")
    assert "'full-only'" in flask("merchant", "set", "demo", "--refund-fees", "full_only", fails=True).output
    assert flask_json("merchant", "list")[1]["refunds"] == "off"
    assert flask_json("merchant", "show", "demo")["channels"] == [1, 2, 3]


def test_a_disabled_merchant_is_refused_until_it_is_enabled(api, flask):
    flask("merchant", "set", "demo", "--disabled")
    assert api.listed().code == 40101
    flask("merchant", "set", "demo", "--enabled")
    assert api.listed().code == 1


@pytest.mark.parametrize(("allowed", "code"), [("10.0.0.0/8", 40300), ("10.0.0.0/8,127.0.0.1", 1), ("", 1)])
def test_only_allowed_addresses_may_call(api, flask, allowed, code):
    flask("merchant", "set", "demo", "--allow", "192.0.2.1")
    flask("merchant", "set", "demo", "--allow", allowed)
    assert api.listed().code == code


@pytest.mark.parametrize(("hours", "code"), [("2", 1), ("0", 40102)])
def test_two_secrets_are_valid_while_a_merchant_rotates(flask_json, api, http, ahead, hours, code):
    new = Api(http, "demo", flask_json("merchant", "rotate", "demo", "--keep-hours", hours)["api_secret"])
    assert (api.listed().code, new.listed().code) == (code, 1)
    ahead(2 * 3600 + 1)
    assert (api.listed().code, new.listed().code) == (40102, 1)


def test_rotating_the_callback_secret_leaves_the_api_secret(flask_json, api):
    before = flask_json("merchant", "show", "demo")["callback_secret"]
    new = flask_json("merchant", "rotate", "demo", "--callback")["callback_secret"]
    assert flask_json("merchant", "show", "demo")["callback_secret"] == new != before
    assert api.listed().code == 1


BAD_VALUES = [
    ("--buy-rate", "-1", "rate"),
    ("--sell-rate", "-0.01", "rate"),
    ("--buy-rate", "100.01", "percentage"),
    ("--buy-rate", "0.605", "percentage"),
    ("--buy-rate", "NaN", "percentage"),
    ("--buy-rate", "abc", "percentage"),
    ("--buy-rate", "1_0", "percentage"),
    ("--buy-rate", "１０", "percentage"),
    ("--callback-url", "ftp://shop.example", "http"),
    ("--callback-url", "shop.example/hook", "http"),
    ("--callback-url", "http://[bad", "Enter a URL"),
    ("--events", "paid,nope", "events must be some of"),
    ("--allow", "10.0.0.1/8", "is not an IP address or a network"),
    ("--allow", "localhost", "is not an IP address or a network"),
]


@pytest.mark.parametrize("command", [("add", "shop"), ("set", "demo")], ids=lambda command: command[0])
def test_an_invalid_value_is_named_and_changes_nothing(refuses, nothing_changes, command):
    for option, value, word in BAD_VALUES:
        assert word in refuses("merchant", *command, "--name", "Changed", option, value), (option, value)


def test_an_invalid_merchant_or_account_is_refused(refuses, nothing_changes):
    for arguments, words in (
        (("add", "demo"), "Merchant demo already exists"),
        (("add", "bad key"), "key"),
        (("add", ""), "key"),
        (("add", "x" * 65), "key"),
        (("show", "nobody"), "no merchant nobody"),
        (("set", "nobody", "--name", "x"), "no merchant nobody"),
        (("rotate", "nobody"), "no merchant nobody"),
        (("rotate", "demo", "--keep-hours", "-1"), "--keep-hours"),
    ):
        assert words in refuses("merchant", *arguments), arguments
    for key, number, name in (("demo", " ", "李四"), ("demo", "6222999988887777", ""), ("nobody", "6222", "李四")):
        assert refuses("account", "add", key, "--card-number", number, "--real-name", name)


def test_withdrawals_are_paid_to_the_newest_payout_account(api, flask):
    account = ("--bank", "New Bank", "--sub-bank", "South", "--card-number", "6222999988887777", "--real-name", "李四")
    flask("account", "add", "demo", *account)
    snapshot = api.sell("10.00").data["payment_method_snapshot"]
    assert snapshot == {
        "bank": "New Bank",
        "sub_bank": "South",
        "card_number": "6222999988887777",
        "real_name": "李四",
    }


def test_a_merchant_without_a_payout_account_gets_one(other, flask):
    flask("ledger", "adjust", "other", "100", "--reason", "test")
    assert other.sell("10.00").code == 40903
    flask("account", "add", "other", "--card-number", "6222999988887777", "--real-name", "李四")
    assert other.sell("10.00").code == 1


def test_the_list_of_accounts_masks_numbers_and_names(flask, flask_json):
    (row,) = flask_json("account", "list", "demo")
    assert (row["card_number"], row["real_name"]) == ("*" * 15 + "0017", "张*")
    assert flask_json("account", "list", "other") == []
    assert "6222020000000000017" not in flask("account", "list").output
