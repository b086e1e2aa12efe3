"""`tillbook merchant page`: a merchant's settings of the payment page, as an operator uses them."""

import struct

import pytest

from services.merchants import cache
from tests.databases import raw

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
EMPTY = {"key": "demo", "return_url": "", "new_order_url": "", "contact": "", "color": "", "logo_type": ""}
WEBP = {
    "lossy": b"VP8 " + bytes(7) + b"\x9d\x01\x2a" + struct.pack("<HH", 300, 400),
    "lossless": b"VP8L" + bytes(4) + b"\x2f" + struct.pack("<I", 299 | 399 << 14),
    "extended": b"VP8X" + bytes(8) + struct.pack("<HBHB", 299, 0, 399, 0),
}


def png(width=64, height=32, more=b"x"):
    return PNG + struct.pack(">II", width, height) + more


def webp(kind):
    return b"RIFF" + bytes(4) + b"WEBP" + WEBP[kind]


@pytest.fixture
def page(flask_json):
    """`page("--contact", "...")`: the settings of the merchant `demo` after a change."""
    return lambda *options: flask_json("merchant", "page", "demo", *options)


@pytest.fixture
def upload(page, tmp_path):
    """`upload(content)`: the settings after a file was given as logo."""

    def give(content):
        (tmp_path / "logo").write_bytes(content)
        return page("--logo", tmp_path / "logo")

    return give


@pytest.fixture
def refusal(flask):
    """`refusal("--color", "red")`: the message of a refused change."""
    return lambda *options: flask("merchant", "page", "demo", *options, fails=True).output


def test_settings_are_changed_one_by_one_and_emptied(page):
    assert page() == EMPTY
    page("--return-url", "https://shop.example/orders/{merchant_order_no}", "--contact", "微信 shop-help")
    page("--new-order-url", " https://shop.example/again?old={order_no}#pay ", "--color", "#1677FF", "--contact", "")
    assert page() == EMPTY | {
        "return_url": "https://shop.example/orders/{merchant_order_no}",
        "new_order_url": "https://shop.example/again?old={order_no}#pay",
        "color": "#1677ff",
    }


GOOD = [
    "https://shop.example",
    "https://shop.example:8443/{order_no}/{merchant_order_no}?a=%20b#/done/{order_no}",
    "https://xn--czrs0t.example/",
    "http://127.0.0.1:8080/back",
    "http://192.168.1.20/back",
    "http://[::1]/back",
    "http://localhost/back",
    "/sandbox/return?x={order_no}",
]
BAD = [
    "shop.example",
    "ftp://shop.example/",
    "javascript:alert(1)",
    "//evil.example/",
    "/\\evil.example/",
    "/{merchant_order_no}/evil.example",
    "https:///path",
    "http://shop.example/",
    "https://user@shop.example/",
    "https://evil.example\\.shop.example/",
    "https://shop.example\\@evil.example/",
    "https://{order_no}.example/",
    "https://[::{order_no}]/",
    "https://shop.example:{order_no}/",
    "https://{order_no}/1",
    "https://{order_no}.example/?1.example",
    "{order_no}://shop.example/",
    "https://shop.example/{amount}",
    "https://shop.example/{order_no",
    "https://shop.example/a b",
    "https://shop.example/\r\nSet-Cookie: a=b",
    "https://shop.example/%zz",
    "https://shop.example:0/",
    "https://shop.example:99999/",
    "https://[::1/",
    "https://[::1]evil.example/",
    "http://shop.example[::1]/",
    f"https://shop.example/{'a' * 1000}",
]


@pytest.mark.parametrize("option", ["--return-url", "--new-order-url"])
def test_payers_are_sent_to_an_address_of_the_shop_only(page, refusal, option):
    name = option.strip("-").replace("-", "_")
    for address in BAD:
        assert f"{name}: " in refusal(option, address), address
    assert page() == EMPTY
    for address in GOOD:
        assert page(option, address)[name] == address


def test_a_bad_value_is_refused_with_its_reason(page, refusal):
    for options, text in (
        (("--return-url", "shop.example"), "such as https://shop.example/orders/{merchant_order_no}."),
        (("--color", "red"), "color: Must be a color such as #1677ff."),
        (("--contact", "two\nlines"), "contact: Must be one line of text."),
        (("--contact", "x" * 101), "contact: Must have at most 100 characters."),
    ):
        assert text in refusal(*options)
    assert page() == EMPTY


def test_a_logo_is_stored_until_it_is_removed(upload, page):
    for content, kind in ((png(), "image/png"), *((webp(kind), "image/webp") for kind in WEBP)):
        assert upload(content)["logo_type"] == kind
        assert page("--contact", "me")["logo_type"] == kind
        assert page("--no-logo")["logo_type"] == ""


def test_a_file_that_is_no_logo_is_refused(upload, page, tmp_path, refusal):
    upload(png())
    for content, text in (
        (b"<svg/>", "not a PNG, JPEG or WebP image"),
        (b"RIFF1234WEBP", "not a PNG, JPEG or WebP image"),
        (webp("lossy")[:20], "not a PNG, JPEG or WebP image"),
        (webp("lossless").replace(b"\x2f", b"\x30"), "not a PNG, JPEG or WebP image"),
        (png(more=bytes(100 * 1024)), "The file is larger than 100 KB."),
        (png(15), "The image has 15 × 32 pixels. Each side must have 16 to 2000."),
    ):
        (tmp_path / "other").write_bytes(content)
        assert text in refusal("--logo", tmp_path / "other"), content[:30]
    assert page()["logo_type"] == "image/png"


def test_every_request_sees_the_settings_without_the_logos_content(page, upload):
    assert cache.by_id(1).page.contact == ""
    upload(png())
    page("--contact", "400-800-1000")
    seen = cache.by_id(1).page
    assert (seen.contact, seen.logo_type, len(seen.logo_digest), seen.logo) == ("400-800-1000", "image/png", 16, None)
    assert cache.by_id(2).page.contact == ""


def test_another_process_changes_the_settings(page, monkeypatch, instance, app):
    monkeypatch.setattr(cache, "FRESH", -1)
    page("--contact", "before")
    assert cache.by_id(1).page.contact == "before"
    with raw(instance) as other:
        other.execute("UPDATE payment_page SET contact = 'after' WHERE merchant_id = 1")
    assert cache.by_id(1).page.contact == "after"
