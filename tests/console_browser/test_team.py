"""The team in a browser: accounts and roles; and a list that is sorted by a heading."""

from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

from tests.browser import NEEDS_CHROMIUM

pytestmark = NEEDS_CHROMIUM


def rows_of(operator, name):
    """The rows of the table about this account: one, once the page is loaded."""
    rows = operator.chrome.find_elements(By.CSS_SELECTOR, "main tbody tr")
    return [row for row in rows if name in row.text.split()]


def presses_in_row(operator, name, label):
    def found():
        buttons = [each for row in rows_of(operator, name) for each in row.find_elements(By.TAG_NAME, "button")]
        return [each for each in buttons if each.text == label]

    operator.waits_for(found)[0].click()


def reads_in_row(operator, name, text):
    operator.waits_for(lambda: [row for row in rows_of(operator, name) if text in row.text])


def test_an_account_is_added_given_another_role_and_disabled(operator):
    operator.goes_to("operators/")
    for field, text in {"name": "cashier", "password": "a long password", "again": "a long password"}.items():
        operator.find(f"#{field}").send_keys(text)
    operator.presses("Add account")
    operator.confirms_identity()
    operator.reads("Account cashier added.")
    presses_in_row(operator, "cashier", "Change role")
    Select(operator.dialog.find_element(By.TAG_NAME, "select")).select_by_value("operator")
    operator.confirms("Change role")
    reads_in_row(operator, "cashier", "Operator")
    presses_in_row(operator, "cashier", "Disable")
    operator.confirms("Disable")
    reads_in_row(operator, "cashier", "Disabled")
    operator.presses("Audit log")
    operator.reads("demo made cashier an operator")


def test_orders_are_sorted_by_a_heading(operator, running):
    for _ in range(2):
        running.api.play(running.api.buy().data["order_no"], "success")
    operator.goes_to("orders/")
    operator.find("th.col-completedtime a").click()
    operator.waits_for(lambda: operator.find("th.col-completedtime").get_attribute("aria-sort") == "descending")
    operator.find("th.col-completedtime a").click()
    operator.waits_for(lambda: operator.find("th.col-completedtime").get_attribute("aria-sort") == "ascending")
