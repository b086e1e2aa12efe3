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


def test_the_merchants_page_links_the_settings(page, fill):
    shown = page("merchant/demo")
    assert "No return address. Payers stay on the payment page." in shown.text
    assert shown.links["Set up the payment page"] == f"/console/{PAGE}"
    fill(PAGE, **SETTINGS)
    assert f"Payers return to {SETTINGS['return_url']}" in page("merchant/demo").text


def test_settings_are_saved_recorded_and_shown_again(fill, settings, typed, audited, page):
    assert fill(PAGE, **SETTINGS | {"color": "#1677FF"}).status_code == 303
    assert settings() == {"key": "demo", "logo_type": "", **SETTINGS}
    assert {name: typed(PAGE)[name] for name in SETTINGS} == SETTINGS
    assert audited()[-1] == (
        "demo set payment page merchant demo return_url: - -> https://shop.example/orders/{merchant_order_no}; "
        "new_order_url: - -> https://shop.example/again; contact: - -> 400-800-1000; color: - -> #1677ff"
    )
    assert "changed the payment page of" in page("audit/").text
    fill(PAGE, **dict.fromkeys(SETTINGS, ""))
    assert settings()["return_url"] == ""


def test_saving_without_a_change_records_nothing(fill, audited, console):
    fill(PAGE, **SETTINGS)
    before = audited()
    answer = fill(PAGE)
    assert "No changes." in console.get(answer.headers["Location"]).text
    assert audited() == before


@pytest.mark.parametrize("field", ["return_url", "new_order_url"])
@pytest.mark.parametrize("address", BAD)
def test_an_invalid_address_is_reported_at_its_field_and_not_recorded(wrong, audited, settings, field, address):
    assert list(wrong(PAGE, **{field: address})) == [field]
    assert not [line for line in audited() if "payment page" in line]
    assert settings()[field] == ""


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("color", "red", "Must be a color such as #1677ff."),
        ("contact", "x" * 101, "Must have at most 100 characters."),
        ("return_url", "https://shop.example/{amount}", "Only {order_no} and {merchant_order_no} are filled in."),
    ],
)
def test_an_invalid_value_is_reported_with_its_reason_in_both_languages(wrong, console, field, value, text):
    assert wrong(PAGE, **{field: value}) == {field: text}
    console.set_cookie("console_language", "zh", path="/console")
    (said,) = wrong(PAGE, **{field: value}).values()
    assert said != text


def test_a_form_older_than_the_settings_does_not_overwrite_them(console, fill, settings):
    stale = Page(console.get(f"/console/{PAGE}").text).form().fill({"contact": "stale"})
    fill(PAGE, contact="first")
    assert "Someone else changed this in the meantime" in console.post(f"/console/{PAGE}", data=stale).text
    stale = Page(console.get(f"/console/{PAGE}").text).form().fill({"contact": "stale"})
    fill(PAGE, contact="second")
    assert "Someone else changed this in the meantime" in console.post(f"/console/{PAGE}", data=stale).text
    assert settings()["contact"] == "second"


def test_a_logo_is_uploaded_replaced_and_removed(upload, fill, console, page, settings, audited):
    assert "No image." not in page(PAGE).text
    assert "Saved. The payment page shows the logo." in upload(png())
    first = Page(console.get(f"/console/{PAGE}").text)
    (address,) = {form.action for form in first.forms if form.action.endswith("remove")}
    image = console.get(address.removesuffix("/remove"))
    assert (image.status_code, image.headers["Content-Type"], image.data) == (200, "image/png", png())
    assert image.headers["X-Content-Type-Options"] == "nosniff"
    assert "Replace image" in upload(png(more=b"other"))
    assert console.get(address.removesuffix("/remove")).data == png(more=b"other")
    fill(PAGE, "/remove")
    assert settings()["logo_type"] == ""
    assert console.get(address.removesuffix("/remove")).status_code == 404
    assert [line for line in audited() if "logo" in line] == [
        *["demo set logo merchant demo "] * 2,
        "demo remove logo merchant demo ",
    ]


def test_a_logo_of_100_kb_is_stored_and_a_larger_one_refused(upload, settings):
    assert "Saved." in upload(png(more=bytes(100 * 1024 - 24)))
    assert "larger than 100 KB" in upload(png(more=bytes(100 * 1024 - 23)))
    assert "not a PNG, JPEG or WebP image" in upload(b"<svg/>")
    assert "The file is empty." in upload(b"")


def test_the_logo_and_the_other_settings_are_independent(upload, fill, settings):
    upload(png())
    fill(PAGE, contact="me")
    upload(png(more=b"2"))
    assert (settings()["contact"], settings()["logo_type"]) == ("me", "image/png")


def test_the_page_links_previews_that_stay_and_shows_where_a_payer_returns(page, fill, api):
    assert "The merchant has no deposit yet." in page(PAGE).text
    fill(PAGE, **SETTINGS)
    paid, waiting = (api.buy().data["order_no"] for _ in range(2))
    api.play(paid, "success")
    shown = page(PAGE)
    assert "A payer returns to: https://shop.example/orders/A-1001" in shown.text
    assert shown.links["Payment page of the newest open deposit"].endswith(f"{waiting}&stay=1")
    assert shown.links["Payment page of the newest completed deposit"].endswith(f"{paid}&stay=1")


def test_only_administrators_change_it(viewer, send, console, page):
    for path in (PAGE, f"{PAGE}/logo/upload", f"{PAGE}/logo/remove"):
        assert send(path, client=viewer).status_code == 403
    shown = Page(viewer.get(f"/console/{PAGE}").text)
    assert [form for form in shown.forms if form.action.startswith(f"/console/{PAGE}")] == []
    assert "Save" not in page(PAGE, client=viewer).text.split("Return address")[1]


@pytest.mark.parametrize("path", ["merchant/none/page", "merchant/none/page/logo", "merchant/demo/page/logo"])
def test_other_pages_do_not_exist(path, page):
    page(path, status=404)
