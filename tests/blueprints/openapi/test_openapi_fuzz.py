"""Generated requests to every operation of the OpenAPI document return documented responses, and no 5xx."""

from functools import cache
from itertools import count

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    positive_data_acceptance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from blueprints.openapi.operations import OPERATIONS
from models.tables.merchant import AUTOMATIC, Merchant
from services.callbacks import delivery
from services.ledger import monthly_statement
from services.platform import heartbeats
from tests.support import completed, signature, signed

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
# Requests that the schema allows are accepted, except for rules that it cannot express: the amounts and places of a
# channel, what is left of a payment, notices, whose form a driver decides, and that an empty number counts as absent.
JUDGED_FURTHER = (
    *("createOrder", "createRefund", "refundQueryDetail", "noticeByGet", "noticeByPost"),
    "statementQuery",  # no future month
)
NAMES = [operation.name for operation in OPERATIONS]
WITH_PARAMETERS = [each.name for each in OPERATIONS if each.body or each.form or each.query or each.query_texts]
AUTH = ("api_key", "timestamp", "nonce", "signature")
# Drawn separately from the case: what Hypothesis generates depends on the modules loaded in this process.
CHOICES = st.sampled_from(range(60))
BOUNDED = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.fixture
def settings_of_app():
    return {"requests_per_second": 1_000_000, "refused_per_minute": 1_000_000}


@cache
def operations_of(app):
    """The operations of the served document by their operationId; reading it takes longer than most tests."""
    schema = schemathesis.openapi.from_dict(app.test_client().get("/openapi.json").json)
    schema.app = app
    operations = [found.ok() for found in schema.get_all_operations()]
    return {each.definition.raw["operationId"]: each for each in operations}


@pytest.fixture
def contract(app):
    """`contract(name)` returns the operation with this operationId of the served document."""
    heartbeats.beating("callbacks", delivery.sweep)  # readiness needs it: no jobs run here
    return operations_of(app).get


@pytest.fixture
def there(api, request):
    """Values that exist, by field: generated values would hardly ever match them."""
    deposits = [api.buy(channel=channel, merchant_order_no="A-1001").data["order_no"] for channel in (2, 3)]
    withdrawal = api.sell("1.00").data["order_no"]
    places = {"province": ["广东省"], "city": ["广州市"], "prov_id": ["110000"], "area_id": ["110101"]}
    numbers = [*deposits, withdrawal]
    existing = {"order_no": numbers, "before": numbers, "paychannel_id": [1, 2, 3], "merchant_order_no": ["A-1001"]}
    name = request.getfixturevalue("name")
    if "efund" in name:
        existing |= _refunded(api)
    if name == "statementQuery":
        completed(api)
        month = f"{monthly_statement.this_month():%Y-%m}"
        lines = api.call(name, {"month": month}).data["list"]
        existing |= {"month": [month], "after": [line["line_no"] for line in lines]}
    if name == "createRefund":  # its number must be new
        existing |= {"cny_amount": ["1.00", "0.01"]}
        del existing["merchant_refund_no"]
    return places | existing


def _refunded(api):
    """A deposit that can be refunded, and a refund of it."""
    Merchant.update(refund_mode=AUTOMATIC, refund_auto_max=10**12).where(Merchant.key == "demo").execute()
    order_no = api.buy("900000.00").data["order_no"]
    api.play(order_no, "success")
    fields = {"order_no": order_no, "cny_amount": "1.00", "merchant_refund_no": "R-1"}
    refund_no = api.call("createRefund", fields).data["refund_no"]
    return {"order_no": [order_no], "refund_no": [refund_no], "merchant_refund_no": ["R-1"], "before": [refund_no]}


def known(fields, there, number):
    """Replace generated values by existing ones."""
    if not isinstance(fields, dict):
        return fields
    return {
        name: there[name][number // 3 % len(there[name])] if name in there else known(value, there, number)
        for name, value in fields.items()
    }


def sign(case):
    """Sign the generated request, so that it passes authentication."""
    if not case.path.startswith("/merchant/"):
        return
    endpoint = case.path.rsplit("/", 1)[-1]
    if endpoint == "getPayChannels":
        case.query = {name: value for name, value in (case.query or {}).items() if name not in AUTH}
        case.body = {}
    if isinstance(case.body, dict):
        own = {name: value for name, value in case.body.items() if name not in AUTH}
        body = {name: value for name, value in signed(endpoint, own).items() if name != "signature"}
        case.body = body | {"signature": signature(endpoint, body, "demo-secret", case.query)}


def ask(case, name):
    """Send the request and check the response against the document."""
    case.headers["Accept-Encoding"] = "identity"
    accepted = [] if name in JUDGED_FURTHER else [positive_data_acceptance]
    return case.call_and_validate(checks=[*CHECKS, *accepted])


@pytest.mark.parametrize(
    ("name", "mode"),
    [(name, GenerationMode.POSITIVE) for name in NAMES] + [(name, GenerationMode.NEGATIVE) for name in WITH_PARAMETERS],
)
def test_every_response_to_generated_requests_is_documented(contract, there, name, mode):
    operation, met = contract(name), []

    @BOUNDED
    @given(case=operation.as_strategy(generation_mode=mode), number=CHOICES)
    def fuzz(case, number):
        if number % 3:  # two thirds use existing values
            case.body, case.query = known(case.body, there, number), known(case.query, there, number)
            case.path_parameters = known(case.path_parameters, there, number)
        if number % 5:  # the others have no signature, or a wrong one
            sign(case)
        met.append(ask(case, name).status_code)

    fuzz()
    not_generated = name.startswith(("notice", "metrics"))  # values that reach their handlers
    if mode is GenerationMode.POSITIVE and not not_generated:
        assert {200, 303} & {*met}  # some requests reach the handler


@pytest.mark.parametrize("name", NAMES)
def test_every_response_at_the_bounds_of_parameters_is_documented(contract, name):
    operation = contract(name)
    config = operation.schema.config.generation
    for case in operation.schema.iter_coverage_cases(
        operation, generation_modes=[*GenerationMode], generation_config=config
    ):
        sign(case)
        ask(case, name)


@pytest.mark.parametrize("name", [operation.name for operation in OPERATIONS if any(operation.body.values())])
def test_each_example_of_the_document_succeeds(contract, there, name):
    operation = contract(name)
    # An example cannot have the number of an existing order.
    existing = {
        field: there[field] for field in ("order_no", "before", "refund_no", "month", "after") if field in there
    }
    counted = count()

    @BOUNDED
    @given(case=st.one_of(operation.get_strategies_from_examples()))
    def ask_example(case):
        case.headers.clear()  # the same Idempotency-Key for all would be refused
        numbers = {"refundQueryDetail": ["R-1"], "createRefund": [f"R-1-{next(counted)}"]}
        own = {"merchant_refund_no": numbers[name]} if name in numbers else {}
        case.body = known(case.body, existing | own, 0)
        sign(case)
        assert ask(case, name).status_code == 200

    ask_example()
