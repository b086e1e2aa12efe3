"""The additional fields of a withdrawal through gateway_a: every row of both tables."""

import pytest

from tests.support import CARD, PERSON

PERSONAL, CARD_INFO = "gatewaya_personal_data", "gatewaya_card_info"
SENT = {PERSONAL: PERSON, CARD_INFO: CARD}
REQUIRED = {
    PERSONAL: ["name", "cert_type", "cert_no", "cert_validity_type", "cert_begin_date", "cert_end_date", "mobile_no"],
    CARD_INFO: ["card_type", "card_name", "card_no", "prov_id", "area_id"],
}
OPTIONAL = {PERSONAL: ["email", "address"], CARD_INFO: []}
MISSING = object()
WRONG_TYPES = [0, 1.5, True, ["1"], {"a": "1"}]


def sell(api, **objects):
    return api.sell("50.00", 1, **SENT | objects)


def changed(name, /, **fields):
    """One of the two objects with some fields changed, or left out where `MISSING`."""
    whole = SENT[name] | fields
    return {name: {field: value for field, value in whole.items() if value is not MISSING}}


def fields_of(table):
    return [(name, field) for name, fields in table.items() for field in fields]


def test_the_card_becomes_the_payout_account(api):
    placed = sell(api).data
    account = {"bank": "", "sub_bank": "", "card_number": CARD["card_no"], "real_name": CARD["card_name"]}
    assert placed["payment_method_snapshot"] == account
    assert placed["customer_payment_method"] == account | {"full_info": f"{CARD['card_no']} {CARD['card_name']}"}


def test_the_card_names_the_accounts_holder_although_the_person_differs(api):
    placed = sell(api, **changed(CARD_INFO, card_type="4", card_name="Holder Ltd")).data
    assert placed["payment_method_snapshot"]["real_name"] == "Holder Ltd"


def test_a_sent_card_is_not_put_on_file(api, flask_json):
    before = flask_json("account", "list")
    card = sell(api).data
    assert flask_json("account", "list") == before
    assert api.sell(channel=2).data["payment_method_id"] != card["payment_method_id"]


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize("left", [[], [PERSONAL], [CARD_INFO]], ids=lambda left: "+".join(left) or "neither")
@pytest.mark.parametrize("absent", [{}, dict.fromkeys(SENT)], ids=["missing", "null"])
def test_both_objects_are_required(api, left, absent):
    answer = api.sell("50.00", 1, **absent | {name: SENT[name] for name in left})
    assert (answer.status, answer.code) == (422, 42200)
    assert set(answer.data) == set(SENT) - set(left)


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize("name", SENT)
@pytest.mark.parametrize("value", ["张三", 1, True, [], [PERSON], ""])
def test_each_must_be_an_object(api, name, value):
    answer = sell(api, **{name: value})
    assert answer.code == 42200
    assert list(answer.data) == [name]
    assert type(answer.data[name]) is list


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize("name", SENT)
def test_an_empty_object_lacks_all_required_fields(api, name):
    answer = sell(api, **{name: {}})
    # Whether an end date is required depends on the validity type, which is also missing.
    optional = f"{PERSONAL}.cert_end_date"
    assert set(answer.data) - {optional} == {f"{name}.{field}" for field in REQUIRED[name]} - {optional}


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize(("name", "field"), fields_of(REQUIRED))
@pytest.mark.parametrize("value", [MISSING, None, ""], ids=["missing", "null", "empty"])
def test_a_required_field_must_be_present(api, name, field, value):
    answer = sell(api, **changed(name, **{field: value}))
    assert answer.code == 42200
    assert list(answer.data) == [f"{name}.{field}"]


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize(("name", "field"), [*fields_of(REQUIRED), *fields_of(OPTIONAL)])
def test_every_field_must_be_a_string(api, name, field):
    for value in WRONG_TYPES:
        answer = sell(api, **changed(name, **{field: value}))
        assert answer.code == 42200, value
        assert list(answer.data) == [f"{name}.{field}"], value


@pytest.mark.parametrize(("name", "field"), fields_of(OPTIONAL))
@pytest.mark.parametrize("value", [MISSING, None, ""], ids=["missing", "null", "empty"])
def test_an_optional_field_may_be_absent(api, name, field, value):
    assert sell(api, **changed(name, **{field: value})).code == 1


TAKEN = {
    PERSONAL: {
        "name": ["张三", "Anna-Maria O'Neil", "阿卜杜拉·买买提"],
        "cert_type": ["00"],
        "cert_no": ["110101199003077758", "11010119900307775X"],
        "cert_validity_type": ["0", "1"],
        "cert_begin_date": ["20200229", "20400101"],
        "cert_end_date": ["20200101", "99991231"],
        "mobile_no": ["13800138000"],
        "email": ["a@example.com"],
        "address": ["北京市东城区 1 号"],
    },
    CARD_INFO: {
        "card_type": ["0", "1", "2", "4"],
        "card_name": ["张三", "Holder Ltd."],
        "card_no": ["6222020000000000017", "6222020000000000"],
        "area_id": ["110100", "110101"],  # the city, a district
    },
}
REFUSED = {
    PERSONAL: {
        "name": [" "],
        "cert_type": ["0", "identity card"],
        "cert_no": [" "],
        "cert_validity_type": ["2", "00", "true"],
        "cert_begin_date": [
            "2020-01-01",
            "20200230",
            "20190229",
            "2020011",
            "２０２００１０１",
            "00000101",
            " 20200101",
        ],
        "cert_end_date": ["2040-01-01", "20401301", "long", "0"],
        "mobile_no": ["phone"],
        "email": ["nobody", "a@b@c"],
    },
    CARD_INFO: {
        "card_type": ["3", "5", "00", "-1"],
        "card_name": [" "],
        "card_no": ["6222-0200", "card", "６２２２０２００００００００００１７"],
        "area_id": ["110000", "440100", "440103", "119999", "东城区", "11010"],  # the province itself; places of others
    },
}


@pytest.mark.parametrize(
    ("name", "field", "value"), [(*row, value) for row in fields_of(TAKEN) for value in TAKEN[row[0]][row[1]]]
)
def test_a_value_that_the_table_allows_is_accepted(api, name, field, value):
    assert sell(api, **changed(name, **{field: value})).code == 1


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize(
    ("name", "field", "value"), [(*row, value) for row in fields_of(REFUSED) for value in REFUSED[row[0]][row[1]]]
)
def test_a_value_that_the_table_does_not_allow_is_refused_by_its_field(api, name, field, value):
    answer = sell(api, **changed(name, **{field: value}))
    assert answer.code == 42200
    assert list(answer.data) == [f"{name}.{field}"]


@pytest.mark.parametrize("end", [MISSING, None, "", "20400101"], ids=["missing", "null", "empty", "given"])
def test_a_long_term_certificate_needs_no_end(api, end):
    assert sell(api, **changed(PERSONAL, cert_validity_type="1", cert_end_date=end)).code == 1


@pytest.mark.usefixtures("nothing_changes")
def test_an_end_that_is_missing_is_reported_with_the_other_fields(api):
    answer = sell(api, **changed(PERSONAL, cert_end_date="", name=MISSING, mobile_no=1))
    assert set(answer.data) == {f"{PERSONAL}.{field}" for field in ("cert_end_date", "name", "mobile_no")}


@pytest.mark.parametrize(("province", "area"), [("440000", "440100"), ("440000", "440103"), ("710000", "710100")])
def test_any_city_or_district_inside_the_province_is_an_area(api, province, area):
    assert sell(api, **changed(CARD_INFO, prov_id=province, area_id=area)).code == 1


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize("province", ["990000", "110100", "北京市", "11", "110000 "])
def test_a_province_must_be_in_the_region_data(api, province):
    answer = sell(api, **changed(CARD_INFO, prov_id=province))
    assert f"{CARD_INFO}.prov_id" in answer.data
    assert all(path.startswith(f"{CARD_INFO}.") for path in answer.data)


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize("field", [field for field in PERSON if field.startswith("cert_")])
def test_the_card_has_no_certificate_of_its_own(api, field):
    answer = sell(api, **changed(CARD_INFO, **{field: PERSON[field]}))
    assert answer.data == {f"{CARD_INFO}.{field}": [f"Belongs in {PERSONAL}."]}


@pytest.mark.usefixtures("nothing_changes")
def test_all_errors_are_reported_together_by_dotted_path(api):
    broken = changed(PERSONAL, name=MISSING, cert_begin_date="tomorrow", nickname="x")
    broken |= changed(CARD_INFO, card_type="9", area_id="440100")
    answer = sell(api, **broken, cny_amount="0", paychannel_paymethod="cash")
    assert set(answer.data) == {
        *(f"{PERSONAL}.{field}" for field in ("name", "cert_begin_date", "nickname")),
        *(f"{CARD_INFO}.{field}" for field in ("card_type", "area_id")),
        "cny_amount",
        "paychannel_paymethod",
    }
    assert all(type(messages) is list for messages in answer.data.values())
