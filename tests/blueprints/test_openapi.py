"""The OpenAPI document: it is valid, has every route and code, and says of bodies and answers what the service does."""

import json
import re

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

import settings
from blueprints.operations import LEFT_OUT, OPERATIONS
from services.errors import ERRORS
from tests import doors
from tests.support import CARD, PERSON, Api, signed, through_flask

BUY = {"order_type": 1, "cny_amount": "1.00", "paychannel_id": 2, "paychannel_paymethod": "wxpay"}
SELL = BUY | {"order_type": 2}
SELL_A = SELL | {"paychannel_id": 1, "gatewaya_personal_data": PERSON, "gatewaya_card_info": CARD}


def served(app):
    return app.test_client().get("/openapi.json").json


def closed(part):
    """A copy of the document in which no answer may have more than what is named."""
    if isinstance(part, list):
        return [closed(each) for each in part]
    if not isinstance(part, dict):
        return part
    whole = {name: closed(each) for name, each in part.items()}
    if isinstance(part.get("properties"), dict) and set(part.get("required", ())) == set(part["properties"]):
        return {"additionalProperties": False} | whole
    return whole


def errors(document, value, *path):
    """What of a value does not fit the schema at a path of the document."""
    pointer = "/".join(str(part).replace("~", "~0").replace("/", "~1") for part in path)
    found = Draft202012Validator(document | {"$ref": f"#/{pointer}"}).iter_errors(value)
    return [error.message for error in found]


def path_of(rule):
    return re.sub(r"<([^>]+)>", r"{\1}", rule.rule)


def test_the_document_is_valid_openapi_and_of_this_version(app):
    document = served(app)
    validate(document)
    assert (document["openapi"], document["info"]["version"]) == ("3.1.0", settings.VERSION)


def test_any_page_may_read_it(http):
    assert http("GET", "/openapi.json").headers["Access-Control-Allow-Origin"] == "*"


def test_every_route_is_in_the_document_or_left_out_on_purpose(app):
    routes = {
        (path_of(rule), method.lower())
        for rule in app.url_map.iter_rules()
        if rule.endpoint not in LEFT_OUT
        for method in rule.methods - {"HEAD"}
    }
    assert routes == {(path, method) for path, methods in served(app)["paths"].items() for method in methods}
    assert {rule.endpoint for rule in app.url_map.iter_rules()} >= LEFT_OUT


@pytest.mark.parametrize("settings_of_app", [{"api_prefix": "/api/v1", "site_url": "https://pay.example.com"}])
def test_it_has_the_addresses_of_this_installation(app):
    document = served(app)
    assert document["servers"] == [{"url": "https://pay.example.com"}]
    assert [path for path in document["paths"] if "merchant" in path] == [
        f"/api/v1/merchant/{name}" for name in ("createOrder", "orderQueryDetail", "orderQueryList", "getPayChannels")
    ]


def test_every_code_is_documented(app):
    text = json.dumps(served(app))
    assert {code for code in ERRORS if not re.search(rf"\b{code}\b", text)} == set()


def answer_schema(operation, answer):
    """Where the document has the schema of an answer."""
    media = answer.headers.get("Content-Type", "").split(";")[0]
    return ("responses", str(answer.status), "content", media, "schema")


@pytest.fixture
def http(app):
    """The transport; every answer on the way is held against the document."""
    send, document = through_flask(app.test_client()), closed(served(app))
    routes = app.url_map.bind("localhost")
    rows = {(each.route, each.method): each for each in OPERATIONS}

    def checked(method, path, body=b"", headers=None):
        answer = send(method, path, body, headers)
        route, _ = routes.match(path.split("?")[0], method)
        if route not in LEFT_OUT:
            (rule,) = app.url_map.iter_rules(route)
            place = ("paths", path_of(rule), method.lower(), *answer_schema(rows[route, method.lower()], answer))
            value = answer.json if "json" in answer.headers["Content-Type"] else answer.text
            assert errors(document, value, *place) == [], (path, answer)
        return answer

    return checked


def test_each_answer_of_a_walk_through_all_doors_is_in_the_document(api, other, http, flask):
    doors.create_orders_of_all_kinds(api)
    doors.open_all_pages(api, http)
    assert api.listed().data["list"]
    doors.be_refused(api, other, flask)


NO_END = {name: value for name, value in PERSON.items() if name != "cert_end_date"}


@pytest.mark.parametrize(
    ("fields", "good"),
    [
        pytest.param(BUY, True, id="deposit"),
        pytest.param(SELL, True, id="withdrawal"),
        pytest.param(SELL_A, True, id="withdrawal through gateway_a"),
        pytest.param(BUY | {"order_type": "1", "paychannel_id": "2"}, True, id="ints as texts"),
        pytest.param(BUY | {"customer_name": None, "merchant_order_no": ""}, True, id="null and empty"),
        pytest.param(BUY | {"cny_amount": 1.5}, True, id="a number"),
        pytest.param(SELL_A | {"gatewaya_personal_data": PERSON | {"email": "a@example.com"}}, True, id="an e-mail"),
        pytest.param(
            SELL_A | {"gatewaya_personal_data": NO_END | {"cert_validity_type": "1"}}, True, id="long-term, no end"
        ),
        pytest.param(
            SELL_A | {"gatewaya_personal_data": PERSON | {"cert_validity_type": "1", "cert_end_date": ""}},
            True,
            id="long-term, an empty end",
        ),
        pytest.param(SELL_A | {"gatewaya_personal_data": NO_END}, False, id="dated, no end"),
        pytest.param(
            SELL_A | {"gatewaya_personal_data": PERSON | {"cert_end_date": ""}}, False, id="dated, an empty end"
        ),
        pytest.param(SELL_A | {"gatewaya_personal_data": None}, False, id="gateway_a without the person"),
        pytest.param(SELL_A | {"gatewaya_card_info": CARD | {"card_type": "3"}}, False, id="an unknown card type"),
        pytest.param(SELL_A | {"gatewaya_card_info": CARD | {"card_name": "  "}}, False, id="a blank name"),
        pytest.param(SELL_A | {"gatewaya_card_info": CARD | {"card_no": "1234567x"}}, False, id="a card of letters"),
        pytest.param(BUY | {"gatewaya_card_info": CARD}, False, id="a deposit with a card"),
        pytest.param(SELL | {"customer_name": "x"}, False, id="a withdrawal with a payer"),
        pytest.param(BUY | {"order_type": 3}, False, id="a third type"),
        pytest.param(BUY | {"order_type": True}, False, id="no int"),
        pytest.param(BUY | {"cny_amount": 0}, False, id="zero"),
        pytest.param(BUY | {"cny_amount": "1,00"}, False, id="a comma"),
        pytest.param(BUY | {"cny_amount": None}, False, id="no amount"),
        pytest.param(BUY | {"merchant_order_no": "x" * 256}, False, id="256 characters"),
        pytest.param(BUY | {"paychannel_paymethod": "cash"}, False, id="an unknown method"),
        pytest.param(BUY | {"x": 1}, False, id="an unknown field"),
    ],
)
def test_the_document_takes_and_refuses_what_the_service_does(app, fields, good):
    body = signed("createOrder", fields)
    place = ("paths", "/merchant/createOrder", "post", "requestBody", "content", "application/json", "schema")
    assert (errors(served(app), body, *place) == []) is good
    assert Api(through_flask(app.test_client())).call("createOrder", fields).code == (1 if good else 42200)
