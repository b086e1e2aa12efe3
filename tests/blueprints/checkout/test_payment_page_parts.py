"""Parts of the payment page: the code to save, the lines of a transfer, other wallets' browsers, language, size."""

import base64
import itertools
import re

import pytest

from tests.pages import CASHIER, LANGUAGE, QR_IMAGE, Seen

PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148"
ANDROID = "Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 Chrome/120 Mobile Safari/537.36"
WECHAT, ALIPAY, QQ = f"{PHONE} MicroMessenger/8.0", f"{PHONE} AlipayClient/10.5", f"{PHONE} QQ/9.0"
MOST_BYTES = 30_000  # of the page with its styles and scripts, without compression


@pytest.fixture
def visit_from(http):
    """`visit_from(agent, order_no)`: the page in a browser of this kind."""
    return lambda agent, order_no: http(
        "GET", f"{CASHIER}?order_no={order_no}", headers={"User-Agent": agent, "Accept-Language": "en"}
    )


def copied(html):
    """What the page's buttons copy, by their labels."""
    buttons = re.findall(r'data-copy="([^"]*)"[^>]*?(?:aria-label="Copy: ([^"]*)")?>([^<]*)<', html)
    return {label or text: value for value, label, text in buttons}


def test_the_shown_code_is_the_image_that_is_saved(app, api, visit):
    order_no = api.buy().data["order_no"]
    saved = app.test_client().get(f"{QR_IMAGE}?order_no={order_no}&save=1")
    assert saved.headers["Content-Type"] == "image/png"
    assert saved.headers["Content-Disposition"] == f'attachment; filename="{order_no}.png"'
    (shown,) = re.findall(r'src="data:image/png;base64,([^"]+)"', visit(order_no).text)
    assert base64.b64decode(shown) == saved.data
    assert f"{QR_IMAGE}?order_no={order_no}&amp;save=1" in visit(order_no).text


def test_an_order_that_must_not_be_paid_has_no_code_to_save(reach, http):
    for state in ("paid", "completed", "cancelled", "late"):
        assert http("GET", f"{QR_IMAGE}?order_no={reach(state)}&save=1").code == 40401, state


def test_the_code_is_saved_by_a_download_or_by_pressing_as_the_browser_can(api, visit_from):
    order_no = api.buy().data["order_no"]
    can = {ANDROID: (True, False), PHONE: (True, True), WECHAT: (False, True), ALIPAY: (False, True)}
    for agent, expected in can.items():
        text = Seen(visit_from(agent, order_no).text).text
        shown = ("Save image" in text, "Press and hold the code to save it to your photos." in text)
        assert shown == expected, agent


def test_in_a_competitors_app_the_page_first_says_how_to_leave_it(api, visit_from):
    foreign = [("alipay", WECHAT, "WeChat"), ("alipay", QQ, "QQ"), ("wxpay", ALIPAY, "Alipay"), ("wxpay", QQ, "QQ")]
    own = [("wxpay", WECHAT, ""), ("alipay", ALIPAY, ""), ("alipay", PHONE, ""), ("bank", WECHAT, "")]
    for method, agent, named in foreign + own:
        placed = api.buy(paychannel_paymethod=method).data
        html = visit_from(agent, placed["order_no"]).text
        page = Seen(html)
        assert ("Open this page in your browser" in page.texts) is bool(named), (method, agent)
        assert (f"does not work inside {named}." in page.text) is bool(named)
        assert (copied(html).get("Copy link") == placed["pay_url"]) is bool(named)
        assert "data:image/png" in html  # another phone can still scan it


def test_the_values_of_a_transfer_are_shown_in_groups_and_copied_without_spaces(api, flask, visit):
    config = ("account=6217001234567890123", "bank=Bank of 12 34", "note=Order {order_no}, nothing else")
    flask("channel", "set", 3, *[part for each in config for part in ("--config", each)])
    order_no = api.buy("1234.5", channel=3, paychannel_paymethod="bank").data["order_no"]
    html = visit(order_no).text
    for shown in ("6217 0012 3456 7890 123", "¥1,234.50", f"Order {order_no}, nothing else"):
        assert shown in Seen(html).text
    values = {"Amount": "1234.50", "Payee": "Demo Shop Ltd.", "Bank": "Bank of 12 34"}
    values |= {"Account number": "6217001234567890123", "Transfer note": order_no}
    assert copied(html).items() >= values.items()
    assert copied(html)["Copy all"].split("\n") == [f"{name}: {value}" for name, value in values.items()]


def test_instructions_are_not_copied_as_a_note(api, flask, visit):
    flask("channel", "set", 3, "--config", "note=Put the number into the remark")
    order_no = api.buy(channel=3).data["order_no"]
    html = visit(order_no).text
    assert "Put the number into the remark" in Seen(html).text
    assert "Transfer note" not in copied(html)
    assert copied(html)["Order number"] == order_no


def test_a_bar_shows_the_last_two_minutes(api, ahead, visit):
    order_no = api.buy().data["order_no"]
    assert re.search(r"<progress [^>]*hidden", visit(order_no).text)
    ahead(900 - 110)
    bar = r'<progress id="left" max="120" value="(\d+)" aria-label="Time left to pay">'
    value = re.search(bar, visit(order_no).text)
    assert 100 <= int(value[1]) <= 110


def test_the_payer_chooses_a_language_and_stays_on_the_order(api, visit, http):
    order_no = api.buy().data["order_no"]
    (link,) = [each for each in Seen(visit(order_no, "en").text).addresses if each.startswith(LANGUAGE)]
    back = http("GET", link.replace("&amp;", "&"))
    assert (back.status, back.headers["Location"]) == (303, f"{CASHIER}?order_no={order_no}")
    cookie = back.headers["Set-Cookie"].partition(";")[0]
    page = http("GET", back.headers["Location"], headers={"Accept-Language": "en", "Cookie": cookie})
    assert 'lang="zh-CN"' in page.text
    assert "微信扫码支付" in Seen(page.text).texts
    assert "English" in Seen(page.text).texts


def test_the_choice_of_a_language_leads_nowhere_else(http):
    for hostile in ("//evil.example", "https://evil.example/", "\\\\evil.example", "1&x=%0D%0AX-A:b"):
        answer = http("GET", f"{LANGUAGE}?order_no={hostile}&to={hostile}")
        assert answer.status == 303
        assert answer.headers["Location"].startswith(f"{CASHIER}?order_no="), hostile
        assert "Set-Cookie" not in answer.headers


def test_the_whole_page_with_its_styles_and_scripts_is_small(reach, http, flask, api):
    urls = {"--return-url": "https://shop.example/{order_no}", "--new-order-url": "https://shop.example/"}
    look = urls | {"--contact": "微信客服" * 25, "--color": "#1677ff"}
    flask("merchant", "page", "demo", *[part for pair in look.items() for part in pair])
    code, note = f"qr_alipay={'0123456789' * 20}", "note={order_no} " + "备注" * 20
    flask("channel", "set", 3, "--config", code, "--config", note)
    placed = [reach(state) for state in ("pending", "paid", "confirmed", "completed", "cancelled", "late")]
    placed += [api.buy(channel=3, paychannel_paymethod=method).data["order_no"] for method in ("bank", "alipay")]

    def size(order_no, language, agent):
        page = http("GET", f"{CASHIER}?order_no={order_no}", headers={"Accept-Language": language, "User-Agent": agent})
        files = {each for each in Seen(page.text).addresses if re.search(r"\.(css|js)$", each)}
        assert len(files) == 2
        return sum(len(text.encode()) for text in (page.text, *(http("GET", each).text for each in files)))

    sizes = [size(*each) for each in itertools.product(placed, ("en", "zh"), (PHONE, WECHAT))]
    assert max(sizes) < MOST_BYTES
