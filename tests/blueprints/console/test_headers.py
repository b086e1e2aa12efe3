"""Any headers of a request lead to a documented response and a line in the log, without a traceback."""

import logging
from itertools import product
from urllib.parse import unquote

import pytest

from blueprints import console
from tests.blueprints.console.reading import Shown

NO_HOSTS = ("a..b", ".", "x" * 64, f"{'x' * 64}.example", "é", "a b", "a,b", "a:99999", "[::1", "a/b", "user@a", "a\tb")
HOSTS = ("localhost", "[::1]:8000", "127.0.0.1", "192.168.1.5:8000", "orders:8000", "x" * 63, "shop.localhost")
DOMAINS = ("pay.example.com:8443", "rebound.example", "A.example.", "127.0.0.1.rebound.example")

HEADERS = {
    "Host": (*NO_HOSTS, *HOSTS, *DOMAINS),
    "X-Forwarded-For": ("", ",", "x" * 5_000, "::1%\x7f", "1.2.3.4, é"),
    "X-Forwarded-Proto": ("", "javascript", "https, http", "é", ":"),
    "X-Forwarded-Host": ("a..b", "é"),
    "X-Request-Id": ("", "é", "x" * 5_000),
    "Accept-Language": ("zh;q=", ",;=", "é" * 500, "-", "zh-" * 100),
    "Accept-Encoding": ("gzip;q=x", "é", ";;;,"),
    "Accept": ("é", "*/*;q=-1"),
    "Cookie": ("console=", "console=.x.y.z", "console_zone=../../etc", "=;=;", "é=é", "console_language=\x7f"),
    "Authorization": ("Basic é", "Basic !!!", "Bearer", "Digest x=y, x"),
    "Content-Type": ("", "é", "multipart/form-data", "multipart/form-data; boundary=é", "application/json; charset=x"),
    "Content-Length": ("", "-1", "x", "1" * 30),
    "Transfer-Encoding": ("chunked", "x"),
    "Content-Encoding": ("gzip", "é"),
    "Range": ("bytes=", "bytes=-1", "bytes=9-1", "é", "bytes=0-0,0-0"),
    "If-None-Match": ("W/", '"', "é", "*"),
    "If-Modified-Since": ("yesterday", "Mon, 99 Foo 99999 99:99:99 GMT", "é"),
    "If-Range": ("é", '"'),
    "Referer": ("é", "http://[", "javascript:x"),
    "Origin": ("null", "http://[", "é"),
    "User-Agent": ("", "é", "x" * 5_000),
    "Idempotency-Key": ("", "é", "\x7f"),
    "X-Http-Method-Override": ("DELETE",),
}


@pytest.fixture
def settings_of_app():
    return {"trusted_proxies": 1, "pages_per_address": 1_000_000, "requests_per_address": 1_000_000}


@pytest.fixture
def everywhere(demo, app):
    """Each path with each of its methods, of the service and of the console."""
    applications = (("", app), (console.PREFIX, console.create()))
    rules = [(prefix, rule) for prefix, each in applications for rule in each.url_map.iter_rules()]
    found = {(method, prefix + rule.rule) for prefix, rule in rules for method in rule.methods - {"HEAD", "OPTIONS"}}
    return sorted({(method, path.split("<")[0]) for method, path in found})


@pytest.mark.parametrize("name", HEADERS)
def test_no_header_breaks_an_endpoint(app, everywhere, sign_in, caplog, name):
    caplog.set_level(logging.INFO)
    clients = (app.test_client(), sign_in("demo"))
    values = HEADERS[name]
    # A header is read before the endpoint is, so each one is sent to a quarter of the endpoints.
    for number, (method, path) in enumerate(everywhere[list(HEADERS).index(name) % 4 :: 4]):
        value = values[number % len(values)]  # each value at its share of the endpoints
        for client in clients[: 2 if path.startswith(console.PREFIX) else 1]:
            status = client.open(path, method=method, headers={name: value}).status_code
            assert status < 500 or (path, status) == ("/readyz", 503), (method, path, value)
    assert [record.message for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR] == []


def test_an_invalid_host_is_refused_with_one_line_in_the_log(http, caplog):
    caplog.set_level(logging.INFO)
    paths = ("/healthz", "/merchant/createOrder", "/docs", "/console/", "/console/login", "/nowhere")
    for host, path in product(NO_HOSTS, paths):
        caplog.clear()
        refused = http("GET", path, headers={"Host": host})
        assert (refused.status, refused.code, refused.data) == (400, 40000, None), (host, path)
        assert "Host" in refused.json["msg"]
        (line,) = (record.message for record in caplog.records if record.name.startswith("blueprints"))
        assert ("invalid Host header" in line, len(line) < 250) == (True, True)
    for host in HOSTS:
        assert http("GET", "/healthz", headers={"Host": host}).code == 1, host


def test_a_domain_that_resolves_to_the_demo_reaches_nothing(demo, http):
    """The page of a domain that resolves to this machine could redirect callbacks to its other services."""
    for host, path in product(DOMAINS, ("/healthz", "/merchant/createOrder", "/sandbox", "/console/login")):
        answer = http("GET", path, headers={"Host": host})
        assert (answer.status, "site_url" in answer.text) == (400, True), (host, path)


@pytest.mark.parametrize("settings_of_app", [{"demo": False}, {"site_url": "https://pay.example.com"}])
def test_a_configured_domain_reaches_the_demo_and_any_reaches_production(demo, http):
    assert http("GET", "/healthz", headers={"Host": "pay.example.com"}).code == 1


# Texts that must not become a redirect, as they are in the address of a request.
ELSEWHERE = """
    https://evil.example https:evil.example evil.example //evil.example ///evil.example /orders//evil.example
    %5C%5Cevil.example /%5Cevil.example /%09/evil.example /%0A/evil.example %09//evil.example %20/ /é
    /.. /../ /../addons/shop /./../addons/shop /orders/../../addons/shop /orders/.. /orders/.?a=b
    /%2e%2e/addons/shop /.%2e/addons/shop /%252e%252e/addons/shop /%252E./addons/shop /orders/%252e
    /%25252e%25252e/addons /..%2faddons /..%252faddons /..;/addons /..%3Ba=b/addons /%252e%252e%253b/addons
    /..%5Caddons /..%255caddons /.%09./addons /.%0D./addons /.%2509./addons /..%23/addons /..%00/addons
    /%0a /%0d%0aSet-Cookie:%20a=b /orders/?a=%0d%0ab /%EF%BC%8E%EF%BC%8E/addons
"""
WITHIN = """
    / /?range=7 /orders/ /orders/?flt_status=paid /orders/?q=..%2F..%26to=%25E5%25BC%25A0
    /channel/1/picture/wxpay /merchant/a.b..c-_
"""


@pytest.fixture
def redirected(app, sign_in):
    """`redirected(to)`: where each page leads to that redirects to a path in its address."""

    def sent(client, page, url, **fields):
        form = {"csrf_token": Shown(page.text).fields["csrf_token"], **fields}
        return client.post(url, data=form)

    def follow(to):
        client = app.test_client()
        yield client.get(f"/console/language/zh?to={to}")
        url = f"/console/login?next={to}"
        yield sent(client, client.get(url), url, name="demo", password="demo-password")
        yield client.get(url)
        confirmation = f"/console/confirm?to={to}"
        yield sent(client, client.get("/console/password"), confirmation, **{"confirm-answer": "demo-password"})

    return lambda to: [answer.headers["Location"] for answer in follow(to)]


def test_a_redirect_never_leaves_the_console(redirected):
    """Browsers resolve dot segments, also encoded ones; some proxies decode them again, or ignore `;`."""
    for to in ("", *ELSEWHERE.split()):
        assert redirected(to) == ["/console/"] * 4, to
    for to in WITHIN.split():
        assert redirected(to) == [f"/console{unquote(to)}"] * 4, to


def test_no_redirect_uses_the_host_or_leads_elsewhere(viewer):
    for path in ("", "/orders", "/orders?flt_type=buy", "/merchant/demo/", "//orders"):
        answer = viewer.get(f"/console{path}")
        assert (answer.status_code, answer.headers.get("Location")) == (200, None), path
    for path in ("orders/edit/", "orders/new/", "orders/details/", "audit/edit/", "ledger/edit/"):
        assert viewer.get(f"/console/{path}?url=https:evil.example").status_code == 404, path
