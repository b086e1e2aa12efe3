"""Places a signed deposit with the models that datamodel-code-generator generated, and reads the response by them."""

import json
import os
import secrets
import time

import requests
from merchant import sign
from orders_models import CreatedBuyOrder, Failure, SignedBuyOrder


def place(cny_amount):
    """The response to createOrder."""
    own = {"order_type": 1, "cny_amount": cny_amount, "paychannel_id": 2, "paychannel_paymethod": "wxpay"}
    body = own | {"api_key": "demo", "timestamp": int(time.time()), "nonce": secrets.token_hex(16)}
    order = SignedBuyOrder(**body, signature=sign("createOrder", body))
    sent = order.model_dump(mode="json", exclude_none=True)
    return requests.post(f"{os.environ['MERCHANT_URL']}/merchant/createOrder", json=sent, timeout=30).json()


created = place("12.50")
deposit = CreatedBuyOrder.model_validate(created["data"])
refused = Failure.model_validate(place("9000000000.00"))

print(
    json.dumps(
        {
            "order_no": deposit.order_no,
            "pay_url": str(deposit.pay_url),
            "merchant_actual_amount": deposit.merchant_actual_amount,
            "created_at": created["time"],
            "status": deposit.status,
            "first": deposit.order_no,
            "refused": {"code": refused.code, "data": refused.data},
        }
    )
)
