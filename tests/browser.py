"""A user with a real browser: headless Chromium, in two sizes."""

import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException, WebDriverException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service as Driver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

CHROMIUM, CHROMEDRIVER = shutil.which("chromium"), shutil.which("chromedriver")
NEEDS_CHROMIUM = pytest.mark.skipif(
    not (CHROMIUM and CHROMEDRIVER), reason="needs chromium and chromedriver (Debian: chromium chromium-driver)"
)
FLAGS = (
    *("--headless=new", "--no-sandbox", "--no-first-run", "--disable-gpu", "--disable-quic", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
PHONE, DESKTOP = (390, 844, True), (1280, 800, False)


def chromium(folder: Path) -> Chrome:
    """Return a browser with its profile in this folder."""
    options = ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={folder}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return Chrome(options, Driver(CHROMEDRIVER))


class Person:
    """A user of the browser."""

    def __init__(self, chrome):
        self.chrome = chrome

    def sits_at(self, size, language):
        width, height, mobile = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        agent = {"userAgent": self.chrome.execute_script("return navigator.userAgent"), "acceptLanguage": language}
        self.chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.chrome.execute_cdp_cmd("Emulation.setUserAgentOverride", agent)

    def opens(self, url):
        self.chrome.get(url)
        self.chrome.execute_script("window.sameDocument = true")

    def find(self, css):
        return self.chrome.find_element(By.CSS_SELECTOR, css)

    def waits_for(self, condition, seconds=20):
        """Return the result of `condition` once it is true, even if the page is replaced meanwhile."""

        def looks(_):
            try:
                return condition()
            except WebDriverException as error:
                # ChromeDriver 156 reports some elements of a replaced page as an unknown error.
                if "does not belong to the document" in str(error.msg):
                    raise StaleElementReferenceException(error.msg) from error
                raise

        replaced = (NoSuchElementException, StaleElementReferenceException)
        return WebDriverWait(self.chrome, seconds, 0.05, replaced).until(looks)

    @property
    def has_not_reloaded(self):
        return self.chrome.execute_script("return window.sameDocument === true")

    @property
    def scrolls_sideways(self):
        # On a phone `innerWidth` grows with the page.
        page = "document.documentElement"
        return self.chrome.execute_script(f"return {page}.scrollWidth > {page}.clientWidth")

    def complaints(self):
        """Return the messages in the browser's console: errors, refused loads, policy violations."""
        return [entry["message"] for entry in self.chrome.get_log("browser") if entry["level"] in ("WARNING", "SEVERE")]


@contextmanager
def scripts_disabled(person, disabled=True):
    """Let the person's browser run no scripts of pages meanwhile."""
    person.chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": disabled})
    try:
        yield
    finally:
        person.chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def watched(one):
    """Yield this person; the browser's console must have no errors at the end."""
    one.complaints()
    yield one
    assert one.complaints() == []
