"""RSA signatures at submit.php and mapi.php, as monlor/Epay accepts them: the rest is version 1, notices included."""

import time
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.epay_shop import md5, number_in
from tests.pages import BACK


def signed(shop, **changed):
    """The fields of a payment signed by RSA, without a timestamp unless one is given."""
    fields = shop.with_rsa({"timestamp": ""} | shop.fields(**changed))
    return {name: value for name, value in fields.items() if value}


def number_at(shop, path, fields):
    """The number of the payment that the shop placed there."""
    answer = shop.post(path, fields)
    return number_in(answer.headers["Location"]) if answer.status == 303 else answer.json["trade_no"]


@pytest.mark.parametrize("path", ["/submit.php", "/mapi.php"])
@pytest.mark.parametrize("changed", [{}, {"sign_type": "rsa"}, {"timestamp": "now"}], ids=str)
def test_a_payment_signed_by_rsa_is_placed_and_its_notice_is_signed_by_md5(path, changed, rsa_shop, api, due, http):
    stamp = {"timestamp": str(int(time.time()))} if "timestamp" in changed else {}
    number = number_at(rsa_shop, path, signed(rsa_shop, **stamp) | changed | stamp)
    api.play(number, "success")
    due()
    (notice,) = rsa_shop.notices
    back = dict(parse_qsl(urlsplit(http("GET", f"{BACK}?order_no={number}").headers["Location"]).query))
    back.pop("page")
    for fields in (notice, back):
        assert fields["sign_type"] == "MD5"
        assert rsa_shop.is_ours(fields)
        assert (fields["out_trade_no"], fields["money"], "timestamp" in fields) == ("SHOP-1", "12.50", False)


def test_both_signatures_ask_for_the_same_payment_with_the_response_of_version_1(rsa_shop):
    answer = rsa_shop.post("/mapi.php", signed(rsa_shop)).json
    assert (answer["code"], "sign" in answer) == (1, False)
    assert rsa_shop.mapi()["trade_no"] == answer["trade_no"]


@pytest.mark.parametrize("path", ["/submit.php", "/mapi.php"])
def test_each_signature_counts_for_its_own_type_and_time_only(path, rsa_shop, nothing_changes):
    rsa = signed(rsa_shop)
    for fields in (
        rsa_shop.signed() | {"sign_type": "RSA"},
        rsa | {"sign_type": "MD5"},
        {name: value for name, value in rsa.items() if name != "sign_type"},
        rsa | {"sign_type": ""},
        rsa | {"sign": md5(rsa, "")},
        rsa | {"sign": rsa_shop.key},
        rsa | {"sign": ""},
        rsa | {"sign_type": "RSA2"},
        rsa | {"money": "0.01"},
    ):
        assert "-3" in rsa_shop.post(path, fields).text
    of_version_2 = rsa_shop.signed(2, timestamp=str(int(time.time()) - 310))  # does not outlive its time here
    assert "timestamp is missing or differs" in rsa_shop.post(path, of_version_2).text


def test_a_merchant_without_the_key_or_with_another_sign_type_is_refused(rsa_shop, shop, flask, flask_json):
    refused = rsa_shop.post("/mapi.php", rsa_shop.signed() | {"sign_type": "SHA256"}).json
    assert refused == {"code": -3, "msg": "sign_type must be MD5/RSA at this address"}
    flask("epay", "rotate", "demo", "--rsa", "--keep-hours", "0")
    assert rsa_shop.post("/mapi.php", signed(rsa_shop)).json["code"] == -3
    shop.pid = flask_json("epay", "enable", "other", "--host", "localhost")["pid"]
    for path in ("/submit.php", "/mapi.php"):
        assert "The merchant has no RSA keys" in shop.post(path, shop.signed() | {"sign_type": "RSA"}).text


def test_a_payer_cannot_query_by_an_rsa_signature_that_it_sees(rsa_shop):
    number_at(rsa_shop, "/submit.php", signed(rsa_shop))
    for act in ("order", "query"):
        assert rsa_shop.get("/api.php", {"act": act} | signed(rsa_shop)).json["code"] == -3
