"""Retries: which failures are retried, and the error after the last attempt."""

import socket

import pytest
from stand_in import DEPOSIT, ORDER, answer, broken
from werkzeug import Response

from tillbook_client import (
    BadRequest,
    ChannelRefused,
    Client,
    Invalid,
    NotFound,
    OrdersError,
    OutcomeUnknown,
    Refused,
    Retry,
    TooManyRequests,
)
from tillbook_client.errors import BY_CODE
from tillbook_client.signing import sign, string_to_sign


def created():
    return answer(1, DEPOSIT)


def page_of_a_proxy():
    return Response("<h1>Bad gateway</h1>", 502)


def buy(client, **more):
    return client.create_buy("100.00", 2, "wxpay", **more)


@pytest.mark.parametrize(
    "failure",
    [
        lambda: answer(40104),
        lambda: answer(40902),
        lambda: answer(42900),
        lambda: answer(50000),
        lambda: answer(50300),
        page_of_a_proxy,
        broken,
    ],
)
def test_a_temporary_error_is_retried_with_the_same_key_and_a_new_signature(stand_in, failure):
    stand_in.says(failure, failure, created)
    order = buy(stand_in.client(), idempotency_key="payment-1")
    assert stand_in.keys == ["payment-1"] * 3
    assert order.idempotency_key == "payment-1"
    assert stand_in.pauses == [0.5, 1.0]
    assert len({body["nonce"] for body in stand_in.bodies}) == 3
    for body in stand_in.bodies:
        assert body["signature"] == sign("demo-secret", string_to_sign("createOrder", body))


def test_without_a_key_one_is_generated_for_the_call_and_shown(stand_in):
    stand_in.says(broken, created, created)
    first, second = (buy(stand_in.client()) for _ in range(2))
    assert stand_in.keys == [first.idempotency_key, first.idempotency_key, second.idempotency_key]
    assert first.idempotency_key != second.idempotency_key


def test_each_attempt_has_its_own_timestamp(stand_in):
    times = iter([1000.9, 1060.0])
    stand_in.says(broken, created)
    buy(stand_in.client(now=lambda: next(times)))
    assert [body["timestamp"] for body in stand_in.bodies] == [1000, 1060]


@pytest.mark.parametrize("code", sorted({*BY_CODE, 40000, 40404, 41500} - {40104, 40902, 42900}))
def test_a_refusal_is_never_retried(stand_in, code):
    stand_in.says(lambda: answer(code, Retry_After="1"))
    with pytest.raises(BY_CODE.get(code, BadRequest)) as caught:
        buy(stand_in.client())
    assert isinstance(caught.value, Refused)
    assert (caught.value.code, caught.value.status) == (code, code // 100)
    assert caught.value.idempotency_key == stand_in.keys[0]
    assert len(stand_in.got) == 1


def test_a_channels_refusal_names_the_cancelled_order_and_is_not_retried(stand_in):
    stand_in.says(lambda: answer(50201, {"order_no": "202601018899480685472049"}))
    with pytest.raises(ChannelRefused) as caught:
        buy(stand_in.client())
    assert caught.value.order_no == "202601018899480685472049"
    assert len(stand_in.got) == 1


def test_a_pause_is_as_long_as_the_service_requests(stand_in):
    stand_in.says(lambda: answer(42900, Retry_After="7"), created)
    buy(stand_in.client())
    assert stand_in.pauses == [7.0]


def test_pauses_double_up_to_a_limit_and_end_with_the_deadline(stand_in):
    stand_in.says(lambda: answer(50300))
    with pytest.raises(OutcomeUnknown) as caught:
        buy(stand_in.client(), idempotency_key="payment-1")
    assert stand_in.pauses == [0.5, 1, 2, 4, 8, 8, 8, 8, 8, 8]
    assert (caught.value.code, caught.value.idempotency_key) == (50300, "payment-1")


def test_a_pause_is_shortened_at_random_by_up_to_a_half():
    assert Retry(chance=lambda: 1.0).pause(3, None) == 1.0
    assert all(1.0 <= Retry().pause(3, None) <= 2.0 for _ in range(100))


def test_a_pause_past_the_deadline_is_not_started(stand_in):
    stand_in.says(lambda: answer(42900, Retry_After="61"))
    with pytest.raises(TooManyRequests):
        buy(stand_in.client())
    assert stand_in.pauses == []


def test_a_total_of_zero_tries_once(stand_in):
    stand_in.says(broken)
    with pytest.raises(OutcomeUnknown):
        buy(stand_in.client(total=0))
    assert len(stand_in.got) == 1


def test_a_refusal_after_a_lost_response_leaves_the_outcome_unknown(stand_in):
    stand_in.says(broken, lambda: answer(40300))
    with pytest.raises(OutcomeUnknown, match="an earlier attempt got no response") as caught:
        buy(stand_in.client(), idempotency_key="payment-1")
    assert (caught.value.code, caught.value.idempotency_key) == (40300, "payment-1")


def test_a_refusal_after_the_key_was_checked_is_final(stand_in):
    stand_in.says(broken, lambda: answer(42200, {"cny_amount": ["too much"]}))
    with pytest.raises(Invalid) as caught:
        buy(stand_in.client())
    assert caught.value.data == {"cny_amount": ["too much"]}
    assert "too much" in str(caught.value)


def test_the_server_is_not_running():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        client = Client(f"http://127.0.0.1:{taken.getsockname()[1]}", "demo", "demo-secret", retry=Retry(total=0))
        with pytest.raises(OutcomeUnknown, match="no response"):
            buy(client)


def test_the_server_does_not_respond_in_time():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(OutcomeUnknown, match="timed out"):
            buy(Client(url, "demo", "demo-secret", timeout=0.1, retry=Retry(total=0)))


def test_queries_are_retried_without_a_key_and_a_refusal_stays_one(stand_in):
    stand_in.says(broken, lambda: answer(1, ORDER))
    assert stand_in.client().order("1").merchant_actual_amount == 9940
    assert stand_in.keys == [None, None]
    stand_in.says(broken, lambda: answer(40401))
    with pytest.raises(NotFound):
        stand_in.client().order("1")


def test_a_redirect_is_not_followed(stand_in):
    stand_in.says(lambda: Response("", 301, {"Location": "/elsewhere"}))
    with pytest.raises(BadRequest, match="check the address"):
        buy(stand_in.client())


def test_each_page_starts_after_the_last_order_of_the_previous_one(stand_in):
    rows = [ORDER | {"order_no": str(number)} for number in range(150)]

    def page(of):
        return lambda: answer(1, {"list": of, "total": len(rows), "page": 1, "limit": 100})

    stand_in.says(page(rows[:100]), page(rows[100:]))
    found = [order.order_no for order in stand_in.client().all_orders(status="completed")]
    assert found == [row["order_no"] for row in rows]
    asked = [(body["page"], body["before"], body["status"]) for body in stand_in.bodies]
    assert asked == [(1, None, "completed"), (1, "99", "completed")]


def test_exactly_one_number_of_an_order_is_required():
    client = Client("http://127.0.0.1:1", "demo", "demo-secret")
    for wrong in ({}, {"order_no": "1", "id": 2}):
        with pytest.raises(TypeError):
            client.order(**wrong)


def test_every_error_is_one_class():
    assert all(issubclass(kind, OrdersError) for kind in BY_CODE.values())


@pytest.mark.parametrize("key", ["", " ", "two words", "schlüssel", "x" * 256, "a\n"])
def test_a_key_that_the_service_would_refuse_is_refused_before_anything_is_sent(stand_in, key):
    with pytest.raises(ValueError, match="idempotency_key"):
        buy(stand_in.client(), idempotency_key=key)
    assert stand_in.bodies == []
