"""Version 1 of the epay gateway against a third party's SDK, which signs, verifies, queries and credits orders."""

import json
import threading
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
import requests
from epay_sdk import CreateOrderRequest, EPayClient, EPayConfig
from epay_sdk.callbacks import CallbackProcessor
from epay_sdk.exceptions import EPaySignError
from epay_sdk.models import OrderRecord, QueryOrderRequest
from werkzeug import Response

from tests.epay_shop import BROWSER
from tests.pages import BACK
from tests.support import until

pytestmark = pytest.mark.usefixtures("demo")

NUMBER = "sdk-2026.11_26|1"


class Shop:
    """A shop on this SDK: one order of 12.50 yuan, credited once by a verified notice that a query confirms."""

    def __init__(self, client, server):
        self.client, self.url = client, server.url_for("/notify")
        self.status, self.credited, self.attempts, self.results = "UNPAID", 0, [], []
        self._lock = threading.Lock()
        server.expect_request("/notify").respond_with_handler(self._notified)

    def _notified(self, request):
        fields = dict(parse_qsl(request.query_string.decode(), keep_blank_values=True))
        result = CallbackProcessor(self.client, self).process(self.client.verify_callback(fields))
        self.results.append((fields, result))
        return Response(result.response_text)

    def get_order(self, order_no):
        return OrderRecord(order_no, "12.50", self.status) if order_no == NUMBER else None

    def mark_paid_if_unpaid(self, order_no, gateway_trade_no, raw_payload):
        with self._lock:
            first, self.status = self.status == "UNPAID", "PAID"
            self.credited += first
        return first

    def record_callback_attempt(self, order_no, accepted, reason, raw_payload, *, stage):
        self.attempts.append((stage, accepted, reason))

    def query(self, **number):
        """What a query tells the SDK: whether it worked, whether it is paid, and the amount."""
        request = QueryOrderRequest(**number)
        found = self.client.parse_query_result(self.client.query_order(request))
        return found.query_ok, found.paid, found.amount


def test_a_deposit_from_its_link_to_its_credit(service, web_server):
    types = ("--type", "alipay=2:alipay", "--type", "wxpay=2:wxpay")
    account = json.loads(service.flask("epay", "enable", "demo", "--host", "localhost", *types, "--json").stdout)
    client = EPayClient(EPayConfig(account["pid"], account["key"], service.url, environment="sandbox"))
    shop = Shop(client, web_server)
    order = CreateOrderRequest(  # with all its fields
        out_trade_no=NUMBER,
        name="充值 & 测试 = 1 + 1%",
        money="12.5",
        notify_url=shop.url,
        return_url=shop.url.replace("/notify", "/paid?shop=1"),
        pay_type="alipay",
        sitename="My shop",
        clientip="203.0.113.1",
        device="pc",
        param="a=b&c 中",
    )
    page = requests.get(client.create_order_url(order), headers=BROWSER, timeout=10)
    trade_no = parse_qs(urlsplit(page.url).query)["order_no"][0]
    assert page.ok
    assert trade_no in client.create_order(order)  # by POST: the same payment
    assert shop.query(out_trade_no=NUMBER) == (True, False, "12.50")

    service.api.play(trade_no, "success")
    until(lambda: shop.results)
    ((fields, result),) = shop.results
    assert (result.accepted, result.reconciled, result.first_success) == (True, True, True)
    assert [stage for stage, accepted, _ in shop.attempts if accepted] == ["RECEIVED", "RECONCILED", "APPLIED"]
    facts = (fields["trade_no"], fields["money"], fields["name"], fields["param"])
    assert facts == (trade_no, "12.50", order.name, order.param)
    assert shop.query(trade_no=trade_no) == shop.query(out_trade_no=NUMBER) == (True, True, "12.50")

    until(lambda: json.loads(service.flask("callback", "list", "--state", "delivered", "--json").stdout))
    service.flask("callback", "redeliver", "--merchant", "demo", "--state", "delivered")
    until(lambda: len(shop.results) == 2)  # confirmed, but nothing is credited
    assert [(result.accepted, result.first_success) for _, result in shop.results] == [(True, True), (True, False)]
    assert shop.credited == 1

    back = service.api.send("GET", f"{BACK}?order_no={trade_no}").headers["Location"]
    assert back.startswith(order.return_url)
    added = dict(parse_qsl(back.removeprefix(order.return_url).lstrip("&")))
    assert client.verify_callback(added).out_trade_no == NUMBER
    with pytest.raises(EPaySignError):
        client.verify_callback(added | {"money": "12.51"})
