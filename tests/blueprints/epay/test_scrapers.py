"""Shops whose server calls submit.php itself, and reads the payment page's address from a script.

The comment above each names the source file that the expressions were read from. The code here is ours.
"""

import re
from urllib.parse import unquote, urlencode, urljoin, urlsplit

import pytest

from tests.epay_shop import BROWSER, FORM, number_in
from tests.pages import CASHIER
from tests.support import Answer

SITE = "http://127.0.0.1:8000/"
SCRIPT = re.compile(r"<script>window\.location\.href='\./addons/paychannel/pay/index\?order_no=(\d{24})';</script>")


def kami_faka(text):
    """Baiyuetribe/kamiFaka service/util/pay/epay/common.py @ 050ee9a."""
    content = re.search(r"<script>(.*)</script>", text)[1]
    assert "http" not in content
    return SITE + re.search(r"\.?\/(.*)\'", content)[1]


def tg_faka_bot(text):
    """feilisp4/tg_faka_bot getways/epay/example.epay.py @ 0732465."""
    content = re.search(r"<script>(.*)</script>", text)[1]
    assert "http" not in content
    return SITE + re.search(r"\.\/(.*)\'", content)[1]


def nb_sb(text):
    """nb-sb/epay-sdk api/Impl/EPayYZF.java @ e62b1e4. The path gets a second slash."""
    start, end = "<script>window.location.href='.", "';</script>"
    return SITE + text[text.index(start) + len(start) : text.index(end)].strip()


SCRAPERS = {
    kami_faka: {"Accept": "*/*", "User-Agent": "python-requests/2.32.3"},
    tg_faka_bot: {"Accept": "*/*", "User-Agent": "Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/76.0.3809.132"},
    nb_sb: {"User-Agent": "Apache-HttpClient/5.3.1 (Java/17.0.2)"},  # without Accept
}


@pytest.fixture
def http(app):
    """The transport of Flask's test client, which would take the start of a path with two slashes for a host."""

    def send(method, address, body=b"", headers=None):
        parts = urlsplit(urljoin(SITE, address))
        environ = {"PATH_INFO": unquote(parts.path), "QUERY_STRING": parts.query}
        answer = app.test_client().open(method=method, data=body, headers=headers, environ_overrides=environ)
        return Answer(answer.status_code, answer.headers, answer.get_data().decode())

    return send


def opened(http, address):
    """The payment page that a payer's browser shows at this address, after redirects."""
    page = http("GET", address, b"", BROWSER)
    while page.status in (303, 308):
        page = http("GET", urljoin(address, page.headers["Location"]), b"", BROWSER)
    return page


def scraped(shop, headers, **changed):
    """What submit.php responds to a shop's server."""
    return shop.send("POST", "/submit.php", urlencode(shop.signed(**changed)).encode(), FORM | headers)


@pytest.mark.parametrize("scraper", SCRAPERS, ids=lambda scraper: scraper.__name__)
def test_a_shop_that_reads_the_address_in_a_script_gets_the_payment_page(scraper, shop, api, http):
    answer = scraped(shop, SCRAPERS[scraper])
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    number = SCRIPT.fullmatch(answer.text)[1]
    assert api.detail(order_no=number).data["merchant_order_no"] == "SHOP-1"
    page = opened(http, scraper(answer.text))
    assert page.status == 200
    assert "12.50" in page.text


def test_only_a_caller_that_names_html_is_a_browser_and_redirected(shop):
    for accept in ("", "*/*", "application/json, text/plain, */*", "text/*;q=0.5, image/png"):
        assert SCRIPT.fullmatch(scraped(shop, {"Accept": accept}).text), accept
    for accept in (BROWSER["Accept"], "text/html", "TEXT/HTML;q=0.9", "application/xml,text/html"):
        sent = scraped(shop, {"Accept": accept})
        page = f"http://127.0.0.1:8000{CASHIER}?order_no={number_in(sent.headers['Location'])}"
        assert (sent.status, sent.headers["Location"]) == (303, page), accept
    assert scraped(shop, {"Accept": "*/*"}, money="x").status == 400
    assert "<script>" not in scraped(shop, {"Accept": "*/*"}, money="x").text


def test_the_script_has_nothing_that_was_sent_and_runs_alone(shop):
    hostile = {"name": "';alert(1)//</script>", "param": "<script>x</script>", "out_trade_no": "MARK|1", "device": "'"}
    answer = scraped(shop, {"Accept": "*/*", "Host": "127.0.0.1"}, **hostile)
    assert SCRIPT.fullmatch(answer.text)
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/]{43}='", policy)


def test_the_choice_and_the_address_of_the_code_on_other_platforms_lead_to_the_page(shop, rsa_shop, http):
    answer = scraped(shop, {"Accept": "*/*"}, type=None)
    assert "WeChat Pay" in opened(http, kami_faka(answer.text)).text
    of_version_2 = rsa_shop.signed(2, out_trade_no="SHOP-2")
    assert rsa_shop.post("/api/pay/submit", of_version_2, {"Accept": "*/*"}).status == 303  # every caller
    number = shop.mapi(out_trade_no="SHOP-2")["trade_no"]
    page = opened(http, f"{SITE}qrcode.php?trade_no={number}&sitename=x")
    assert (page.status, "12.50" in page.text) == (200, True)


def test_an_unknown_number_leads_nowhere_else(http):
    for number in ("", "1", "../../console", "1&x=https://evil.example", "https://evil.example"):
        address = f"{SITE}qrcode.php?trade_no={number}"
        sent = http("GET", address, b"", BROWSER)
        assert sent.headers["Location"].startswith(f"http://127.0.0.1:8000{CASHIER}?order_no="), number
        assert opened(http, address).status == 404
