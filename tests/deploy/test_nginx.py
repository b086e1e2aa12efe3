"""The example for nginx: a real one in front of the real service, over TLS, with the unchanged file."""

import os
import re
import shutil
import socket
import ssl
import subprocess
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
import requests

from tests.support import ROOT, Answer, DemoApi, DemoService, free_port, https_certificate, until

SITE = (ROOT / "deploy" / "nginx" / "tillbook.conf").read_text("utf-8")
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
MAIN = """daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr;
events {{ }}
http {{
    access_log {folder}/access.log;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/tillbook.conf;
}}
"""

pytestmark = [
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed"),
    pytest.mark.usefixtures("slow", "demo"),
]


def _for_this_machine(folder, certificate, ports):
    """The unchanged site, except for its ports and folders."""
    site = re.sub(r"\n *listen \[::\][^\n]*", "", SITE).replace("/var/log/nginx", str(folder))
    for there, here in {
        "listen 80;": f"listen 127.0.0.1:{ports.http};",
        "listen 443 ssl;": f"listen 127.0.0.1:{ports.https} ssl;",
        "server 127.0.0.1:8000;": f"server 127.0.0.1:{ports.service};",
        "/etc/letsencrypt/live/pay.example.com/fullchain.pem": str(certificate),
        "/etc/letsencrypt/live/pay.example.com/privkey.pem": str(certificate),
        "/var/www/html": str(folder),
    }.items():
        assert site.count(there) == 1, there
        site = site.replace(there, here)
    return site


@pytest.fixture
def site(instance, tmp_path):
    """A service behind nginx: the addresses `https` and `http`, and the merchant `demo` through them."""
    folder, certificate = tmp_path / "nginx", https_certificate(tmp_path, "127.0.0.1")
    folder.mkdir()
    ports = SimpleNamespace(http=free_port(), https=free_port(), service=free_port())
    (folder / "tillbook.conf").write_text(_for_this_machine(folder, certificate, ports))
    as_root = "user root;\n" if os.geteuid() == 0 else ""  # otherwise its worker could not read the test's folder
    (folder / "nginx.conf").write_text(as_root + MAIN.format(folder=folder))
    https, client = f"https://127.0.0.1:{ports.https}", requests.Session()
    client.trust_env, client.verify = False, str(certificate)
    service = DemoService(instance, port=ports.service, ORDERS_TRUSTED_PROXIES="1", ORDERS_SITE_URL=https).start()
    nginx = subprocess.Popen([NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf")], stderr=subprocess.PIPE)

    def send(method, path, body=b"", headers=None):
        answer = client.request(method, https + path, data=body, headers=headers, timeout=20)
        return Answer(answer.status_code, answer.headers, answer.text)

    def answers():
        assert nginx.poll() is None, nginx.stderr.read()
        try:
            return client.get(f"{https}/openapi.json", timeout=5).status_code == 200
        except requests.ConnectionError:
            return False

    try:
        until(answers)
        yield SimpleNamespace(
            https=https,
            http=f"http://127.0.0.1:{ports.http}",
            folder=folder,
            client=client,
            api=DemoApi(send),
            service=service,
            nginx=nginx,
        )
    finally:
        if nginx.poll() is None:
            nginx.terminate()
            nginx.communicate(timeout=20)
        if service.process.poll() is None:
            service.stop()


def test_an_order_is_created_paid_and_queried_over_tls_by_callers_with_their_own_address(site):
    api, client = site.api, site.client
    placed = api.buy().data
    assert placed["pay_url"].startswith(f"{site.https}/addons/paychannel/pay/index?order_no=")
    assert placed["order_no"] in client.get(placed["pay_url"], timeout=20).text
    api.play(placed["order_no"], "success")
    assert api.status(placed["order_no"]) == "completed"

    login = client.get(f"{site.https}/console/", timeout=20)
    assert login.url.startswith(f"{site.https}/console/login")
    token = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', login.text)[1]
    form = {"csrf_token": token, "name": "demo", "password": "demo-password"}
    home = client.post(login.url, data=form, headers={"Referer": login.url}, timeout=20)
    assert (home.status_code, home.url) == (200, f"{site.https}/console/")
    assert all(cookie.secure for cookie in client.cookies)
    assert home.headers["Strict-Transport-Security"] == "max-age=63072000"

    site.service.flask("merchant", "set", "demo", "--allow", "203.0.113.7")
    until(lambda: api.listed().code == 40300)
    assert api.call("orderQueryList", headers={"X-Forwarded-For": "203.0.113.7"}).code == 40300
    site.service.flask("merchant", "set", "demo", "--allow", "127.0.0.1")
    until(lambda: api.listed().code == 1)


def test_nginx_names_requests_and_refuses_to_others_what_is_for_this_machine(site):
    answer = site.client.get(f"{site.https}/openapi.json", headers={"X-Request-Id": "mine"}, timeout=20)
    assert re.fullmatch(r"[0-9a-f]{32}", answer.headers["X-Request-Id"])
    for path in ("/healthz", "/readyz", "/metrics", "/%68ealthz"):
        assert site.client.get(site.https + path, timeout=20).status_code == 403, path
    assert requests.get(f"{site.service.url}/healthz", timeout=20).status_code == 200


KEY = "act=query&pid=1001&key=secret-key"


def _raw(site, head, address=""):
    """A connection to nginx that has sent this, and waits for the response."""
    url = urlsplit(address or site.https)
    connection = socket.create_connection((url.hostname, url.port), timeout=20)
    if url.scheme == "https":
        context = ssl.create_default_context(cafile=site.client.verify)
        connection = context.wrap_socket(connection, server_hostname=url.hostname)
    connection.sendall(head)
    return connection


def test_no_log_has_a_query_because_epay_puts_the_key_there(site):
    """Neither that of requests nor that of errors, whatever goes wrong."""

    def status(address, path=f"/api.php?{KEY}", **headers):
        return site.client.get(address + path, headers=headers, timeout=20, allow_redirects=False).status_code

    assert (status(site.https), status(site.http)) == (200, 301)
    assert status(site.https, Referer=f"{site.https}/api.php?{KEY}") == 200
    large = f"POST /api.php?{KEY} HTTP/1.1\r\nHost: x\r\nContent-Length: 7000000\r\n\r\n".encode()
    for address in (site.https, site.http):
        assert b" 413 " in _raw(site, large, address).recv(100)
    assert status(site.https, f"/healthz?{KEY}") == 403
    assert status(site.http, f"/.well-known/acme-challenge/none?{KEY}") == 404
    for path in (f"/api.php%3F{KEY}", f"/api.php&{KEY}", f"/nowhere?{KEY}", f"//api.php?{KEY}"):
        assert status(site.https, path) in (200, 404)
    too_long = f"GET /api.php?{KEY} HTTP/1.1\r\nHost: x\r\nCookie: {'x' * 40_000}\r\n\r\n".encode()
    assert b" 400 " in _raw(site, too_long).recv(100)
    slow = f"POST /api.php?{KEY} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n".encode()
    open_requests = [_raw(site, slow) for _ in range(64)]
    until(lambda: status(site.https) == 429)
    for each in open_requests:
        each.close()
    until(lambda: status(site.https) == 200)
    site.service.stop()
    assert status(site.https) == 502

    written = until(lambda: (log := (site.folder / "tillbook.log").read_text()) and '" 502 ' in log and log)
    site.nginx.terminate()
    errors = site.nginx.communicate(timeout=20)[1].decode()
    assert "secret-key" not in errors
    assert [log.name for log in site.folder.glob("*.log") if "secret-key" in log.read_text()] == []
    for seen in ('"GET /api.php" 200 ', '"POST /api.php" 413 ', '"GET /api.php" 429 ', '"GET /api.php" 502 '):
        assert seen in written
    assert re.search(r'"GET /api.php" 502 .* upstream=127\.0\.0\.1:[0-9]+ 502 [0-9.]+\n', written)
    assert re.search(r'"GET /api.php" 429 .* upstream=- - -\n', written)


def test_a_stranger_who_uploads_is_sent_to_the_sign_in(site):
    """The service responds before it has read the body."""
    upload = f"{site.https}/console/claims/upload"
    for _ in range(3):
        answer = site.client.post(upload, data=bytes(5_000_000), timeout=20, allow_redirects=False)
        assert (answer.status_code, answer.headers["Location"]) == (302, "/console/login")


def test_plain_http_only_redirects_to_https_and_validates_the_domain(site):
    proof = site.folder / ".well-known" / "acme-challenge" / "token"
    proof.parent.mkdir(parents=True)
    proof.write_text("proof")
    assert requests.get(f"{site.http}/.well-known/acme-challenge/token", timeout=20).text == "proof"
    order = requests.post(f"{site.http}/merchant/createOrder?a=b", timeout=20, allow_redirects=False)
    assert (order.status_code, order.headers["Location"]) == (301, "https://pay.example.com/merchant/createOrder?a=b")
