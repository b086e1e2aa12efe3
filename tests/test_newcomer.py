"""What `make test-newcomer` reads in the README and in pages. The run itself needs root, debootstrap and a network."""

from urllib.parse import urlsplit

import pytest

from tests.newcomer import Failed, Forms, Readme
from tests.support import ROOT

README = (ROOT / "README.md").read_text("utf-8")


def test_the_readme_has_each_command_of_a_newcomer_once():
    readme = Readme(README)
    assert (readme.run, readme.test) == ("make run\n", "make test\n")
    assert readme.last_line == "serving on http://127.0.0.1:8000"
    assert (readme.console, readme.name) == ("http://127.0.0.1:8000/console", "demo")
    assert "python3-venv" in readme.install_first
    assert "git clone REPOSITORY tillbook" in readme.get_code
    assert "rm -rf tillbook" in readme.uninstall


def test_another_port_is_that_of_every_address():
    readme = Readme(README, 8001)
    assert {urlsplit(address).port for address in (readme.inbox, readme.console, readme.last_line[11:])} == {8001}


@pytest.mark.parametrize("change", [("make run\n", "make dashboard\n"), ("make test\n", "make test\nmake run\n")])
def test_a_readme_without_a_command_or_with_two_of_it_is_refused(change):
    with pytest.raises(Failed, match="make run"):
        Readme(README.replace(*change))


@pytest.mark.usefixtures("demo")
def test_the_payment_page_has_the_form_that_a_newcomer_sends(api, http):
    order = api.buy()
    address = urlsplit(order.data["pay_url"])
    (form,) = Forms(http("GET", f"{address.path}?{address.query}").text).found
    assert form["action"] == "/sandbox/pay"
    assert form["fields"] | form["buttons"]["Pay"] == {"order_no": order.data["order_no"], "outcome": "success"}
