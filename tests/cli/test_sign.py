"""`tillbook sign`: the published vectors line by line, the mistakes by name, and the values that it never prints."""

import json
import re
from urllib.parse import urlencode

import pytest

from services.sandbox.signature_help import epay, merchant_api
from tests.epay_shop import md5, text_to_sign
from tests.support import ROOT
from tests.wrong_epay_signers import SENT, digest
from tests.wrong_signers import ENDPOINT, QUERY, SECRET, SIGNERS, Mistaken, hexed

PUBLISHED = json.loads((ROOT / "docs" / "signature-vectors.json").read_text("utf-8"))
VECTORS = {vector["name"]: vector for vector in PUBLISHED["vectors"]}


@pytest.fixture
def file(tmp_path_factory):
    """`file(content)`: the path of a new file with it."""

    def write(content):
        path = tmp_path_factory.mktemp("sign") / "file"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def explained(flask, file):
    """`explained(mistaken, ...)`: the command's JSON for this request; `right`: whether no mistake is expected."""

    def run(mistaken, *options, signature="", right=False):
        body = mistaken.body(signature) if signature else mistaken.bare
        request = (ENDPOINT, "--body", file(body), "--query", QUERY, "--json")
        return json.loads(flask("sign", *request, *options, fails=not right).stdout)

    return run


def named(explanation):
    return [mistake["name"] for mistake in explanation["mistakes"]]


@pytest.mark.parametrize("name", VECTORS)
def test_each_published_vector_is_explained_line_by_line(name, flask, file):
    vector = VECTORS[name]
    options = ["--query", vector["query"], "--secret-file", file(PUBLISHED["secret"] + "\n")]
    if vector["body"]:
        options += ["--body", file(vector["body"])]
    explanation = json.loads(flask("sign", vector["endpoint"], *options, "--json").stdout)
    assert explanation["string_to_sign"] == vector["string_to_sign"]
    assert [line["text"] for line in explanation["lines"]] == vector["string_to_sign"].split("\n")
    assert explanation["signature"] == vector["signature"]
    assert (explanation["holds"], explanation["verdict"]) == (None, "The request has no signature.")
    given = flask("sign", vector["endpoint"], *options, "--signature", vector["signature"], "--json")
    assert json.loads(given.stdout)["holds"] is True


def test_a_mistake_is_named_by_the_text_alone_and_by_the_signature_alone(explained, file):
    mistaken = Mistaken()
    wrong = mistaken.text.replace("12.50", "12.5")
    by_text = explained(mistaken, "--theirs", file(wrong))
    assert (named(by_text), by_text["holds"]) == (["number"], None)
    by_signature = explained(mistaken, "--merchant", "demo", signature=hexed(wrong))
    assert (named(by_signature), by_signature["holds"]) == (["number"], False)
    assert by_signature["their_text"] == wrong
    assert by_signature["first_difference"] == {
        "line": 6,
        "column": 16,
        "our_line": "cny_amount=12.50",
        "their_line": "cny_amount=12.5",
        "ours": "0",
        "theirs": "\n",
    }


@pytest.mark.parametrize(("name", "sign"), dict(SIGNERS).items())
def test_a_mistake_after_the_text_is_distinguished_from_one_in_it(name, sign, explained, file):
    mistaken = Mistaken()
    wrong = mistaken.text.replace("12.50", "12.5")
    explanation = explained(mistaken, "--merchant", "demo", "--theirs", file(wrong), signature=sign(wrong))
    assert named(explanation) == ["number"]
    assert explanation["checks"][-1]["text"].startswith("The signature in the request is not that of your text"), name


def test_the_source_of_each_line_and_the_left_out_values_are_shown_but_not_the_demos_secret(explained):
    mistaken = Mistaken()
    explanation = explained(mistaken, "--merchant", "demo", signature=hexed(mistaken.text), right=True)
    assert {"line": 15, "text": "q=a b/c", "from": "query string"} in explanation["lines"]
    assert explanation["lines"][0] == {"line": 1, "text": "createOrder", "from": "address"}
    left_out = {(leaf["path"], leaf["why"]) for leaf in explanation["left_out"]}
    assert left_out == {
        ("merchant_order_no", "empty"),
        ("gatewaya_card_info.prov_id", "null"),
        ("signature", "signature"),
    }
    assert (explanation["holds"], explanation["signature"]) == (True, hexed(mistaken.text))
    assert SECRET not in json.dumps(explanation)


def test_the_output_for_people_is_in_lines(flask, file):
    mistaken = Mistaken()
    body, theirs = file(mistaken.body("0" * 64)), file(mistaken.text.replace("12.50", "12.5"))
    options = ("--body", body, "--query", QUERY, "--theirs", theirs, "--merchant", "demo")
    shown = flask("sign", "/merchant/createOrder", *options, fails=True).output
    assert "You get this text if\n  - a number is signed with other digits than it is sent with. Send amounts" in shown
    assert re.search(r"server +cny_amount=12.50\ntheirs +cny_amount=12.5", shown)
    assert "customer_name=␣张/三␣" in shown
    assert "first difference, line 6, column 16: server '0'" in shown
    assert "The signature in the request is not that of your text" in shown
    refused = flask("sign", ENDPOINT, "--body", file('{"a":1,"a":1}'), fails=True).output
    assert refused == "The service refuses this request before it checks the signature.\n  a: the name appears twice\n"


def test_a_stored_secret_signs_nothing_for_callers_without_it(flask, file, flask_json):
    secrets = flask_json("merchant", "add", "shop")
    mistaken = Mistaken()
    text = mistaken.text
    body = file(mistaken.body(hexed(text + "\n", secrets["api_secret"])))
    result = flask("sign", ENDPOINT, "--body", body, "--query", QUERY, "--merchant", "shop", "--json", fails=True)
    explanation = json.loads(result.stdout)
    assert (named(explanation), explanation["signature"]) == (["line_ends"], "")
    for never in (*list(secrets.values())[1:], hexed(text, secrets["api_secret"])):
        assert never not in result.output
    brought = ("--secret-file", file(secrets["api_secret"]))
    result = flask("sign", ENDPOINT, "--body", body, "--query", QUERY, *brought, "--json", fails=True)
    assert json.loads(result.stdout)["signature"] == hexed(text, secrets["api_secret"])
    assert secrets["api_secret"] not in result.output


def test_an_impossible_request_ends_in_one_line(refuses, flask, file):
    assert "no merchant" in refuses("sign", ENDPOINT, "--merchant", "nobody")
    assert "secret file is empty" in refuses("sign", ENDPOINT, "--secret-file", file(" \n"))
    assert "not UTF-8" in refuses("sign", ENDPOINT, "--theirs", file("张".encode("gbk")))
    assert "must be one of" in refuses("sign", "createorder")
    assert "either --merchant or --secret-file" in refuses(
        "sign", ENDPOINT, "--merchant", "demo", "--secret-file", file("x")
    )


@pytest.mark.parametrize(
    ("page", "mistakes"), [("signing.md", merchant_api.MISTAKES), ("epay-inbound.md", epay.MISTAKES)]
)
def test_the_documentation_has_every_mistake_with_its_remedy_and_its_name(page, mistakes):
    documented = (ROOT / "docs" / page).read_text("utf-8")
    assert [m.name for m in mistakes if f"\n| {m.what} | {m.cure} | `{m.name}` |\n" not in documented] == []


# epay


def test_the_published_vector_of_epay_is_explained(flask, file):
    # The test of go-epay, epay/util_test.go
    sent = "device=devicev&money=moneyv&sign=3854cc9f022e0fb821bd2e002260245d&sign_type=MD5"
    result = flask("sign", "epay", "--body", file(sent), "--secret-file", file("1234567\n"), "--json")
    explanation = json.loads(result.stdout)
    assert explanation["string_to_sign"] == "device=devicev&money=moneyv"
    assert explanation["signature"] == "3854cc9f022e0fb821bd2e002260245d"
    assert explanation["holds"] is True
    assert [leaf["why"] for leaf in explanation["left_out"]] == ["sign", "sign_type"]
    assert "1234567" not in result.output


@pytest.mark.parametrize("option", ["--body", "--query"])
def test_an_epay_request_is_checked_with_the_merchants_stored_key(option, flask, file, flask_json):
    shop = flask_json("epay", "enable", "demo", "--host", "shop.example")
    fields = {"pid": shop["pid"]} | SENT
    wrong = digest(f"{text_to_sign(fields)}&key={shop['key']}")
    address = f"https://pay.example.com/submit.php?{urlencode(fields | {'sign': wrong})}"
    given = file(f"{address}\n") if option == "--body" else address
    result = flask("sign", "epay", option, given, "--merchant", "demo", "--json", fails=True)
    explanation = json.loads(result.stdout)
    assert (explanation["endpoint"], named(explanation)) == ("submit.php", ["key_joined"])
    assert explanation["signature"] == ""
    shown = flask("sign", "epay", option, given, "--merchant", "demo", fails=True)
    assert "something is between the text and the key, such as &key= or &" in shown.output
    for never in (shop["key"], md5(fields, shop["key"])):
        assert never not in result.output + shown.output


def test_an_epay_request_of_another_merchant_or_with_the_key_or_without_the_gateway_is_reported(
    flask, file, flask_json, refuses
):
    assert "The epay gateway is not enabled" in refuses("sign", "epay", "--query", "pid=1", "--merchant", "demo")
    shop = flask_json("epay", "enable", "demo", "--host", "shop.example")
    result = flask("sign", "epay", "--query", "pid=7&money=1&sign=x", "--merchant", "demo", fails=True)
    assert f"the key belongs to the pid {shop['pid']}, not to this one" in result.output
    address = f"/api.php?act=order&pid={shop['pid']}&key={shop['key']}"
    result = flask("sign", "epay", "--query", address, "--merchant", "demo", fails=True)
    assert "Only requests to api.php have it" in result.output
    assert shop["key"] not in result.output
