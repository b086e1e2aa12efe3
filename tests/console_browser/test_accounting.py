"""Accounting: monthly statements and reconciliation by upload."""

import csv
import io
from datetime import datetime

from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

from runtime.clock import CHINA
from tests.browser import NEEDS_CHROMIUM
from tests.support import completed, until

pytestmark = NEEDS_CHROMIUM


def test_a_statement_is_read_day_by_day_and_downloaded(operator, running, tmp_path):
    order_no = completed(running.api)
    month = f"{datetime.now(CHINA):%Y-%m}"
    operator.saves_files_in(tmp_path)
    operator.goes_to("statements/")
    Select(operator.find("select[name=merchant]")).select_by_value("demo")
    Select(operator.find("select[name=month]")).select_by_value(month)
    operator.reads("Select “Show” for the statement of this choice.")
    assert not operator.find(".statement").is_displayed(), "these are the figures of another month"
    operator.presses("Show")
    operator.reads("until now")
    assert "of this choice" not in operator.text
    operator.chrome.find_elements(By.CSS_SELECTOR, "td a[href*='day=']")[-1].click()
    operator.reads(order_no)
    operator.chrome.execute_script("scrollTo(0, 0); window.print = () => { document.title = 'printed'; }")
    operator.presses("Print")
    operator.waits_for(lambda: operator.chrome.title == "printed")
    operator.presses("Download statement")
    (file,) = until(lambda: list(tmp_path.glob("*.csv")))
    assert file.name == f"statement-demo-{month}.csv"
    rows = csv.DictReader(io.StringIO(file.read_text("utf-8-sig")))
    assert order_no in {row["Order number"] for row in rows}


def test_a_statement_is_uploaded_and_its_differences_lead_to_the_orders(operator, running, tmp_path):
    order_no = completed(running.api)
    file = tmp_path / "alipay.csv"
    file.write_text(f"order_no,amount,status,time\n{order_no},99.00,paid,{datetime.now(CHINA):%Y-%m-%d %H:%M:%S}\n")
    operator.goes_to("reconciliations/")
    operator.presses("Upload statement", within="main .head")
    Select(operator.find("#channel")).select_by_value("2")
    operator.find("#file").send_keys(str(file))
    operator.presses("Compare")
    operator.reads("Amount differs")
    operator.reads("paid ¥99.00")
    assert operator.find("main > .notice.warn").text.startswith("Differences found:")
    operator.goes_to("reconciliations/")
    assert operator.find(".col-differences .pending").text.startswith("Differences found:")
    operator.presses("alipay.csv")
    operator.presses(order_no)
    operator.waits_for(lambda: operator.chrome.current_url.endswith(f"/order/{order_no}"))
