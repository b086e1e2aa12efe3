"""An operator with a real browser: headless Chromium at the console of the running service."""

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser import DESKTOP, PHONE, Person

SIZES = pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])


class Operator(Person):
    """A user of the console."""

    url = ""

    def find(self, css):
        """Return the first element that fits, once there is one: a click may have requested another page."""
        return self.waits_for(lambda: super(Operator, self).find(css), seconds=10)

    def goes_to(self, path):
        self.opens(f"{self.url}/console/{path}")

    def signs_in(self, name="demo", password=None):
        self.goes_to("login")
        self.find("#name").send_keys(name)
        self.find("#password").send_keys(password or f"{name}-password")
        self.find("main form button").click()
        self.waits_for(lambda: self.find("header .account"))

    def presses(self, label, within="main"):
        """Press the one visible button or link of this name, once there is one."""

        def found():
            every = self.chrome.find_elements(By.CSS_SELECTOR, f"{within} :is(button, a, summary)")
            shown = [each for each in every if each.is_displayed() and each.accessible_name == label]
            assert len(shown) < 2, f"{len(shown)} are called {label!r}"
            return shown

        self.waits_for(found)[0].click()

    def confirms(self, label):
        """Press the button in the open dialog."""
        self.presses(label, ":popover-open")

    def confirms_identity(self, answer="demo-password"):
        """Enter the password or a code on the page that asks for it, whose status 403 the browser reports."""
        self.is_at("Confirm your identity")
        assert [each for each in self.complaints() if "403" not in each] == []
        self.find("#confirm-answer").send_keys(answer, Keys.ENTER)

    @property
    def dialog(self):
        return self.find(":popover-open")

    @property
    def text(self):
        return self.find("main").text

    def reads(self, text):
        """Wait until this text is on the page."""
        return self.waits_for(lambda: text in self.text)

    def is_at(self, heading):
        return self.waits_for(lambda: self.find("h1").text == heading)

    def saves_files_in(self, folder):
        """Save downloads in this folder."""
        where = {"behavior": "allow", "downloadPath": str(folder)}
        self.chrome.execute_cdp_cmd("Browser.setDownloadBehavior", where)


def order_page(placed):
    return f"order/{placed['order_no']}"
