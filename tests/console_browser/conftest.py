"""A running demo, and an operator with a real browser at its console."""

import pytest

from tests.browser import DESKTOP
from tests.console_browser.operator import Operator


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
