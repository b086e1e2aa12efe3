"""The samples of the API reference run as they are shown, in each language."""

import re
from html import unescape

import pytest

from tests.clients.languages import LANGUAGES
from tests.support import completed

ORDER_NO = "202601018899480685472049"  # of the examples
FILES = {
    "Python": ("python", "sample.py"),
    "PHP": ("php", "sample.php"),
    "Node": ("javascript", "sample.mjs"),
    "Java": ("java", "Sample.java"),
    "Go": ("go", "sample.go"),
    "bash": ("bash", "sample.sh"),
}


@pytest.fixture
def samples(live, language, client):
    """Run the samples of an operation with the commands that the page shows, and yield the output of each.

    `order_no` replaces the order number of the examples.
    """
    page = live.api.send("GET", "/docs", headers={"Accept-Language": "en"}).text
    key, file = FILES[language]

    def printed(operation, order_no=ORDER_NO):
        section = page.partition(f'<section id="{operation}">')[2].partition("</section>")[0]
        panels = re.findall(rf'data-sample="{key}">(.*?)</div>', section, re.DOTALL)
        for shown in (re.findall(r"<code>(.*?)</code>", panel, re.DOTALL) for panel in panels):
            if shown:
                text, command = map(unescape, [*shown, f"bash {file}"][:2])
                # Other tests place an A-1001 with another payload at the same service, and each language has its own.
                text = re.sub(r"\b([AW]-\d{4})\b", r"\1-S", text).replace("R-1001", f"R-{order_no}")
                (client.folder / file).write_text(text.replace(ORDER_NO, order_no), "utf-8")
                done = client.run("bash -c", command, MERCHANT_URL=live.url)
                assert done.returncode == 0, done.stderr.decode()
                yield done.stdout.decode()

    return printed


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_samples_create_orders(language, live, samples):
    numbers = ["A-1001-S", "W-2001-S", "W-2002-S"][: 2 if language == "bash" else 3]
    for printed, number in zip(samples("createOrder"), numbers, strict=True):
        found = live.api.detail(merchant_order_no=number)
        assert found.code == 1
        assert found.data["order_no"] in printed


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_samples_refund_a_deposit_and_query_it(language, live, samples):
    order_no = completed(live.api)
    for operation in ("createRefund", "refundQueryDetail", "refundQueryList"):
        (printed,) = samples(operation, order_no)
        found = live.api.call("refundQueryDetail", {"merchant_refund_no": f"R-{order_no}"})
        assert (found.code, found.data["order_no"], found.data["status"]) == (1, order_no, "completed")
        assert found.data["refund_no"] in printed


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_sample_without_a_signature_reads_the_cities(language, samples):
    (printed,) = samples("cityList")
    assert "440100" in printed
