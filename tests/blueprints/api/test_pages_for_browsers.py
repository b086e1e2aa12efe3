"""A browser at an address without a page gets an error page; API clients get the envelope."""

from ipaddress import ip_network

import pytest

from tests.blueprints.openapi.test_reference import Page

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
CLIENTS = (
    *(None, "", "*/*", "application/json", "application/json, text/plain, */*", "text/html, application/json"),
    "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",  # Java's HttpURLConnection, and its later versions:
    "text/html, image/gif, image/jpeg, */*; q=0.2",
    "application/json, application/xhtml+xml;q=0.5, text/html;q=0.5",
)
UNKNOWN = ("/nowhere", "/docs/nowhere", "/docs/zh/nowhere", "/sandbox", "/merchant/deleteOrder")


@pytest.mark.parametrize(("language", "words"), [("en", "Page not found"), ("zh-CN", "页面不存在")])
@pytest.mark.parametrize("path", UNKNOWN)
def test_a_browser_gets_a_page_in_its_language_at_an_unknown_address(path, language, words, http):
    response = http("GET", path, headers={"Accept": BROWSER, "Accept-Language": language})
    assert (response.status, response.headers["Content-Type"]) == (404, "text/html; charset=utf-8")
    assert f"<h1>{words}</h1>" in response.text
    assert f'<html lang="{language}">' in response.text
    page = Page(response.text)
    assert page.inline == []
    assert all(http("GET", each).status == 200 for each in [*page.loads, *page.links])
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]


@pytest.mark.parametrize(("language", "words"), [("en", "This address is for programs"), ("zh-CN", "此地址供程序调用")])
def test_a_browser_gets_a_page_at_an_address_for_requests_of_programs(language, words, http):
    response = http("GET", "/merchant/createOrder", headers={"Accept": BROWSER, "Accept-Language": language})
    assert (response.status, response.headers["Allow"]) == (405, "POST")
    assert f"<h1>{words}</h1>" in response.text


@pytest.mark.parametrize("accepted", CLIENTS)
def test_a_client_gets_the_envelope(accepted, http):
    headers = {} if accepted is None else {"Accept": accepted}
    for path, code in (("/nowhere", 40404), ("/docs/nowhere", 40404), ("/merchant/createOrder", 40500)):
        assert http("GET", path, headers=headers).code == code


def test_a_request_that_is_not_a_get_gets_the_envelope_even_from_a_browser(http):
    assert http("POST", "/merchant/deleteOrder", b"{}", {"Accept": BROWSER}).code == 40404
    assert http("POST", "/docs/signing", b"", {"Accept": BROWSER}).code == 40500


@pytest.mark.parametrize("settings_of_app", [{"metrics_from": (ip_network("10.0.0.1"),)}])
def test_metrics_are_as_unknown_to_other_addresses_as_any_other_path(http):
    for accepted in (BROWSER, "*/*"):
        shown = {http("GET", path, headers={"Accept": accepted}).text for path in ("/metrics", "/nowhere")}
        assert len(shown) == 1
