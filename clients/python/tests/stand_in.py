"""A stand-in for the service: an HTTP server that sends the set responses in order."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tillbook_client import Client, Retry

ORDER = {
    "order_no": "202611218899480685472049",
    "merchant_order_no": "A-1001",
    "order_type": 1,
    "cny_amount": "100.00",
    "merchant_actual_amount": 9940,
    "service_rate": "0.60",
    "service_amount": 60,
    "status": "completed",
    "createtime": 1795232380,
    "updatetime": 1795232400,
}
REFUND = {
    "refund_no": "202611224410932758106347",
    "order_no": "202611218899480685472049",
    "merchant_refund_no": "R-1001",
    "cny_amount": "30.00",
    "service_amount": 18,
    "merchant_actual_amount": 2982,
    "status": "completed",
    "reason": "",
    "createtime": 1795318780,
    "updatetime": 1795318800,
    "in_a_later_version": "new",
}
DEPOSIT = {
    "order_no": "202611218899480685472049",
    "merchant_order_no": "",
    "status": "pending",
    "order_type": 1,
    "cny_amount": "100.00",
    "payment_method": "wxpay",
    "merchant_amount": "100.00",
    "deposit_amount": 10000,
    "service_amount": 60,
    "merchant_actual_amount": 9940,
    "pay_url": "http://pay.example/",
    "createtime": 1795232380,
    "in_a_later_version": "new",
}


def answer(code: int, data: Any = None, **headers: str) -> Response:
    """Return a response in the service's envelope."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    text = json.dumps({"code": code, "msg": "said by the service", "data": data})
    return Response(text, 200 if code == 1 else code // 100, names, content_type="application/json")


def broken() -> Response:
    """Return a response whose connection ends in the middle."""
    return Response(b"{", headers={"Content-Length": "100"})


class StandIn:
    """Sends `answers` in order and repeats the last one. `got` has the requests. Only pauses advance the clock."""

    def __init__(self, server: HTTPServer):
        self.url = server.url_for("")
        self.answers: list[Callable[[], Response]] = []
        self.got: list[Request] = []
        self.pauses: list[float] = []
        for endpoint in (
            "createOrder",
            "orderQueryDetail",
            "orderQueryList",
            "createRefund",
            "refundQueryDetail",
            "refundQueryList",
            "statementQuery",
        ):
            server.expect_request(f"/merchant/{endpoint}").respond_with_handler(self._answer)

    def _answer(self, request: Request) -> Response:
        self.got.append(request)
        return (self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])()

    def says(self, *answers: Callable[[], Response]) -> None:
        self.answers = list(answers)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.get_data()) for request in self.got]

    @property
    def keys(self) -> list[str | None]:
        return [request.headers.get("Idempotency-Key") for request in self.got]

    def client(self, total: float = 60.0, **more: Any) -> Client:
        now = 1_000.0

        def steady() -> float:
            return now + sum(self.pauses)

        retry = Retry(total=total, sleep=self.pauses.append, steady=steady, chance=lambda: 0.0)
        return Client(self.url, "demo", "demo-secret", retry=retry, **more)
