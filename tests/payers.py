"""Payers with their browsers."""

import re
from html import unescape
from urllib.parse import urlsplit

import requests

from tests.pages import CASHIER, FORM, GO, OPEN, STATUS
from tests.support import through_flask

AGENTS = {
    "pc": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36",
    "mobile": "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 Chrome/140.0 Mobile Safari/537.36",
    "wechat": "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0) AppleWebKit/605.1 Mobile/15E148 MicroMessenger/8.0.50",
    "alipay": "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Mobile Safari/537.36 AlipayClient/10.6",
    "qq": "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Mobile Safari/537.36 QQ/9.0.60",
}
MAC = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/18.0 Safari/605.1.15"


class Payer:
    """A payer's browser: it keeps cookies, follows redirects to the upstreams, and comes back.

    `browser` is one of AGENTS or a user agent; a proxy at `address` may have `forwarded` another address.
    """

    def __init__(self, app, browser="pc", address="203.0.113.7", forwarded=""):
        self.client = app.test_client()
        self.client.environ_base |= {"REMOTE_ADDR": address, "HTTP_X_FORWARDED_FOR": forwarded}
        self._http, self._agent = through_flask(self.client), {"User-Agent": AGENTS.get(browser, browser)}
        self.visited = []

    def get(self, address):
        """Follow redirects from an address to a page; return its content."""
        for _ in range(8):
            self.visited.append(address)
            if address.startswith("http") and urlsplit(address).path.startswith("/sign-in/"):
                address = requests.get(address, allow_redirects=False, timeout=10).headers["Location"]
                continue
            parts = urlsplit(address)
            answer = self._http("GET", f"{parts.path}?{parts.query}", headers=self._agent)
            if answer.status not in (302, 303):
                return answer.text
            address = answer.headers["Location"]
            if address.startswith("https://wx.tenpay.com"):
                return address
        raise AssertionError(f"it never stops redirecting: {self.visited}")

    def views(self, order_no):
        return self.get(f"{CASHIER}?order_no={order_no}")

    def opens(self, order_no, *more):
        """Open the payment, as the page's script or a button does, in WeChat after a sign-in; return the page then."""
        if "MicroMessenger" in self._agent["User-Agent"]:
            self.views(order_no)
        self.presses(order_no, *more)
        return self.views(order_no)

    def presses(self, order_no, *more):
        """Send the form that opens the payment; return the response."""
        body = "&".join((f"order_no={order_no}", *more)).encode()
        return self._http("POST", OPEN, body, FORM | self._agent)

    def is_ready(self, order_no):
        return self._http("GET", f"{STATUS}?order_no={order_no}", headers=self._agent).data["ready"]

    def has_moved(self, order_no):
        return self._http("GET", f"{STATUS}?order_no={order_no}", headers=self._agent).data["moved"]

    def policy(self, order_no):
        """The Content-Security-Policy of the page."""
        page = self._http("GET", f"{CASHIER}?order_no={order_no}", headers=self._agent)
        return page.headers["Content-Security-Policy"]

    def goes(self, order_no):
        """Press the button that leads to the channel's page; return what is sent: the address and the form."""
        page = self.get(f"{GO}?order_no={order_no}")
        found = re.search(r'id="go" class="panel" method="post" action="([^"]*)"', page)
        if not found:
            return page, {}
        fields = re.findall(r'name="(\w+)" value="([^"]*)"', page)
        return unescape(found[1]), {name: unescape(value) for name, value in fields}
