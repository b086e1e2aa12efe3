"""Bad input at the epay gateway gets the protocol's refusal, and changes nothing."""

import json
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.epay_shop import FORM, md5, number_in
from tests.pages import BACK

INVALID = {
    "out_trade_no": [None, "a b", "订单", "x" * 151],
    "money": [None, "0", "-1", "1e3", "12.345", "１２", "NaN", "9" * 14],
    "name": [None, "   "],
    "notify_url": [
        None,
        "shop.example/notify",
        "javascript:alert(1)",
        "http://[::1/notify",
        "http://localhost:99999/notify",
        "http://localhost/notify#part",
        "http://localhost/notify#",
        "http://localhost/notify?a=%zz",  # the notice's own fields would be encoded twice
        "http://localhost/" + "中" * 334,
    ],
    "return_url": ["http://localhost/#/order/1 2", "//localhost/back"],
    "type": ["a'b"],
    "param": ["x" * 1001, "中" * 334],
}


@pytest.mark.parametrize("field", INVALID)
def test_an_invalid_field_is_named(field, shop, nothing_changes):
    for value in INVALID[field]:
        refused = shop.mapi(**{field: value})
        assert type(refused["code"]) is int
        assert (refused["code"], set(refused)) == (-1, {"code", "msg"}), value
        assert refused["msg"].startswith(field), value


def test_a_request_that_nobody_known_signed_is_refused(shop, nothing_changes):
    for changed in ({"sign": ""}, {"sign": "0" * 32}, {"sign": "签名"}, {"sign_type": "SHA"}):
        assert shop.post("/mapi.php", shop.signed() | changed).json["code"] == -3, changed
    unexplained = "Signature verification failed. Check the key and that all parameters are signed"
    assert shop.post("/mapi.php", shop.signed() | {"sign": "0" * 32}).json == {"code": -3, "msg": unexplained}
    for pid in ("", "0", "-1", "1002", "x", "１００１", "9" * 30):
        assert shop.post("/mapi.php", shop.signed(pid=pid)).json["code"] in (-3, -4), pid


@pytest.mark.parametrize("path", ["/mapi.php", "/api.php", "/api/pay/create", "/api/pay/query"])
def test_a_request_without_fields_or_in_json_is_told_to_be_a_form(path, shop, http, nothing_changes):
    assert http("GET", path).json == {"code": -4, "msg": "No parameters received"}
    sent = json.dumps(shop.signed(notify_url=f"{shop.notify_url}?a=1&b=2")).encode()
    refused = shop.send("POST", path, sent, {"Content-Type": "application/json; charset=utf-8"}).json
    assert refused == {"code": -4, "msg": "The parameters are JSON. Send them as a form or in the query"}


def test_json_is_reported_to_a_payer_and_does_not_matter_without_a_body(shop):
    is_json = {"Content-Type": "application/json"}
    page = shop.send("POST", "/submit.php", json.dumps(shop.signed()).encode(), is_json)
    assert "The parameters are JSON" in page.text
    assert shop.send("POST", f"/mapi.php?{urlencode(shop.signed())}", b"", is_json).json["code"] == 1


def test_a_form_that_is_unclear_or_too_large_and_an_invalid_page_are_refused(shop, nothing_changes):
    for body in (urlencode(shop.signed()) + "&money=1", urlencode(shop.signed(), encoding="gbk")):
        assert shop.send("POST", "/mapi.php", body.encode(), FORM).json["code"] == -4
    assert shop.mapi(name="a\0b")["code"] == -4
    answer = shop.post("/mapi.php", shop.signed(param="x" * 9000))
    assert (answer.status, answer.json["code"]) == (413, -4)
    for query in ({"limit": "0"}, {"limit": "x"}, {"offset": "-1"}, {"offset": "10001"}):
        assert shop.api("orders", **query)["code"] == -1, query


def test_the_payer_sees_what_to_do_and_the_shop_the_reason(shop, nothing_changes):
    page = shop.submit(money="x")
    assert page.status == 400
    for text in ("Go back to the shop", "money: Must be an amount in yuan", "(code -1)"):
        assert text in page.text
    page = shop.get("/submit.php", shop.signed(money="x"), {"Accept-Language": "zh-CN"})
    assert 'lang="zh' in page.text
    assert "商店" in page.text or "商家" in page.text


def test_the_page_repeats_none_of_the_parameters_and_runs_no_foreign_code(shop):
    marks = {"name": "<b>MARK</b>", "param": "MARK2", "out_trade_no": "MARK3 <", "type": "MARK4'", "money": "MARK5"}
    for name, mark in marks.items():
        page = shop.submit(**{name: mark})
        assert "MARK" not in page.text, name
        assert shop.key not in page.text
    assert "MARK" not in shop.get("/submit.php", {"pid": "MARK6", "MARK7": "1"}).text
    for page in (shop.submit(money="x"), shop.submit()):
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]


def test_a_longer_name_is_cut_at_127_bytes(shop, api, due):
    number = shop.mapi(name="会" * 50)["trade_no"]
    api.play(number, "success")
    due()
    assert shop.notices[0]["name"] == "会" * 42


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=40)
NAMES = (
    "pid key act sign sign_type timestamp type out_trade_no trade_no notify_url return_url name money param clientip "
    "device limit offset method refund_no out_refund_no"
)
PATHS = ["/submit.php", "/mapi.php", "/api.php"]
PATHS += [f"/api/pay/{name}" for name in ("create", "submit", "query", "close", "refund", "refundquery")]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("genuine", [True, False])
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changed=st.dictionaries(st.sampled_from(NAMES.split()), TEXTS, max_size=6), by_post=st.booleans())
def test_no_input_leads_to_an_internal_error(path, genuine, rsa_shop, changed, by_post):
    fields = rsa_shop.fields() | {"act": "order", "key": rsa_shop.key} | changed
    if genuine:
        fields |= {"pid": rsa_shop.pid}
        fields.pop("sign", None)
        fields.pop("timestamp", None)
        is_v2 = path.startswith("/api/")
        fields = (
            rsa_shop.with_rsa(fields) if is_v2 else fields | {"sign": md5(fields, rsa_shop.key), "sign_type": "MD5"}
        )
    answer = (rsa_shop.post if by_post else rsa_shop.get)(path, fields)
    assert answer.status in (200, 303, 400, 413), answer
    if answer.headers["Content-Type"].startswith("application/json"):
        assert type(json.loads(answer.text)["code"]) is int


def test_the_longest_notice_fits_the_usual_limit_of_servers(rsa_shop, api, due, web_server):
    longest = {"out_trade_no": "|" * 150, "name": "会" * 42, "param": "中" * 333}
    longest["notify_url"] = f"{rsa_shop.notify_url}?" + "中" * ((1000 - len(rsa_shop.notify_url) - 1) // 3)
    number = rsa_shop.v2("pay/create", **rsa_shop.fields(**longest))["trade_no"]
    api.play(number, "success")
    due()
    assert rsa_shop.notices[0]["param"] == longest["param"]
    (request, _) = web_server.log[-1]
    assert len(request.environ["REQUEST_URI"]) < 8000


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_half_a_character_is_named_with_its_field(method, shop, http, nothing_changes):
    said = "name has half a character, such as an emoji cut in two. Cut texts by characters, not by bytes"
    for cut in ("%F0%9F%98", "%E4%BC", "%E4", "%ED%A0%BD", "%E4%BC+1"):
        text = f"pid={shop.pid}&name=VIP+%E4%BC%9A{cut}&money=1.00"
        path, body = ("/mapi.php", text.encode()) if method == "POST" else (f"/mapi.php?{text}", b"")
        assert http(method, path, body, FORM).json == {"code": -4, "msg": said}, cut
    gbk = http("POST", "/mapi.php", f"pid={shop.pid}&name=%BB%E1%D4%B1".encode(), FORM).json
    assert gbk == {"code": -4, "msg": "The parameters are not valid UTF-8, or one is repeated"}


def test_a_payer_cannot_query_by_a_signature_that_it_sees(shop, api, due, http):
    number = shop.mapi()["trade_no"]
    api.play(number, "success")
    due()
    returned = dict(parse_qsl(urlsplit(http("GET", f"{BACK}?order_no={number}").headers["Location"]).query))
    returned.pop("page")  # of the shop's own address
    assert shop.is_ours(shop.notices[0])
    assert shop.is_ours(returned)
    for seen in (shop.signed(), shop.signed(act="order"), shop.notices[0], returned):
        for act in ("order", "orders", "query", "refund"):
            for send, path, fields in (
                (shop.get, "/api.php", {"act": act} | seen),
                (shop.post, "/api.php", {"act": act} | seen),
                (shop.post, f"/api.php?act={act}", seen),
                (shop.post, f"/api.php?act={act}", {"act": ""} | seen),
                (shop.get, "/api.php", {"act": act, "key": ""} | seen),
            ):
                assert send(path, fields).json["code"] == -3, (act, path, fields)


@pytest.mark.parametrize(
    "path", ["pay/query", "pay/close", "pay/refund", "pay/refundquery", "merchant/info", "merchant/orders"]
)
def test_the_signature_of_a_payment_is_for_payments_only(path, rsa_shop, api):
    seen = rsa_shop.signed(2)
    number = number_in(rsa_shop.post("/api/pay/submit", seen).headers["Location"])
    hidden = f"{seen['money']}&name={seen['name']}&notify_url={seen['notify_url']}&out_trade_no=SHOP-1"
    merged = {name: seen[name] for name in ("timestamp", "pid", "return_url", "type", "sign", "sign_type")}
    for fields in (seen, merged | {"money": hidden}):
        assert rsa_shop.post(f"/api/{path}", fields).json["code"] == -3
    assert api.status(number) == "pending"


def test_a_signature_that_fits_two_payments_is_refused(shop, nothing_changes):
    """A payer chose a value, and the shop signed it. The payer then cuts the signed text in other places."""
    money = {"clientip": "1.1.1.1", "money": "0.01", "name": "x&money=12.5&name=会员"}
    everything = {"clientip": "1", "money": "0.01", "name": "x", "notify_url": "http://127.0.0.1/", "out_trade_no": "S"}
    everything["param"] = f"y&money=12.5&name=会员&notify_url={shop.notify_url}&out_trade_no=SHOP-1"
    for chosen, read in (
        ("1.1.1.1&money=0.01&name=x", money),
        ("1&money=0.01&name=x&notify_url=http://127.0.0.1/&out_trade_no=S&param=y", everything),
    ):
        signed = shop.signed(name="会员", clientip=chosen)
        assert md5(signed | read, shop.key) == signed["sign"]
        assert shop.post("/mapi.php", signed | read).json["code"] == -3
        assert shop.post("/mapi.php", signed).json["code"] == -3
