"""Lists in a browser: time ranges, tabs, filters, rows, and a phone."""

from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

from tests.browser import NEEDS_CHROMIUM, PHONE
from tests.console_browser.operator import SIZES

pytestmark = NEEDS_CHROMIUM


def at(operator):
    return operator.chrome.current_url.split("/console/")[1]


@SIZES
def test_a_quick_range_and_a_tab_narrow_a_list_together(size, operator, running):
    placed = running.api.buy("31.01").data
    operator.sits_at(size, "en")
    operator.goes_to("orders/?flt_type=buy")
    operator.presses("Today")
    operator.waits_for(lambda: "flt_since" in at(operator))
    operator.find('.tabs a[href*="flt_status=pending"]').click()
    operator.waits_for(lambda: "flt_status=pending" in at(operator))
    assert {"flt_type=buy", "flt_status=pending"} < set(at(operator).partition("?")[2].split("&"))
    operator.reads(placed["order_no"])
    operator.presses("Any time")
    operator.waits_for(lambda: "flt_since" not in at(operator))
    assert "flt_status=pending" in at(operator)
    assert not operator.scrolls_sideways


@SIZES
def test_filters_are_folded_and_removed_one_by_one(size, operator, running):
    placed, other = running.api.buy("31.02").data, running.api.sell("31.03").data
    operator.sits_at(size, "en")
    operator.goes_to("orders/?flt_status=pending")
    operator.presses("Filter")
    operator.find("[name=flt_least]").send_keys("31.02")
    operator.find("[name=flt_most]").send_keys("31.03")
    Select(operator.find("[name=flt_type]")).select_by_value("buy")
    operator.presses("Apply")
    operator.waits_for(lambda: other["order_no"] not in operator.text)
    assert placed["order_no"] in operator.text
    operator.presses("Remove filter: Type")
    operator.reads(other["order_no"])
    assert "flt_status=pending" in at(operator)
    assert not operator.scrolls_sideways


def test_a_click_on_a_row_opens_its_page(operator, running):
    placed = running.api.buy("31.04").data
    operator.goes_to(f"orders/?search={placed['order_no']}")
    operator.find("tbody td.col-amount").click()
    operator.waits_for(lambda: at(operator) == f"order/{placed['order_no']}")


def test_a_screen_shows_about_twenty_rows_under_a_header_that_stays(operator, running):
    running.flask("seed", "--orders", "60")
    operator.sits_at((1440, 900, False), "en")
    operator.goes_to("orders/")
    ends = "return [...document.querySelectorAll('tbody tr')].map(row => row.getBoundingClientRect().bottom)"
    assert sum(end <= 900 for end in operator.chrome.execute_script(ends)) >= 19
    assert not operator.scrolls_sideways
    operator.chrome.execute_script("scrollTo(0, 700)")
    assert operator.find("thead th").rect["y"] - 700 < 80
    assert operator.find("thead th").is_displayed()


def test_on_a_phone_an_order_has_two_lines(operator, running):
    placed = running.api.buy("31.05").data
    operator.sits_at(PHONE, "en")
    operator.goes_to(f"orders/?search={placed['order_no']}")
    shown = [cell for cell in operator.chrome.find_elements(By.CSS_SELECTOR, "tbody td") if cell.is_displayed()]
    texts = {cell.get_attribute("data-label") for cell in shown}
    assert texts == {"Order number", "Amount (¥)", "Type", "Merchant", "Created", "Status"}
    assert operator.find("tbody tr").rect["height"] < 70
    assert not operator.scrolls_sideways


def test_a_view_is_saved_opened_and_deleted_on_a_phone(operator, running):
    operator.sits_at(PHONE, "en")
    operator.goes_to("orders/?flt_since=today&flt_until=today&flt_type=sell")
    operator.presses("Save this view")
    operator.find(".views input[name=name]").send_keys("Payouts today")
    assert not operator.scrolls_sideways
    operator.presses("Save")
    operator.waits_for(lambda: operator.find('.views a[aria-current="page"]').text == "Payouts today")
    operator.goes_to("orders/")
    operator.presses("Payouts today")
    operator.waits_for(lambda: "flt_type=sell" in at(operator))
    operator.presses("Delete this view")
    operator.waits_for(lambda: "Payouts today" not in operator.text)
    assert not operator.scrolls_sideways
