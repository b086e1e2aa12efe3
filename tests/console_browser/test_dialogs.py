"""The dialogs of an order's page: their buttons are in view on a laptop and a phone, and returned money is named."""

import pytest

from tests.browser import PHONE
from tests.console_browser.operator import order_page

LAPTOP = (1366, 768, False)
IN_VIEW = """
const edges = document.querySelector(arguments[0]).getBoundingClientRect();
return edges.top >= 0 && edges.bottom <= innerHeight;
"""
MANUAL = 3


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_the_buttons_of_a_long_dialog_are_always_in_view(operator, running, size):
    placed = running.api.buy("77.00", channel=MANUAL).data
    running.flask("order", "paid", placed["order_no"], "--amount", "70.00", "--reference", f"IN-{placed['order_no']}")
    operator.sits_at(size, "en")
    operator.goes_to(order_page(placed))
    operator.presses("Send back")
    for folded in operator.dialog.find_elements("tag name", "details"):  # they make it longer than the screen
        operator.chrome.execute_script("arguments[0].open = true", folded)
    for top in (0, 100_000):
        operator.chrome.execute_script("document.querySelector(':popover-open').scrollTop = arguments[0]", top)
        assert operator.chrome.execute_script(IN_VIEW, ":popover-open .foot button:not([type])")
    assert operator.chrome.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    operator.dialog.find_element("name", "reference").send_keys(f"BACK-{placed['order_no']}")
    operator.confirms("Mark ¥70.00 as sent back")
    operator.reads(f"Return transaction ID BACK-{placed['order_no']}")


def test_a_note_is_written_in_two_clicks(operator, running):
    placed = running.api.buy("78.00").data
    operator.goes_to(order_page(placed))
    operator.presses("Add note")
    operator.dialog.find_element("name", "text").send_keys("Call again at 9:00")
    operator.confirms("Save note")
    operator.reads("Note saved.")
    assert "Call again at 9:00" in operator.find(".card.note").text
