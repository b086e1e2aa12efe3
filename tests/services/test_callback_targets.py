"""Where a callback may not go, and what a strange address does."""

import threading

import pytest

from tests.support import completed

IN_PRODUCTION = {"demo": False}
ALLOWED = {"demo": False, "private_callbacks": True}


@pytest.fixture
def swept(due):
    """Send what is due from a new thread, as the service does: a thread keeps the session that it made first."""

    def sweep():
        thread = threading.Thread(target=due.callbacks)
        thread.start()
        thread.join()

    return sweep


@pytest.mark.parametrize("settings_of_app", [IN_PRODUCTION])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "2130706433", "0.0.0.0", "[::ffff:127.0.0.1]"])
def test_loopback_is_refused_in_production_however_it_is_written(host, api, receiver, flask, swept, tries):
    flask("merchant", "set", "demo", "--callback-url", f"http://{host}:{receiver.server.port}/demo")
    completed(api)
    swept()
    assert receiver.got == []
    (attempt,) = tries()
    assert attempt["status"] is None
    assert "InvalidIPAddress" in attempt["answer"]


@pytest.mark.parametrize("settings_of_app", [IN_PRODUCTION])
@pytest.mark.parametrize(
    "host",
    ["10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "[::1]", "[fe80::1]", "[fd00::1]"],
)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_private_or_link_local_target_is_refused_in_production(scheme, host, api, flask, swept, tries):
    flask("merchant", "set", "demo", "--callback-url", f"{scheme}://{host}/hook")
    completed(api)
    swept()
    (attempt,) = tries()
    assert attempt["status"] is None
    assert "InvalidIPAddress" in attempt["answer"]


@pytest.mark.parametrize("settings_of_app", [ALLOWED, {"demo": True}])
def test_a_private_target_is_allowed_by_a_setting_and_in_demo_mode(settings_of_app, api, shop, swept):
    completed(api)
    swept()
    assert shop.got[0].event["type"] == "order.completed"


def test_proxies_in_the_environment_are_not_used(api, shop, other_shop, swept, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, other_shop.url)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    completed(api)
    swept()
    assert len(shop.got) == 1
    assert len(shop.server.log) == 1


@pytest.mark.parametrize("url", ["ftp://x/", "javascript:1", "http://", "http://[::/", "http://x:y/", "//x.example/"])
def test_an_address_that_is_none_is_refused_with_a_line(url, flask, flask_json):
    said = flask("merchant", "set", "demo", "--callback-url", url, fails=True).output
    assert said.startswith("Error: ")
    assert flask_json("merchant", "show", "demo")["callback_url"] == "/sandbox/inbox"


@pytest.mark.parametrize("settings_of_app", [IN_PRODUCTION, ALLOWED])
@pytest.mark.parametrize("url", ["http://a..b/", "http://.example/", "http://%/", "http://nowhere.invalid/"])
def test_an_address_that_leads_nowhere_is_a_failed_attempt(url, settings_of_app, api, flask, swept, tries):
    flask("merchant", "set", "demo", "--callback-url", url)
    completed(api)
    swept()
    (attempt,) = tries()
    assert attempt["status"] is None
    assert attempt["answer"]
