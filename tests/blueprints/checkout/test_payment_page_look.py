"""The merchant's settings on the payment page, and the ways from the page to the shop."""

import re

import pytest

from tests.blueprints.console.setting_up.test_pictures import jpeg, png
from tests.pages import BACK, CASHIER, LOGO, STATUS, Seen


@pytest.fixture
def page_of(flask):
    """`page_of(color="#123456")` changes the settings of the merchant `demo`."""

    def change(**settings):
        named = [(f"--{name.replace('_', '-')}", value) for name, value in settings.items()]
        flask("merchant", "page", "demo", *[part for pair in named for part in pair])

    return change


def test_the_merchants_color_has_a_readable_text_and_a_nonce_of_its_own(page_of, reach, visit):
    order_no = reach("pending")
    assert "nonce" not in visit(order_no).headers["Content-Security-Policy"]
    colors = {"#000000": "#fff", "#ffffff": "#000", "#07c160": "#000", "#b3261e": "#fff", "#ffdd00": "#000"}
    nonces = set()
    for color, text in colors.items():
        page_of(color=color)
        answer = visit(order_no)
        assert f":root {{ --brand: {color}; --on-brand: {text};" in answer.text
        nonce = re.search(r'<style nonce="([^"]{20,})">', answer.text)[1]
        nonces.add(nonce)
        assert f"style-src 'self' 'nonce-{nonce}';" in answer.headers["Content-Security-Policy"]
        assert "unsafe" not in answer.headers["Content-Security-Policy"]
    assert len(nonces) == len(colors)


def _luminance(color):
    shares = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in shares]
    return sum(part * share for part, share in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("color", ["#000000", "#ffffff", "#07c160", "#b3261e", "#ffdd00", "#1677ff", "#808080"])
def test_small_buttons_and_links_have_the_merchants_color_as_readable_text_in_both_schemes(
    color, page_of, reach, visit
):
    page_of(color=color)
    accents = re.findall(r"--accent: (#[0-9a-f]{6})", visit(reach("pending")).text)
    assert len(accents) == 2
    for accent, sheet in zip(accents, ("#ffffff", "#171b22"), strict=True):
        darker, lighter = sorted(map(_luminance, (accent, sheet)))
        assert (lighter + 0.05) / (darker + 0.05) >= 5.4, (accent, sheet)
    assert color in accents or color in ("#808080", "#1677ff")  # a color that is readable stays as it is


@pytest.mark.parametrize(("image", "kind"), [(png(), "image/png"), (jpeg(), "image/jpeg")])
def test_the_merchants_logo_is_on_the_page_and_cached_for_long(image, kind, page_of, reach, visit, app, tmp_path):
    (tmp_path / "logo").write_bytes(image)
    assert LOGO not in visit(reach("pending")).text
    page_of(logo=str(tmp_path / "logo"))
    (address,) = [each for each in Seen(visit(reach("pending")).text).addresses if each.startswith(LOGO)]
    served = app.test_client().get(address)
    assert (served.data, served.content_type) == (image, kind)
    assert "immutable" in served.headers["Cache-Control"]
    assert served.headers["X-Content-Type-Options"] == "nosniff"


def test_an_unknown_logo_is_not_found(http):
    for digest in ("0" * 16, "x", "%00", "..%2f..", "' OR 1=1"):
        assert http("GET", f"{LOGO}/{digest}").status == 404, digest


CAN_RETURN, CAN_ONLY_WAIT = ("confirmed", "completed"), ("pending", "paid")
HAS_FAILED, IS_CHECKED = ("expired", "cancelled", "refunded"), ("checking", "late")


@pytest.mark.parametrize("state", [*CAN_ONLY_WAIT, "completed", *HAS_FAILED, *IS_CHECKED])
def test_a_payer_who_did_not_succeed_reads_whom_to_contact_and_where_to_order_again(state, page_of, reach, visit):
    page_of(contact="WeChat: demo-shop", new_order_url="https://shop.example/again/{order_no}")
    order_no = reach(state)
    text = Seen(visit(order_no).text).text
    assert ("Questions? WeChat: demo-shop" in text) is (state in HAS_FAILED + IS_CHECKED)
    assert ("New order" in text) is (state in HAS_FAILED)
    assert f'href="https://shop.example/again/{order_no}"' in visit(order_no).text


def test_without_settings_the_page_offers_neither(page_of, reach, visit):
    page_of(contact="", new_order_url="", return_url="")
    for state in ("expired", "cancelled", "completed"):
        text = Seen(visit(reach(state)).text).text
        assert not re.search("Questions|New order|Back to", text)


@pytest.mark.parametrize("state", CAN_ONLY_WAIT + HAS_FAILED + IS_CHECKED)
def test_nobody_returns_before_the_payment_is_proven(state, page_of, reach, visit, http):
    page_of(return_url="https://shop.example/")
    order_no = reach(state)
    assert http("GET", f"{STATUS}?order_no={order_no}").data["can_return"] is False
    page = visit(order_no)
    assert "Back to" not in Seen(page.text).text
    assert "url=" not in page.text.partition("<body")[0]
    assert http("GET", f"{BACK}?order_no={order_no}").headers["Location"] == f"{CASHIER}?order_no={order_no}"


@pytest.mark.parametrize("state", CAN_RETURN)
def test_a_proven_payment_leads_back_by_a_button_and_without_script_after_three_seconds(state, page_of, reach, visit):
    page_of(return_url="https://shop.example/")
    order_no = reach(state)
    html = visit(order_no).text
    assert "Back to Demo Shop 演示商户 You return automatically in three seconds. Stay here" in Seen(html).text
    assert f'<noscript><meta http-equiv="refresh" content="3;url={BACK}?order_no={order_no}"></noscript>' in html
    (stay,) = re.findall(r'id="stay" href="[^"]*order_no=(\S+?)"', html)
    stays = visit(stay.replace("&amp;", "&"))
    assert "refresh" not in stays.text
    assert "You return automatically" not in Seen(stays.text).text
    assert "Back to Demo Shop" in Seen(stays.text).text
