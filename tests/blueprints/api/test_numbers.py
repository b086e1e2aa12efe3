"""Notations of numbers over HTTP: as literal text, exact, or refused."""

import json
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support import signed_text

FEW = settings(
    max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
FEN = st.integers(1, 100_000_000)
FORMS = ["{yuan}", "{fen}e-2", "{fen}E-02", "{fen}0e-3", "{yuan}0"]


@pytest.fixture
def settings_of_app():
    return {"requests_per_second": 1_000_000}


@pytest.fixture
def create(api):
    """`create(amount="1")` sends a deposit whose fields are JSON text, digit for digit."""

    def send(**written):
        fields = {"order_type": "1", "cny_amount": "1", "paychannel_id": "2", "paychannel_paymethod": '"wxpay"'}
        text = ", ".join(f'"{name}": {value}' for name, value in (fields | written).items())
        return api.post("createOrder", signed_text("createOrder", f"{{{text}}}"))

    return send


def quoted(value):
    return json.dumps(value, ensure_ascii=False)


def yuan(fen):
    return f"{fen // 100}.{fen % 100:02d}"


AMOUNTS = [
    *("100", "100.0", "12.50", "0.01", "0.1", "0.3", "1.1", "4.35", "8.41", "999999.99", "1000000"),
    *("1e2", "1E+2", "1250e-2"),
]


def test_an_amount_is_read_from_its_text_as_number_or_string(create):
    for written in AMOUNTS:
        for literal in (written, quoted(written)):
            answer = create(cny_amount=literal)
            assert answer.data["cny_amount"] == answer.data["merchant_amount"] == f"{Decimal(written):.2f}"
            assert answer.data["deposit_amount"] == Decimal(written) * 100


REFUSED_AMOUNTS = [
    *("0", "0.00", "-0", "-1", "-0.01", "0e5"),  # not greater than 0
    *("0.001", "1.005", "1.001", "100.000001", "12.345", "0.0100000000000000000001"),  # too many decimals
    *("1005e-3", "1e-3", "1.5e-2", "1e-999", "1e-99", "0.1005e1"),  # hidden decimals
    *("1e9", "1e99", "1e999", "1000000.01", "9" * 30, "9" * 41, "9" * 400),  # too large
]
REFUSED_TEXTS = [
    *("", " ", "abc", "NaN", "nan", "Infinity", "-Infinity", "inf", "sNaN"),
    *(" 1", "1 ", "+1", "1_000", "1,000", "1.", ".5", "01", "00.10", "0x10", "1e", "1e1.5", "1 e2"),
    *("１２", "١٢", "1٫5", "¥1", "1元", "1.0.0", "1;1", "--1", "1e9999"),
]


@pytest.mark.usefixtures("nothing_changes")
def test_an_amount_that_is_not_exact_and_positive_is_refused(create):
    others = ("true", "false", "null", "[]", "[1]", "{}", '{"yuan": 1}', '["1"]')
    for literal in (*REFUSED_AMOUNTS, *map(quoted, REFUSED_AMOUNTS), *map(quoted, REFUSED_TEXTS), *others):
        answer = create(cny_amount=literal)
        assert (answer.status, answer.code, list(answer.data)) == (422, 42200, ["cny_amount"]), literal


@pytest.mark.usefixtures("nothing_changes")
def test_a_number_that_is_not_json_makes_the_body_malformed(api):
    for literal in ("NaN", "Infinity", "-Infinity", "01", "+1", "1_000", ".5", "1.", "0x10", "１"):
        answer = api.post("createOrder", f'{{"api_key": "demo", "cny_amount": {literal}}}'.encode())
        assert (answer.status, answer.code, answer.data) == (400, 40000, None), literal


@FEW
@given(fen=FEN, as_text=st.booleans(), form=st.sampled_from(FORMS))
def test_every_amount_is_returned_exactly(create, fen, as_text, form):
    literal = form.format(yuan=yuan(fen), fen=fen)
    answer = create(cny_amount=quoted(literal) if as_text else literal)
    if form in ("{fen}0e-3", "{yuan}0"):  # three decimals, although the last is a zero
        assert (answer.code, list(answer.data)) == (42200, ["cny_amount"])
    else:
        assert answer.data["cny_amount"] == yuan(fen)
        assert answer.data["deposit_amount"] == fen


@FEW
@given(text=st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12))
def test_any_other_text_is_not_an_amount(create, text):
    try:
        readable = Decimal(text).is_finite() and text.isascii()
    except ArithmeticError:
        readable = False
    if not readable:
        assert create(cny_amount=quoted(text)).code == 42200


INTS = {
    "order_type": ("createOrder", "1"),
    "paychannel_id": ("createOrder", "2"),
    "id": ("orderQueryDetail", "1"),
    "page": ("orderQueryList", "1"),
    "limit": ("orderQueryList", "20"),
    "start_time": ("orderQueryList", "1767196800"),
    "end_time": ("orderQueryList", "1767196800"),
}
REFUSED_INTS = [
    *("true", "false", "[]", "[1]", "{}"),
    *("1.5", "1.01", "1e-1", "1E99", "-1", "9223372036854775808", "9" * 40, "9" * 5_000, "1e400", "1." + "0" * 50),
    *map(
        quoted,
        (" ", "x", " 1 ", "1 ", "\u00a01", "+1", "-1", "1_000", "1,0", "1.0", "1e0", "0x1", "１", "١", "²", "true"),
    ),
    quoted("9" * 40),
]


@pytest.fixture
def ask(api, create):
    """`ask(field, literal)` sends one int to an endpoint that accepts it."""

    def send(field, literal):
        endpoint = INTS[field][0]
        if endpoint == "createOrder":
            return create(**{field: literal})
        return api.post(endpoint, signed_text(endpoint, f'{{"{field}": {literal}}}'))

    return send


@pytest.mark.parametrize("field", INTS)
def test_an_int_may_be_a_text_of_digits_or_written_as_in_json_schema(ask, field):
    number = INTS[field][1]
    expected = ask(field, number).code
    assert expected in (1, 40401)
    for literal in (quoted(number), f"{number}.0", f"{number}e0", f"{number}0E-1", f"{number}.000"):
        assert ask(field, literal).code == expected, literal


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize("field", INTS)
def test_an_int_in_any_other_form_is_refused(ask, field):
    for literal in REFUSED_INTS:
        answer = ask(field, literal)
        assert (answer.status, answer.code, list(answer.data)) == (422, 42200, [field]), literal


@pytest.mark.usefixtures("nothing_changes")
def test_an_int_has_a_range(ask):
    for field, high in (("order_type", 2), ("limit", 100), *((name, 2**63 - 1) for name in ("paychannel_id", "id"))):
        for outside in (0, high + 1):
            assert list(ask(field, outside).data) == [field], outside


@FEW
@given(text=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6))
def test_a_text_is_an_int_only_if_all_of_it_is_ascii_digits(ask, text):
    answer = ask("start_time", quoted(text))
    assert (answer.code == 1) is (text.isascii() and text.isdigit())
