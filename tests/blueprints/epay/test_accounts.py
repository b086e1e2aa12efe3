"""Merchants at the epay gateway: enabled, their keys, hosts and types."""

import pytest

from tests.epay_shop import Shop, md5


def test_a_merchant_gets_its_number_and_its_key_once_when_the_gateway_is_enabled(
    http, web_server, flask_json, flask, refuses
):
    shop = Shop(http, web_server, {"pid": "1001", "key": "x"})
    assert shop.mapi() == {"code": -3, "msg": "Merchant number (pid) not found or not enabled"}
    assert "not enabled for demo" in refuses("epay", "show", "demo")
    made = flask_json("epay", "enable", "demo", "--host", "shop.example")
    assert (made["pid"], made["api_url"], len(made["key"])) == ("1001", "http://127.0.0.1:8000/", 32)
    shown = flask("epay", "show", "demo").output
    assert made["key"] not in shown
    assert "shop.example" in shown
    assert "cannot be changed" in refuses("epay", "enable", "demo", "--pid", "89")
    assert "taken" in refuses("epay", "enable", "other", "--host", "a.example", "--pid", "1001")
    assert flask_json("epay", "enable", "other", "--host", "a.example", "--pid", "88")["pid"] == "88"
    flask("merchant", "add", "third")
    assert flask_json("epay", "enable", "third", "--host", "a.example")["pid"] == "1002"


def test_a_disabled_merchant_is_refused_until_it_is_enabled_again_and_notices_are_still_sent(
    shop, api, due, flask, flask_json
):
    number = shop.mapi()["trade_no"]
    flask("epay", "disable", "demo")
    assert shop.mapi()["code"] == -3
    api.play(number, "success")
    due()
    assert shop.is_ours(shop.notices[0])
    assert "key" not in flask_json("epay", "enable", "demo")
    assert shop.mapi(out_trade_no="SHOP-2")["code"] == 1
    flask("merchant", "set", "demo", "--disabled")
    assert shop.mapi(out_trade_no="SHOP-2")["code"] == -3


def test_the_old_key_stays_valid_for_the_hours_given(shop, flask_json, ahead):
    old, new = shop.key, flask_json("epay", "rotate", "demo", "--keep-hours", "1")["key"]
    assert shop.mapi()["code"] == 1
    shop.key = new
    assert shop.mapi()["code"] == 1
    ahead(3601)
    shop.key = old
    assert shop.mapi()["code"] == -3
    assert shop.api("query") == {"code": -3, "msg": "Wrong merchant key"}
    shop.key = new
    flask_json("epay", "rotate", "demo", "--keep-hours", "0")
    assert shop.mapi()["code"] == -3


def test_while_two_keys_are_valid_the_notice_is_repeated_with_the_other(shop, api, due, flask_json, ahead):
    number, old = shop.mapi()["trade_no"], shop.key
    new = flask_json("epay", "rotate", "demo")["key"]
    shop.answers = ["fail", "success"]
    api.play(number, "success")
    due()
    ahead(6)
    due()
    assert [notice["sign"] for notice in shop.notices] == [md5(shop.notices[0], key) for key in (new, old)]


HOSTS = [  # allowed, addresses that are accepted, and those that are refused
    (
        "shop.example",
        ["https://shop.example/n", "https://SHOP.example:8443/n?a=1", "https://shop.example./n"],
        [
            "https://www.shop.example/n",
            "https://shop.example@evil.example/n",
            "https://evil.example/shop.example",
            "https://shop.example.evil.example/",
            "https://shop.example../n",
            "https://ＳＨＯＰ.example/n",
        ],
    ),
    (
        "*.shop.example",
        ["https://www.shop.example/n"],
        [
            "https://shop.example/n",
            "https://evilshop.example/n",
            "https://evil.example\\.shop.example/n",  # browsers take \ for /
            "https://evil.example%5c.shop.example/n",
        ],
    ),
    ("https://shop.example/path", ["https://shop.example/n"], []),
    ("shop.example.", ["https://shop.example/n"], []),
    ("店铺.example", ["https://xn--hxtq42j.example/n"], []),
    (
        "例子.com",
        ["https://例子.com/n", "https://XN--FSQU00A.com./n"],
        [
            "https://例子。com/n",  # no notice could be sent there
            "https://例孑.com/n",
            "https://例子.com.evil.example/n",
        ],
    ),
    ("xn--fsqu00a.com", ["https://例子.com:8443/n?a=1"], []),
    ("XN--FSQU00A.COM.", ["https://例子.com/n"], []),
    ("https://例子.com/path", ["https://例子.COM/n"], []),
    (
        "*.例子.com",
        ["https://www.例子.com/n", "https://店铺.xn--fsqu00a.com/n"],
        ["https://例子.com/n", "https://evil.example\\.例子.com/n"],
    ),
    ("bücher.example", ["https://BÜCHER.example/n"], []),
    ("strasse.example", [], ["https://straße.example/n"]),  # another server than strasse.example
    ("straße.example", ["https://xn--strae-oqa.example/n"], []),
    ("127.0.0.1", ["http://127.0.0.1/n"], []),
]


@pytest.mark.parametrize("field", ["notify_url", "return_url"])
def test_addresses_are_at_allowed_hosts(field, shop, flask):
    shop.return_url = shop.notify_url
    for number, (allowed, accepted, refused) in enumerate(HOSTS):
        flask("epay", "set", "demo", "--host", allowed, "--host", "localhost")
        for url in accepted:
            answer = shop.mapi(out_trade_no=f"{number}-{accepted.index(url)}", **{field: url})
            assert answer["code"] == 1, (allowed, url, answer)
        for url in refused:
            assert shop.mapi(**{field: url})["code"] == -1, (allowed, url)


def test_a_host_is_listed_once_in_whatever_form_it_is_given(flask):
    names = ("例子.com", "xn--fsqu00a.com", "XN--FSQU00A.COM.")
    flask("epay", "enable", "demo", *(part for name in names for part in ("--host", name)))
    assert flask("epay", "show", "demo").output.count("xn--fsqu00a.com") == 1


def test_an_invalid_host_is_refused(refuses, nothing_changes):
    for host in ("", " ", "a b", "*", "*.", "shop..example", "-a.example", "a/b", "http://", "x" * 64):
        assert "host" in refuses("epay", "enable", "demo", "--host", host), host
    for host in ("例子..com", "*.*.例子.com", "例子.com/a", "例_子.com", "\u200d.com", "例" * 64):
        assert "is not a host name" in refuses("epay", "enable", "demo", "--host", host), host


def test_a_type_leads_to_a_channel_of_the_merchant(refuses, nothing_changes):
    kinds = {"alipay=99": "not available", "qqpay=2": "does not support", "alipay=2:cash": "does not support"}
    for kind, text in kinds.items():
        assert text in refuses("epay", "enable", "demo", "--host", "shop.example", "--type", kind)


def test_another_name_of_a_payment_method_can_lead_to_a_channel(shop, flask, api, due):
    flask("epay", "set", "demo", "--type", "qqpay=2:wxpay")
    number = shop.mapi(type="qqpay")["trade_no"]
    api.play(number, "success")
    due()
    assert shop.notices[0]["type"] == "qqpay"


def test_a_channel_that_was_unlinked_takes_no_payments(shop, flask):
    flask("channel", "unlink", 2, "demo")
    assert shop.mapi()["code"] == -1


def test_the_merchants_address_list_applies_to_its_server_only(shop, flask):
    flask("merchant", "set", "demo", "--allow", "10.0.0.0/8")
    assert shop.mapi() == {"code": -3, "msg": "IP address not allowed"}
    assert shop.api("query")["code"] == -3
    assert shop.submit().status == 303


def test_the_merchants_are_listed(shop, flask_json):
    (row,) = flask_json("epay", "list")
    assert (row["merchant"], row["pid"], row["enabled"], row["hosts"]) == ("demo", "1001", True, "127.0.0.1,localhost")
    assert row["types"] == "alipay=2:alipay,wxpay=2:wxpay,wxpay=1:wxpay"


def test_the_keys_are_stored_encrypted_and_survive_a_rotation_of_the_vault(rsa_shop, flask, rows):
    assert rsa_shop.key not in str(rows()["EpayAccount"])
    flask("vault", "rotate", "--wait", 0, "--only-host")
    assert rsa_shop.mapi()["code"] == 1
    assert rsa_shop.v2("merchant/info")["code"] == 0
