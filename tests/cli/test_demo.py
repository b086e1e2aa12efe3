"""Commands reach the demo at the address at which it serves, and its printed request can be pasted into a shell."""

import shutil
import subprocess
from unittest.mock import patch

import pytest

pytestmark = pytest.mark.usefixtures("demo")


@pytest.fixture
def elsewhere(service):
    """The environment of a second terminal, which does not know the port of the running demo."""
    environ = {name: value for name, value in service.environ.items() if name != "ORDERS_PORT"}
    with patch.object(service, "environ", environ):
        yield service


def test_commands_use_the_address_of_the_running_demo(elsewhere):
    assert f"curl -s {elsewhere.url}/merchant/createOrder" in elsewhere.flask("demo-curl").stdout
    assert elsewhere.flask("merchant", "test-callback", "demo").stdout.splitlines()[1].split() == ["delivered", "yes"]


def test_a_configured_port_comes_first(elsewhere):
    elsewhere.environ["ORDERS_PORT"] = "8001"
    assert "http://127.0.0.1:8001/merchant" in elsewhere.flask("demo-curl").stdout
    del elsewhere.environ["ORDERS_PORT"]
    config = elsewhere.instance / "config.toml"
    config.write_text("port = 8002\n", "utf-8")
    try:
        assert "http://127.0.0.1:8002/merchant" in elsewhere.flask("demo-curl").stdout
    finally:
        config.unlink()


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_printed_request_shows_the_pay_url_on_a_line_of_its_own(elsewhere):
    def pasted():
        return subprocess.run(["sh", "-c", printed], capture_output=True, text=True, check=True).stdout.splitlines()

    printed = elsewhere.flask("demo-curl").stdout
    response, pay_url = pasted()
    assert '"code":1' in response
    assert pay_url.startswith(f"{elsewhere.url}/")
    (refused,) = pasted()
    assert '"code":40104' in refused
    assert "print a new one with: .venv/bin/tillbook demo-curl" in refused
