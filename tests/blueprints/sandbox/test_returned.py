"""The demo shop's page to which payers return: it verifies the fields and says why it does not trust them."""

from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from tests.pages import BACK, Seen

pytestmark = pytest.mark.usefixtures("demo")
JSON = {"Accept": "application/json"}


@pytest.fixture
def returned(api, http):
    """The fields with which the payer of a new order returns to the demo shop."""
    order_no = api.buy(merchant_order_no="A-1").data["order_no"]
    api.play(order_no, "success")
    location = urlsplit(http("GET", f"{BACK}?order_no={order_no}").headers["Location"])
    assert location.path == "/sandbox/return"
    return dict(parse_qsl(location.query))


@pytest.fixture
def shop(http):
    """`shop(fields)`: the response of the shop's page."""
    return lambda fields, headers=None: http("GET", f"/sandbox/return?{urlencode(fields)}", headers=headers or {})


def test_the_payer_of_a_demo_order_returns_with_a_valid_signature(returned, shop):
    page = shop(returned)
    seen = Seen(page.text)
    assert page.status == 200
    assert "Signature valid" in seen.text
    assert all(value in seen.text for value in returned.values())
    assert f"/sandbox/inbox?order_no={returned['order_no']}" in seen.addresses
    assert shop(returned, JSON).data == {"verified": True, "why": "", **returned}


def test_a_changed_field_is_shown_with_the_reason(returned, shop):
    forged = "No signature matches the merchant's callback secret and these fields."
    for changed, why in (
        ({"status": "confirmed"}, forged),
        ({"merchant_order_no": "B-1"}, forged),
        ({"order_no": "1"}, "Order not found, so its merchant and secret are unknown."),
        ({"timestamp": "1"}, "timestamp differs from this machine's clock by more than 300 seconds."),
        ({"timestamp": "soon"}, "timestamp must be a whole number of seconds."),
    ):
        page = Seen(shop(returned | changed).text)
        assert "Signature invalid" in page.text
        assert why in page.text
        assert shop(returned | changed, JSON).data["verified"] is False


def test_without_its_fields_the_page_says_which_are_missing(shop, returned):
    del returned["status"]
    for fields in ({}, returned):
        page = Seen(shop(fields).text)
        assert "A field is missing: order_no, merchant_order_no, status, timestamp or signature." in page.text
        assert "Signature valid" not in page.text


def test_the_page_shows_what_a_payer_changed_as_text(returned, shop):
    page = shop(returned | {"status": "<script>alert(1)</script>"})
    assert "<script" not in page.text
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
