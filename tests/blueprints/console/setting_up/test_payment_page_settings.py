"""A merchant's payment page in the console: its addresses, contact, color and logo."""

import pytest

from tests.blueprints.console.setting_up.filling import Page
from tests.cli.test_payment_page import BAD, png

PAGE = "merchant/demo/page"
SETTINGS = {
    "return_url": "https://shop.example/orders/{merchant_order_no}",
    "new_order_url": "https://shop.example/again",
    "contact": "400-800-1000",
    "color": "#1677ff",
}


@pytest.fixture
def settings(flask_json):
    """`settings()`: the merchant's settings, as the command shows them."""
    return lambda: flask_json("merchant", "page", "demo")


@pytest.fixture
def upload(fill, console):
    """`upload(content)`: the page after the upload of a logo."""

    def send(content, **how):
        answer = fill(PAGE, "/upload", logo=content, **how)
        return console.get(answer.headers["Location"]).text if answer.status_code == 303 else answer

    return send


def test_settings_are_saved_recorded_and_shown_again(fill, settings, typed, audited, page, console):
    merchant = page("merchant/demo")
    assert "No return address. Payers stay on the payment page." in merchant.text
    assert merchant.links["Set up the payment page"] == f"/console/{PAGE}"
    assert fill(PAGE, **SETTINGS | {"color": "#1677FF"}).status_code == 303
    assert f"Payers return to {SETTINGS['return_url']}" in page("merchant/demo").text
    assert settings() == {"key": "demo", "logo_type": "", **SETTINGS}
    assert {name: typed(PAGE)[name] for name in SETTINGS} == SETTINGS
    assert audited()[-1] == (
        "demo set payment page merchant demo return_url: - -> https://shop.example/orders/{merchant_order_no}; "
        "new_order_url: - -> https://shop.example/again; contact: - -> 400-800-1000; color: - -> #1677ff"
    )
    assert "changed the payment page of" in page("audit/").text
    before, answer = audited(), fill(PAGE)
    assert ("No changes." in console.get(answer.headers["Location"]).text, audited()) == (True, before)
    fill(PAGE, **dict.fromkeys(SETTINGS, ""))
    assert settings()["return_url"] == ""


@pytest.mark.parametrize("field", ["return_url", "new_order_url"])
def test_an_invalid_address_is_reported_at_its_field_and_not_recorded(wrong, audited, settings, field):
    for address in BAD:
        assert list(wrong(PAGE, **{field: address})) == [field], address
    assert not [line for line in audited() if "payment page" in line]
    assert settings()[field] == ""


def test_an_invalid_value_is_reported_with_its_reason_in_both_languages(wrong, console):
    reasons = {}
    for field, value, text in (
        ("color", "red", "Must be a color such as #1677ff."),
        ("contact", "x" * 101, "Must have at most 100 characters."),
        ("return_url", "https://shop.example/{amount}", "Only {order_no} and {merchant_order_no} are filled in."),
    ):
        assert wrong(PAGE, **{field: value}) == {field: text}
        reasons[field] = (value, text)
    console.set_cookie("console_language", "zh", path="/console")
    for field, (value, text) in reasons.items():
        assert wrong(PAGE, **{field: value})[field] != text


def test_a_form_older_than_the_settings_does_not_overwrite_them(console, page, fill, settings):
    for contact in ("first", "second"):
        stale = Page(page(PAGE).html).form().fill({"contact": "stale"})
        fill(PAGE, contact=contact)
        assert "Someone else changed this in the meantime" in console.post(f"/console/{PAGE}", data=stale).text
        assert settings()["contact"] == contact


def test_a_logo_is_uploaded_replaced_and_removed(upload, fill, console, page, settings, audited):
    assert "No image." not in page(PAGE).text
    fill(PAGE, contact="me")
    assert "Saved. The payment page shows the logo." in upload(png())
    assert (settings()["contact"], settings()["logo_type"]) == ("me", "image/png"), "they are independent"
    (address,) = {form.action for form in Page(page(PAGE).html).forms if form.action.endswith("remove")}
    address = address.removesuffix("/remove")
    image = console.get(address)
    assert (image.status_code, image.headers["Content-Type"], image.data) == (200, "image/png", png())
    assert image.headers["X-Content-Type-Options"] == "nosniff"
    fill(PAGE, contact="you")
    assert "Replace image" in upload(png(more=b"other"))
    assert (console.get(address).data, settings()["contact"]) == (png(more=b"other"), "you")
    fill(PAGE, "/remove")
    assert (settings()["logo_type"], console.get(address).status_code) == ("", 404)
    assert [line for line in audited() if "logo" in line] == [
        *["demo set logo merchant demo "] * 2,
        "demo remove logo merchant demo ",
    ]
    for path in ("merchant/none/page", "merchant/none/page/logo"):
        page(path, status=404)


def test_a_logo_of_100_kb_is_stored_and_a_larger_one_refused(upload, settings):
    assert "Saved." in upload(png(more=bytes(100 * 1024 - 24)))
    assert "larger than 100 KB" in upload(png(more=bytes(100 * 1024 - 23)))
    assert "not a PNG, JPEG or WebP image" in upload(b"<svg/>")
    assert "The file is empty." in upload(b"")


def test_the_page_links_previews_that_stay_and_shows_where_a_payer_returns(page, fill, api):
    assert "The merchant has no deposit yet." in page(PAGE).text
    fill(PAGE, **SETTINGS)
    paid, waiting = (api.buy().data["order_no"] for _ in range(2))
    api.play(paid, "success")
    shown = page(PAGE)
    assert "A payer returns to: https://shop.example/orders/A-1001" in shown.text
    assert shown.links["Payment page of the newest open deposit"].endswith(f"{waiting}&stay=1")
    assert shown.links["Payment page of the newest completed deposit"].endswith(f"{paid}&stay=1")


def test_a_viewer_sees_the_settings_without_forms(viewer, page):
    shown = page(PAGE, client=viewer)
    assert [form for form in Page(shown.html).forms if form.action.startswith(f"/console/{PAGE}")] == []
    assert "Save" not in shown.text.split("Return address")[1]
