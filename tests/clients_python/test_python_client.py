"""The Python client against the running service: its calls, its callbacks, and each example of its README."""

from __future__ import annotations

import re
import subprocess
import sys
from decimal import Decimal
from urllib.parse import parse_qsl, urlsplit

import pytest
from tillbook_client import (
    CardInfo,
    Client,
    InsufficientBalance,
    Invalid,
    KeyReused,
    NotAuthorized,
    NotFound,
    NotRefundable,
    PersonalData,
    verify,
    verify_return,
)

from services.sandbox import seeding
from tests.pages import BACK
from tests.support import CARD, PERSON, ROOT, completed, until

pytestmark = pytest.mark.usefixtures("demo")

CLIENT = ROOT / "clients" / "python"
README = (CLIENT / "README.md").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
CALLING = [example for example in EXAMPLES if "http://127.0.0.1:8000" in example]


@pytest.fixture
def client(service):
    with Client(service.url, "demo", "demo-secret") as connected:
        yield connected


def test_a_deposit_from_its_channel_to_its_callback(service, client, receiver):
    service.flask("merchant", "set", "demo", "--callback-url", receiver.url)
    (channel,) = (each for each in client.channels("gateway_b") if "wxpay" in each.pay_methods)
    own = {"merchant_order_no": "订单-1", "idempotency_key": "payment-1"}
    created = client.create_buy(Decimal("12.50"), channel.id, "wxpay", **own)
    assert (created.status, created.cny_amount, created.merchant_actual_amount) == ("pending", Decimal("12.50"), 1242)
    assert created == client.create_buy("12.50", channel.id, "wxpay", **own)

    service.api.play(created.order_no, "success")
    order = client.order(created.order_no)
    assert (order.status, order) == ("completed", client.order(merchant_order_no="订单-1"))
    assert [order] == list(client.all_orders(merchant_order_no="单-1"))
    assert [order] == list(client.orders(status="completed").list[:1])

    until(lambda: receiver.got)
    got = receiver.got[0]
    event = verify(got.headers, got.body, seeding.CALLBACK_SECRETS["demo"])
    assert (event.id, event.type, event.order) == (got.webhook_id, "order.completed", order)


def test_a_refund_from_its_request_to_its_callback(service, client, receiver):
    deposit = client.create_buy("100.00", 2, "wxpay")
    service.api.play(deposit.order_no, "success")
    before = client.balance().available_amount
    service.flask("merchant", "set", "demo", "--callback-url", receiver.url)
    refund = client.create_refund(deposit.order_no, Decimal("30.00"), "R-1", reason="退货")
    assert (refund.status, refund.cny_amount, refund.merchant_actual_amount) == ("completed", Decimal("30.00"), 3_000)
    assert refund == client.create_refund(deposit.order_no, "30.00", "R-1", reason="退货")
    assert refund == client.refund(refund.refund_no) == client.refund(merchant_refund_no="R-1")
    assert [refund] == list(client.all_refunds(order_no=deposit.order_no))
    assert client.balance().available_amount == before - 3_000

    for kind, refused in (
        (KeyReused, lambda: client.create_refund(deposit.order_no, "31.00", "R-1")),
        (NotFound, lambda: client.create_refund("1", "1.00", "R-2")),
        (NotFound, lambda: client.refund("1")),
        (Invalid, lambda: client.create_refund(deposit.order_no, "1.00", "x" * 65)),
    ):
        with pytest.raises(kind):
            refused()
    with pytest.raises(NotRefundable) as caught:
        client.create_refund(deposit.order_no, "70.01", "R-2")
    assert (caught.value.reason, caught.value.left) == ("amount", Decimal("70.00"))

    until(lambda: receiver.got)
    got = receiver.got[0]
    event = verify(got.headers, got.body, seeding.CALLBACK_SECRETS["demo"])
    assert (event.type, event.refund) == ("refund.completed", refund)


def test_all_orders_of_several_pages_are_returned_once(client):
    created = [client.create_buy("1.00", 2, "wxpay").order_no for _ in range(101)]
    listed = client.all_orders(order_type=1)
    found = [next(listed).order_no]
    client.create_buy("1.00", 2, "wxpay")  # does not shift the pages
    found += [order.order_no for order in listed]
    assert found == created[::-1]
    assert client.orders(limit=1).total == 102


def test_withdrawals_of_both_forms_and_the_balance_that_they_leave(client):
    card, person = CardInfo(**CARD), PersonalData(**PERSON)
    to_card = client.create_sell("50.00", 1, "bank", gatewaya_personal_data=person, gatewaya_card_info=card)
    assert to_card.customer_payment_method.card_number == card.card_no
    on_file = client.create_sell("50.00", 2, "bank")
    assert (on_file.status, client.order(id=on_file.order_id).order_no) == ("pending", on_file.order_no)
    assert card.card_no not in f"{card} {to_card}"
    found = client.balance()
    held = sum(order.merchant_actual_amount + order.deposit_amount for order in (to_card, on_file))
    assert (found.available_amount, found.held_amount, found.unsettled_amount) == (1_000_000 - held, held, 0)
    assert found.held_cny_amount == Decimal(held) / 100


def test_regions_are_listed_a_payers_return_is_verified_and_each_refusal_has_its_class(service, client):
    province = next(each for each in client.provinces() if each.name == "北京市")
    (city,) = client.cities(province.name)
    assert (province.code, city.code) == ("110000", "110100")
    assert "110101" in {each.code for each in client.districts(province.name, city.name)}

    order_no = service.api.buy(merchant_order_no="A/1 甲").data["order_no"]
    service.api.play(order_no, "success")
    address = urlsplit(service.api.send("GET", f"{BACK}?order_no={order_no}").headers["Location"])
    found = verify_return(dict(parse_qsl(address.query)), seeding.CALLBACK_SECRETS["demo"])
    assert (found.order_no, found.merchant_order_no, found.status) == (order_no, "A/1 甲", "completed")

    client.create_buy("1.00", 2, "wxpay", idempotency_key="used")
    for kind, refused in (
        (Invalid, lambda: client.create_buy("0", 2, "wxpay")),
        (NotFound, lambda: client.create_buy("1.00", 999, "wxpay")),
        (NotFound, lambda: client.order("1")),
        (NotFound, lambda: client.cities("北京")),
        (KeyReused, lambda: client.create_buy("2.00", 2, "wxpay", idempotency_key="used")),
        (InsufficientBalance, lambda: client.create_sell("900000.00", 2, "bank")),
        (NotAuthorized, lambda: Client(service.url, "demo", "another secret").channels()),
    ):
        with pytest.raises(kind):
            refused()
    with pytest.raises(NotAuthorized, match=r"[0-9]+ s behind the server"):
        Client(service.url, "demo", "demo-secret", now=lambda: 1_000_000).channels()


def test_every_example_of_the_readme_that_calls_the_service_runs(service):
    assert len(CALLING) == 4
    completed(service.api)  # for the refund
    for example in CALLING:
        code = example.replace("http://127.0.0.1:8000", service.url)
        environ = {**service.environ, "PYTHONPATH": str(CLIENT)}
        done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert done.stdout


@pytest.mark.parametrize("example", [each for each in EXAMPLES if each not in CALLING])
def test_every_other_example_of_the_readme_is_python_that_runs(example):
    exec(compile(example, "README.md", "exec"), {"__name__": "example"})


@pytest.mark.usefixtures("slow")
def test_the_package_needs_neither_the_service_nor_a_web_framework(tmp_path):
    code = "import tillbook_client, sys; print(*{name.split('.')[0] for name in sys.modules})"
    environ = {"PYTHONPATH": str(CLIENT), "PYTHONSAFEPATH": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environ, cwd=tmp_path, capture_output=True, text=True)
    unwanted = {"flask", "django", "fastapi", "app", "settings", "services", "models", "gateways", "schemas"}
    assert "requests" in done.stdout.split()
    assert not unwanted & set(done.stdout.split())


def test_every_link_of_the_readme_is_valid():
    links = re.findall(r"\]\(([^)\s]+)\)", README)
    assert links
    assert [link for link in links if not (CLIENT / link).exists()] == []
