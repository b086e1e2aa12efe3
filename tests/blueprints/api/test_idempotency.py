"""Safe retry of createOrder over HTTP: the first response again, never a second order."""

import pytest

from tests.support import Api

KEY = {"Idempotency-Key": "retry-1"}
FIELDS = {"order_type": 1, "cny_amount": "1.00", "paychannel_id": 2, "paychannel_paymethod": "wxpay"}
DAY = 24 * 3600


def is_replay(answer):
    return answer.headers.get("Idempotency-Replayed") == "true"


@pytest.mark.parametrize("place", ["buy", "sell"])
def test_a_retry_gets_the_first_response_again_and_stores_only_its_nonce(api, rows, place):
    first = getattr(api, place)(merchant_order_no="A-1", headers=KEY)
    before = rows()
    again = getattr(api, place)(merchant_order_no="A-1", headers=KEY)
    assert again.text == first.text
    assert (again.status, first.code) == (200, 1)
    assert (is_replay(first), is_replay(again)) == (False, True)
    after = rows()
    assert len(after.pop("Nonce")) == len(before.pop("Nonce")) + 1
    assert after == before


def test_a_withdrawal_is_reserved_once_however_often_it_is_retried(api, balances):
    assert len({api.sell("50.00", headers=KEY).text for _ in range(5)}) == 1
    assert balances() == (1_000_000 - 5_010, 5_010)


def test_each_key_creates_an_order_of_its_own_for_each_merchant(api, other):
    answers = [api.buy(headers={"Idempotency-Key": key}) for key in ("a", "A", "b", "~" * 255)]
    answers += [other.buy(headers={"Idempotency-Key": "a"}), api.buy(), api.buy()]
    assert len({answer.data["order_no"] for answer in answers}) == 7
    assert not any(map(is_replay, answers))


SAME = [
    ({"cny_amount": 1.5}, {"cny_amount": "1.5"}),
    ({"paychannel_id": "2"}, {"paychannel_id": 2}),
    ({"customer_name": None}, {"customer_name": ""}),
    ({"customer_name": ""}, {}),
]


@pytest.mark.parametrize(("first", "again"), SAME, ids=str)
def test_the_same_string_to_sign_is_the_same_payload(api, first, again):
    in_another_order = first | {name: value for name, value in FIELDS.items() if name not in first}
    placed = api.call("createOrder", in_another_order, KEY)
    repeated = api.call("createOrder", FIELDS | again, KEY)
    assert (repeated.text, is_replay(repeated)) == (placed.text, True)


OTHER_PAYLOADS = [
    {"cny_amount": "1.01"},
    {"cny_amount": "1.0"},  # another text of the same amount
    {"paychannel_id": 3},
    {"paychannel_paymethod": "bank"},
    {"customer_name": "x"},
    {"order_type": 2},
    {"cny_amount": "0"},  # although it would also be refused for another reason
    {"paychannel_id": 999},
]


def test_another_payload_under_the_same_key_is_refused(api, kept):
    assert api.call("createOrder", FIELDS, KEY).code == 1
    before = kept()
    for changed in OTHER_PAYLOADS:
        answer = api.call("createOrder", FIELDS | changed, KEY)
        assert (answer.status, answer.code, answer.data, is_replay(answer)) == (422, 42201, None, False), changed
    assert kept() == before


def test_a_key_is_kept_for_a_day_and_may_then_have_another_payload(api, ahead):
    first = api.buy("1.00", headers=KEY)
    ahead(DAY - 60)
    again = api.buy("1.00", headers=KEY)
    assert (is_replay(again), again.text) == (True, first.text)
    ahead(120)
    later = api.buy("2.00", headers=KEY)
    assert (is_replay(later), later.data["cny_amount"]) == (False, "2.00")
    assert api.buy("1.00", headers=KEY).code == 42201


CHANGES = [
    ("channel", "set", 2, "--disabled"),
    ("channel", "unlink", 2, "demo"),
    ("channel", "set", 2, "--max", "10"),
    ("channel", "set", 2, "--pay-method", "alipay"),
    ("channel", "set", 2, "--passage-rate", "5", "--deposit-rate", "5", "--name", "New"),
    ("merchant", "set", "demo", "--buy-rate", "5", "--sell-rate", "5"),
    ("account", "add", "demo", "--card-number", "6222777", "--real-name", "李四"),
]


@pytest.mark.parametrize("place", ["buy", "sell"])
def test_a_retry_gets_the_first_response_although_the_settings_or_the_order_changed(api, flask, place):
    first = getattr(api, place)(headers=KEY, paychannel_paymethod="wxpay")
    for change in CHANGES:
        flask(*change)
        again = getattr(api, place)(headers=KEY, paychannel_paymethod="wxpay")
        assert (is_replay(again), again.text) == (True, first.text), change
    if place == "buy":
        api.play(first.data["order_no"], "success")
        assert api.status(first.data["order_no"]) == "completed"
        assert api.buy(headers=KEY, paychannel_paymethod="wxpay").text == first.text


def test_a_retry_of_a_failure_gets_the_failure_again(api, flask, kept):
    flask("channel", "set", 2, "--config", "open=refuse")
    first = api.buy(merchant_order_no="A-1", headers=KEY)
    assert (first.code, is_replay(first)) == (50201, False)
    flask("channel", "set", 2, "--config", "open=accept")
    before = kept()
    again = api.buy(merchant_order_no="A-1", headers=KEY)
    assert (again.status, again.text, is_replay(again)) == (502, first.text, True)
    assert again.data == {"order_no": api.detail(merchant_order_no="A-1").data["order_no"]}
    assert "Retry-After" not in again.headers
    assert kept() == before
    assert api.listed(merchant_order_no="A-1").data["total"] == 1


def test_a_retry_of_a_refused_withdrawal_gets_the_refusal_again_in_the_callers_language(api, flask):
    first = api.sell("20000.00", headers=KEY)
    assert (first.code, first.json["msg"]) == (40901, "insufficient balance")
    flask("ledger", "adjust", "demo", "50000", "--reason", "top-up")
    again = api.sell("20000.00", headers=KEY)
    assert (again.text, is_replay(again)) == (first.text, True)
    assert api.sell("20000.00", headers=KEY | {"Accept-Language": "zh"}).json["msg"] == "余额不足"


def test_an_unauthenticated_request_leaves_its_key_unused(api, http):
    assert Api(http, "demo", "guess").buy(headers=KEY).code == 40102
    assert api.buy("2.00", headers=KEY).code == 1
    assert Api(http, "demo", "guess").buy("2.00", headers=KEY).code == 40102


@pytest.mark.usefixtures("nothing_changes")
def test_a_key_that_can_not_be_kept_is_refused(api):
    for key in ("", "x" * 256, "two words", "tab\there", "é"):
        answer = api.buy(headers={"Idempotency-Key": key})
        assert (answer.status, answer.code, list(answer.data)) == (422, 42200, ["Idempotency-Key"]), key


def test_a_retry_needs_a_nonce_of_its_own(api):
    assert api.call("createOrder", FIELDS | {"nonce": "nonce-1234"}, KEY).code == 1
    assert api.call("createOrder", FIELDS | {"nonce": "nonce-1234"}, KEY).code == 40104


def test_a_query_ignores_the_header(api):
    first = api.listed().data
    for key in ("retry-1", "retry-1", "x" * 256):
        again = api.call("orderQueryList", {}, {"Idempotency-Key": key})
        assert (again.code, again.data, is_replay(again)) == (1, first, False)
