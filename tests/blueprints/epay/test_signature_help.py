"""The explanation of a refused epay request, to which the refusal has a link in demo mode; and the page's form."""

import html
import re
import time
from urllib.parse import urlencode

import pytest
from cryptography.hazmat.primitives.hashes import SHA1

from services.sandbox.signature_help import epay
from tests.epay_shop import md5, text_to_sign
from tests.pages import FORM, Seen
from tests.wrong_epay_signers import SENT, SIGNERS, TEXTS, digest, in_base64, rsa

PAGE = "/sandbox/sign"
MISTAKES = {mistake.name: mistake for mistake in epay.MISTAKES}


pytestmark = pytest.mark.usefixtures("demo")


@pytest.fixture
def explained(http):
    """`explained(answer)`: the page that a refusal names."""

    def read(answer):
        assert answer.json["code"] == -3
        link = re.search(r"line by line: http://[^/]+(/sandbox/sign\?refused=\d+)", answer.json["msg"])
        return Seen(http("GET", link[1]).text).text

    return read


@pytest.fixture
def pasted(http):
    """`pasted(text, ...)`: the page for an address or a form body that is entered in its form."""

    def send(text, **fields):
        form = {"endpoint": "epay", "body": text} | fields
        answer = http("POST", PAGE, urlencode(form).encode(), FORM)
        assert answer.status == 200
        return Seen(answer.text).text

    return send


def sent_by(shop, **changed):
    return {"pid": shop.pid} | SENT | changed


def stamped(shop):
    return sent_by(shop, timestamp=str(int(time.time())))


def because(name):
    return f"You get this signature if: {MISTAKES[name].what} {MISTAKES[name].cure}"


def test_every_known_mistake_is_explained_on_the_page_that_the_refusal_names(shop, explained):
    assert {name for name, _ in (*TEXTS, *SIGNERS)} | {"own_query_signed"} == MISTAKES.keys()
    fields = sent_by(shop)
    for name, text in TEXTS:
        wrong = {"sign": digest(text(fields) + shop.key), "sign_type": "MD5"}
        shown = explained(shop.post("/mapi.php", fields | wrong))
        assert because(name) in shown, name
        assert shop.key not in shown
    for name, sign in SIGNERS:
        answer = shop.post("/mapi.php", fields | {"sign": sign(text_to_sign(fields), shop.key)})
        assert because(name) in explained(answer), name


def test_a_wrong_text_is_explained_for_rsa_too(rsa_shop, explained):
    fields = stamped(rsa_shop)
    for name in ("sign_signed", "blank_signed", "unsorted", "money"):
        text = dict(TEXTS)[name](fields)
        wrong = {"sign": in_base64(rsa(text, rsa_shop.private_key)), "sign_type": "RSA"}
        assert because(name) in explained(rsa_shop.post("/api/pay/create", fields | wrong)), name


def test_an_expired_key_is_explained(rsa_shop, explained, flask, ahead):
    flask("epay", "rotate", "demo", "--keep-hours", "1")
    flask("epay", "rotate", "demo", "--keep-hours", "1", "--rsa")
    ahead(3601)
    for path, version in (("/mapi.php", 1), ("/api/pay/create", 2)):
        assert because("wrong_key") in explained(rsa_shop.post(path, rsa_shop.signed(version)))


def test_the_first_field_that_differs_is_marked(shop, explained):
    fields = sent_by(shop)
    text = dict(TEXTS)["left_out"](fields)
    shown = explained(shop.post("/mapi.php", fields | {"sign": digest(text + shop.key)}))
    assert "1 Lang=zh yours money=12.50 2 cid=7" in shown


def test_the_text_is_shown_field_by_field_with_the_correct_signature(shop, explained):
    fields = sent_by(shop)
    shown = explained(shop.post("/mapi.php", fields | {"sign": "0" * 32, "sign_type": "MD5"}))
    for text in (
        "No known mistake gives this signature",
        "1 Lang=zh 2 cid=7 3 device=pc 4 money=12.50 5 name=␣会员 1 Month␣",
        "return_url (an empty string), param (an empty string), sign (the signature itself)",
        "sign_type (never signed)",
        f"Correct signature {md5(fields, shop.key)}",
        "Append the key directly to this text.",
    ):
        assert text in shown
    page = html.unescape(shop.get("/submit.php", sent_by(shop, sign="0" * 32)).text)  # for the payer
    assert re.search(r"line by line: http://[^/]+/sandbox/sign\?refused=2", page)
    assert "Month" not in page


def test_a_request_with_the_key_is_neither_kept_nor_shown(shop, http):
    fields = sent_by(shop, key=shop.key, sign="0" * 32)
    assert "sandbox" not in shop.post("/mapi.php", fields).text
    shop.api("order", key="wrong", out_trade_no="SHOP-1")
    assert "?refused=" not in http("GET", PAGE).text
    address = f"http://127.0.0.1/api.php?act=order&pid={shop.pid}&key={shop.key}"
    form = urlencode({"endpoint": "epay", "body": address}).encode()
    page = http("POST", PAGE, form, FORM).text
    assert "Only requests to api.php have it" in page
    assert shop.key not in page


def test_a_merchant_that_is_not_the_demos_is_not_explained(http, flask_json, pasted):
    flask_json("merchant", "add", "mine")
    keys = flask_json("epay", "enable", "mine", "--host", "shop.example")
    fields = {"pid": keys["pid"], "money": "1", "sign": "0" * 32}
    assert "sandbox" not in http("POST", "/mapi.php", urlencode(fields).encode(), FORM).text
    shown = pasted(urlencode(fields))
    assert f"No demo merchant has the pid {keys['pid']}" in shown
    assert "Correct signature" not in shown


# The form


def test_a_notice_is_verified_by_the_key_of_its_version(rsa_shop, api, due, pasted):
    def address_of(version):
        """The address at which a shop with a query in its own address was notified."""
        path = {1: "/mapi.php", 2: "/api/pay/create"}[version]
        changed = {"notify_url": f"{rsa_shop.notify_url}?page=1", "out_trade_no": f"SHOP-{version}"}
        api.play(rsa_shop.post(path, rsa_shop.signed(version, **changed)).json["trade_no"], "success")
        due()
        return f"{rsa_shop.notify_url}?{urlencode(rsa_shop.notices[-1])}"

    for version in (1, 2):
        address = address_of(version)
        shown = pasted(address)
        assert "The signature is valid." in shown
        assert "page (part of the shop's own address)" in shown
        assert "trade_status=TRADE_SUCCESS" in shown
        if version == 1:
            own = md5(rsa_shop.notices[-1], rsa_shop.key)  # over its own query, too
            assert because("own_query_signed") in pasted(address, signature=own)
    assert "The signature is valid." in pasted(address, secret=rsa_shop.platform_key)
    swapped = pasted(address, secret=rsa_shop.private_key)
    assert because("wrong_key") in swapped
    assert rsa_shop.private_key not in swapped


def test_a_published_vector_holds(pasted):
    # The test of go-epay, epay/util_test.go
    fields = "device=devicev&money=moneyv&sign=3854cc9f022e0fb821bd2e002260245d"
    shown = pasted(fields, secret="1234567")
    assert "The signature is valid." in shown
    assert "1 device=devicev 2 money=moneyv" in shown
    assert "1234567" not in shown


def test_an_address_and_a_form_body_are_accepted(shop, pasted):
    for form in ("{}", "/submit.php?{}", "https://pay.example.com/submit.php?{}", "?{}"):
        assert "The signature is valid." in pasted(form.format(urlencode(shop.signed()))), form


def test_the_text_of_the_shop_may_contain_its_key(shop, pasted):
    fields = shop.signed()
    theirs = text_to_sign(fields).replace("12.5", "12.50") + shop.key
    assert "The signature is valid." in pasted(urlencode(fields), theirs=theirs)
    shown = pasted(urlencode(fields | {"sign": digest(theirs)}), theirs=theirs)
    assert because("money") in shown
    assert shop.key not in shown
    joined = pasted(urlencode(fields | {"sign": "0" * 32}), theirs=f"{text_to_sign(fields)}&key={shop.key}")
    assert f"You get this text if: {MISTAKES['key_joined'].what}" in joined


def test_an_rsa_signature_tells_a_wrong_text_from_a_wrong_key(rsa_shop, pasted, flask_json):
    fields = stamped(rsa_shop)
    text, own = text_to_sign(fields), rsa_shop.private_key
    address = f"/api/pay/create?{urlencode(fields)}"
    shown = pasted(address, secret=own)
    assert f"Correct signature {in_base64(rsa(text, own))}" in shown
    assert own not in shown
    other_text = in_base64(rsa("another text", own))
    assert "made with this merchant's key, but of another text" in pasted(address, signature=other_text)
    assert "or with another hash" in pasted(address, signature=in_base64(rsa(text, own, SHA1())))
    flask_json("epay", "enable", "other", "--host", "shop.example")
    another = flask_json("epay", "rotate", "other", "--rsa")["private_key"]
    with_another = in_base64(rsa(text, another))
    assert "made with another key" in pasted(address, signature=with_another)
    assert f"not the one of pid {rsa_shop.pid}" in pasted(address, signature=with_another, secret=another)
    assert "The signature is not in base64." in pasted(address, signature="?")
    assert "not an RSA key" in pasted(address, secret="x")


def test_other_reasons_for_a_refusal_are_reported(rsa_shop, shop, pasted):
    for changed, said in (
        ({"timestamp": None}, "timestamp is missing"),
        ({"timestamp": "1767225600000"}, "timestamp is in milliseconds"),
        ({"timestamp": "1"}, "behind the server's clock"),
        ({"sign_type": "MD5"}, "sign_type must be RSA at this address"),
    ):
        sent = {name: value for name, value in (rsa_shop.signed(2) | changed).items() if value is not None}
        assert said in pasted(f"/api/pay/create?{urlencode(sent)}")
    shown = pasted(f"/mapi.php?{urlencode(shop.signed(name='x&money=1'))}")
    assert "The signature is valid." in shown
    assert "a value contains another field, such as &money=" in shown


def test_requests_that_cannot_be_read_are_reported(shop, pasted):
    assert "No parameters received" in pasted("")
    assert "pid: the name appears twice" in pasted("pid=1&pid=2")
    assert "not in UTF-8" in pasted("pid=1&name=%D5%C5")
    assert "The merchant has no RSA keys" in pasted(f"/api/pay/create?pid={shop.pid}&sign=x&sign_type=RSA")


def test_sent_values_are_escaped_in_the_page(http):
    evil = '</textarea><script>alert(1)</script>"onfocus="x'
    for field in ("body", "theirs", "signature"):
        form = {"endpoint": "epay", "body": "pid=1&name=x", field: evil}
        page = Seen(http("POST", PAGE, urlencode(form).encode(), FORM).text)
        assert "script" not in page.tags
        assert page.inline == []
    page = http("GET", f"{PAGE}?protocol=epay").text
    assert "Address or form body that the shop sent" in page
    assert f"{PAGE}?protocol=api" in page


def test_thousands_of_fields_are_explained_without_a_search():
    explanation = epay.explain("&".join(f"a{number}=1" for number in range(5_000)) + "&sign=x", typed="k")
    assert (explanation.holds, explanation.mistakes, len(explanation.lines)) == (False, (), 5_000)
