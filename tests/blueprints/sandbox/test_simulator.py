"""The simulator's page: open orders, with a form for each possible action; no script needed."""

import re

import pytest

from runtime import clock
from tests.support import completed, signed_text, words

FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html"}


@pytest.fixture(autouse=True)
def _the_machines_time_again():
    yield
    clock.put_ahead(0)


@pytest.fixture
def page(http):
    return lambda: http("GET", "/sandbox")


@pytest.fixture
def press(http):
    """`press(path, form)`: a button of the page, which redirects back to it."""

    def post(path, form):
        answer = http("POST", f"/sandbox/{path}", form.encode(), FORM)
        assert (answer.status, answer.headers["Location"]) == (303, "/sandbox")

    return post


def test_open_orders_are_listed_until_they_end_on_a_page_without_script(api, page):
    answer = page()
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "no-store" in answer.headers["Cache-Control"]
    assert "<script" not in answer.text
    done, under_way = completed(api), api.buy().data["order_no"]
    by_hand = api.buy(channel=3).data["order_no"]
    text = page().text
    assert f'name="order_no" value="{under_way}"' in text
    assert done not in text
    assert by_hand not in text
    assert len(re.findall("<option", text.partition(under_way)[2].partition("</form>")[0])) == 7 + 6


def test_an_order_is_paid_or_approved_by_its_form(api, http, page, press):
    deposit, withdrawal = api.buy().data["order_no"], api.sell("10.00").data["order_no"]
    press("pay", f"order_no={deposit}&outcome=success&after=0&from=simulator")
    assert api.status(deposit) == "completed"
    press("pay", f"order_no={withdrawal}&outcome=fail&after=0&from=simulator")
    press("accept", f"order_no={withdrawal}")
    assert api.status(withdrawal) == "confirmed"
    assert "/sandbox/accept" not in page().text
    manual = api.sell("10.00", channel=3).data["order_no"]
    assert http("POST", "/sandbox/accept", f"order_no={manual}".encode(), FORM).code == 42200
    assert api.status(manual) == "pending"


def test_the_clock_is_moved_and_a_channel_behaves_as_chosen_in_their_forms(api, page, press):
    press("clock", "seconds=3600")
    assert "3600 seconds ahead of this machine" in page().text
    press("channel", "channel=2&open=refuse&payout=fail")
    assert api.buy().code == 50201
    assert re.findall(r"<option selected>(\w+)", page().text)[2:4] == ["refuse", "fail"]


def test_callbacks_are_sent_to_the_forms_address_or_to_the_inbox_if_it_is_empty(page, press, flask_json, http):
    def shown_inbox():
        return words(re.sub("<[^>]*>", "", http("GET", "/sandbox/inbox").text))

    press("merchant", "key=demo&callback_url=http://127.0.0.1:9000/hook")
    assert 'value="http://127.0.0.1:9000/hook"' in page().text
    assert "Callbacks of demo are sent to a different URL: http://127.0.0.1:9000/hook" in shown_inbox()
    assert flask_json("merchant", "show", "demo")["callback_url"] == "http://127.0.0.1:9000/hook"
    press("merchant", "key=demo&callback_url=")
    assert "http://127.0.0.1:9000/hook" not in page().text
    assert "are sent to a different URL" not in shown_inbox()
    assert flask_json("merchant", "show", "demo")["callback_url"] == "/sandbox/inbox"


def test_an_invalid_address_is_reported_on_the_page(http):
    form = b"key=demo&callback_url=shop.example"
    answer = http("POST", "/sandbox/merchant", form, FORM)
    assert answer.status == 422
    assert "Enter a URL, such as https://shop.example/paid." in answer.text
    assert http("POST", "/sandbox/merchant", form, FORM | {"Accept": "application/json"}).json["data"] == {
        "callback_url": ["Enter a URL, such as https://shop.example/paid."]
    }


PAGES = ("/", "/sandbox", "/sandbox/inbox", "/sandbox/sign", "/docs")


def test_each_page_of_the_demo_leads_to_the_others(http):
    for path in PAGES:
        links = re.search("<nav class=.bar.*?</nav>", http("GET", path).text, re.DOTALL)[0]
        assert re.findall('href="([^"]+)"', links) == [*PAGES, "/console/"]
        assert re.findall('href="([^"]+)" aria-current="page"', links) == [path]


@pytest.mark.parametrize("settings_of_app", [{"demo": False, "site_url": "https://pay.example.com"}])
def test_nothing_links_to_them_outside_demo_mode(http):
    assert 'href="/sandbox' not in http("GET", "/docs").text


def test_a_real_merchants_callback_address_is_not_shown_here(http, flask, page):
    flask("merchant", "add", "shop", "--callback-url", "https://shop.example/callbacks")
    assert 'value="demo"' in page().text
    assert "shop" not in page().text
    assert http("POST", "/sandbox/merchant", b"key=shop&callback_url=/sandbox/inbox", FORM).code == 40404
    assert "https://shop.example/callbacks" in flask("merchant", "show", "shop").output


def test_a_request_with_a_very_long_number_still_gets_a_response(api):
    number = "9" * 5_000
    text = signed_text("createOrder", f'"order_type": 1, "cny_amount": {number}')
    assert api.post("createOrder", text).code == 42200


def test_a_script_reads_an_orders_state_and_the_balances(api, http):
    late = api.buy("7.00").data["order_no"]
    paid = completed(api)
    http("POST", "/sandbox/pay", f"order_no={late}&outcome=late".encode(), FORM)
    seen = http("GET", f"/sandbox/orders/{late}").data
    callback = seen["callbacks"].pop("order.cancelled")
    assert seen == {"order_no": late, "status": "cancelled", "exceptions": ["late_payment"], "callbacks": {}}
    assert (callback["state"], callback["attempts"]) == ("pending", 0)
    assert list(http("GET", f"/sandbox/orders/{paid}").data["callbacks"]) == ["order.completed"]
    balances = http("GET", "/sandbox/balances").data
    assert {"demo", "other"} <= set(balances)
    assert set(balances["demo"]) == {"available", "held"}
