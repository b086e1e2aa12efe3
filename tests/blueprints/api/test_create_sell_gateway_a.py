"""The additional fields of a withdrawal through gateway_a: every row of both tables."""

import pytest

from tests.support import CARD, PERSON

PERSONAL, CARD_INFO = "gatewaya_personal_data", "gatewaya_card_info"
SENT = {PERSONAL: PERSON, CARD_INFO: CARD}
FIELDS = [(name, field) for name, fields in SENT.items() for field in fields]
OPTIONAL = [(PERSONAL, "email"), (PERSONAL, "address")]
MISSING = object()
ABSENT = (MISSING, None, "")


@pytest.fixture
def settings_of_app():
    return {"requests_per_second": 1_000_000}


def sell(api, **objects):
    return api.sell("1.00", 1, **SENT | objects)


def changed(name, /, **fields):
    """One of the two objects with some fields changed, or left out where `MISSING`."""
    whole = SENT[name] | fields
    return {name: {field: value for field, value in whole.items() if value is not MISSING}}


def test_the_card_becomes_the_payout_account_of_this_order_only(api, flask_json):
    on_file = flask_json("account", "list")
    placed = sell(api).data
    account = {"bank": "", "sub_bank": "", "card_number": CARD["card_no"], "real_name": CARD["card_name"]}
    assert placed["payment_method_snapshot"] == account
    assert placed["customer_payment_method"] == account | {"full_info": f"{CARD['card_no']} {CARD['card_name']}"}
    company = sell(api, **changed(CARD_INFO, card_type="4", card_name="Holder Ltd")).data
    assert company["payment_method_snapshot"]["real_name"] == "Holder Ltd"  # although the person differs
    assert flask_json("account", "list") == on_file
    assert api.sell(channel=2).data["payment_method_id"] != placed["payment_method_id"]


@pytest.mark.usefixtures("nothing_changes")
def test_both_objects_are_required(api):
    for left in ([], [PERSONAL], [CARD_INFO]):
        for absent in ({}, dict.fromkeys(SENT)):
            answer = api.sell("50.00", 1, **absent | {name: SENT[name] for name in left})
            assert (answer.status, answer.code) == (422, 42200)
            assert set(answer.data) == set(SENT) - set(left)


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize("name", SENT)
def test_each_must_be_an_object_with_its_required_fields(api, name):
    for value in ("张三", 1, True, [], [PERSON], ""):
        answer = sell(api, **{name: value})
        assert (answer.code, list(answer.data)) == (42200, [name]), value
        assert type(answer.data[name]) is list
    # Whether an end date is required depends on the validity type, which is also missing.
    optional = f"{PERSONAL}.cert_end_date"
    assert set(sell(api, **{name: {}}).data) - {optional} == {f"{name}.{field}" for field in SENT[name]} - {optional}


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize(("name", "field"), [*FIELDS, *OPTIONAL])
def test_every_field_must_be_a_string_and_be_present_if_it_is_required(api, name, field):
    wrong = [0, 1.5, True, ["1"], {"a": "1"}, *(() if (name, field) in OPTIONAL else ABSENT)]
    for value in wrong:
        answer = sell(api, **changed(name, **{field: value}))
        assert (answer.code, list(answer.data)) == (42200, [f"{name}.{field}"]), value


TAKEN = {
    PERSONAL: {
        "name": ["Anna-Maria O'Neil", "阿卜杜拉·买买提"],
        "cert_no": ["11010119900307775X"],
        "cert_validity_type": ["0", "1"],
        "cert_begin_date": ["20200229", "20400101"],
        "cert_end_date": ["20200101", "99991231"],
        "email": ["a@example.com"],
        "address": ["北京市东城区 1 号"],
    },
    CARD_INFO: {
        "card_type": ["0", "1", "2", "4"],
        "card_name": ["Holder Ltd."],
        "card_no": ["6222020000000000"],
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
            "20190229",
            "2020011",
            "２０２００１０１",
            "00000101",
            " 20200101",
        ],
        "cert_end_date": ["2040-01-01", "20401301", "long", "0"],
        "mobile_no": ["phone"],
        "email": ["nobody", "a@b@c"],
        "nickname": ["x"],
    },
    CARD_INFO: {
        "card_type": ["3", "5", "00", "-1"],
        "card_name": [" "],
        "card_no": ["6222-0200", "card", "６２２２０２００００００００００１７"],
        "area_id": ["110000", "440100", "440103", "119999", "东城区", "11010"],  # the province itself; places of others
    },
}


@pytest.mark.parametrize("name", SENT)
def test_each_value_that_the_table_allows_is_accepted(api, name):
    for field, values in TAKEN[name].items():
        for value in values:
            assert sell(api, **changed(name, **{field: value})).code == 1, (field, value)


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize("name", SENT)
def test_each_value_that_the_table_does_not_allow_is_refused_by_its_field(api, name):
    for field, values in REFUSED[name].items():
        for value in values:
            answer = sell(api, **changed(name, **{field: value}))
            assert (answer.code, list(answer.data)) == (42200, [f"{name}.{field}"]), value


def test_an_optional_field_may_be_absent_and_a_long_term_certificate_needs_no_end(api):
    for absent in ABSENT:
        for field in ("email", "address"):
            assert sell(api, **changed(PERSONAL, **{field: absent})).code == 1, (field, absent)
        assert sell(api, **changed(PERSONAL, cert_validity_type="1", cert_end_date=absent)).code == 1, absent
    assert sell(api, **changed(PERSONAL, cert_validity_type="1", cert_end_date="20400101")).code == 1


def test_an_area_is_a_city_or_district_of_a_province_in_the_region_data(api):
    for province, area in (("440000", "440100"), ("440000", "440103"), ("710000", "710100")):
        assert sell(api, **changed(CARD_INFO, prov_id=province, area_id=area)).code == 1, area
    for province in ("990000", "110100", "北京市", "11", "110000 "):
        answer = sell(api, **changed(CARD_INFO, prov_id=province))
        assert f"{CARD_INFO}.prov_id" in answer.data, province
        assert all(path.startswith(f"{CARD_INFO}.") for path in answer.data)


@pytest.mark.usefixtures("nothing_changes")
def test_the_card_has_no_certificate_of_its_own(api):
    certificate = {field: value for field, value in PERSON.items() if field.startswith("cert_")}
    answer = sell(api, **changed(CARD_INFO, **certificate))
    assert answer.data == {f"{CARD_INFO}.{field}": [f"Belongs in {PERSONAL}."] for field in certificate}


@pytest.mark.usefixtures("nothing_changes")
def test_all_errors_are_reported_together_by_dotted_path(api):
    person = {"name": MISSING, "cert_begin_date": "tomorrow", "cert_end_date": "", "mobile_no": 1, "nickname": "x"}
    card = {"card_type": "9", "area_id": "440100"}
    broken = changed(PERSONAL, **person) | changed(CARD_INFO, **card)
    answer = api.sell("0", 1, paychannel_paymethod="cash", **broken)
    assert set(answer.data) == {
        *(f"{PERSONAL}.{field}" for field in person),
        *(f"{CARD_INFO}.{field}" for field in card),
        "cny_amount",
        "paychannel_paymethod",
    }
    assert all(type(messages) is list for messages in answer.data.values())
