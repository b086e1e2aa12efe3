"""A merchant's page: its changes, secrets, accounts, and test callbacks."""

import time

import pytest
from werkzeug import Response

from schemas.views import order_view
from services.callbacks import delivery
from tests.blueprints.console.setting_up.filling import Page
from tests.support import Api, completed, free_port

HOSTILE = '"><script>alert(1)</script>'


def test_a_merchant_is_added_once_and_its_secrets_are_shown_once(
    fill, wrong, shown, everywhere, http, page, audited, flask_json
):
    for key in ("a b", "new", "..", "x" * 65, HOSTILE):
        assert wrong("merchant/new", key=key, name="Shop")["key"], key
    answer = fill("merchant/new", key="shop", name="Shop")
    secrets = shown(answer)
    assert answer.headers["Cache-Control"] == "no-store"
    assert "Location" not in answer.headers
    pages = everywhere("merchant/shop", "", "merchant/new", "channel/2")
    assert not [name for name in ("secret", "callback_secret") if secrets[name] in pages]
    assert Api(http, "shop", secrets["secret"]).call("getPayChannels").code == 1
    revealed = fill("merchant/shop", "/reveal")
    assert shown(revealed) == {"callback_secret": secrets["callback_secret"]}
    assert revealed.headers["Cache-Control"] == "no-store"
    assert audited()[-1] == "demo reveal callback secret merchant shop "
    taken = "Merchant shop already exists. Choose another key."
    assert wrong("merchant/new", key="shop", name="Shop") == {"key": taken}
    assert len(flask_json("merchant", "list")) == 3
    for path in ("merchant/nobody", "merchant/nobody/adjust", "merchant/nobody/account"):
        page(path, status=404)


WRONG = [
    ("name", "", "This field is required."),
    ("callback_url", "ftp://shop.example", "Enter a URL, such as https://shop.example/paid."),
    ("buy_rate", "0.605", "Must be a percentage with at most two decimals."),
    ("buy_rate", "101", "Must be a percentage from 0 to 100."),
    ("sell_rate", "", "Must be a percentage with at most two decimals."),
    ("sell_rate", "-1", "Must be a percentage from 0 to 100."),
    ("sell_rate", "１", "Must be a percentage with at most two decimals."),
    ("allowed_addresses", "10.0.0.1/8", "10.0.0.1/8 is not an IP address or a network such as 10.0.0.0/8."),
]


LONG = [
    ("key", "x" * 65, "Field cannot be longer than 64 characters."),
    ("callback_url", f"ftp://{'x' * 2000}", "Field cannot be longer than 2000 characters."),
    ("allowed_addresses", "10.0.0," * 300, "Field cannot be longer than 2000 characters."),
]


@pytest.fixture
def stored(typed):
    """`stored("merchant/demo")`: the values in the fields of a page's own form, without its token."""
    return lambda path: typed(path).to_dict(flat=False) | {"csrf_token": ""}


@pytest.mark.parametrize(("path", "more"), [("merchant/new", {"key": "shop"}), ("merchant/demo", {})])
def test_an_invalid_value_is_reported_at_its_field_and_all_values_stay(wrong, stored, path, more):
    before = stored("merchant/demo")
    for field, value, words in WRONG:
        assert wrong(path, **{"name": "New name", field: value} | more) == {field: words}, value
        assert stored("merchant/demo") == before


@pytest.mark.parametrize(("field", "value", "words"), LONG)
def test_a_value_that_is_too_long_and_invalid_has_one_error(wrong, field, value, words):
    assert wrong("merchant/new", **{"name": "Shop", "key": "shop", field: value}) == {field: words}


def test_an_attempt_that_the_service_refuses_is_recorded_as_not_done(wrong, audited, page):
    for path, action, key, field, value in (
        ("merchant/demo", "set merchant", "demo", "callback_url", "ftp://user:secret@shop.example"),
        ("merchant/demo", "set merchant", "demo", "allowed_addresses", "10.0.0"),
        ("merchant/new", "add merchant", "demo", "key", "demo"),
    ):
        entries = len(audited())
        (words,) = wrong(path, **{"name": "Shop", field: value}).values()
        assert audited()[entries:] == [f"demo {action} merchant {key} not done: {words}"]
        assert page("audit/").rows[0]["Event"].startswith("Not done demo ")


def test_a_change_takes_effect_immediately_and_is_recorded(fill, flask_json, audited, api, page):
    changed = {"name": "Renamed 新", "buy_rate": "1", "events": ["paid"], "channels": ["2", "4"], "enabled": True}
    assert fill("merchant/demo", **changed).status_code == 303
    row = next(row for row in flask_json("merchant", "list") if row["key"] == "demo")
    assert (row["name"], row["buy_rate"], row["events"]) == ("Renamed 新", "1.00", "paid,completed,cancelled")
    assert (api.buy(channel=4, paychannel_paymethod="alipay").code, api.buy(channel=1).code) == (1, 40403)
    before = audited()
    assert before[-1] == (
        "demo set merchant merchant demo name: Demo Shop 演示商户 -> Renamed 新; events: - -> paid; "
        "buy_rate: 0.60 -> 1; channels: 1,2,3 -> 2,4"
    )
    assert (fill("merchant/demo").status_code, audited()) == (303, before), "unchanged values are not recorded"
    fill("merchant/demo", events=["credited", "refunded"], enabled=False)
    row = next(row for row in flask_json("merchant", "list") if row["key"] == "demo")
    assert row["events"] == "credited,refunded,completed,cancelled"
    assert api.buy().code == 40101
    assert "disabled" in page("merchant/demo").text


@pytest.mark.parametrize(
    ("path", "theirs"),
    [
        ("merchant/demo", {"sell_rate": "2"}),
        ("merchant/demo", {"channels": ["1"]}),
        ("channel/2", {"auto_accept_max": "0"}),
        ("channel/3", {"config_account": "6222 0000"}),
    ],
)
def test_a_form_opened_before_another_users_change_does_not_undo_it(path, theirs, fill, stored, console, page, audited):
    stale = Page(page(path).html).form().fill({"name": "Renamed"})
    assert fill(path, **theirs).status_code == 303
    now = stored(path)
    assert "Someone else changed this in the meantime" in console.post(f"/console/{path}", data=stale).text
    assert stored(path) == now
    assert "not done: Someone else changed this in the meantime" in audited()[-1]
    assert fill(path, name="Renamed").status_code == 303


def test_a_new_api_secret_is_shown_once_and_the_old_one_stays_valid_for_some_time(
    fill, shown, http, api, ahead, everywhere
):
    answer = fill("merchant/demo", "/rotate/api", keep_hours="2")
    new = shown(answer)["secret"]
    assert "callback_secret" not in shown(answer)
    assert {Api(http, "demo", secret).call("getPayChannels").code for secret in (new, "demo-secret")} == {1}
    ahead(2 * 3_600 + 1)
    assert Api(http, "demo", "demo-secret").call("getPayChannels").code == 40102
    assert Api(http, "demo", new).call("getPayChannels").code == 1
    assert new not in everywhere("merchant/demo")


def test_a_new_callback_secret_signs_in_addition_to_the_old_one(fill, shown, api, shop, due):
    new = shown(fill("merchant/demo", "/rotate/callback"))["callback_secret"]
    api.play(api.buy().data["order_no"], "success")
    due.callbacks()
    (got,) = shop.got
    assert got.event["type"] == "order.completed"  # with the old one
    assert len(got.headers["Webhook-Signature"].split()) == 2
    assert new.startswith("whsec_")


def test_a_rotation_sent_twice_or_with_invalid_hours_replaces_the_secret_once_or_not(fill, api, console, shown, page):
    form = Page(page("merchant/demo").html).form("/rotate/api")
    for hours in ("", "-1", "721", "1.5", "１"):
        assert fill("merchant/demo", "/rotate/api", keep_hours=hours).status_code == 303
        assert "a number of hours from 0 to 720" in page("merchant/demo").text, hours
    assert api.buy().code == 1
    first, second = (console.post(form.action, data=form.sent) for _ in range(2))
    assert shown(first)["secret"]
    assert second.status_code == 303
    assert "This secret was replaced in the meantime" in page("merchant/demo").text


def test_a_key_in_a_callbacks_address_is_shown_to_operators_only_and_not_logged(
    fill, typed, page, viewer, audited, console, export
):
    assert fill("merchant/demo", callback_url="https://shop.example/hook?key=first-key").status_code == 303
    assert fill("merchant/demo", callback_url="https://shop.example/hook?key=other-key").status_code == 303
    assert audited()[-1].endswith(
        "callback_url: https://shop.example/hook?key=*** -> https://shop.example/hook?key=***"
    )
    assert typed("merchant/demo")["callback_url"] == "https://shop.example/hook?key=other-key"
    assert "shop.example/hook?key=***" in page("merchant/demo", client=viewer).text
    seen = [client.get(f"/console/{path}").text for client in (viewer, console) for path in ("merchants/", "audit/")]
    seen += [page("merchant/demo", client=viewer).html, export("merchants/export", viewer).text]
    assert not [text for text in seen if "other-key" in text or "first-key" in text]


ACCOUNT = {"real_name": "李四", "card_number": "6222999988887777", "bank": "New Bank"}


def test_withdrawals_are_paid_to_the_account_that_was_added_last(fill, wrong, console, api, page, everywhere):
    path = "merchant/demo/account"
    first = Page(page(path).html).form().fill(ACCOUNT)
    assert console.post(f"/console/{path}", data=first).status_code == 303
    assert "************7777 李* New Bank" in page("merchant/demo").text
    assert api.sell("10.00").data["payment_method_snapshot"]["card_number"] == "6222999988887777"
    assert "6222999988887777" not in everywhere("merchant/demo")
    current = "This account is already the current payout account."
    assert wrong(path, **ACCOUNT) == {"card_number": current}
    assert fill(path, **ACCOUNT | {"card_number": "6222000011112222"}).status_code == 303
    again = console.post(f"/console/{path}", data=first)
    assert "Another payout account was added in the meantime" in again.text
    assert api.sell("10.00").data["payment_method_snapshot"]["card_number"] == "6222000011112222"
    assert wrong(path, real_name="  ", card_number="62 2200") == {"real_name": "This field is required."}
    number = "A card or account number has 6 to 40 letters, digits, @ . _ or -."
    assert wrong(path, real_name="李四", card_number="62 2200") == {"card_number": number}


def test_a_test_callback_is_signed_like_real_ones_and_not_stored(fill, shop, flask_json, audited):
    shop.answers(202, "<b>thank you</b>")
    page = fill("merchant/demo", "/test").text
    (got,) = shop.got
    assert got.event["type"] == "test"
    assert (got.event["data"]["order_no"], got.event["data"]["merchant_order_no"]) == ("0" * 24, "TEST")
    assert set(got.event["data"]) == set(order_view.fields)
    for text in ("Delivered.", "202", "&lt;b&gt;thank you&lt;/b&gt;"):
        assert text in page
    assert flask_json("callback", "list") == []
    assert audited()[-1].startswith("demo test callback merchant demo")
    said = flask_json("merchant", "test-callback", "demo")
    assert (said["delivered"], said["status"], said["answer"]) == (True, 202, "<b>thank you</b>")
    assert shop.got[1].webhook_id == said["id"]


def test_a_failed_test_callback_is_explained_in_plain_words(fill, flask, shop):
    for status, headers, words in (
        (500, {}, "The server failed to process the callback"),
        (503, {}, "The server failed to process the callback"),
        (302, {"Location": "/elsewhere"}, "Redirects are not followed"),
        (401, {}, "Check that it uses this merchant&#39;s callback secret"),
        (404, {}, "Check the path of the address"),
        (410, {}, "A real callback would not be retried"),
        (418, {}, "rejected the callback"),
    ):
        shop.answers(status, "no", headers)
        page = fill("merchant/demo", "/test").text
        assert ("Not delivered." in page, words in page, str(status) in page) == (True, True, True), status
    assert len(shop.got) == 7
    shop.answers(500)
    assert "The server failed to process the callback" in flask("merchant", "test-callback", "demo", fails=True).output


def test_a_late_server_an_unreachable_one_and_none_are_distinguished(fill, send, page, flask, shop, monkeypatch):
    monkeypatch.setattr(delivery, "TIMEOUT", 1.0)
    shop.answer = lambda request: time.sleep(2) or Response("late")
    assert "did not respond within" in fill("merchant/demo", "/test").text
    flask("merchant", "set", "demo", "--callback-url", f"http://127.0.0.1:{free_port()}/hook")
    assert "Connection failed" in fill("merchant/demo", "/test").text
    fill("merchant/demo", callback_url="")
    assert "The merchant receives no callbacks" in page("merchant/demo").text
    assert send("merchant/demo/test").status_code == 303
    assert "demo has no callback URL" in page("merchant/demo").text


def test_a_balance_is_adjusted_after_a_confirmation(fill, console, balances, audited):
    before = balances()[0]
    asked = fill("merchant/demo/adjust", amount="-1,012.50", reason="a fee <b>of</b> the bank", channel="1")
    assert balances()[0] == before
    assert ("-1,012.50" in asked.text, "8,987.50" in asked.text, "<b>of</b>" in asked.text) == (True, True, False)
    form = Page(asked.text).form()
    first, second = (console.post("/console/merchant/demo/adjust", data=form.sent) for _ in range(2))
    assert (first.status_code, second.status_code, balances()[0]) == (303, 422, before - 101_250)
    assert "The same adjustment was just made" in second.text
    assert audited()[-2].endswith("merchant demo amount: -1,012.50; channel: 1; a fee <b>of</b> the bank")
    assert "not done" in audited()[-1]


@pytest.mark.parametrize("step", ["asked", "confirmed"])
def test_an_adjustment_sent_again_much_later_is_not_repeated(fill, console, page, balances, ahead, step):
    asking = Page(page("merchant/demo/adjust").html).form().fill({"amount": "5.00", "reason": "a gift"})
    confirming = Page(console.post("/console/merchant/demo/adjust", data=asking).text).form().sent
    assert console.post("/console/merchant/demo/adjust", data=confirming).status_code == 303
    before = balances()
    ahead(3_000)
    again = console.post("/console/merchant/demo/adjust", data={"asked": asking, "confirmed": confirming}[step])
    assert "was adjusted in the meantime" in again.text
    assert "Confirm adjustment" not in again.text
    assert balances() == before
    assert "Confirm adjustment" in fill("merchant/demo/adjust", amount="5.00", reason="a gift").text


def test_an_impossible_adjustment_is_reported_at_its_field(wrong, balances):
    before = balances()
    for field, value, words in (
        ("amount", "-10000.01", "The available balance is too low."),
        ("amount", "0", "Must be greater than 0."),
        ("amount", "1.005", "Must have at most two decimals."),
        ("amount", "1e99", "Is too large."),
        ("amount", "12,50", "Must be a decimal number."),
        ("reason", " ", "This field is required."),
        ("channel", "99", "Not a valid choice."),
    ):
        given = {"amount": "1", "reason": "a gift"} | {field: value}
        assert (wrong("merchant/demo/adjust", **given), balances()) == ({field: words}, before)


def test_an_adjustment_may_name_its_order_which_then_shows_it(fill, console, page, wrong, api, other, audited):
    order_no, foreign = completed(api), other.buy().data["order_no"]
    for number, words in ((foreign, "This order is of another merchant."), ("77", "No order has this number.")):
        given = {"amount": "-5.00", "reason": "complaint", "order_no": number}
        assert wrong("merchant/demo/adjust", **given) == {"order_no": words}
    assert page(f"merchant/demo/adjust?order_no={order_no}").fields["order_no"] == order_no
    asked = fill("merchant/demo/adjust", amount="-5.00", reason="complaint", order_no=f" {order_no} ")
    assert order_no in asked.text
    answer = console.post("/console/merchant/demo/adjust", data=Page(asked.text).form().sent)
    assert (answer.status_code, answer.location) == (303, f"/console/order/{order_no}")
    assert "Balance adjusted by -¥5.00." in console.get(answer.location).text
    assert audited()[-1].endswith(f"amount: -5.00; channel: -; order: {order_no}; complaint")
    assert "Adjustment" in page(f"order/{order_no}").html
    rows = page(f"entries/?flt_purpose=adjustment&flt_order={order_no}").rows
    assert [row["Order number"] for row in rows] == [order_no] * 2
    assert {row["Purpose"] for row in rows} == {"Adjustment complaint"}


def test_a_viewer_sees_a_merchant_without_forms_and_its_name_is_escaped(fill, page, viewer):
    shown = page("merchant/demo", client=viewer)
    assert "Demo Shop" in shown.html
    read_only = ("/console/logout", "/console/search/", "/console/statements/")
    actions = [form.action for form in Page(shown.html).forms if form.action]
    assert [each for each in actions if not each.startswith(read_only)] == []
    fill("merchant/demo", name=HOSTILE)
    for path in ("merchant/demo", "merchant/demo/adjust", "merchant/demo/account", "channel/2"):
        shown = page(path)
        assert shown.tags.count("script") == shown.html.count("<script src=")  # the console's own


def test_a_merchants_page_lists_the_steps_to_its_first_order(fill, page, shop):
    fill("merchant/new", key="fresh", name="Fresh", channels=[])

    def done():
        steps = page("merchant/fresh").html.partition('id="steps"')[2].partition("</section>")[0]
        return steps.count('<li class="done">'), steps.count('<li class="open">')

    assert done() == (1, 1)
    fill("merchant/fresh", callback_url=shop.url)
    assert done() == (2, 1)
    fill("merchant/fresh", channels=["2"])
    assert done() == (3, 1)
    fill("merchant/fresh", "/test")
    assert done() == (4, 1)
    shown = page("merchant/fresh").text
    assert ("New payment link" in shown, "Connect the merchant" in shown) == (True, True)
    fill("new-order/?merchant=fresh", amount="1.00", way="2:wxpay")
    assert "Connect the merchant" not in page("merchant/fresh").text


def test_a_shop_with_an_epay_plug_in_needs_no_callback_url_for_its_first_order(fill, page):
    fill("merchant/new", key="plugin", name="Plug-in", epay=True, hosts="shop.example")
    steps = page("merchant/plugin").html.partition('id="steps"')[2].partition("</section>")[0]
    assert (steps.count('<li class="done">'), steps.count('<li class="open">')) == (4, 1)
