"""Payouts in a browser: many in a few clicks, one after the other, and by a file for the bank."""

import csv

import pytest
from selenium.webdriver.common.by import By

from tests.browser import NEEDS_CHROMIUM, scripts_disabled
from tests.console_browser.operator import SIZES
from tests.support import until

pytestmark = NEEDS_CHROMIUM
MANUAL = 3


@pytest.fixture
def sells(running):
    """`sells(3)`: the numbers of new withdrawals on the manual channel."""
    return lambda count: [running.api.sell("1.00", channel=MANUAL).data["order_no"] for _ in range(count)]


@pytest.fixture
def approved(running, sells):
    """The same, approved; no others wait."""

    def made(count):
        numbers = sells(count)
        for order_no in numbers:
            running.flask("order", "accept", order_no)
        return numbers

    return made


@pytest.fixture(autouse=True)
def _none_waits(running, request):
    yield
    for status in ("pending", "confirmed"):
        for row in running.api.listed(status=status, order_type=2, limit=100).data["list"]:
            running.flask("order", "reject", row["order_no"], "--reason", "end of the test")


def test_69_payouts_are_approved_and_marked_as_paid_out_in_a_few_clicks(operator, running, sells):
    numbers = sells(69)
    operator.goes_to("payouts/")
    for action, at in (("Approve", "Approve 69 payouts"), ("Mark as paid out", "Mark 69 payouts as paid out")):
        operator.find("[data-select-all][type=checkbox]").click()
        operator.reads("69 selected, ¥69.00")
        operator.presses(action)
        operator.is_at(at)
        operator.presses(f"{at} · ¥69.00")
        operator.waits_for(lambda: operator.find("h1").text.startswith("69 payouts"))
        operator.goes_to("payouts/")
    assert {running.api.status(order_no) for order_no in numbers} == {"completed"}


@SIZES
def test_selected_payouts_are_rejected(size, operator, running, sells):
    numbers = sells(3)
    operator.sits_at(size, "en")
    operator.goes_to("payouts/?flt_state=approve")
    for order_no in numbers[:2]:
        operator.find(f"input[value='{order_no}']").click()
    operator.reads("2 selected, ¥2.00")
    box = operator.find("td.col-select input")
    assert box.rect["width"] <= operator.find("td.col-select").rect["width"]  # otherwise a part is cut off
    operator.presses("Reject")
    operator.find("#reason").send_keys("wrong account")
    assert not operator.scrolls_sideways
    operator.presses("Reject 2 payouts · ¥2.00")
    operator.is_at("2 payouts rejected")
    assert [running.api.status(order_no) for order_no in numbers] == ["cancelled", "cancelled", "pending"]


@SIZES
def test_payees_are_revealed_and_copied(size, operator, running, approved):
    (order_no,) = approved(1)
    permissions = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"], "origin": running.url}
    operator.chrome.execute_cdp_cmd("Browser.grantPermissions", permissions)
    operator.sits_at(size, "en")
    operator.goes_to("payouts/?flt_state=send")
    operator.presses("Reveal payees")
    operator.confirms_identity()
    operator.presses("Copy all")
    operator.waits_for(lambda: "Copied" in operator.text)
    copied = operator.chrome.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert copied.splitlines() == ["张三", "6222020000000000017", "Demo Bank Main Street", "1.00"]
    operator.presses("Copy all payees")
    read = "navigator.clipboard.readText().then(arguments[0])"
    operator.waits_for(lambda: operator.chrome.execute_async_script(read).startswith(f"{order_no}\t张三\t"))
    assert not operator.scrolls_sideways
    operator.presses("Hide")
    operator.waits_for(lambda: "6222020000000000017" not in operator.text)


def test_a_payout_is_approved_and_sent_in_one_step_and_the_next_one_opens(operator, running, sells):
    first, second = sells(2)
    operator.goes_to(f"order/{first}")
    operator.presses("Approve and send")
    operator.confirms("Approve and send")
    operator.confirms_identity()
    operator.reads("6222020000000000017")
    operator.presses("Mark as paid out", "#payee")
    operator.dialog.find_element(By.NAME, "reference").send_keys("BANK-1")
    operator.confirms("Mark as paid out")
    until(lambda: running.api.status(first) == "completed")
    operator.presses("Next payout")
    operator.reads(second)
    assert operator.chrome.current_url.endswith(second)


def results_of(file, failed):
    """The bank's result for a downloaded file: all paid, except these orders."""
    header, *rows = csv.reader(file.read_text("utf-8-sig").splitlines())
    found = [dict(zip(header, row, strict=True)) for row in rows]
    lines = [
        f"{row['编号']},{row['金额']},失败,,户名不符"
        if row["订单号"] in failed
        else f"{row['编号']},{row['金额']},成功,BANK-{row['编号']},"
        for row in found
    ]
    return "\n".join(["编号,金额,状态,银行流水号,失败原因", *lines])


def test_69_payouts_are_approved_and_sent_by_a_bank_file_and_their_result_is_recorded_in_12_clicks(
    operator, running, sells, tmp_path
):
    numbers, clicks = sells(69), []
    refused, paid = numbers[:2], numbers[2:]
    operator.saves_files_in(tmp_path)
    operator.goes_to("")

    def clicks_on(label, within="main"):
        clicks.append(label)
        operator.presses(label, within)

    clicks_on(operator.find("#queue-approve a").text, "#queue-approve")
    clicks.append("all")
    operator.find("[data-select-all][type=checkbox]").click()
    clicks_on("Approve")
    clicks_on("Approve 69 payouts · ¥69.00")
    clicks_on("Create bank file of 69 payouts")
    clicks_on("Create and download file")
    operator.confirms_identity()
    clicks.append("identity")
    operator.reads("File downloaded. Import the bank's result when it is ready.")
    assert operator.chrome.switch_to.active_element.get_attribute("id") == "file"
    (file,) = until(lambda: list(tmp_path.glob("*.csv")))
    result = tmp_path / "result.txt"
    result.write_text(results_of(file, refused), "gb18030")
    clicks.append("file")
    operator.find("#file").send_keys(str(result))
    clicks_on("Check file")
    operator.reads("69 rows in the file")
    assert {running.api.status(order_no) for order_no in numbers} == {"confirmed"}
    clicks_on("Record 69 rows")
    operator.reads("All 69 payouts have a result: 67 paid out ¥67.00, 2 refused by the bank ¥2.00.")
    assert len(clicks) == 10, clicks
    assert {running.api.status(order_no) for order_no in paid} == {"completed"}
    clicks_on("Show the refused payouts")
    operator.reads("Reject or change account")
    assert len(operator.chrome.find_elements(By.CSS_SELECTOR, "#rows tr")) == 2


def test_a_bank_file_is_downloaded_again_from_its_page_without_leaving_it(operator, approved, tmp_path):
    approved(2)
    operator.saves_files_in(tmp_path)
    operator.goes_to("payouts/?flt_state=send")
    operator.find("[data-select-all][type=checkbox]").click()
    operator.presses("Create bank file")
    operator.presses("Create and download file")
    operator.confirms_identity()

    def is_saved():
        (file,) = until(lambda: list(tmp_path.glob("*.csv")))
        file.unlink()

    is_saved()
    operator.reads("2 payouts without a result, ¥2.00. The next download contains only these.")
    operator.presses("Download file")
    is_saved()
    with scripts_disabled(operator):
        operator.presses("Download file")
        is_saved()
    assert operator.find("h1").text.startswith("Batch ")
    operator.presses("Discard file")
    operator.dialog.find_element(By.NAME, "not_given").click()
    operator.confirms("Discard file")
    operator.reads("All 2 payouts have a result: 2 taken out of the file ¥2.00.")
