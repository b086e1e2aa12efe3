"""`make screenshots`: take the pictures of the README from a new demo, in both languages, with headless Chromium."""

import base64
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from selenium.webdriver.common.by import By

from tests.browser import DESKTOP, PHONE, Person, chromium
from tests.support import ROOT, DemoService, finished

IMAGES = ROOT / "docs" / "images"
LANGUAGES = ("en", "zh")
QUALITY = 70  # of WebP


def take(chrome, page: Path) -> None:
    """Save what the window shows."""
    picture = chrome.execute_cdp_cmd("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    page.write_bytes(base64.b64decode(picture["data"]))


def take_all(chrome, demo: DemoService, language: str) -> None:
    """Save the payment page, the simulator and the console's overview in one language."""
    person = Person(chrome)
    chrome.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
    person.sits_at(PHONE, language)
    person.opens(demo.api.buy("268.00", channel=3, paychannel_paymethod="bank").data["pay_url"])
    take(chrome, IMAGES / f"payment-{language}.webp")
    person.sits_at(DESKTOP, language)
    demo.api.buy("99.00")
    person.opens(f"{demo.url}/sandbox")
    take(chrome, IMAGES / f"simulator-{language}.webp")
    person.opens(f"{demo.url}/console/")
    if chrome.find_elements(By.NAME, "password"):
        person.find("[name=name]").send_keys("demo")
        person.find("[name=password]").send_keys("demo-password\n")
        person.waits_for(lambda: not chrome.find_elements(By.NAME, "password"))
    take(chrome, IMAGES / f"console-{language}.webp")


def main() -> None:
    """Seed a demo in a temporary folder, and take all pictures."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as ends:
        demo = DemoService(Path(folder) / "instance")
        finished([sys.executable, "app.py", "seed", "--orders", "300"], env=demo.environ, check=True)
        demo.start()
        ends.callback(demo.stop)
        chrome = chromium(Path(folder) / "browser")
        ends.callback(chrome.quit)
        for language in LANGUAGES:
            take_all(chrome, demo, language)
    for picture in sorted(IMAGES.glob("*.webp")):
        print(f"{picture.relative_to(ROOT)}: {picture.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
