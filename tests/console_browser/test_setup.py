"""Orders that an operator creates, and the setup of channels and merchants, in a browser."""

import segno
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from tests.browser import NEEDS_CHROMIUM
from tests.console_browser.operator import SIZES
from tests.support import until

pytestmark = NEEDS_CHROMIUM


@SIZES
def test_a_test_order_is_created_and_its_link_opens_the_payment_page(size, operator, running):
    operator.sits_at(size, "en")
    operator.goes_to("orders/")
    operator.presses("New test order", "main .head")
    Select(operator.find("#merchant")).select_by_value("demo")
    operator.presses("Continue")
    operator.find("#note").send_keys("Two chairs")
    Select(operator.find("#way")).select_by_value("2:alipay")
    operator.presses("Create test order")
    operator.is_at("Test order created")
    assert not operator.scrolls_sideways
    order_no = operator.find("#pay-url").text.partition("order_no=")[2]
    assert operator.find("img.qr").size["width"] > 100
    operator.opens(operator.find("#pay-url").text)
    operator.waits_for(lambda: "Two chairs" in operator.chrome.find_element(By.TAG_NAME, "main").text)
    running.api.play(order_no, "success")
    until(lambda: running.api.status(order_no) == "completed")


def test_a_qr_code_image_is_uploaded_shown_to_the_payer_and_removed(operator, running, tmp_path):
    file, form = tmp_path / "code.png", "#pictures form[action$='bank/upload']"
    segno.make("wxp://own-static-code").save(str(file), scale=8)

    def uploads():
        operator.find(f"{form} input[type=file]").send_keys(str(file))
        operator.presses("Upload image", form)

    operator.goes_to("channel/3")
    uploads()
    operator.confirms_identity()
    operator.reads("Choose a file.")  # the confirmation cannot repeat an upload
    uploads()
    operator.reads("The payment page shows the image.")
    placed = running.api.buy("15.00", channel=3, paychannel_paymethod="bank").data
    operator.opens(placed["pay_url"])
    picture = operator.find("img.picture")
    operator.waits_for(lambda: operator.chrome.execute_script("return arguments[0].naturalWidth > 0", picture))
    operator.goes_to("channel/3")
    operator.presses("Remove image")
    operator.reads("Image removed.")


def test_a_new_merchant_is_led_to_its_first_order(operator, running):
    running.flask("merchant", "add", "led", "--name", "Led Shop")
    operator.goes_to("merchant/led")
    operator.presses("Enter callback URL")
    operator.find("#callback_url").send_keys("https://shop.example/hook")
    operator.find("#channels input[value='2']").click()
    operator.presses("Save")
    operator.reads("Saved.")
    assert operator.find("#steps .open a").text == "Callbacks"
    operator.find("#steps li:last-child a").send_keys(Keys.ENTER)
    operator.presses("Create test order")
    operator.is_at("Test order created")
    operator.goes_to("merchant/led")
    assert not operator.chrome.find_elements(By.ID, "steps")
