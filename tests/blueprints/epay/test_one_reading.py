"""A signed text has one reading: it cannot be cut into another payment or notice."""

from html import escape
from itertools import combinations, pairwise, product
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.tables.epay import EpayOrder
from models.tables.outbox import Callback
from tests.epay_shop import md5, text_to_sign
from tests.pages import BACK

FREE = ("name", "notify_url", "return_url", "param", "sitename", "clientip", "aa", "zz")  # a payer may choose a part
SIGNED = ("out_trade_no", "money", "name", "notify_url", "pid", "type", "param", "return_url", "trade_no")
PAYMENTS = {1: ("/submit.php", "/mapi.php"), 2: ("/api/pay/submit", "/api/pay/create")}


def with_part(shop, name, part):
    """The fields of a payment in which one value ends with this part."""
    start = {"notify_url": f"{shop.notify_url}?a=1", "return_url": "http://127.0.0.1/back?a=1"}.get(name, "x")
    return shop.fields(**{name: start + part})


def is_refused(answer):
    return "(code -3)" in answer.text if answer.status == 400 else answer.json["code"] == -3


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("path", [0, 1], ids=["by the payer", "by the server"])
def test_a_value_that_contains_another_signed_field_is_refused(version, path, rsa_shop, nothing_changes):
    for inside, name in product(SIGNED, FREE):
        fields = rsa_shop.signed(version, **with_part(rsa_shop, name, f"&{inside}=1"))
        assert is_refused(rsa_shop.post(PAYMENTS[version][path], fields)), (inside, name)


def test_the_refusal_names_the_field_and_what_to_do(shop):
    refused = shop.mapi(param="uid=5&money=10&out_trade_no=7")
    msg = "A part of param could be read as another field, such as &type=. Rename that part or URL-encode it"
    assert refused == {"code": -3, "msg": msg}
    assert escape(msg) in shop.submit(param="uid=5&money=10&out_trade_no=7").text


# The part would be a field of its own, and the rest of the value would be another one.
TWO_READINGS = [
    {"notify_url": "{notify_url}?a=1&order=5"},
    {"name": "VIP&note=5"},
    {"name": "VIP&oid=5"},  # only in the notice, which has no notify_url
    {"param": "uid=5&pay=7"},
    {"return_url": "http://127.0.0.1/back?a=1&cid=2", "cid": "3"},
    {"zz": "1&money=0.01"},
    {"a&money": "0.01"},
    {"a=1&money": "0.01"},
]
ONE_READING = [
    {"return_url": "http://127.0.0.1/back?a=1&b=2"},
    {"return_url": "http://127.0.0.1/back?order=5&token=abc#/done"},
    {"return_url": "http://127.0.0.1/back?out_trade_no=SHOP-1"},
    {"return_url": "http://127.0.0.1/back?a=1%26out_trade_no=7"},
    {"notify_url": "{notify_url}?a=1&b=2&wc-api=epay"},
    {"param": "a=1&b=2&uid=5"},
    {"param": '{"type":"vip","money":1}'},
    {"param": "type=vip"},
    {"name": "Card & money = 1 & more"},
    {"sitename": "Tom&Jerry=fun"},
]


def at_shop(shop, changed):
    return {name: value.replace("{notify_url}", shop.notify_url) for name, value in changed.items()}


def test_a_value_that_could_end_earlier_is_refused(shop, nothing_changes):
    for changed in TWO_READINGS:
        assert shop.mapi(**at_shop(shop, changed))["code"] == -3, changed


def test_a_query_in_a_value_is_accepted_and_in_the_notice(shop, api, due):
    for number, changed in enumerate(ONE_READING):
        fields = at_shop(shop, changed)
        api.play(shop.mapi(out_trade_no=f"SHOP-{number}", **fields)["trade_no"], "success")
        due()
        assert shop.notices[-1]["out_trade_no"] == f"SHOP-{number}"
        assert shop.notices[-1].get("param") == fields.get("param"), changed


@pytest.mark.parametrize("path", ["/api.php", "/api/pay/query", "/api/pay/close", "/api/merchant/orders"])
def test_a_query_with_two_readings_is_refused(path, rsa_shop):
    asked = {"pid": rsa_shop.pid, "out_trade_no": "SHOP-1&trade_no=1"}
    if path == "/api.php":
        asked = {"act": "order"} | asked
        asked |= {"sign": md5(asked, rsa_shop.key)}
    else:
        asked = rsa_shop.with_rsa(asked)
    refused = rsa_shop.post(path, asked).json
    assert (refused["code"], "out_trade_no could be read" in refused["msg"]) == (-3, True)


def readings(text):
    """All sets of fields with this signed text: it is cut before some names, whose order must stay."""
    parts = text.split("&")
    for number in range(len(parts)):
        for cuts in combinations(range(1, len(parts)), number):
            edges = (0, *cuts, len(parts))
            pairs = ["&".join(parts[start:end]).partition("=") for start, end in pairwise(edges)]
            names = [name for name, _, _ in pairs]
            if names == sorted(set(names)) and all(value.strip() for _, _, value in pairs):
                yield {name: value for name, _, value in pairs}


REQUIRED = {"pid", "money", "name", "notify_url", "out_trade_no"}
MEANT = ("out_trade_no", "amount", "name", "notify_url", "param", "type")
TAILS = st.lists(
    st.tuples(st.sampled_from([*FREE, *SIGNED, "note", "oid", "order", "pay", "zzz"]), st.sampled_from("19")).map(
        lambda pair: f"&{pair[0]}={pair[1]}"
    ),
    min_size=1,
    max_size=3,
).map("".join)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=st.dictionaries(st.sampled_from(FREE), TAILS, min_size=1, max_size=2), number=st.uuids())
def test_no_accepted_text_is_cut_into_another_accepted_payment(chosen, number, shop):
    fields = shop.fields(out_trade_no=number.hex)
    for name, part in chosen.items():
        fields[name] = with_part(shop, name, part)[name]
    EpayOrder.delete().execute()
    for each in readings(text_to_sign(fields)):
        if each.keys() >= REQUIRED and each["pid"] == shop.pid:
            shop.post("/mapi.php", each | {"sign": md5(fields, shop.key)})
            # A payment that differs under the same number would be refused for that reason alone.
            EpayOrder.update(out_trade_no=EpayOrder.out_trade_no.concat("-").concat(EpayOrder.id)).where(
                ~EpayOrder.out_trade_no.contains("-")
            ).execute()
    made = [
        tuple(getattr(row, name).partition("-")[0] if name == "out_trade_no" else getattr(row, name) for name in MEANT)
        for row in EpayOrder.select()
    ]
    assert len(set(made)) <= 1


@pytest.fixture
def accepted_earlier(shop, api, due):
    """A completed payment whose name and param were accepted by an earlier version; its notice was not received."""
    shop.answers = ["not yet"]
    number = shop.mapi(name="VIP", param="user-9")["trade_no"]
    EpayOrder.update(name="x&out_trade_no=EXPENSIVE", param="uid=5&money=10&trade_no=7").execute()
    api.play(number, "success")
    due()
    return number


def test_a_notice_and_a_return_have_one_reading_even_for_a_payment_accepted_earlier(accepted_earlier, shop, http):
    (notice,) = shop.notices
    assert shop.is_ours(notice)
    assert (notice["out_trade_no"], notice["money"]) == ("SHOP-1", "12.50")
    assert {"name", "param"} & notice.keys() == set()
    location = http("GET", f"{BACK}?order_no={accepted_earlier}").headers["Location"]
    assert "EXPENSIVE" not in location
    fields = dict(parse_qsl(urlsplit(location).query))
    fields.pop("page")
    assert shop.is_ours(fields)


def test_a_waiting_notice_of_an_earlier_version_is_sent_with_one_reading(shop, api, due, ahead):
    shop.answers = ["not yet", "success"]
    api.play(shop.mapi(param="user-9")["trade_no"], "success")
    due()
    (row,) = Callback.select().where(Callback.type == "epay.notify")
    Callback.update(body=row.body.replace("user-9", "a%26out_trade_no%3DEXPENSIVE")).execute()
    ahead(6)
    due()
    assert "param" not in shop.notices[1]
    assert shop.is_ours(shop.notices[1])


def test_a_field_of_the_shops_own_address_does_not_hide_a_signed_one(shop, api, due, http, web_server):
    other = "?out_trade_no=EXPENSIVE&mon%65y=1&plugin=epay"
    number = shop.mapi(notify_url=shop.notify_url + other, return_url=f"http://127.0.0.1/back{other}")["trade_no"]
    api.play(number, "success")
    due()
    sent = web_server.log[-1][0].query_string.decode()
    returned = urlsplit(http("GET", f"{BACK}?order_no={number}").headers["Location"]).query
    for query in (sent, returned):
        pairs = parse_qsl(query)
        assert len(dict(pairs)) == len(pairs)
        assert dict(pairs)["plugin"] == "epay"
        assert (dict(pairs)["out_trade_no"], dict(pairs)["money"]) == ("SHOP-1", "12.50")
