"""Places a signed deposit and withdrawal with the client that openapi-generator generated for Python.

Prints what it read from the responses, through the generated types.
"""

import json
import secrets
import time

import openapi_client as api
from merchant import URL, sign
from openapi_client.exceptions import ApiException

DEPOSIT = {"order_type": 1, "cny_amount": "12.50", "paychannel_id": 2, "paychannel_paymethod": "wxpay"}
WITHDRAWAL = DEPOSIT | {"order_type": 2, "cny_amount": "5.00", "merchant_order_no": "W-7"}


def signed(endpoint, fields):
    """The fields with the four that sign a request."""
    body = fields | {"api_key": "demo", "timestamp": int(time.time()), "nonce": secrets.token_hex(16)}
    return body | {"signature": sign(endpoint, body)}


orders = api.OrdersApi(api.ApiClient(api.Configuration(host=URL)))


def placed(model, fields):
    """The response to createOrder."""
    order = model(**signed("createOrder", fields))
    return orders.create_order(api.CreateOrderRequest(order), idempotency_key=secrets.token_hex(8))


created = placed(api.SignedBuyOrder, DEPOSIT)
deposit = created.data.actual_instance
assert isinstance(deposit, api.CreatedBuyOrder)

withdrawal = placed(api.SignedSellOrder, WITHDRAWAL).data.actual_instance
assert isinstance(withdrawal, api.CreatedSellOrder)

query = api.SignedOrderDetailQuery(**signed("orderQueryDetail", {"order_no": deposit.order_no}))
found = orders.order_query_detail(query).data
newest = api.SignedOrderListQuery(**signed("orderQueryList", {"limit": 1, "order_type": 2}))
page = orders.order_query_list(newest).data

try:
    placed(api.SignedBuyOrder, DEPOSIT | {"cny_amount": "9000000000.00"})
except ApiException as error:
    refusal = error.data

print(
    json.dumps(
        {
            "order_no": deposit.order_no,
            "pay_url": deposit.pay_url,
            "merchant_actual_amount": deposit.merchant_actual_amount,
            "created_at": created.time,
            "status": found.status,
            "first": page.list[0].order_no,
            "withdrawal": withdrawal.customer_payment_method.real_name,
            "refused": {"code": refusal.code, "data": refusal.data},
        }
    )
)
