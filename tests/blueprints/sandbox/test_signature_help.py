"""The signature explainer's page: the refused request at its top, with the mistake that caused it; and its form."""

import json
import re
from urllib.parse import urlencode

import pytest

from services.sandbox.signature_help.merchant_api import MISTAKES
from tests.pages import FORM, Seen
from tests.support import Api, signed
from tests.wrong_signers import CALLBACK, ENDPOINT, QUERY, SECRET, SIGNERS, TEXTS, Mistaken, hexed

PAGE = "/sandbox/sign"
WHAT = {mistake.name: mistake.what for mistake in MISTAKES}
CURE = {mistake.name: mistake.cure for mistake in MISTAKES}


@pytest.fixture
def refused(api, http):
    """`refused(body)`: the page that the response to this bad request names, parsed."""

    def send(body):
        answer = api.post(ENDPOINT, body, query=f"?{QUERY}")
        assert answer.code == 40102
        link = re.search(r"http://[^/]+(/sandbox/sign\?refused=\d+)", answer.json["msg"])
        return Seen(http("GET", link[1]).text).text

    return send


@pytest.fixture
def explanation(http):
    """`explanation(endpoint=..., body=...)`: the page that explains it."""

    def send(**fields):
        given = {"endpoint": ENDPOINT, "api_key": "demo", "query": QUERY} | fields
        answer = http("POST", PAGE, urlencode(given).encode(), FORM)
        assert answer.status == 200
        return Seen(answer.text).text

    return send


def test_every_known_mistake_is_explained_on_the_page_that_the_refusal_names(refused):
    assert {name for name, _ in (*TEXTS, *SIGNERS)} == set(WHAT)
    for name, change in TEXTS:
        mistaken = Mistaken()
        shown = refused(mistaken.body(hexed(change(mistaken.text))))
        assert f"You get this signature if: {WHAT[name]} {CURE[name]}" in shown, name
    for name, sign in SIGNERS:
        mistaken = Mistaken()
        shown = refused(mistaken.body(sign(mistaken.text)))
        assert f"You get this signature if: {WHAT[name]} {CURE[name]}" in shown, name


def test_an_expired_secret_is_explained_and_no_signature_is_shown(refused, flask, ahead):
    flask("merchant", "rotate", "demo", "--keep-hours", "1")
    ahead(3601)
    mistaken = Mistaken()
    shown = refused(mistaken.body(hexed(mistaken.text)))
    assert WHAT["wrong_secret"] in shown
    assert "Correct signature" not in shown


def test_of_an_unknown_mistake_the_text_and_the_first_line_that_differs_are_shown(refused):
    shown = refused(Mistaken().body("0" * 64))
    assert "No known mistake gives this signature" in shown
    assert "customer_name=␣张/三␣" in shown
    mistaken = Mistaken()
    shown = refused(mistaken.body(hexed(mistaken.text.replace("12.50", "12.5"))))
    assert "6 cny_amount=12.50 yours cny_amount=12.5 7 customer_name=" in shown
    assert "line 6, column 16: the server has '0', you have a newline, where the line ends" in shown


def test_the_timestamp_is_compared_with_the_time_when_the_request_arrived(refused, http, ahead):
    refused(Mistaken().body("0" * 64))
    ahead(3600)
    assert "behind the server" not in http("GET", PAGE).text
    body = json.dumps(signed("orderQueryList", {"timestamp": 1}, secret="wrong"))
    answer = http("POST", "/merchant/orderQueryList", body.encode(), {"Content-Type": "application/json"})
    assert answer.code == 40102
    assert "behind the server" in http("GET", PAGE).text


def test_only_bad_signatures_are_kept_the_newest_twenty(api, http):
    assert "no longer available" in http("GET", f"{PAGE}?refused=1").text
    assert (api.listed(timestamp=1).code, api.listed(nonce="x").code) == (40103, 40104)
    assert "?refused=" not in http("GET", PAGE).text
    for number in range(25):
        assert Api(api.send, "demo", "wrong").listed(nonce=f"nonce-{number:04}").code == 40102
    page = Seen(http("GET", PAGE, headers={"Accept-Language": "en"}).text)
    assert "nonce=nonce-0024" in page.text
    assert len([address for address in page.addresses if "?refused=" in address]) == 20
    assert 'lang="zh' in http("GET", PAGE, headers={"Accept-Language": "zh-CN"}).text


def test_a_merchant_that_is_not_the_demos_is_not_explained(http, flask_json):
    secret = flask_json("merchant", "add", "shop")["api_secret"]
    body = json.dumps(signed("orderQueryList", {}, "shop", "wrong"))
    answer = http("POST", "/merchant/orderQueryList", body.encode(), {"Content-Type": "application/json"})
    assert (answer.code, "/sandbox/sign" in answer.text) == (40102, False)
    assert "?refused=" not in http("GET", PAGE).text
    form = urlencode({"endpoint": "orderQueryList", "api_key": "shop", "body": body}).encode()
    page = http("POST", PAGE, form, FORM).text
    assert "Correct signature" not in page
    assert secret not in page


@pytest.mark.parametrize("settings_of_app", [{"demo": False}])
def test_the_page_exists_in_demo_mode_only(http, api):
    assert Api(api.send, "demo", "wrong").listed().json["msg"] == "bad signature"
    assert [http(method, PAGE).code for method in ("GET", "POST")] == [40404, 40404]


# The form


def test_the_form_begins_with_an_example_whose_mistake_is_explained(http, explanation):
    page = http("GET", PAGE).text
    body = re.search(r'<textarea name="body"[^>]*>\n(.*?)</textarea>', page, re.DOTALL)[1].replace("&#34;", '"')
    shown = explanation(body=body, query="")
    assert WHAT["line_ends"] in shown
    assert "cny_amount=100.00" in shown
    right = re.search(r"Correct signature ([0-9a-f]{64})", shown)[1]
    mended = json.dumps(json.loads(body) | {"signature": right})
    assert http("POST", "/merchant/createOrder", mended.encode(), {"Content-Type": "application/json"}).code == 1


@pytest.mark.parametrize("endpoint", ["createRefund", "refundQueryDetail", "refundQueryList", "statementQuery"])
def test_the_signature_of_a_refund_is_explained_too(http, api, explanation, endpoint):
    fields = {"order_no": "1", "merchant_refund_no": "R-1", "reason": "退货"}
    assert f"<option>{endpoint}</option>" in http("GET", PAGE).text
    body = signed(endpoint, fields)
    shown = explanation(endpoint=endpoint, query="", body=json.dumps(body | {"signature": "0" * 64}))
    assert f"Correct signature {body['signature']}" in shown
    refused = api.post(endpoint, json.dumps(body | {"signature": "0" * 64}).encode())
    assert (refused.code, "/sandbox/sign?refused=" in refused.json["msg"]) == (40102, True)


def test_a_text_alone_is_compared_with_the_servers(explanation):
    mistaken = Mistaken()
    for name, change in TEXTS:
        shown = explanation(body=mistaken.bare, theirs=change(mistaken.text))
        assert f"You get this text if: {WHAT[name]}" in shown, name
        assert "First difference at line" in shown
    in_one_line = mistaken.text.replace("\n", r"\n")
    assert "Your text equals the server" in explanation(body=mistaken.bare, theirs=in_one_line)
    lookalikes = {"１": "'１' U+FF11 FULLWIDTH DIGIT ONE", "\u00a0": "U+00A0 NO-BREAK SPACE", "\t": "a tab"}
    for char, name in lookalikes.items():
        shown = explanation(body=mistaken.bare, theirs=mistaken.text.replace("card_type=2", f"card_type={char}"))
        assert f"the server has '2', you have {name}" in shown


def test_a_text_with_a_signature_tells_what_is_wrong(explanation):
    mistaken = Mistaken()
    shown = explanation(body=mistaken.bare, theirs=mistaken.text, signature=hexed(mistaken.text, "another"))
    assert "you used another secret" in shown
    assert "not that of your text" not in shown
    theirs = mistaken.text.replace("12.50", "12.5")
    shown = explanation(body=mistaken.bare, theirs=theirs + "\n", signature=hexed(theirs))  # the newline was pasted
    assert WHAT["number"] in shown
    assert WHAT["line_ends"] not in shown
    theirs = mistaken.text.replace("order_type=1", "order_type=2").replace(" 张/三 ", "张/三")
    shown = explanation(body=mistaken.bare, theirs=theirs, signature=hexed(theirs))
    assert "The texts differ. First difference at line 7" in shown
    assert "7 customer_name=␣张/三␣ yours customer_name=张/三 8 e_int=0" in shown
    assert "The signature in the request is that of your text." in shown
    assert "yours order_type=2" not in shown


def test_no_mistake_is_named_that_gives_the_signature_but_not_the_text(explanation):
    mistaken = Mistaken()
    of_another_text = hexed(mistaken.text.replace("12.50", "12.5"))
    for signature in (of_another_text, hexed(mistaken.text, CALLBACK)):
        shown = explanation(body=mistaken.bare, theirs="createOrder", signature=signature)
        assert "The texts differ. First difference at line 1, column 12" in shown
        assert "The signature in the request is not that of your text" in shown


def test_other_reasons_for_a_refusal_are_reported(explanation):
    for body, why in (
        ('{"a":1,"a":1}', "a: the name appears twice"),
        (r'{"a":"\u0007"}', "control characters"),
        ("{", "the text ends too early"),
        ("", "the body is empty"),
    ):
        shown = explanation(body=body)
        assert "refuses this request before it checks the signature" in shown
        assert why in shown
    for fields, said in (
        ({"timestamp": 1}, "behind the server"),
        ({"timestamp": 99_999_999_999}, "ahead of the server"),
        ({"timestamp": 1_767_225_600_000}, "timestamp is in milliseconds"),
        ({"timestamp": "now"}, "timestamp must be a whole number of seconds"),
        ({"nonce": "x"}, "nonce must have 8 to 64 of the characters"),
        ({"nonce": None}, "nonce is missing"),
        ({"api_key": "other"}, "the secret belongs to the api_key demo"),
    ):
        body = json.dumps(signed("orderQueryList", fields, secret=SECRET))
        shown = explanation(endpoint="orderQueryList", query="", body=body)
        assert "The signature is valid." in shown
        assert said in shown
    shown = explanation(body="{}", query="api_key=demo&timestamp=1&nonce=12345678&signature=x")
    assert "api_key is in the query string, but this endpoint takes it from the body only" in shown


def test_another_secret_can_be_entered_and_is_not_shown_again(http):
    mistaken = Mistaken()
    form = {"endpoint": ENDPOINT, "query": QUERY, "body": mistaken.bare, "secret": "a-secret-of-mine"}
    page = http("POST", PAGE, urlencode(form).encode(), FORM).text
    assert hexed(mistaken.text, "a-secret-of-mine") in page
    assert "a-secret-of-mine" not in page


def test_sent_values_are_escaped_in_the_page_and_an_unknown_endpoint_is_refused(http):
    evil = '</textarea><script>alert(1)</script>"onfocus="x'
    for field in ("body", "query", "theirs", "signature", "api_key"):
        form = {"endpoint": ENDPOINT, "body": Mistaken().bare} | {field: evil}
        answer = http("POST", PAGE, urlencode(form).encode(), FORM)
        page = Seen(answer.text)
        assert "script" not in page.tags
        assert page.inline == []
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert http("POST", PAGE, b"endpoint={0}&body={}", FORM).code == 42200
