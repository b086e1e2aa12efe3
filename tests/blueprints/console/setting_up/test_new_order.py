"""A new payment link (in demo mode a test order): its form, the order that it creates, and the page with the link."""

import html

import pytest

from models.tables.channel import Channel
from models.tables.order import History, Order, OrderNote
from models.tables.replay import IdempotencyKey
from tests.blueprints.console.reading import Shown
from tests.blueprints.console.setting_up.filling import Page
from tests.upstreams.alipay import Alipay

FORM = "new-order/?merchant=demo"
LINK = {"amount": "88.00", "way": "2:wxpay"}


def newest():
    return Order.select().order_by(Order.id.desc()).get()


@pytest.fixture
def create(fill):
    """`create(amount="88.00")`: the order that the form creates."""

    def send(path=FORM, **typed):
        answer = fill(path, **LINK | typed)
        assert answer.status_code == 303, Page(answer.text).problems
        return Order.get(order_no=answer.headers["Location"].rsplit("/", 1)[1])

    return send


def test_a_payment_link_is_an_order_like_one_of_the_api(create, api, audited):
    made, by_api = create(merchant_order_no="A-7"), api.buy("88.00", merchant_order_no="A-7").data
    seen, theirs = (api.detail(order_no=number).data for number in (made.order_no, by_api["order_no"]))
    same = {"merchant_order_no", "order_type", "cny_amount", "merchant_actual_amount", "service_rate", "service_amount"}
    assert {name: seen[name] for name in same} == {name: theirs[name] for name in same}
    assert (seen["status"], made.order_type) == ("pending", 1)
    assert [line.who for line in History.select().where(History.order == made)] == ["operator demo"]
    assert f"demo create payment link order {made.order_no} merchant: demo; amount: 88.00; channel" in audited()[-1]
    assert create(amount="1,088.50").amount == 108_850


def test_the_page_shows_the_link_to_copy_and_as_a_qr_code(create, console, visit):
    made = create(note="Sofa <b>", merchant_order_no="A-8")
    text = console.get(f"/console/new-order/{made.order_no}").text
    assert not Shown(text).inline
    for part in (
        "Payment link created",
        "88.00",
        "A-8",
        f'<code id="pay-url">http://127.0.0.1:8000/addons/paychannel/pay/index?order_no={made.order_no}<',
        'src="data:image/svg+xml',
        'data-copy="pay-url"',
        html.escape("Sofa <b>"),
    ):
        assert part in text
    assert "Sofa <b>" not in text
    assert html.escape("Sofa <b>") in visit(made.order_no).text, "the payer reads the note"
    assert "<dt>Note</dt>" not in visit(create().order_no).text


def test_the_note_is_on_the_orders_page_and_erased_with_its_personal_data(create, page, api, flask):
    flask("merchant", "set", "demo", "--callback-url", "")
    made = create(note="For Zhang San")
    assert "For Zhang San" in page(f"order/{made.order_no}").text
    api.play(made.order_no, "fail")
    flask("privacy", "erase", made.order_no, "--yes")
    assert not OrderNote.select().exists()
    assert "For Zhang San" not in page(f"order/{made.order_no}").text


def test_a_form_that_is_sent_twice_creates_one_order(console, app):
    def post(form):
        return console.post(f"/console/{FORM}", data=form)

    form = Page(console.get(f"/console/{FORM}").text).form().fill(LINK)
    answers = [post(form) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [303, 303]
    assert answers[0].headers["Location"] == answers[1].headers["Location"]
    asked = post({**form, "amount": "89.00"})
    assert (asked.status_code, "already created an order with other values" in asked.text) == (422, True)
    assert Order.select().count() == 1
    assert post(Page(asked.text).form().sent).status_code == 303, "after the question, it creates another one"
    assert [order.amount for order in Order.select().order_by(Order.id)] == [8_800, 8_900]
    IdempotencyKey.update(outcome=None).execute()
    assert "The order is being created" in post(form).text
    assert Order.select().count() == 2


def test_a_form_without_a_recent_token_is_shown_again(fill):
    for token in ("", "1-a", "99999999999-a", "x" * 90):
        answer = fill(FORM, **LINK, token=token)
        assert (answer.status_code, "open for too long" in answer.text) == (422, True), token
    assert not Order.select().exists()


def test_an_invalid_value_is_shown_at_its_field(wrong):
    for field, value in (
        *(("amount", "0"), ("amount", "1.001"), ("amount", "1000000.01")),
        *(("way", "2:cash"), ("way", "99:wxpay"), ("expiry", "86401"), ("note", "x" * 201), ("note", "a\x00b")),
        *(("merchant_order_no", "x" * 256), ("merchant_order_no", "a\x1bb")),
    ):
        assert list(wrong(FORM, **LINK | {field: value})) == [field], value
    assert not Order.select().exists()


def test_a_channel_that_refuses_leaves_a_cancelled_order_with_the_reason(fill, flask, console):
    flask("channel", "set", "2", "--config", "open=refuse")
    answer = fill(FORM, **LINK)
    made = newest()
    assert made.status == "cancelled"
    assert answer.headers["Location"].endswith(f"/order/{made.order_no}")
    assert "The channel rejected the order" in console.get(answer.headers["Location"]).text


def test_a_link_expires_after_a_day_or_the_chosen_time_that_the_channel_allows(create, fill, console, web_server):
    def seconds(**chosen):
        made = create(**chosen)
        return made.order_no, made.expires_at - made.createtime

    assert seconds()[1] == pytest.approx(86_400, abs=2)
    assert seconds(expiry="900")[1] == pytest.approx(900, abs=2)
    config = {f"config_{name}": value for name, value in Alipay(web_server).config("key").items()}
    fill("channel/new?driver=alipay", name="Own Alipay", category="gateway_b", merchants=["1"], **config)
    channel = Channel.get(name="Own Alipay")
    assert "Alipay (OpenAPI): at most 2 hours." in console.get(f"/console/{FORM}").text
    order_no, limited = seconds(way=f"{channel.id}:alipay", expiry="604800")
    assert limited == pytest.approx(7_200, abs=2)
    assert "accepts payments for at most 2 hours" in console.get(f"/console/new-order/{order_no}").text


def test_only_merchants_with_a_channel_are_offered(page, flask):
    assert {"demo", "other"} <= set(page("new-order/").html.split('"'))
    flask("merchant", "set", "other", "--disabled")
    assert 'value="other"' not in page("new-order/").html
    page("new-order/?merchant=other", status=404)


def test_only_operators_are_offered_a_new_link(sign_in, viewer, page, flask):
    assert "New payment link" not in page("orders/", client=viewer).text
    flask("operator", "set", "demo", "--role", "operator")
    assert "New payment link" in page("orders/", client=sign_in("demo")).text


def test_the_demo_creates_test_orders_of_both_types(demo, create, typed, console, audited):
    assert typed(FORM)["amount"] == "100.00"
    made = create()
    assert made.order_type == 1
    assert f"demo create test order order {made.order_no}" in audited()[-1]
    assert create(order_type="2", way="2:bank").order_type == 2
    made = create(order_type="2", way="1:bank")  # through gateway A, with example data
    assert (made.order_type, made.status) == (2, "pending")
    assert "Open simulator" in console.get(f"/console/new-order/{made.order_no}").text
