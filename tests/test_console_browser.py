"""An operator with a real browser: headless Chromium at the console of the running service."""

import csv
import io
from pathlib import Path

import pyotp
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from tests.all_interfaces import GATEWAY_A
from tests.browser import DESKTOP, NEEDS_CHROMIUM, PHONE, Person
from tests.databases import copied
from tests.support import DemoService, Receiver, until

pytestmark = NEEDS_CHROMIUM
SIZES = pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])


@pytest.fixture(scope="module")
def running(seeded_demo, tmp_path_factory):
    """One running service for the module."""
    service = DemoService(copied(seeded_demo, tmp_path_factory.mktemp("console") / "instance")).start()
    yield service
    service.stop()


class Operator(Person):
    """A user of the console."""

    url = ""

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


@pytest.fixture
def operator(chrome, running):
    """A signed-in operator at a desk; the browser's console must have no errors at the end."""
    one = Operator(chrome)
    one.url = running.url
    one.sits_at(DESKTOP, "en")
    one.goes_to("login")
    chrome.delete_all_cookies()
    one.complaints()
    one.signs_in()
    yield one
    assert one.complaints() == []


def order_page(placed):
    return f"order/{placed['order_no']}"


def test_an_operator_signs_in_and_out(chrome, running):
    one = Operator(chrome)
    one.url = running.url
    one.sits_at(DESKTOP, "en")
    one.goes_to("orders/")
    chrome.delete_all_cookies()
    one.goes_to("orders/")
    one.is_at("Console")
    one.find("#name").send_keys("demo")
    one.find("#password").send_keys("wrong-password", Keys.ENTER)
    one.reads("Incorrect user name or password")
    one.find("#name").clear()
    one.find("#name").send_keys("demo")
    one.find("#password").send_keys("demo-password", Keys.ENTER)
    one.is_at("Orders")
    one.find("header .account summary").click()
    one.presses("Sign out", "header")
    one.is_at("Console")
    one.goes_to("orders/")
    one.is_at("Console")


def test_a_second_factor_is_set_up_and_then_required(operator, running):
    running.flask("operator", "add", "anna", stdin="four words not together\n")
    operator.chrome.delete_all_cookies()
    operator.signs_in("anna", "four words not together")
    operator.goes_to("factor")
    app = pyotp.TOTP(operator.find("[name=secret]").get_attribute("value"))
    operator.find("#code").send_keys(app.now())
    operator.find("#password").send_keys("four words not together", Keys.ENTER)
    operator.is_at("Recovery codes")
    first, second, *_ = operator.find("#recovery-codes").text.split()
    operator.chrome.delete_all_cookies()
    operator.goes_to("login")
    operator.find("#name").send_keys("anna")
    operator.find("#password").send_keys("four words not together", Keys.ENTER)
    operator.is_at("Enter your code")
    operator.find("#code").send_keys(first, Keys.ENTER)
    operator.is_at("Overview")
    operator.goes_to("channel/3")
    operator.find("#name").clear()
    operator.find("#name").send_keys("人工 & <b>")
    operator.presses("Save")
    operator.is_at("Confirm your identity")
    operator.find("#confirm-answer").send_keys(second, Keys.ENTER)
    operator.reads("Saved.")
    assert operator.find("#name").get_attribute("value") == "人工 & <b>", "what was typed is not lost"
    assert "8 recovery codes left." in operator.text
    assert [each for each in operator.complaints() if "403" not in each] == []


@SIZES
def test_a_payout_is_approved(size, operator, running):
    placed = running.api.sell("45.00").data
    operator.sits_at(size, "en")
    operator.goes_to("payouts/")
    operator.presses(placed["order_no"])
    operator.presses("Approve")
    operator.waits_for(lambda: "45.00" in operator.dialog.text)
    operator.confirms("Approve withdrawal")
    until(lambda: running.api.status(placed["order_no"]) == "completed")
    operator.goes_to(order_page(placed))
    assert "operator demo" in operator.text
    assert not operator.scrolls_sideways


def test_an_exception_is_resolved(operator, running):
    placed = running.api.buy("70.00").data
    running.api.play(placed["order_no"], "wrong_amount")
    operator.goes_to("exceptions/")
    operator.presses(placed["order_no"])
    operator.presses("Credit balance")
    operator.waits_for(lambda: "71.00" in operator.dialog.text)
    operator.confirms("Credit ¥70.57")
    until(lambda: running.api.status(placed["order_no"]) == "cancelled")
    operator.goes_to("exceptions/")
    assert placed["order_no"] not in operator.text


def test_a_callback_is_redelivered(operator, running, web_server):
    shop = Receiver(web_server, "/console", "whsec_b3RoZXItY2FsbGJhY2stc2VjcmV0LTAwMDAwMDAwMDA=")
    shop.answers(410)
    running.flask("merchant", "set", "other", "--callback-url", shop.url)
    other = type(running.api)(running.api.send, "other")
    placed = other.buy("12.00").data
    other.play(placed["order_no"], "success")
    until(lambda: shop.got)
    shop.answers(200)
    until(lambda: "dead" in running.flask("callback", "list", "--merchant", "other").stdout)
    operator.goes_to("callbacks/?flt_state=dead")
    operator.find("td.col-createtime a").click()
    operator.reads("410")
    operator.presses("Redeliver")
    operator.confirms("Redeliver callback")
    until(lambda: len(shop.got) == 2)
    assert shop.got[0].webhook_id == shop.got[1].webhook_id


def test_a_list_is_exported(operator, running, tmp_path):
    placed = running.api.buy("33.33", merchant_order_no="=1+1").data
    where = {"behavior": "allow", "downloadPath": str(tmp_path)}
    operator.chrome.execute_cdp_cmd("Browser.setDownloadBehavior", where)
    operator.goes_to("orders/?flt_status=pending&flt_least=33.33&flt_most=33.33")
    operator.presses("Export as CSV")
    until(lambda: list(Path(tmp_path).glob("*.csv")))
    (file,) = Path(tmp_path).glob("*.csv")
    rows = list(csv.DictReader(io.StringIO(file.read_text("utf-8-sig"))))
    assert [placed["order_no"]] == [row["Order number"].strip("'") for row in rows]
    assert "'=1+1" in rows[0].values()


def test_a_viewer_is_offered_no_actions(operator, running):
    placed = running.api.sell("46.00").data
    operator.chrome.delete_all_cookies()
    operator.signs_in("viewer")
    operator.goes_to(order_page(placed))
    operator.reads("46.00")
    offered = {each.accessible_name for each in operator.chrome.find_elements(By.CSS_SELECTOR, "main button")}
    assert not offered & {"Approve", "Reject", "Reveal"}


def test_a_withdrawal_is_approved_by_the_keyboard_alone(operator, running):
    placed = running.api.sell("47.00").data
    operator.goes_to(order_page(placed))
    keys = ActionChains(operator.chrome)
    for _ in range(60):
        keys.send_keys(Keys.TAB).perform()
        if operator.chrome.switch_to.active_element.accessible_name == "Approve":
            break
    keys.send_keys(Keys.ENTER).perform()
    operator.waits_for(lambda: operator.chrome.find_elements(By.CSS_SELECTOR, ":popover-open"))
    keys.send_keys(Keys.ESCAPE).perform()
    operator.waits_for(lambda: not operator.chrome.find_elements(By.CSS_SELECTOR, ":popover-open"))
    assert running.api.status(placed["order_no"]) == "pending"
    keys.send_keys(Keys.ENTER).perform()
    operator.waits_for(lambda: operator.chrome.find_elements(By.CSS_SELECTOR, ":popover-open"))
    for _ in range(10):
        keys.send_keys(Keys.TAB).perform()
        if operator.chrome.switch_to.active_element.accessible_name == "Approve withdrawal":
            break
    keys.send_keys(Keys.ENTER).perform()
    until(lambda: running.api.status(placed["order_no"]) == "completed")


def test_times_are_in_the_readers_time_zone(operator, running):
    placed = running.api.buy().data
    shown = set()
    for zone in ("Asia/Shanghai", "America/New_York"):
        operator.chrome.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": zone})
        operator.goes_to(order_page(placed))
        operator.waits_for(lambda zone=zone: operator.find("html").get_attribute("data-zone") == zone)
        shown.add(operator.find("main time").text)
    operator.chrome.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})
    assert len(shown) == 2


@SIZES
@pytest.mark.parametrize("language", ["en", "zh-CN,zh"], ids=["english", "chinese"])
def test_every_page_fits_the_screen_and_follows_the_policy(size, language, operator, running):
    running.api.buy(merchant_order_no="W" * 255, customer_name="very long " * 20)
    placed = running.api.sell("1.00", **GATEWAY_A).data
    operator.sits_at(size, language)
    pages = ["", "orders/", "payouts/", "exceptions/", "callbacks/", "ledger/", "entries/", "merchants/", "channels/"]
    pages += ["accounts/", "operators/", "audit/", "password", "factor", "sessions/", "merchant/demo"]
    pages += ["merchant/new", "channel/1", "channel/new", "channel/new?driver=wechatpay", order_page(placed), "nothing"]
    for page in pages:
        operator.goes_to(page)
        assert operator.find("h1").is_displayed(), page
        assert not operator.scrolls_sideways, page
        for button in operator.chrome.find_elements(By.CSS_SELECTOR, "button, a, input:not([type=hidden]), select"):
            assert not button.is_displayed() or button.accessible_name, (page, button.get_attribute("outerHTML"))
    assert [each for each in operator.complaints() if "404" not in each] == []


def test_the_menu_opens_on_a_phone(operator):
    operator.sits_at(PHONE, "en")
    operator.goes_to("")
    assert not operator.find("nav.side").is_displayed()
    operator.find("#menu summary").click()
    operator.waits_for(lambda: operator.find("nav.side").is_displayed())
    operator.presses("Orders", "nav")
    operator.is_at("Orders")


def test_filters_narrow_a_list(operator, running):
    placed, other = running.api.buy("55.01").data, running.api.buy("55.02").data
    operator.goes_to("orders/")
    operator.find("[name=flt_least]").send_keys("55.01")
    operator.find("[name=flt_most]").send_keys("55.01")
    Select(operator.find("[name=flt_type]")).select_by_value("buy")
    operator.presses("Apply")
    operator.waits_for(lambda: other["order_no"] not in operator.text)
    assert placed["order_no"] in operator.text


def test_an_operator_completes_a_late_payment_and_sees_the_callback_first(operator, running):
    order_no = running.api.buy().data["order_no"]
    running.api.play(order_no, "late")
    operator.goes_to(f"order/{order_no}")
    operator.presses("Complete order")
    assert '"type":"order.completed"' in operator.dialog.text
    assert "¥99.40" in operator.dialog.text
    operator.confirms("Complete order")
    operator.reads("Order status: Completed")
    assert running.api.status(order_no) == "completed"
