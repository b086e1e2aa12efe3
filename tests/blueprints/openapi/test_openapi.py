"""The OpenAPI document is valid, has every route and code, and matches the bodies and responses of the service."""

import json
import re
from urllib.parse import quote

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from blueprints.openapi.operations import LEFT_OUT
from runtime import settings
from schemas.field_descriptions import PERCENT, SCHEMAS, YUAN
from services.callbacks import outbox, test_callback
from services.errors import ACTIONS, ERRORS, Action
from services.merchants import merchant_setup
from tests.support import CARD, PERSON, signed

ORDERS = ("createOrder", "orderQueryDetail", "orderQueryList", "getPayChannels", "balanceQuery", "statementQuery")
NAMES = (*ORDERS, "createRefund", "refundQueryDetail", "refundQueryList")
BUY = {"order_type": 1, "cny_amount": "1.00", "paychannel_id": 2, "paychannel_paymethod": "wxpay"}
SELL = BUY | {"order_type": 2}
REFUND = {"order_no": "2" * 24, "cny_amount": "1.00", "merchant_refund_no": "R-1"}
NO_END = {name: value for name, value in PERSON.items() if name != "cert_end_date"}
SELL_A = SELL | {"paychannel_id": 1, "gatewaya_personal_data": PERSON, "gatewaya_card_info": CARD}


@pytest.fixture
def document(app):
    """The served document."""
    return app.test_client().get("/openapi.json").json


def errors(document, value, *path):
    """The errors of a value by the schema at a path of the document."""
    pointer = "/".join(str(part).replace("~", "~0").replace("/", "~1") for part in path)
    found = Draft202012Validator(document | {"$ref": f"#/{pointer}"}).iter_errors(value)
    return [error.message for error in found]


def nodes(part, *path):
    """Yield each object of the document with its place."""
    if isinstance(part, dict):
        yield path, part
    for name, each in enumerate(part) if isinstance(part, list) else part.items() if isinstance(part, dict) else ():
        yield from nodes(each, *path, name)


def test_the_document_is_valid_openapi_of_this_version_and_all_origins_can_read_it(document, http):
    validate(document)
    assert (document["openapi"], document["info"]["version"]) == ("3.1.0", settings.VERSION)
    assert http("GET", "/openapi.json").headers["Access-Control-Allow-Origin"] == "*"


def test_every_route_is_in_the_document_or_intentionally_left_out(demo, app, document):
    routes = {
        (re.sub(r"<([^>]+)>", r"{\1}", rule.rule), method.lower())
        for rule in app.url_map.iter_rules()
        if not rule.endpoint.startswith(LEFT_OUT)
        for method in rule.methods - {"HEAD"}
    }
    assert routes == {(path, method) for path, methods in document["paths"].items() for method in methods}
    assert all(any(rule.endpoint.startswith(name) for rule in app.url_map.iter_rules()) for name in LEFT_OUT)


@pytest.mark.parametrize("settings_of_app", [{"api_prefix": "/api/v1", "site_url": "https://pay.example.com"}])
def test_it_has_the_addresses_of_this_installation(document):
    assert document["servers"] == [{"url": "https://pay.example.com"}]
    assert [path for path in document["paths"] if "merchant" in path] == [f"/api/v1/merchant/{name}" for name in NAMES]


def examples_of_codes(document):
    """The example of each code: of operations, and of paths and methods outside the document."""
    elsewhere = document["x-elsewhere"].values()
    others = [each["content"]["application/json"]["examples"] for each in elsewhere]
    return {code: each for found in (document["components"]["examples"], *others) for code, each in found.items()}


def test_every_code_is_documented_with_the_action_to_take(document):
    shown = examples_of_codes(document)
    assert {int(code): each["x-action"] for code, each in shown.items()} == {code: ACTIONS[code] for code in ERRORS}
    assert {each["x-action"] for each in shown.values()} == {*Action}
    assert shown["42201"]["x-action"] == "no-retry"
    assert shown["50201"]["x-action"] == "new-key"


# Examples, rules between fields, and named alternatives, which have their own description.
NOT_FIELDS = {"examples", "example", "x-elsewhere", "if", "dependentSchemas", "oneOf"}


def parts(document):
    """Yield each schema with its place: parameters, headers and the fields of objects."""
    for path, node in nodes(document):
        if not NOT_FIELDS & {*path}:
            for name, each in node["properties"].items() if isinstance(node.get("properties"), dict) else ():
                yield (*path, name), each
            if "in" in node or path[:-1] == ("components", "headers"):
                yield path, {**node["schema"], **node}


def test_every_field_is_described_and_has_an_example(document):
    def is_whole(shape):  # its parts have descriptions of their own
        return {"$ref", "oneOf", "allOf"} & {*shape} or "properties" in shape or shape.get("type") == "array"

    fields = [*parts(document)]
    assert len(fields) > 200
    assert [path for path, shape in fields if not shape.get("description")] == []
    bare = [path for path, shape in fields if not ({"examples", "example", "const"} & {*shape} or is_whole(shape))]
    assert bare == []


def test_every_operation_tag_response_and_schema_is_described(document):
    methods = (*document["paths"].values(), *document["webhooks"].values())
    operations = [operation for each in methods for operation in each.values()]
    described = [*document["tags"], *operations]
    described += [parameter for each in operations for parameter in each["parameters"]]
    described += [response for each in operations for response in each["responses"].values()]
    for kind in ("schemas", "headers"):
        described += document["components"][kind].values()
    assert len(described) > 200
    assert [each for each in described if not each["description"]] == []
    assert {*SCHEMAS} == {*document["components"]["schemas"]} - {"Failure"}


def test_every_description_is_in_the_readers_language(app):
    def lines(language):
        response = app.test_client().get("/openapi.json", headers={"Accept-Language": language})
        assert "Accept-Language" in response.headers["Vary"]
        described = [(path, node) for path, node in nodes(response.json) if not {"value", "example"} & {*path}]
        texts = {(*path, name): node.get(name) for path, node in described for name in ("summary", "description")}
        return {path: text.splitlines() for path, text in texts.items() if isinstance(text, str)}

    english, chinese = lines("en"), lines("zh-CN")
    assert english.keys() == chinese.keys()
    han = re.compile("[\u4e00-\u9fff]")
    assert [line for text in english.values() for line in text if han.search(line)] == []
    assert [line for text in chinese.values() for line in text if line and not han.search(line)] == []


def test_every_number_has_its_range(document):
    def open_ended(shape):
        types = {shape["type"]} if isinstance(shape["type"], str) else {*shape["type"]}
        is_number = {"integer", "number"} & types or shape.get("x-unit") in (YUAN, PERCENT)
        return is_number and not {"enum", "const", "maximum", "x-range"} & {*shape}

    assert [path for path, shape in parts(document) if "type" in shape and open_ended(shape)] == []


def test_every_integer_that_can_exceed_32_bits_says_so(document):
    def largest(shape):
        return max(shape.get("enum", [shape.get("maximum", 2**63)]))

    def is_integer(shape):
        types = shape.get("type", ())
        return "integer" in ([types] if isinstance(types, str) else types)

    found = {path: node for path, node in nodes(document) if is_integer(node)}
    assert {path[0] for path in found} == {"paths", "webhooks", "components", "x-elsewhere"}
    small = {path for path, shape in found.items() if shape.get("format") != "int64"}
    assert {path for path in small if largest(found[path]) > 2**31 - 1} == set()
    wide = {path[-1] for path in {*found} - small}
    assert wide >= {"merchant_actual_amount", "service_amount", "createtime"}
    assert wide >= {"payment_method_id", "paychannel_id", "id"}


@pytest.mark.parametrize("settings_of_app", [{"api_prefix": "/api/v1"}])
def test_nothing_is_in_it_that_client_generators_cannot_read(document):
    """openapi-generator fails at the type null, `not`, and at empty or null values of an enum."""

    def unreadable(shape):
        return "not" in shape or shape.get("type") == "null" or {"", None} & {*(shape.get("enum") or ())}

    schemas = [(path, shape) for path, shape in nodes(document) if not {"example", "examples"} & {*path}]
    assert [path for path, shape in schemas if unreadable(shape)] == []
    assert [path for path, shape in schemas if shape.get("type") == "array" and "items" not in shape] == []


def test_each_field_of_a_request_has_one_recommended_type(document):
    schemas = document["components"]["schemas"].items()
    shapes = {(name, field): shape for name, schema in schemas for field, shape in schema["properties"].items()}
    fields = {place: shape for place, shape in shapes.items() if "x-error-codes" in shape}
    assert len(fields) > 50
    two = {place for place, shape in fields.items() if not isinstance(shape.get("type"), str) and "$ref" not in shape}
    assert two == set()


def test_every_amount_rate_and_time_has_its_unit(document):
    named = re.compile(r"(_amount|_rate|time|timestamp|_left)$")
    fields = [(path, shape) for path, shape in parts(document) if named.search(str(path[-1]))]
    assert len(fields) > 30
    assert {path[-1] for path, shape in fields if "x-unit" not in shape} == {"timestamp"}  # of an event: RFC 3339
    assert [path for path, shape in fields if "x-unit" not in shape and shape.get("format") != "date-time"] == []


def test_the_codes_of_a_field_are_those_of_its_operation(document):
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    for operation in operations:
        contents = [each for answer in operation["responses"].values() for each in answer.get("content", {}).values()]
        those = {int(code) for content in contents for code in content.get("examples", {}) if code.isdigit()}
        fields = json.dumps([operation["parameters"], operation.get("requestBody")])
        for name in re.findall(r"#/components/schemas/(\w+)", fields):
            fields += json.dumps(document["components"]["schemas"][name])
        said = ",".join(re.findall(r'"x-error-codes": \[([^\]]+)\]', fields))
        assert {int(code) for code in said.split(",") if code} <= those, operation["operationId"]


def examples(document):
    """Yield each example: the place of its schema, and the value."""
    for path, node in nodes(document):
        if "examples" in path:
            continue
        if isinstance(node.get("examples"), list):
            yield from ((path, value) for value in node["examples"])
        elif "schema" in node:
            given = [each["value"] for each in node.get("examples", {}).values() if "value" in each]
            given += [node["example"]] if "example" in node else []
            yield from (((*path, "schema"), value) for value in given)


def test_every_example_fits_its_schema(document):
    found = [*examples(document)]
    assert len(found) > 200
    assert [(path, value) for path, value in found if errors(document, value, *path)] == []
    for code, each in examples_of_codes(document).items():
        assert errors(document, each["value"], "components", "schemas", "Failure") == [], code


BAD = {"api_key": "nobody", "signature": "0" * 64, "timestamp": 1, "nonce": "short"}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("getPayChannels", "balanceQuery")])
def test_a_bad_value_is_refused_by_a_code_that_its_field_names(document, api, name):
    content = document["paths"][f"/merchant/{name}"]["post"]["requestBody"]["content"]["application/json"]
    for form, example in content["examples"].items():
        own = {field: value for field, value in example["value"].items() if field not in BAD}
        for field, shape in document["components"]["schemas"][form]["properties"].items():
            bad = {field: BAD.get(field, {"no": "such value"})}
            body = signed(name, own | bad) | (bad if field == "signature" else {})
            answer = api.post(name, json.dumps(body).encode())
            assert answer.code in shape["x-error-codes"], (form, field, answer)


def test_an_unknown_or_empty_region_is_refused_by_a_code_that_its_field_names(document, http):
    empty = (("cityList", "?province=", 42200), ("districtList", "?province=x&city=", 42200))
    unknown = (("cityList", "?province=x", 40402), ("districtList", "?province=x&city=x", 40402))
    another = ("districtList", f"?province={quote('广东省')}&city=x", 40402)
    for name, query, code in (*empty, *unknown, another, ("cityList", "", 42200)):
        path = f"/addons/paychannel/channel.gatewaya/{name}"
        fields = {each["name"]: each["schema"] for each in document["paths"][path]["get"]["parameters"]}
        assert http("GET", path + query).code == code
        for field in {"province", "city"} & fields.keys():
            assert code in fields[field]["x-error-codes"]
            assert not Draft202012Validator(fields[field]).is_valid("")


def test_the_callbacks_are_those_that_the_service_sends(document):
    names = [*document["webhooks"]]
    subscribed = [event if "." in event else f"order.{event}" for event in merchant_setup.EVENTS]
    assert sorted(names) == sorted([*subscribed, *outbox.REFUND_RESULTS, test_callback.TYPE])


def test_the_errors_of_a_refund_have_their_own_data_and_actions(document):
    responses = document["paths"]["/merchant/createRefund"]["post"]["responses"]
    shown = {code: each for status in ("409", "502") for code, each in of_status(responses, status)["examples"].items()}
    actions = {code: each.get("x-action") for code, each in shown.items()}
    assert actions == {"40901": "same-key", "40904": None, "50201": "new-key"}  # None: the shared example
    assert examples_of_codes(document)["40904"]["x-action"] == "no-retry"
    for status, data in (
        ("409", {"reason": "window", "left": "0.00"}),
        ("409", None),
        ("502", {"refund_no": "2" * 24}),
    ):
        shape = of_status(responses, status)["schema"]["allOf"][1]["properties"]["data"]
        validator = Draft202012Validator(shape)
        assert validator.is_valid(data)
        assert not validator.is_valid({"order_no": "2" * 24})
        assert not validator.is_valid({"reason": "no", "left": "0.00"})


def of_status(responses, status):
    """The JSON content of the response with this status."""
    return responses[status]["content"]["application/json"]


# Bodies and queries that the document accepts, or refuses.
GOOD = {
    "a deposit": ("createOrder", BUY),
    "a withdrawal": ("createOrder", SELL),
    "a withdrawal through gateway_a": ("createOrder", SELL_A),
    "ints with a point": ("createOrder", BUY | {"order_type": 1.0, "paychannel_id": 2.0}),
    "an e-mail": ("createOrder", SELL_A | {"gatewaya_personal_data": PERSON | {"email": "a@example.com"}}),
    "long-term, no end": ("createOrder", SELL_A | {"gatewaya_personal_data": NO_END | {"cert_validity_type": "1"}}),
    "an id with a point": ("orderQueryDetail", {"id": 68.0}),
    "one of three": ("orderQueryDetail", {"merchant_order_no": "A-1"}),
    "no filter": ("orderQueryList", {}),
    "a page": ("orderQueryList", {"limit": 100, "order_type": 2, "page": 7}),
    "the first second": ("orderQueryList", {"end_time": 0, "start_time": 0}),
    "the page after an order": ("orderQueryList", {"before": "2" * 24, "page": 1}),
    "a refund": ("createRefund", REFUND | {"reason": "x" * 80}),
    "one of two": ("refundQueryDetail", {"merchant_refund_no": "R-1"}),
    "refunds of an order": ("refundQueryList", {"order_no": "2" * 24, "status": "completed", "page": 7}),
    "a statement": ("statementQuery", {"month": "2026-10"}),
    "a statement as CSV": ("statementQuery", {"month": "2026-10", "format": "csv", "limit": 1000}),
    "the page after a refund": ("refundQueryList", {"before": "2" * 24, "page": 1}),
}
BAD_FIELDS = {
    "dated, no end": ("createOrder", SELL_A | {"gatewaya_personal_data": NO_END}),
    "dated, an empty end": ("createOrder", SELL_A | {"gatewaya_personal_data": PERSON | {"cert_end_date": ""}}),
    "gateway_a without the person": ("createOrder", SELL_A | {"gatewaya_personal_data": None}),
    "an unknown card type": ("createOrder", SELL_A | {"gatewaya_card_info": CARD | {"card_type": "3"}}),
    "a blank name": ("createOrder", SELL_A | {"gatewaya_card_info": CARD | {"card_name": "  "}}),
    "a card of letters": ("createOrder", SELL_A | {"gatewaya_card_info": CARD | {"card_no": "1234567x"}}),
    "a deposit with a card": ("createOrder", BUY | {"gatewaya_card_info": CARD}),
    "a withdrawal with a payer": ("createOrder", SELL | {"customer_name": "x"}),
    "a third type": ("createOrder", BUY | {"order_type": 3}),
    "no int": ("createOrder", BUY | {"order_type": True}),
    "zero": ("createOrder", BUY | {"cny_amount": 0}),
    "a comma": ("createOrder", BUY | {"cny_amount": "1,00"}),
    "no amount": ("createOrder", BUY | {"cny_amount": None}),
    "256 characters": ("createOrder", BUY | {"merchant_order_no": "x" * 256}),
    "an unknown method": ("createOrder", BUY | {"paychannel_paymethod": "cash"}),
    "an unknown field": ("createOrder", BUY | {"x": 1}),
    "nulls": ("orderQueryDetail", {"id": None, "order_no": None, "merchant_order_no": None}),
    "empty texts": ("orderQueryDetail", {"id": "", "order_no": ""}),
    "nothing": ("orderQueryDetail", {}),
    "ids begin at 1": ("orderQueryDetail", {"id": "0"}),
    "two pages": ("orderQueryList", {"before": "2" * 24, "page": 2}),
    "a limit above 100": ("orderQueryList", {"limit": "101"}),
    "a limit of zero": ("orderQueryList", {"limit": "00"}),
    "no type": ("orderQueryList", {"order_type": "0"}),
    "a refund without a number": ("createRefund", REFUND | {"merchant_refund_no": ""}),
    "a number of 65 characters": ("createRefund", REFUND | {"merchant_refund_no": "x" * 65}),
    "a long reason": ("createRefund", REFUND | {"reason": "x" * 81}),
    "a refund of nothing": ("createRefund", REFUND | {"cny_amount": "0.00"}),
    "a refund with a type": ("createRefund", REFUND | {"order_type": 1}),
    "a statement without a month": ("statementQuery", {}),
    "a thirteenth month": ("statementQuery", {"month": "2026-13"}),
    "a statement as XML": ("statementQuery", {"month": "2026-10", "format": "xml"}),
    "too many lines": ("statementQuery", {"month": "2026-10", "limit": 1001}),
    "no refund": ("refundQueryDetail", {}),
    "a refund cannot be paid": ("refundQueryList", {"status": "paid"}),
    "two pages of refunds": ("refundQueryList", {"before": "2" * 24, "page": 2}),
}


def fits(document, name, fields):
    """Return whether the document accepts this request."""
    place = ("paths", f"/merchant/{name}", "post", "requestBody", "content", "application/json", "schema")
    return errors(document, signed(name, fields), *place) == []


def test_the_document_accepts_and_refuses_the_same_requests_as_the_service(document, api):
    for what, (name, fields) in GOOD.items():
        assert fits(document, name, fields), what
        assert api.call(name, fields).code in ((1,) if name == "createOrder" else (1, 40401, 40405)), what
    for what, (name, fields) in BAD_FIELDS.items():
        assert not fits(document, name, fields), what
        assert api.call(name, fields).code == 42200, what


DIGITS, NUMBER = "A text of ASCII digits is accepted too.", "A number is accepted too."
ABSENT = "null or an empty text counts as absent."
FOREVER = PERSON | {"cert_validity_type": "1"}


ACCEPTED_TOO = [  # operation, fields, the field's place, its description
    ("createOrder", BUY | {"order_type": "1"}, "SignedBuyOrder.order_type", DIGITS),
    ("createOrder", SELL | {"paychannel_id": "2"}, "SignedSellOrder.paychannel_id", DIGITS),
    ("createOrder", BUY | {"cny_amount": 1.5}, "SignedBuyOrder.cny_amount", NUMBER),
    ("createOrder", BUY | {"customer_name": None}, "SignedBuyOrder.customer_name", ABSENT),
    ("createOrder", BUY | {"merchant_order_no": None}, "SignedBuyOrder.merchant_order_no", ABSENT),
    (
        "createOrder",
        SELL_A | {"gatewaya_personal_data": FOREVER | {"cert_end_date": ""}},
        "PersonalData.cert_end_date",
        ABSENT,
    ),
    ("orderQueryDetail", {"id": None, "merchant_order_no": "A-1"}, "SignedOrderDetailQuery.id", ABSENT),
    ("orderQueryDetail", {"id": "68"}, "SignedOrderDetailQuery.id", DIGITS),
    ("orderQueryList", {"page": None}, "SignedOrderListQuery.page", ABSENT),
    ("orderQueryList", {"limit": ""}, "SignedOrderListQuery.limit", ABSENT),
    ("orderQueryList", {"status": ""}, "SignedOrderListQuery.status", ABSENT),
    ("orderQueryList", {"page": "007"}, "SignedOrderListQuery.page", DIGITS),
    ("orderQueryList", {"start_time": "00"}, "SignedOrderListQuery.start_time", DIGITS),
]


def test_what_a_field_accepts_in_addition_to_its_type_is_in_its_description(document, api):
    for name, fields, place, words in ACCEPTED_TOO:
        schema, _, field = place.partition(".")
        shape = document["components"]["schemas"][schema]["properties"][field]
        assert words in shape["description"].split("\n\n"), place
        assert not fits(document, name, fields), place
        assert api.call(name, fields).code in (1, 40401), place


def test_an_optional_field_has_no_default_that_would_make_it_required(document):
    shown = document["components"]["schemas"]["SignedOrderListQuery"]
    assert sorted(shown["required"]) == ["api_key", "nonce", "signature", "timestamp"]
    assert not any("default" in shape for shape in shown["properties"].values())
    assert "default" in shown["properties"]["page"]["description"]
