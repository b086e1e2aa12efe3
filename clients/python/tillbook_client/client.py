"""The client: one method for each endpoint."""

from __future__ import annotations

import json
import re
import secrets
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from decimal import Decimal
from functools import partial
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

import requests

from tillbook_client.answers import (
    Balance,
    BuyOrder,
    Channel,
    Order,
    OrderPage,
    Refund,
    RefundPage,
    Region,
    SellOrder,
    Statement,
    StatementDay,
    StatementLine,
    read,
)
from tillbook_client.details import CardInfo, PersonalData
from tillbook_client.money import amount_text
from tillbook_client.retrying import Retry
from tillbook_client.signing import sign, string_to_sign
from tillbook_client.transport import Transport

PayMethod = Literal["wxpay", "alipay", "bank"]
Status = Literal["pending", "paid", "confirmed", "completed", "cancelled"]
RefundStatus = Literal["pending", "confirmed", "completed", "cancelled"]
Category = Literal["gateway_a", "gateway_b", "gateway_c"]
Created = TypeVar("Created", BuyOrder, SellOrder)

BUY, SELL = 1, 2
REGIONS = "/addons/paychannel/channel.gatewaya"
MOST_PER_PAGE = 100
IDEMPOTENCY_KEY = re.compile("[!-~]{1,255}")


def _every(fetch: Callable[..., Any], number: str) -> Iterator[Any]:
    """Iterate over all objects of a list, page by page; `number` is the field that names the last one of a page."""
    before = None
    while True:
        found = fetch(limit=MOST_PER_PAGE, before=before).list
        yield from found
        if len(found) < MOST_PER_PAGE:
            return
        before = getattr(found[-1], number)


class Client:
    """Client of one merchant. It keeps connections open; use one per thread.

    Args:
        base_url: the service's address, with its API prefix if it has one.
        api_key: the merchant's key.
        secret: the API secret, not the callback secret (`whsec_...`).
        site_url: address of the region endpoints; by default the host of `base_url`.
        timeout: seconds to connect, and between two parts of a response.
        retry: how long and how often a call is repeated; see `Retry`.
        session: your own `requests.Session`, for a proxy or certificates. The default session ignores proxy variables,
            `REQUESTS_CA_BUNDLE` and `.netrc` (`trust_env = False`), so that the environment cannot redirect orders.
        now: Unix seconds, for tests.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        secret: str,
        *,
        site_url: str | None = None,
        timeout: float = 20.0,
        retry: Retry | None = None,
        session: requests.Session | None = None,
        now: Callable[[], float] = time.time,
    ):
        if secret.startswith("whsec_"):
            raise ValueError("this is the callback secret; requests are signed with the API secret")
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError(f"base_url must begin with https:// (or http://): {base_url!r}")
        self.base_url = base_url.rstrip("/")
        self.site_url = (site_url or f"{parts.scheme}://{parts.netloc}").rstrip("/")
        self._api_key, self._secret, self._now = api_key, secret, now
        if session is None:
            session = requests.Session()
            session.trust_env = False
        self._transport = Transport(session, timeout, retry or Retry())

    def __repr__(self) -> str:
        return f"Client({self.base_url!r}, {self._api_key!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._transport.session.close()

    def create_buy(
        self,
        cny_amount: Decimal | str,
        paychannel_id: int,
        paychannel_paymethod: PayMethod,
        *,
        merchant_order_no: str | None = None,
        customer_name: str | None = None,
        idempotency_key: str | None = None,
    ) -> BuyOrder:
        """Create a deposit of `cny_amount` yuan.

        Retries create it once. Store your own `idempotency_key`, such as your number of this payment, before the call:
        then you can repeat it even after a crash of your process. Without one, the client creates a key.

        Raises:
            Refused: the order was not created; the class is the reason.
            OutcomeUnknown: the order may exist; call again with `idempotency_key=error.idempotency_key`.
            ValueError: the amount or the key is invalid; nothing was sent.
        """
        order = {
            "order_type": BUY,
            "cny_amount": amount_text(cny_amount),
            "paychannel_id": paychannel_id,
            "paychannel_paymethod": paychannel_paymethod,
            "merchant_order_no": merchant_order_no,
            "customer_name": customer_name,
        }
        return self._create(BuyOrder, order, idempotency_key)

    def create_sell(
        self,
        cny_amount: Decimal | str,
        paychannel_id: int,
        paychannel_paymethod: PayMethod,
        *,
        merchant_order_no: str | None = None,
        gatewaya_personal_data: PersonalData | None = None,
        gatewaya_card_info: CardInfo | None = None,
        idempotency_key: str | None = None,
    ) -> SellOrder:
        """Create a withdrawal of `cny_amount` yuan, once, as `create_buy` does.

        A channel of the category `gateway_a` needs `gatewaya_personal_data` and `gatewaya_card_info`. The others pay to
        your payout account.
        """
        order = {
            "order_type": SELL,
            "cny_amount": amount_text(cny_amount),
            "paychannel_id": paychannel_id,
            "paychannel_paymethod": paychannel_paymethod,
            "merchant_order_no": merchant_order_no,
            "gatewaya_personal_data": gatewaya_personal_data and asdict(gatewaya_personal_data),
            "gatewaya_card_info": gatewaya_card_info and asdict(gatewaya_card_info),
        }
        return self._create(SellOrder, order, idempotency_key)

    def order(
        self, order_no: str | None = None, *, merchant_order_no: str | None = None, id: int | str | None = None
    ) -> Order:
        """Return an order by one of its numbers, the oldest of several with the same `merchant_order_no`."""
        by = {"order_no": order_no, "merchant_order_no": merchant_order_no, "id": id}
        if sum(bool(number) for number in by.values()) != 1:
            raise TypeError("pass one of order_no, merchant_order_no and id")
        return read(Order, self._call("orderQueryDetail", by))

    def orders(
        self,
        *,
        page: int = 1,
        limit: int = 20,
        status: Status | None = None,
        order_type: Literal[1, 2] | None = None,
        merchant_order_no: str | None = None,
        start_time: int | None = None,
        end_time: int | None = None,
        before: str | None = None,
    ) -> OrderPage:
        """Return a page of orders, newest first, by part of `merchant_order_no` and inclusive times of creation."""
        filters = {
            "page": page,
            "limit": limit,
            "status": status,
            "order_type": order_type,
            "merchant_order_no": merchant_order_no,
            "start_time": start_time,
            "end_time": end_time,
            "before": before,
        }
        data = self._call("orderQueryList", filters)
        return read(OrderPage, data | {"list": tuple(read(Order, each) for each in data["list"])})

    def all_orders(
        self,
        *,
        status: Status | None = None,
        order_type: Literal[1, 2] | None = None,
        merchant_order_no: str | None = None,
        start_time: int | None = None,
        end_time: int | None = None,
    ) -> Iterator[Order]:
        """Iterate over all orders, newest first, and fetch them page by page.

        Orders that are created meanwhile do not shift the pages. Set `end_time` for a list that ends at a fixed time.
        """
        filters: dict[str, Any] = {
            "status": status,
            "order_type": order_type,
            "merchant_order_no": merchant_order_no,
            "start_time": start_time,
            "end_time": end_time,
        }
        return _every(partial(self.orders, **filters), "order_no")

    def create_refund(
        self, order_no: str, cny_amount: Decimal | str, merchant_refund_no: str, *, reason: str | None = None
    ) -> Refund:
        """Refund `cny_amount` yuan of a deposit, whole or in part.

        `merchant_refund_no` is your own number of this refund. Store it before the call: then you can repeat the call
        even after a crash of your process. The same number with the same arguments returns the refund as it is now.

        Raises:
            Refused: nothing was refunded; the class is the reason.
            OutcomeUnknown: the refund may exist; call again with the same arguments.
            ValueError: the amount is invalid; nothing was sent.
        """
        refund = {
            "order_no": order_no,
            "cny_amount": amount_text(cny_amount),
            "merchant_refund_no": merchant_refund_no,
            "reason": reason,
        }
        return read(Refund, self._call("createRefund", refund, number=merchant_refund_no))

    def refund(self, refund_no: str | None = None, *, merchant_refund_no: str | None = None) -> Refund:
        """Return a refund by one of its numbers."""
        by = {"refund_no": refund_no, "merchant_refund_no": merchant_refund_no}
        if sum(bool(number) for number in by.values()) != 1:
            raise TypeError("pass one of refund_no and merchant_refund_no")
        return read(Refund, self._call("refundQueryDetail", by))

    def refunds(
        self,
        *,
        page: int = 1,
        limit: int = 20,
        status: RefundStatus | None = None,
        order_no: str | None = None,
        start_time: int | None = None,
        end_time: int | None = None,
        before: str | None = None,
    ) -> RefundPage:
        """Return a page of refunds, newest first, by their order and inclusive times of creation."""
        filters = {
            "page": page,
            "limit": limit,
            "status": status,
            "order_no": order_no,
            "start_time": start_time,
            "end_time": end_time,
            "before": before,
        }
        data = self._call("refundQueryList", filters)
        return read(RefundPage, data | {"list": tuple(read(Refund, each) for each in data["list"])})

    def all_refunds(
        self,
        *,
        status: RefundStatus | None = None,
        order_no: str | None = None,
        start_time: int | None = None,
        end_time: int | None = None,
    ) -> Iterator[Refund]:
        """Iterate over all refunds, newest first, and fetch them page by page, as `all_orders` does."""
        filters: dict[str, Any] = {
            "status": status,
            "order_no": order_no,
            "start_time": start_time,
            "end_time": end_time,
        }
        return _every(partial(self.refunds, **filters), "refund_no")

    def channels(self, category: Category | None = None) -> list[Channel]:
        """Return the channels that you may use."""
        data = self._call("getPayChannels", {}, {"category": category} if category else {})
        return [read(Channel, each) for each in data["list"]]

    def balance(self) -> Balance:
        """Return your balance: available, held, and not credited yet."""
        return read(Balance, self._call("balanceQuery", {}))

    def statement(self, month: str, *, limit: int = 100, after: str | None = None) -> Statement:
        """Return the statement of a month such as 2026-10, with a page of its lines, oldest first.

        Args:
            after: the `next` of the previous page.
        """
        data = self._call("statementQuery", {"month": month, "limit": limit, "after": after})
        days = tuple(read(StatementDay, each) for each in data["days"])
        lines = tuple(read(StatementLine, each) for each in data["list"])
        return read(Statement, data | {"days": days, "list": lines})

    def statement_csv(self, month: str) -> str:
        """Return all lines of a month as CSV, fetched page by page."""
        text, after = "", None
        while after != "":
            asked = {"month": month, "format": "csv", "limit": 1000, "after": after}
            data = self._call("statementQuery", asked)
            text, after = text + data["csv"], data["next"]
        return text

    def provinces(self) -> list[Region]:
        """Return all provinces."""
        return self._regions("provinceList", {})

    def cities(self, province: str) -> list[Region]:
        """Return the cities of a province, by its listed name."""
        return self._regions("cityList", {"province": province})

    def districts(self, province: str, city: str) -> list[Region]:
        """Return the districts of a city, by their listed names."""
        return self._regions("districtList", {"province": province, "city": city})

    def _regions(self, name: str, query: dict[str, str]) -> list[Region]:
        request = requests.Request("GET", f"{self.site_url}{REGIONS}/{name}", params=query)
        return [read(Region, each) for each in self._transport.call(lambda: request)]

    def _create(self, kind: type[Created], order: dict[str, Any], key: str | None) -> Created:
        key = str(uuid.uuid4()) if key is None else key
        if not IDEMPOTENCY_KEY.fullmatch(key):
            raise ValueError(
                f"an idempotency_key must be 1 to 255 printable ASCII characters without spaces, not {key!r}"
            )
        return read(kind, self._call("createOrder", order, idempotency_key=key), idempotency_key=key)

    def _call(
        self,
        endpoint: str,
        fields: Mapping[str, Any],
        query: Mapping[str, str] | None = None,
        *,
        idempotency_key: str | None = None,
        number: str | None = None,
    ) -> Any:
        """Send a signed request. `number` makes a request unique by a field, as `idempotency_key` does by a header."""
        headers = {"Content-Type": "application/json"}
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key

        def signed() -> requests.Request:
            auth = {"api_key": self._api_key, "timestamp": int(self._now()), "nonce": secrets.token_hex(16)}
            body = {**fields, **auth}
            body["signature"] = sign(self._secret, string_to_sign(endpoint, body, query or {}))
            content = json.dumps(body, ensure_ascii=False).encode()
            url = f"{self.base_url}/merchant/{endpoint}"
            return requests.Request("POST", url, headers=headers, params=query, data=content)

        return self._transport.call(signed, idempotency_key or number)
