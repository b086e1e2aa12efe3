"""Places a signed deposit and withdrawal with the client that openapi-python-client generated.

Prints what it read from the responses, through the generated types.
"""

import json
import os
import secrets
import time
from http import HTTPStatus

from merchant import sign
from orders_api import Client
from orders_api.api.orders import create_order, order_query_detail, order_query_list
from orders_api.models import (
    CreatedBuyOrder,
    CreatedSellOrder,
    CreateOrderResponse200,
    CreateOrderResponse422,
    OrderQueryDetailResponse200,
    OrderQueryListResponse200,
    SignedBuyOrder,
    SignedGatewayASellOrder,
    SignedOrderDetailQuery,
    SignedOrderListQuery,
)

DEPOSIT = {"order_type": 1, "cny_amount": "12.50", "paychannel_id": 2, "paychannel_paymethod": "wxpay"}
PERSON = {"name": "张三", "cert_type": "00", "cert_no": "110101199003077758", "cert_validity_type": "1"}
PERSON |= {"cert_begin_date": "20200101", "mobile_no": "13800138000"}
CARD = {
    "card_type": "2",
    "card_name": "张三",
    "card_no": "6222020000000000017",
    "prov_id": "110000",
    "area_id": "110101",
}
WITHDRAWAL = DEPOSIT | {"order_type": 2, "cny_amount": "5.00", "paychannel_id": 1}
WITHDRAWAL |= {"gatewaya_personal_data": PERSON, "gatewaya_card_info": CARD}


def signed(endpoint, fields):
    """The fields with the four that sign a request."""
    body = {**fields, "api_key": "demo", "timestamp": int(time.time()), "nonce": secrets.token_hex(16)}
    return {**body, "signature": sign(endpoint, body)}


client = Client(os.environ["MERCHANT_URL"], raise_on_unexpected_status=True)


def placed(model, fields):
    """The response to createOrder."""
    body = model.from_dict(signed("createOrder", fields))
    return create_order.sync_detailed(client=client, body=body, idempotency_key=secrets.token_hex(8))


deposit = placed(SignedBuyOrder, DEPOSIT).parsed
assert isinstance(deposit, CreateOrderResponse200)
assert isinstance(deposit.data, CreatedBuyOrder)

withdrawal = placed(SignedGatewayASellOrder, WITHDRAWAL).parsed
assert isinstance(withdrawal, CreateOrderResponse200)
assert isinstance(withdrawal.data, CreatedSellOrder)

query = SignedOrderDetailQuery.from_dict(signed("orderQueryDetail", {"order_no": deposit.data.order_no}))
found = order_query_detail.sync(client=client, body=query)
assert isinstance(found, OrderQueryDetailResponse200)

newest = SignedOrderListQuery.from_dict(signed("orderQueryList", {"limit": 1}))
page = order_query_list.sync(client=client, body=newest)
assert isinstance(page, OrderQueryListResponse200)

response = placed(SignedBuyOrder, {**DEPOSIT, "cny_amount": "9000000000.00"})
assert response.status_code is HTTPStatus.UNPROCESSABLE_ENTITY
refusal = response.parsed
assert isinstance(refusal, CreateOrderResponse422)

print(
    json.dumps(
        {
            "order_no": deposit.data.order_no,
            "pay_url": deposit.data.pay_url,
            "merchant_actual_amount": deposit.data.merchant_actual_amount,
            "created_at": deposit.time,
            "status": found.data.status,
            "first": page.data.list_[0].order_no,
            "withdrawal": withdrawal.data.customer_payment_method.real_name,
            "refused": {"code": refusal.code, "data": refusal.data.to_dict()},
        }
    )
)
