"""Refunds: what is sent, which failures are retried, and the error of each refusal."""

from decimal import Decimal

import pytest
from stand_in import ORDER, REFUND, answer, broken

from tillbook_client import (
    ChannelRefused,
    Client,
    InsufficientBalance,
    KeyReused,
    NotFound,
    NotRefundable,
    OutcomeUnknown,
    Refused,
)
from tillbook_client.signing import sign, string_to_sign


def made():
    return answer(1, REFUND)


def refund(client, **more):
    return client.create_refund(ORDER["order_no"], "30.00", "R-1001", **more)


def test_a_refund_is_sent_with_its_number_and_read_in_its_units(stand_in):
    stand_in.says(made)
    found = refund(stand_in.client(), reason="退货")
    (body,) = stand_in.bodies
    sent = {name: body[name] for name in ("order_no", "cny_amount", "merchant_refund_no", "reason")}
    assert sent == {
        "order_no": ORDER["order_no"],
        "cny_amount": "30.00",
        "merchant_refund_no": "R-1001",
        "reason": "退货",
    }
    assert body["signature"] == sign("demo-secret", string_to_sign("createRefund", body))
    assert (found.cny_amount, found.service_amount, found.merchant_actual_amount) == (Decimal("30.00"), 18, 2982)
    assert (found.refund_no, found.status) == (REFUND["refund_no"], "completed")


@pytest.mark.parametrize("failure", [lambda: answer(50000), lambda: answer(50300), lambda: answer(42900), broken])
def test_a_temporary_error_is_retried_with_the_same_number_without_a_key(stand_in, failure):
    stand_in.says(failure, failure, made)
    assert refund(stand_in.client()).refund_no == REFUND["refund_no"]
    assert [body["merchant_refund_no"] for body in stand_in.bodies] == ["R-1001"] * 3
    assert stand_in.keys == [None] * 3
    assert len({body["nonce"] for body in stand_in.bodies}) == 3


def test_without_a_response_the_outcome_is_unknown_and_the_error_has_the_number(stand_in):
    stand_in.says(broken)
    with pytest.raises(OutcomeUnknown) as caught:
        refund(stand_in.client(total=0))
    assert caught.value.idempotency_key == "R-1001"
    stand_in.says(broken, lambda: answer(40300))  # refused before the number was checked
    with pytest.raises(OutcomeUnknown, match="an earlier attempt got no response"):
        refund(stand_in.client())


@pytest.mark.parametrize(
    ("code", "data", "kind"),
    [
        (40401, None, NotFound),
        (40901, None, InsufficientBalance),
        (40904, {"reason": "amount", "left": "12.50"}, NotRefundable),
        (42201, None, KeyReused),
        (50201, {"refund_no": REFUND["refund_no"]}, ChannelRefused),
    ],
)
def test_a_refusal_is_final_also_after_a_lost_response_and_never_retried(stand_in, code, data, kind):
    stand_in.says(broken, lambda: answer(code, data))
    with pytest.raises(kind) as caught:
        refund(stand_in.client())
    assert isinstance(caught.value, Refused)
    assert (caught.value.code, len(stand_in.got)) == (code, 2)


def test_the_errors_tell_what_is_left_and_which_refund_the_channel_refused(stand_in):
    stand_in.says(lambda: answer(40904, {"reason": "window", "left": "0.00"}))
    with pytest.raises(NotRefundable) as caught:
        refund(stand_in.client())
    assert (caught.value.reason, caught.value.left) == ("window", Decimal("0.00"))
    stand_in.says(lambda: answer(50201, {"refund_no": "2"}))
    with pytest.raises(ChannelRefused) as refused:
        refund(stand_in.client())
    assert (refused.value.refund_no, refused.value.order_no) == ("2", None)


@pytest.mark.parametrize(("amount", "error"), [(30, TypeError), (30.0, TypeError), ("1.001", ValueError)])
def test_an_amount_that_is_not_exact_is_refused_before_anything_is_sent(stand_in, amount, error):
    stand_in.says(made)
    with pytest.raises(error):
        stand_in.client().create_refund(ORDER["order_no"], amount, "R-1001")
    assert stand_in.got == []


def test_a_refund_is_found_by_exactly_one_of_its_numbers(stand_in):
    stand_in.says(made)
    found = stand_in.client().refund(merchant_refund_no="R-1001")
    assert found == stand_in.client().refund(REFUND["refund_no"])
    assert stand_in.bodies[0]["merchant_refund_no"] == "R-1001"
    stand_in.says(lambda: answer(40405))
    with pytest.raises(NotFound):
        stand_in.client().refund("1")
    for wrong in ({}, {"refund_no": "1", "merchant_refund_no": "2"}):
        with pytest.raises(TypeError):
            Client("http://127.0.0.1:1", "demo", "demo-secret").refund(**wrong)


def test_each_page_starts_after_the_last_refund_of_the_previous_one(stand_in):
    rows = [REFUND | {"refund_no": str(number)} for number in range(150)]

    def page(of):
        return lambda: answer(1, {"list": of, "total": len(rows), "page": 1, "limit": 100})

    stand_in.says(page(rows[:100]), page(rows[100:]))
    found = [each.refund_no for each in stand_in.client().all_refunds(order_no=ORDER["order_no"])]
    assert found == [row["refund_no"] for row in rows]
    asked = [(body["page"], body["before"], body["order_no"]) for body in stand_in.bodies]
    assert asked == [(1, None, ORDER["order_no"]), (1, "99", ORDER["order_no"])]
