"""The overview in a browser: from each queue to its list, and the ranges of the figures."""

import pytest

from models.tables.order import BUY
from tests.browser import NEEDS_CHROMIUM
from tests.console_browser.operator import SIZES
from tests.databases import copied
from tests.pages import CLAIM, FORM
from tests.support import DemoService, Receiver, until

pytestmark = NEEDS_CHROMIUM
BUTTONS = {
    "Approve payouts": "Payouts",
    "Send payouts": "Payouts",
    "Review requests": "Payouts",
    "Confirm claims": "Claims",
    "Resolve exceptions": "Exceptions",
    "View callbacks": "Callbacks",
    "Check ledger": "Balances",
}


@pytest.fixture(scope="module")
def running(seeded_demo, tmp_path_factory):
    """A service whose ledger was never checked, and where payouts above ¥20 need a second operator."""
    folder = copied(seeded_demo, tmp_path_factory.mktemp("overview") / "instance")
    service = DemoService(folder, ORDERS_SECOND_OPERATOR_ABOVE="20", ORDERS_VERIFY_EVERY="0").start()
    yield service
    service.stop()


@pytest.fixture
def everything_waits(running, operator, web_server):
    """Each queue has an item; the number of the payout that needs a second operator."""
    api = running.api
    running.flask("order", "accept", api.sell("5.00", channel=3).data["order_no"])
    claimed = api.buy("70.00", channel=3).data["order_no"]
    api.send("POST", CLAIM, f"order_no={claimed}".encode(), FORM)
    api.play(api.buy("71.00").data["order_no"], "wrong_amount")
    shop = Receiver(web_server, "/overview", "whsec_b3RoZXItY2FsbGJhY2stc2VjcmV0LTAwMDAwMDAwMDA=")
    shop.answers(410)
    running.flask("merchant", "set", "other", "--callback-url", shop.url)
    other = type(api)(api.send, "other")
    other.play(other.buy("12.00").data["order_no"], "success")
    until(lambda: "dead" in running.flask("callback", "list", "--merchant", "other").stdout)
    large = api.sell("45.00").data["order_no"]
    operator.goes_to(f"order/{large}")
    operator.presses("Request approval")
    operator.confirms("Request approval")
    operator.reads("Another operator must approve this payout")
    return large


def test_each_queues_button_opens_its_list(operator, everything_waits):
    for button, heading in BUTTONS.items():
        operator.goes_to("")
        operator.presses(button)
        operator.is_at(heading)
    operator.goes_to("")
    operator.presses("Approve payouts")
    operator.reads(everything_waits)


@SIZES
def test_the_range_of_the_figures_is_changed(size, operator, running):
    assert running.api.buy("8.00").data["order_type"] == BUY
    operator.sits_at(size, "en")
    operator.goes_to("")
    for name, heading in (("Today", "Volume by hour"), ("30 days", "Daily volume"), ("90 days", "Daily volume")):
        operator.presses(name)
        operator.waits_for(lambda name=name: operator.find(".switch [aria-current]").text == name)
        operator.reads(heading)
        assert not operator.scrolls_sideways
    operator.presses("Show as table")
    operator.waits_for(lambda: len(operator.chrome.find_elements("css selector", "#volumes tbody tr")) == 90)
